// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes the sources of an existing event from its meta and catalog. See sources.h. */
#include <string.h>

#include "daemon/engine/recorders/probe.h"
#include "daemon/engine/sources/sources-internal.h"
#include "daemon/filter.h"
#include "proto/macro.h"

/* Walks the terms along with their sources. */
struct terms {
	const struct pp_parsed *parsed;
	uint32_t next; /* of those that are no tracepoints, or of all of a group */
};

static const struct pp_source *next_term(struct terms *t, uint32_t recorder)
{
	while (t->next < t->parsed->n_sources) {
		const struct pp_source *term = &t->parsed->sources[t->next++];

		if (recorder == PP_RECORDER_OVERFLOW
			    ? pp_source_counts(term)
			    : (term->kind == PP_SOURCE_KPROBE || term->kind == PP_SOURCE_UPROBE))
			return term;
	}
	return NULL;
}

/* The first that matches, since each tracepoint was taken once. */
static const struct pp_source *tracepoint_term(const struct terms *t,
					       const struct tracepoint_name *tp)
{
	for (uint32_t i = 0; i < t->parsed->n_sources; i++) {
		const struct pp_source *term = &t->parsed->sources[i];

		if (term->kind == PP_SOURCE_TRACEPOINT && pp_glob_match(term->system, tp->system) &&
		    pp_glob_match(term->name, tp->name))
			return term;
	}
	return NULL;
}

static int split_text(const struct source_record *record, struct tracepoint_name *ret)
{
	const char *colon = memchr(record->text, ':', record->text_size);
	size_t system = colon ? (size_t)(colon - record->text) : 0;
	size_t name = record->text_size - system - 1;

	if (!colon || system >= sizeof(ret->system) || name >= sizeof(ret->name))
		return -EBADMSG;
	*ret = (struct tracepoint_name){};
	memcpy(ret->system, record->text, system);
	memcpy(ret->name, colon + 1, name);
	return 0;
}

/* In the group of an AUX area each term is one source. */
static const struct pp_source *group_term(struct terms *t, struct tracepoint_name *ret)
{
	const struct pp_source *term;

	if (t->next == t->parsed->n_sources)
		return NULL;
	term = &t->parsed->sources[t->next++];
	memcpy(ret->system, term->system, sizeof(ret->system));
	memcpy(ret->name, term->name, sizeof(ret->name));
	return term;
}

static const struct pp_source *restore_term(struct terms *t, const struct source_record *record,
					    bool alone, struct tracepoint_name *ret)
{
	if (record->recorder == PP_RECORDER_AUX)
		return group_term(t, ret);
	if (record->recorder == PP_RECORDER_OVERFLOW || record->recorder == PP_RECORDER_PROBE)
		return next_term(t, record->recorder);
	if (!alone)
		return split_text(record, ret) < 0 ? NULL : tracepoint_term(t, ret);
	memcpy(ret->system, t->parsed->sources[0].system, sizeof(ret->system));
	memcpy(ret->name, t->parsed->sources[0].name, sizeof(ret->name));
	return tracepoint_term(t, ret);
}

static int restore_one(const struct pp_spec *spec, struct terms *t,
		       const struct source_record *record, struct sources *s, size_t i,
		       struct failure *f)
{
	struct tracepoint_name name;
	const struct pp_source *term = restore_term(t, record, s->n == 1, &name);
	struct source *source = &s->v[i];
	int r = 0;

	if (!term)
		return fail(f, EBADMSG,
			    "The description of '%s/%s' is inconsistent; delete the event and "
			    "create it again.",
			    spec->ns, spec->name);
	source_begin(spec, t->parsed, term, &s->tp[i], source);
	if (term->kind == PP_SOURCE_TRACEPOINT)
		r = tracepoint_parse(name.system, name.name, record->format, record->format_size,
				     source->tp);
	else if (!pp_source_counts(term))
		r = probe_tracepoint(term, source->tp);
	if (r < 0)
		return fail(f, -r, "Cannot tell what '%s' of '%s/%s' records: %s.", term->text,
			    spec->ns, spec->name, strerror(-r));
	source->id = s->n > 1;
	/* links_recognize() corrects it */
	source->is_of_many = s->n > 1 && source_is_optional(source);
	return source_plan(source, record->recorder, f);
}

int sources_restore(const struct pp_spec *spec, const struct pp_parsed *parsed,
		    const struct source_record *records, size_t n, uint64_t id, struct sources *ret,
		    struct failure *f)
{
	_cleanup_(sources_done) struct sources s = {};
	struct terms terms = { .parsed = parsed };
	int r = sources_allocate(&s, n, f);

	for (size_t i = 0; r >= 0 && i < n; i++)
		r = restore_one(spec, &terms, &records[i], &s, i, f);
	if (r < 0)
		return r;
	sources_number(&s, id);
	*ret = s;
	s = (struct sources){};
	return 0;
}
