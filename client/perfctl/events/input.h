/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What script and report read: a file (-i FILE, "-": stdin; by default perf.data), or, if names of
 * events or namespaces stand on the command line, a snapshot of these, taken now into a file that
 * nobody sees (take.h).
 */
#pragma once

#include "client/perfctl/decode/decoders.h"
#include "client/perfctl/events/take.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/trace/trace.h"

struct input {
	int fd;
	struct trace *trace;
	struct decoders decoders;
	char *what; /* for people: "perf.data", "a snapshot of sched/switch" */
};

/* file: of -i, or NULL; the names are call's operands; selection is settled, and applied to
 * either. Returns an exit code; has complained if it is not EXIT_OK. */
int input_open(struct call *call, const char *file, struct selection *selection, struct input *ret);

/* The next record of the selection's times and CPUs (what is not a sample comes anyhow);
 * *ret_wanted: also those that it selects by who. As trace_next(), but complains itself of what is
 * damaged and then returns -EBADMSG. */
int input_next(struct input *in, const struct selection *selection, struct trace_record *ret,
	       bool *ret_wanted);
void input_done(struct input *in);

struct symbols;
/* Complains of functions that have no names because strangers' files have too many. */
void input_tell_refused(const struct symbols *s);
