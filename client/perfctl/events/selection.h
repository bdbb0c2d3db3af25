/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which records are wanted: --last, --since, --until, -C, --pid, --tid, --about; one syntax for
 * snapshot, record, script and report.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/perfctl/decode/decode.h"
#include "client/perfctl/perfctl.h"

struct keytable;

struct selection {
	uint64_t last;	       /* ns before the newest (of a snapshot: before now); 0: all */
	uint64_t since, until; /* CLOCK_MONOTONIC, ns; 0: not given */
	bool since_is_real, until_is_real; /* they are CLOCK_REALTIME instead */
	uint8_t *cpus;			   /* a byte for each CPU; NULL: all */
	size_t n_cpus;
	struct ids {
		uint32_t *all;
		size_t n;
	} pids, tids;		 /* processes, threads; none of both: all */
	bool about;		 /* also what names them in a field */
	const char *cpu_list;	 /* of cpus, as it was typed */
	char typed[256];	 /* all of it as it was typed; what does not fit is left out */
	struct keytable *owners; /* if there are pids or tids: the process of each thread, as far as
				  * records told */
};

extern const struct verb_option selection_options[]; /* all but --about */
extern const struct verb_option selection_about[];

/* Turns what is of CLOCK_REALTIME or relative into CLOCK_MONOTONIC: realtime_offset is what is to
 * be added to a monotonic time (0: this machine's now), newest the time that --last counts from. */
void selection_settle(struct selection *s, uint64_t realtime_offset, uint64_t newest);

/* Who: is anything chosen by --pid or --tid? */
bool selection_has_ids(const struct selection *s);

/* Threads of processes that run now are known from the beginning. */
void selection_learn_running(const struct selection *s);
/* Each record says whose its thread is; pid (uint32_t)-1: it does not, as the kernel does for tasks
 * that are being taken down. -ENOMEM. */
int selection_learn(const struct selection *s, uint32_t pid, uint32_t tid);

bool selection_wants_when(const struct selection *s, uint64_t time, uint32_t cpu);
/* By --pid and --tid, whose it is. */
bool selection_wants_whose(const struct selection *s, uint32_t pid, uint32_t tid);
/* Whose it is, or with --about what it names: sample's payload, decoded by d (NULL: nothing). */
bool selection_wants_who(const struct selection *s, const struct perfpersist_sample *sample,
			 struct decoder *d);

/* That --pid or --tid chose nothing of `what`: says which are threads of others. */
void selection_tell_none(const struct selection *s, const char *what);
void selection_done(struct selection *s);
