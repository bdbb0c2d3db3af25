// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sources, and which recorder takes them. See sources.h. */
#include "daemon/engine/sources/sources-internal.h"

#include <string.h>

#include "daemon/engine/emit/filter-weight.h"
#include "daemon/text.h"
#include "proto/macro.h"

void sources_done(struct sources *s)
{
	for (size_t i = 0; i < s->n; i++)
		tracepoint_done(&s->tp[i]);
	free(s->v);
	free(s->tp);
	*s = (struct sources){};
}

void source_text(const struct source *source, char *buf, size_t size)
{
	if (source->parsed->kind == PP_SOURCE_TRACEPOINT && source->tp)
		snprintf(buf, size, "%s:%s", source->tp->system, source->tp->name);
	else
		snprintf(buf, size, "%s", source->parsed->text);
}

bool source_term_is_glob(const struct pp_source *term)
{
	return term->kind == PP_SOURCE_TRACEPOINT &&
	       (pp_is_glob(term->system) || pp_is_glob(term->name));
}

bool source_is_optional(const struct source *source)
{
	return source_term_is_glob(source->parsed);
}

/* ── one source ─────────────────────────────────────────────────────────────────────────── */

int source_plan(struct source *s, uint32_t only, struct failure *f)
{
	static const struct recorder *const all[] = { &recorder_hot, &recorder_generic,
						      &recorder_overflow, &recorder_probe,
						      &recorder_aux };
	static const uint32_t takes[] = {
		[PP_RECORDER_GENERIC] = 1U << PP_SOURCE_TRACEPOINT,
		[PP_RECORDER_TP_BTF] = 1U << PP_SOURCE_TRACEPOINT,
		[PP_RECORDER_OVERFLOW] = 1U << PP_SOURCE_SAMPLING,
		[PP_RECORDER_PROBE] = 1U << PP_SOURCE_KPROBE | 1U << PP_SOURCE_UPROBE,
		[PP_RECORDER_AUX] =
			1U << PP_SOURCE_AUX | 1U << PP_SOURCE_SAMPLING | 1U << PP_SOURCE_TRACEPOINT,
	};
	char text[PP_TP_NAME_SIZE * 2];
	int r = -EOPNOTSUPP;

	if (s->spec->flags & PP_EVENT_AUX)
		only = PP_RECORDER_AUX;
	for (size_t i = 0; r == -EOPNOTSUPP && i < ARRAY_SIZE(all); i++) {
		if (!(takes[all[i]->kind] & 1U << s->parsed->kind) ||
		    (only && all[i]->kind != only))
			continue;
		if (!only && all[i] == &recorder_hot &&
		    (s->spec->flags & PP_EVENT_GENERIC || !hot_is_exact(s->tp)))
			continue;
		r = all[i]->plan(s, f);
	}
	if (r >= 0)
		return 0;
	source_text(s, text, sizeof(text));
	return fail(f, -r, "No recorder can record '%s' on this kernel: %s.", text, strerror(-r));
}

void source_begin(const struct pp_spec *spec, const struct pp_parsed *parsed,
		  const struct pp_source *term, struct tracepoint *tp, struct source *ret)
{
	*ret = (struct source){
		.spec = spec,
		.parsed = term,
		.term = (uint32_t)(term - parsed->sources),
		.filter = term->n_filter ? parsed->nodes + term->filter : NULL,
		.n_filter = term->n_filter,
		.tp = pp_source_counts(term) ? NULL : tp,
	};
}

int sources_allocate(struct sources *s, size_t n, struct failure *f)
{
	s->v = calloc(n, sizeof(*s->v));
	s->tp = calloc(n, sizeof(*s->tp));
	s->n = s->v && s->tp ? n : 0;
	return s->n ? 0 : fail(f, ENOMEM, "No memory for %zu events.", n);
}

/* ── all sources ────────────────────────────────────────────────────────────────────────── */

void sources_number(struct sources *s, uint64_t event_id)
{
	for (size_t i = 0; i < s->n; i++)
		s->v[i].id = s->n > 1 ? PP_SOURCE_ID(event_id, i) : 0;
}

int sources_drop(struct sources *s, const bool *marked, struct failure *f)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (marked[i]) {
			tracepoint_done(&s->tp[i]);
			continue;
		}
		s->tp[n] = s->tp[i];
		s->v[n] = s->v[i];
		if (s->v[n].tp)
			s->v[n].tp = &s->tp[n];
		n++;
	}
	s->n = n;
	if (n != 1)
		return 0;
	/* A single source has no id, which makes its records shorter. */
	s->v[0].id = 0;
	s->v[0].is_of_many = false;
	return source_plan(&s->v[0], 0, f);
}

uint32_t sources_spill_size(const struct sources *s)
{
	uint32_t max = 0;

	for (size_t i = 0; i < s->n; i++)
		max = MAX(max, s->v[i].spill_size);
	return max;
}

uint64_t sources_work(const struct sources *s)
{
	uint64_t work = 0;

	for (size_t i = 0; i < s->n; i++)
		work += s->v[i].n_filter + 1;
	return work;
}

/* At a tracepoint or probe a program that takes a chain of 120 frames takes as long as eight and more, and so
 * many bytes of user stack, or of an AUX area, as one more. The rate of samples is bounded otherwise. */
#define CHAIN_WEIGHT 7
#define COPIED_BYTES 1024

static uint32_t chain_weight(const struct source *s)
{
	uint32_t copied = s->spec->stack_user;

	if (s->spec->flags & PP_EVENT_AUX_GROUP)
		copied = s->parsed->aux_sample;
	if (pp_source_counts(s->parsed))
		return 0;
	return (s->spec->flags & PP_EVENT_CALLCHAIN ? CHAIN_WEIGHT : 0) + copied / COPIED_BYTES;
}

uint32_t sources_weight(const struct sources *s)
{
	uint32_t max = 1;

	for (size_t i = 0; i < s->n; i++)
		max = MAX(max, filter_weight(s->v[i].tp, s->v[i].filter, s->v[i].n_filter) +
				       chain_weight(&s->v[i]));
	return max;
}

enum pp_missed sources_missed(const struct sources *s)
{
	enum pp_missed missed = PP_MISSED_COUNTED;

	for (size_t i = 0; i < s->n && missed != PP_MISSED_UNKNOWN; i++)
		if (s->v[i].missed != PP_MISSED_COUNTED)
			missed = s->v[i].missed;
	return missed;
}

/*
 * Programs on tracepoints, overflows and kprobes exclude each other on a CPU (bpf_prog_active);
 * tp_btf programs exclude only themselves. Since 7.0 the same would be true of those on syscalls:*:
 * raw_syscalls carries them there (syscall.h), unless an older engine linked them.
 */
bool sources_nest(const struct sources *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].can_nest || s->v[i].is_preemptible ||
		    (s->n > 1 && s->v[i].recorder->kind == PP_RECORDER_TP_BTF))
			return true;
	return false;
}

int sources_parsed(const struct sources *s, const struct pp_parsed *parsed, struct pp_parsed **ret)
{
	struct pp_parsed *copy = calloc(1, sizeof(*copy));
	struct pp_source *term;

	if (!copy)
		return -ENOMEM;
	*ret = copy;
	if (s->n > 1) {
		*copy = *parsed;
		return 0;
	}
	term = &copy->sources[0];
	*term = *s->v[0].parsed;
	if (s->v[0].tp && term->kind == PP_SOURCE_TRACEPOINT) {
		memcpy(term->system, s->v[0].tp->system, sizeof(term->system));
		memcpy(term->name, s->v[0].tp->name, sizeof(term->name));
	}
	copy->n_sources = 1;
	copy->n_nodes = term->n_filter;
	if (term->n_filter)
		memcpy(copy->nodes, s->v[0].filter, term->n_filter * sizeof(copy->nodes[0]));
	term->filter = 0;
	return 0;
}
