/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which records of a trace say that something begins or ends, or what else findings need. */
#pragma once

#include "client/perfctl/events/input.h"
#include "client/perfctl/replay/latency.h"

/* What a record says. */
enum latency_fact {
	FACT_SWITCH = 1,
	FACT_WAKEUP,
	FACT_WAKEUP_NEW,
	FACT_WAKING,
	FACT_CALL,
	FACT_RETURN,
	FACT_INSERT,
	FACT_ISSUE,
	FACT_COMPLETE,
	FACT_ENTRY,
	FACT_EXIT,
	FACT_SOFT_ENTRY,
	FACT_SOFT_EXIT,
	/* Only for findings: */
	FACT_FORK,
	FACT_END, /* of a thread */
	FACT_SIGNAL,
	FACT_VICTIM, /* of the OOM killer */
	FACT_RECLAIM,
	FACT_RECLAIMED,
};

struct findings;
struct latency_source;

struct latency_records {
	struct input *in;
	struct latency_source *sources; /* of each event */
	uint32_t recorded; /* a bit for each enum latency_fact that events of the file say */
	uint64_t damaged;  /* records that do not fit their formats */
	struct findings *findings; /* are told what the watcher is not; NULL: there are none */
	uint32_t wanted;	   /* facts */
	uint64_t end;		   /* of the last sample; 0: none yet */
	bool knows_calls;	   /* system calls have the numbers of this machine */
	struct trace_history histories[LATENCY_KINDS]; /* how complete each kind's records are */
};

int latency_records_open(struct input *in, struct latency_records *ret); /* -ENOMEM */
void latency_records_done(struct latency_records *r);

bool latency_records_have(const struct latency_records *r, enum latency_kind kind);

/* One after the other: begins matching of the kinds in *options, which it completes, for records from
 * since on (0: all); chosen (--pid, --tid) learns which process a thread belongs to. Then takes each record of the window (leaf: of its
 * call chain, or NULL). At the end the sums are complete. 0, -ENOMEM; start also what trace_peek()
 * returns. */
int latency_records_start(struct latency_records *r, uint64_t since, const struct selection *chosen,
			  struct latency_options *options, struct latency **ret);
int latency_records_add(struct latency_records *r, struct latency *l,
			const struct selection *window, const struct trace_record *record,
			const struct flame_node *leaf);
/* Before the end, where the file has been read to its own: nothing was recorded between its last record and the time until
 * which it is complete, so what has not ended by that record goes on until then. */
void latency_records_end(struct latency_records *r, const struct selection *window);
int latency_records_finish(struct latency_records *r, struct latency *l);

/* All of that; a counts the records, and has the functions of the chains: 0, -EBADMSG (the rest is damaged; has complained), -ENOMEM. */
int latency_records_read(struct latency_records *r, const struct selection *window,
			 const struct selection *chosen, struct latency_options *options,
			 struct aggregate *a, struct latency **ret);
