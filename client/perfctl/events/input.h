/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The input of script and report: a file (-i FILE, "-": stdin; by default perf.data), or, if the
 * command line names events or namespaces, a snapshot of these, taken now into a file in memory
 * (take.h).
 */
#pragma once

#include "client/perfctl/decode/decoders.h"
#include "client/perfctl/trace/repeats.h"
#include "client/perfctl/events/take.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/trace/trace.h"

struct input {
	int fd;
	struct trace *trace;
	struct decoders decoders;
	bool *wanted; /* a byte for each event: whether --event selects it */
	struct repeats repeats;
	char *what; /* for people: "perf.data", "a snapshot of sched/switch" */
};

/* file: of -i, or NULL; the names are call's operands. Settles the selection and applies it to
 * either. Returns an exit code; has complained if it is not EXIT_OK. */
int input_open(struct call *call, const char *file, struct selection *selection, struct input *ret);

/* The same for a file that is open: it takes fd over. what: for people. */
int input_open_fd(int fd, const char *what, struct selection *selection, struct input *ret);

/* The next record of the selection's events, times and CPUs (a record that is neither a sample nor a loss comes
 * in any case); *ret_wanted: --pid and --tid select it, too. Returns as trace_next(), but complains of
 * errors itself; -EBADMSG: the rest is damaged. */
int input_next(struct input *in, const struct selection *selection, struct trace_record *ret,
	       bool *ret_wanted);
/* Whether a loss happened where its record is: in a buffer, or where `perfctl record` saw it. Else the time is not
 * known, and the record is at the end. */
bool input_knows_place(const struct input *in, const struct trace_record *loss);
void input_done(struct input *in);

/* Before the first record: learns the processes of all threads, so that --pid knows them from then on,
 * if the selection has any. 0, -ENOMEM. */
int input_look_ahead(struct input *in, const struct selection *selection);

/* Complains that the selection, if there is one, has selected nothing. Whether it has. */
bool input_tell_none(const struct input *in, const struct selection *selection);

struct symbols;
/* Complains of functions without names, if other users' files have too many symbols. */
void input_tell_refused(const struct symbols *s);
