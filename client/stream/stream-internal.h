/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by stream.c, which reads and returns, and stream-changes.c, which learns what becomes of an event. */
#pragma once

#include "client/rings/event.h"
#include "client/stream/reorder.h"

/* Between two reads of copies: the daemon has to make each copy. */
#define COPY_INTERVAL 500000000ULL
/* The last copies, after the stop. */
#define LAST_COPY_INTERVAL 50000000ULL
#define LAST_COPY_ATTEMPTS 20
/* For so long others wait for a copy that is refused, so that all is in order. */
#define COPY_PATIENCE (4 * COPY_INTERVAL)

struct streamed {
	char ns[64], name[64];
	struct perfpersist_event *event; /* whose rings are followed */
	struct perfpersist_event *shown; /* whose records are returned */
	struct perfpersist_follow *follow;
	uint64_t id;
	uint32_t set;	 /* the set of rings that is followed */
	int wakeup;	 /* an eventfd, or -EBADF */
	bool is_told;	 /* the daemon tells what happens to the event */
	bool has_notice; /* and has just done so */
	bool is_paused;
	bool is_deserted; /* it needs rings, and the daemon is gone: what is left is read first */
	bool ended;
	/* The state that its rings announce; their remaining records are read first. */
	enum perfpersist_ring_state becomes; /* RETIRED or DELETED; else RUNNING */
	bool unmarked; /* they do not announce it: there is a newer set all the same */

	unsigned refused;    /* attempts to get the last copy, since one succeeded */
	uint64_t waited_for; /* since when rings are refused and others wait; 0: they do not */
	uint64_t given_up;   /* others waited up to then */
	uint64_t asked;	     /* copies, new rings: when last asked for, in vain or not */
	uint64_t looked;     /* CLOCK_MONOTONIC, ns: all records up to then are in the rings */
	uint64_t found;	     /* likewise: and were read */
	uint64_t last;	     /* time of the newest record that was found */
	size_t held;	     /* bytes */
	uint64_t overwritten, told; /* in replaced rings; reported in all */
};

struct perfpersist_stream {
	struct perfpersist *p; /* NULL: no daemon reports changes */
	struct perfpersist_stream_options options;
	struct streamed **all;
	size_t n;
	int epoll;
	struct reorder reorder;
	struct perfpersist_event *spent; /* was shown before the item that was returned last */
	uint64_t until;			 /* all up to there was returned */
	uint64_t stop;			 /* later records are not wanted; 0: not known */
	bool is_told;			 /* the daemon tells about an event */
	bool has_notice;
	bool has_more; /* can be read at once */
	bool is_over, has_told_end;
};

/* Whether the stream asks for nothing more of the event: what is recorded later is not wanted. */
static inline bool streamed_is_complete(const struct perfpersist_stream *s,
					const struct streamed *one)
{
	return s->stop && one->looked >= s->stop;
}

/* ── stream-changes.c; each returns 0 or -errno ── */

/* Copies the thread's last error message to the connection; returns error. p may be NULL. */
int stream_fail(struct perfpersist *p, int error);

/* Adds the item of event i, with what is shown from then on (NULL: as before). */
int stream_push(struct perfpersist_stream *s, size_t i, const struct perfpersist_stream_item *item,
		struct perfpersist_event *event);
int stream_tell(struct perfpersist_stream *s, size_t i, enum perfpersist_stream_kind kind,
		uint64_t time);
int stream_tell_overwritten(struct perfpersist_stream *s, size_t i, uint64_t time);

/* Takes ownership of e, in place of the event that was followed before; on failure that one stays. */
int streamed_start(struct streamed *one, struct perfpersist_event *e, size_t newest);
void streamed_close(struct streamed *one);

/* Checks whether the event was deleted, or has new or more rings. */
int stream_look_around(struct perfpersist_stream *s, size_t i, uint64_t now);

/* Called when rings that ended are read completely: goes over to new rings, or ends the event. While
 * the new ones are refused neither happens: then call it again. */
int stream_go_over(struct perfpersist_stream *s, size_t i, uint64_t now);
