/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sources of an event, made from the terms of its text. Globs are resolved when the event is
 * made, and never again: later the sources are read from its meta and catalog, so that each keeps
 * its index, and with it the id in its records.
 *
 * Knows the kernel's tracepoints and which recorder takes what; nothing of rings and pins.
 */
#pragma once

#include "daemon/engine/failure.h"
#include "daemon/engine/kernel/tracefs.h"
#include "daemon/engine/recorders/recorder.h"
#include "daemon/order.h"

/* In what the sources of a bound event count. */
struct binding {
	struct pp_msg_target target;
	uid_t broker;	/* see link_facts_read() */
	uint32_t max;	/* perf events of a new one */
	uint32_t n;	/* those that it has */
	uint32_t tried; /* those that were opened for it, in all tries */
};

/* They point into each other, and into their spec and parsed event. */
struct sources {
	struct source *v;
	struct tracepoint *tp; /* of v[i], if it has one */
	size_t n;
	struct binding *binding; /* the owner's; NULL: they are not bound */
};

/*
 * Makes and plans the sources of a new event; ids are provisional until sources_number(). Leaves
 * out members of globs that no recorder can take, but counts them against the limits (allowance:
 * see crowd.h; NULL: none). Messages in *f.
 */
int sources_resolve(const struct pp_spec *spec, const struct pp_parsed *parsed,
		    const struct pp_allowance *allowance, struct sources *ret, struct failure *f);

/* A source in an existing event's catalog and rings. */
struct source_record {
	const char *text; /* as from source_text(); not terminated; unused for a single source */
	size_t text_size;
	const char *format; /* tracepoints; else NULL */
	size_t format_size;
	uint32_t recorder; /* enum pp_recorder */
};

/*
 * Makes the sources of an existing event, from its parsed event and one record for each source, in
 * order. id: of the event's rings. With one source the parsed event has only its term
 * (sources_parsed()).
 */
int sources_restore(const struct pp_spec *spec, const struct pp_parsed *parsed,
		    const struct source_record *records, size_t n, uint64_t id, struct sources *ret,
		    struct failure *f);

void sources_done(struct sources *s);

/* Gives them the ids in their records: none for a single source. */
void sources_number(struct sources *s, uint64_t event_id);

bool source_term_is_glob(const struct pp_source *term);

/* A member of a glob may be left out if it cannot be recorded. */
bool source_is_optional(const struct source *source);

/* Removes the marked ones, which must not be all; plans again where necessary. */
int sources_drop(struct sources *s, const bool *marked, struct failure *f);

/* "sched:sched_switch", or a term's text. */
void source_text(const struct source *source, char *buf, size_t size);

/* Facts about all of them. */
uint32_t sources_spill_size(const struct sources *s);
uint64_t sources_work(const struct sources *s);	  /* of loading their programs */
uint32_t sources_weight(const struct sources *s); /* of the heaviest: see filter-weight.h */
enum pp_missed sources_missed(const struct sources *s);

/* Whether two writers of a ring can interrupt each other. */
bool sources_nest(const struct sources *s);

/*
 * The parsed event for meta: the given one, or, for a single source, one with a term for that
 * alone, without globs. *ret is for free(3). -ENOMEM.
 */
int sources_parsed(const struct sources *s, const struct pp_parsed *parsed, struct pp_parsed **ret);
