// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes the sources of a new event from its terms. See sources.h. */
#include <string.h>

#include "daemon/engine/recorders/probe.h"
#include "daemon/engine/sources/crowd.h"
#include "daemon/engine/sources/sources-internal.h"
#include "daemon/log.h"
#include "proto/macro.h"

/* ── candidates ─────────────────────────────────────────────────────────────────────────── */

/* A future source: a term, and its tracepoint. */
struct candidate {
	const struct pp_source *term;
	struct tracepoint_name tp;
};

struct candidates {
	const struct pp_parsed *parsed;
	struct candidate *v;
	size_t n, cap;
};

static void candidates_done(struct candidates *c)
{
	free(c->v);
}

static bool same_filter(const struct pp_parsed *parsed, const struct pp_source *a,
			const struct pp_source *b)
{
	return a->n_filter == b->n_filter &&
	       memcmp(parsed->nodes + a->filter, parsed->nodes + b->filter,
		      a->n_filter * sizeof(parsed->nodes[0])) == 0;
}

/* The candidate for this tracepoint, or NULL. */
static const struct candidate *find_tracepoint(const struct candidates *c,
					       const struct tracepoint_name *tp)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].term->kind == PP_SOURCE_TRACEPOINT &&
		    !strcmp(c->v[i].tp.name, tp->name) && !strcmp(c->v[i].tp.system, tp->system))
			return &c->v[i];
	return NULL;
}

static int append(struct candidates *c, const struct candidate *one, struct failure *f)
{
	if (c->n == PP_SOURCES_MAX)
		return fail(f, E2BIG,
			    "'%s' stands for more than %u events, the most that one name can have; "
			    "name fewer.",
			    one->term->text, PP_SOURCES_MAX);
	if (c->n == c->cap) {
		size_t more = MAX(c->cap * 2, (size_t)16);
		void *bigger = reallocarray(c->v, more, sizeof(*c->v));

		if (!bigger)
			return fail(f, ENOMEM, "No memory for '%s'.", one->term->text);
		c->v = bigger;
		c->cap = more;
	}
	c->v[c->n++] = *one;
	return 0;
}

/* Each tracepoint once, however many terms match. */
static int append_tracepoint(struct candidates *c, const struct pp_source *term,
			     const struct tracepoint_name *tp, struct failure *f)
{
	const struct candidate *there = find_tracepoint(c, tp);

	if (!there)
		return append(c, &(struct candidate){ term, *tp }, f);
	if (same_filter(c->parsed, there->term, term))
		return 0;
	return fail(f, EINVAL,
		    "'%s:%s' is asked for twice with different filters; ask for it once, with both "
		    "filters joined by ||.",
		    tp->system, tp->name);
}

static int no_tracefs(const struct pp_source *term, struct failure *f)
{
	return fail(f, ENODEV,
		    "Tracefs is not mounted and cannot be mounted here, and tracepoint '%s:%s' "
		    "cannot be found without; run `mount -t tracefs tracefs /sys/kernel/tracing`.",
		    term->system, term->name);
}

static int append_glob(struct candidates *c, const struct pp_source *term, struct failure *f)
{
	_cleanup_free_ struct tracepoint_name *names = NULL;
	size_t n = 0;
	int r = tracepoint_list(term->system, term->name, &names, &n);

	if (r == -ENOMEDIUM)
		return no_tracefs(term, f);
	if (r < 0)
		return fail(f, -r, "Cannot read from tracefs which tracepoints there are: %s.",
			    strerror(-r));
	if (n == 0)
		return fail(f, ENOENT,
			    "This kernel has no tracepoint that matches '%s:%s'; `perfctl events` "
			    "shows those it has.",
			    term->system, term->name);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = append_tracepoint(c, term, &names[i], f);
	return r;
}

static int append_term(struct candidates *c, const struct pp_source *term, struct failure *f)
{
	struct tracepoint_name tp;

	if (source_term_is_glob(term))
		return append_glob(c, term, f);
	if (term->kind != PP_SOURCE_TRACEPOINT)
		return append(c, &(struct candidate){ .term = term }, f);
	memcpy(tp.system, term->system, sizeof(tp.system));
	memcpy(tp.name, term->name, sizeof(tp.name));
	return append_tracepoint(c, term, &tp, f);
}

/* ── sources ────────────────────────────────────────────────────────────────────────────── */

static int read_tracepoint(const struct candidate *c, struct tracepoint *ret, struct failure *f)
{
	int r = tracepoint_read(c->tp.system, c->tp.name, ret);

	switch (r) {
	case 0:
		return 0;
	case -ENOENT:
		return fail(
			f, ENOENT,
			"This kernel has no tracepoint '%s:%s'; `perfctl events` shows those it "
			"has.",
			c->tp.system, c->tp.name);
	case -ENOMEDIUM:
		return no_tracefs(c->term, f);
	default:
		return fail(f, -r, "Cannot read the format of tracepoint '%s:%s' from tracefs: %s.",
			    c->tp.system, c->tp.name, strerror(-r));
	}
}

static int make_probe(const struct pp_source *term, struct tracepoint *ret, struct failure *f)
{
	int r = probe_tracepoint(term, ret);

	return r < 0 ? fail(f, -r, "Cannot tell what '%s' records: %s.", term->text, strerror(-r))
		     : 0;
}

static int resolve_one(const struct pp_spec *spec, const struct candidates *c, size_t i,
		       struct sources *s, struct failure *f)
{
	const struct candidate *one = &c->v[i];
	int r = 0;

	source_begin(spec, c->parsed, one->term, &s->tp[i], &s->v[i]);
	if (one->term->kind == PP_SOURCE_TRACEPOINT)
		r = read_tracepoint(one, &s->tp[i], f);
	else if (!pp_source_counts(one->term))
		r = make_probe(one->term, &s->tp[i], f);
	s->v[i].id = c->n > 1;
	s->v[i].is_of_many = c->n > SYSCALL_MANY && source_is_optional(&s->v[i]);
	return r < 0 ? r : source_plan(&s->v[i], 0, f);
}

/* Leaves out members of globs that cannot be recorded; at least one source must remain. */
static int resolve_all(const struct pp_spec *spec, const struct candidates *c, struct sources *s,
		       struct failure *f)
{
	_cleanup_free_ bool *out = calloc(c->n, sizeof(*out));
	size_t left = c->n;
	int r = sources_allocate(s, c->n, f);

	if (r < 0 || !out)
		return fail(f, ENOMEM, "No memory for %zu events.", c->n);
	for (size_t i = 0; i < c->n; i++) {
		struct failure mine = {};

		r = resolve_one(spec, c, i, s, &mine);
		if (r >= 0)
			continue;
		if (!source_term_is_glob(c->v[i].term) || r == -ENOMEM || r == -ENODEV ||
		    --left == 0) {
			*f = mine;
			return r;
		}
		log_notice("Event %s/%s leaves out tracepoint %s:%s of '%s': %s", spec->ns,
			   spec->name, c->v[i].tp.system, c->v[i].tp.name, c->v[i].term->text,
			   mine.sentence);
		out[i] = true;
	}
	return left == c->n ? 0 : sources_drop(s, out, f);
}

/* Before any candidate is examined, since reading 2000 formats takes seconds. And before more
 * are added: each is compared with all others, which with sixteen globs for everything takes as
 * long. */
static int check_size(const struct pp_spec *spec, const struct candidates *c,
		      const struct pp_allowance *allowance, struct failure *f)
{
	uint64_t work = 0;

	for (size_t i = 0; i < c->n; i++)
		work += c->v[i].term->n_filter + 1;
	return crowd_check_size(spec, c->n, work, allowance, f);
}

int sources_resolve(const struct pp_spec *spec, const struct pp_parsed *parsed,
		    const struct pp_allowance *allowance, struct sources *ret, struct failure *f)
{
	_cleanup_(candidates_done) struct candidates c = { .parsed = parsed };
	_cleanup_(sources_done) struct sources s = {};
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < parsed->n_sources; i++) {
		r = append_term(&c, &parsed->sources[i], f);
		if (r >= 0)
			r = check_size(spec, &c, allowance, f);
	}
	if (r >= 0)
		r = resolve_all(spec, &c, &s, f);
	if (r < 0)
		return r;
	*ret = s;
	s = (struct sources){};
	return 0;
}
