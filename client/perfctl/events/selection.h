/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which records are wanted: --last, --since, --until, -C, --pid, --tid, --about; one syntax for
 * snapshot, record, script and report.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/perfctl/decode/decode.h"
#include "client/perfpersist.h"

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
	struct keytable *owners; /* if there are pids or tids: the process of each thread, as far as
				  * records told */
};

/* The options, for a verb's struct option: codes from SELECTION_FIRST on. */
enum {
	SELECTION_LAST = 0x200,
	SELECTION_SINCE,
	SELECTION_UNTIL,
	SELECTION_PID,
	SELECTION_TID,
	SELECTION_ABOUT,
	SELECTION_CPU = 'C'
};
#define SELECTION_OPTIONS                                              \
	{ "last", required_argument, NULL, SELECTION_LAST },           \
		{ "since", required_argument, NULL, SELECTION_SINCE }, \
		{ "until", required_argument, NULL, SELECTION_UNTIL }, \
		{ "pid", required_argument, NULL, SELECTION_PID },     \
		{ "tid", required_argument, NULL, SELECTION_TID },     \
		{ "about", no_argument, NULL, SELECTION_ABOUT },       \
	{                                                              \
		"cpu", required_argument, NULL, SELECTION_CPU          \
	}
#define SELECTION_SHORTS "C:"

struct call;

/* Takes option c with its value (optarg). 1: it was one of these; 0: it was not; -1: it was and is
 * wrong: has complained by bad_usage().
 * --last 10s, 500ms, 2m, 1h, 10 (seconds). --since, --until: seconds of CLOCK_MONOTONIC as records
 * show them (1234.567890), -10s (before now), @1700000000.5 (seconds of CLOCK_REALTIME),
 * "2026-11-21 10:00:00", 10:00:00 (today, local time). -C 0-3,8. --pid 12,34. --tid 12,34. */
int selection_option(struct selection *s, struct call *call, int c);

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
