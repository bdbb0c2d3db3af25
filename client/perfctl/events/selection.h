/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Selects records: --last, --since, --until, -C, --pid, --tid, --about, --event; one syntax for
 * snapshot, record, reopen, script and report.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/perfctl/decode/decode.h"
#include "client/perfctl/perfctl.h"

struct keytable;
struct source;

struct selection {
	uint64_t last;	       /* ns before `until` or the newest (a snapshot's: now); 0: all */
	uint64_t since, until; /* CLOCK_MONOTONIC, ns; 0: not given */
	bool since_is_real, until_is_real; /* they are CLOCK_REALTIME instead */
	uint8_t *cpus;			   /* a byte for each CPU; NULL: all */
	size_t n_cpus;
	struct ids {
		uint32_t *all;
		size_t n;
	} pids, tids;		 /* processes, threads; both empty: all */
	bool about;		 /* also records that name them in a field */
	const char *event;	 /* glob; NULL: all */
	const char *cpu_list;	 /* of cpus, as it was typed */
	char typed[256];	 /* all options as they were typed, cut off at its end */
	struct keytable *owners; /* with pids, tids or about: the process of each thread, as far as
				  * records told */
};

/* Processes that a record names beside its own. */
#define ABOUT_MAX 8
struct about {
	uint32_t pids[ABOUT_MAX]; /* different ones */
	size_t n;
};

extern const struct verb_option selection_options[]; /* all but the next */
extern const struct verb_option selection_about[];   /* and --event */

/* Whether any of the options was given. */
static inline bool selection_is_given(const struct selection *s)
{
	return *s->typed;
}

/* Converts relative and CLOCK_REALTIME times to CLOCK_MONOTONIC. realtime_offset is CLOCK_REALTIME
 * minus CLOCK_MONOTONIC (0: that of this machine now), newest the time that --last counts from, unless --until is
 * earlier. */
void selection_settle(struct selection *s, uint64_t realtime_offset, uint64_t newest);

/* Whether --pid or --tid was given. */
bool selection_has_ids(const struct selection *s);

/* Learns the threads that the selected processes have, and those that they had, as far as the daemon knows. */
void selection_learn_threads(const struct selection *s, struct perfpersist *p);
/* Learns the process of a record's thread. pid (uint32_t)-1: unknown; the kernel writes that for
 * tasks that are exiting. -ENOMEM. */
int selection_learn(const struct selection *s, uint32_t pid, uint32_t tid);

bool selection_wants_when(const struct selection *s, uint64_t time, uint32_t cpu);
/* Whether --pid and --tid select its thread. */
bool selection_wants_whose(const struct selection *s, uint32_t pid, uint32_t tid);
/* The same; with --about also whether its payload, decoded by d (NULL: none), names such a
 * thread. */
bool selection_wants_who(const struct selection *s, const struct perfpersist_sample *sample,
			 struct decoder *d);

/* The processes for which --pid selects a record of another process with --about. More than ABOUT_MAX are
 * left out. */
void selection_whom(const struct selection *s, const struct perfpersist_sample *sample,
		    struct decoder *d, struct about *ret);

/* Whether --event selects an event, by its name in perf's notation. */
bool selection_wants_event(const struct selection *s, const char *name);

/* All of these, for a record of this source (NULL: unknown). */
bool selection_wants(const struct selection *s, const struct perfpersist_sample *sample,
		     const struct source *source);

/* Complains that the options select nothing of `what`, whose records are from first to last (0: not known), and
 * which ids are threads of others. */
void selection_tell_none(const struct selection *s, const char *what, uint64_t first,
			 uint64_t last);
void selection_done(struct selection *s);
