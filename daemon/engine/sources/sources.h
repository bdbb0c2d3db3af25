/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an event records: its sources, made from the terms of its text. Globs are resolved when
 * the event is made, and never again: later they are read from what was written down then, so
 * that a source keeps its index, and with it the id in its records.
 *
 * Knows the kernel's tracepoints and which recorder takes what; nothing of rings and pins.
 */
#pragma once

#include "daemon/engine/failure.h"
#include "daemon/engine/kernel/tracefs.h"
#include "daemon/engine/recorders/recorder.h"
#include "daemon/order.h"

/* They point into each other, and into the spec and the parsed event they were made of. */
struct sources {
	struct source *v;
	struct tracepoint *tp; /* of v[i], if it has one */
	size_t n;
};

/*
 * Makes the sources of a new event, planned; ids are provisional until sources_number(). Members
 * of a glob that no recorder can take are left out; until that is known they count as others do
 * (allowance: see crowd.h; NULL: no limits). Sentences in *f.
 */
int sources_resolve(const struct pp_spec *spec, const struct pp_parsed *parsed,
		    const struct pp_allowance *allowance, struct sources *ret, struct failure *f);

/* What was written down of a source when its event was made. */
struct source_record {
	const char
		*text; /* as sources_text() says; not terminated; unused if there is one source */
	size_t text_size;
	const char *format; /* tracepoints; else NULL */
	size_t format_size;
	uint32_t recorder; /* enum pp_recorder */
};

/*
 * Makes the sources of an event again, from its parsed event and one record for each source, in order.
 * id: of the event's rings. With one source the parsed event has its term alone (sources_parsed()).
 */
int sources_restore(const struct pp_spec *spec, const struct pp_parsed *parsed,
		    const struct source_record *records, size_t n, uint64_t id, struct sources *ret,
		    struct failure *f);

void sources_done(struct sources *s);

/* Gives them the ids that their records have: none, if there is only one. */
void sources_number(struct sources *s, uint64_t event_id);

bool source_term_is_glob(const struct pp_source *term);

/* A member of a glob may be left out if it cannot be recorded. */
bool source_is_optional(const struct source *source);

/* Takes out those that are marked, of which not all may be; plans anew what that changes. */
int sources_drop(struct sources *s, const bool *marked, struct failure *f);

/* "sched:sched_switch", or a term's text. */
void source_text(const struct source *source, char *buf, size_t size);

/* What there is to be known of all of them. */
uint32_t sources_spill_size(const struct sources *s);
uint64_t sources_work(const struct sources *s);	  /* how much it is to load their programs */
uint32_t sources_weight(const struct sources *s); /* of the heaviest: see filter-weight.h */
enum pp_missed sources_missed(const struct sources *s);

/* Whether two writers of a ring can interrupt each other. */
bool sources_nest(const struct sources *s);

/*
 * The parsed event to be written down: the one given, or, if it comes to a single source, a term for
 * that alone, with no glob in it. *ret is for free(3). -ENOMEM.
 */
int sources_parsed(const struct sources *s, const struct pp_parsed *parsed, struct pp_parsed **ret);
