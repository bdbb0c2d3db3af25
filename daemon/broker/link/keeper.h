/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The connection to the keeper: greets it, sends requests, and passes answers on in order. Ends a
 * keeper of another build, and one that does not answer. Must not know what is asked, nor when.
 */
#pragma once

#include "daemon/broker/link/link.h"
#include "proto/keep.h"
#include "proto/packet.h"

#define KEEPER_ASKED_MAX 4

struct keeper {
	/* The caller sets these. The answer to a request of this type, including the greeting; take
	 * descriptors out of fds to keep them. */
	void (*answered)(void *userdata, enum pp_keep_type type,
			 const struct pp_keep_answer *answer, struct pp_fds *fds);
	/* The connection has ended, and its requests with it; not called after
	 * keeper_disconnect. */
	void (*ended)(void *userdata);
	void *userdata;
	/* Another connection has the long requests: any of ours may wait for them. */
	bool patient;

	struct link link;
	sd_event_source *patience;
	bool greeted; /* the keeper has answered the greeting: it is of our build */
	bool mute;    /* the last greeting timed out, and none was answered since */
	bool stuck;   /* the last keeper that answered stopped answering, and was killed */
	int process;  /* pidfd of the last one that answered, if known; outlives the connection */
	uint64_t silent_since; /* CLOCK_MONOTONIC, usec: of an unanswered greeting; else 0 */

	enum pp_keep_type asked[KEEPER_ASKED_MAX]; /* unanswered requests, the oldest first */
	size_t n_asked;
	uint64_t serial; /* of the newest request */
	struct pp_keep_request out;
	struct pp_keep_answer in;
};

/* k is all zeroes except the hooks and userdata. Does not connect. 0; -errno. */
int keeper_init(struct keeper *k, sd_event *loop, const char *path);
/* Accepts a half-made or empty struct. */
void keeper_done(struct keeper *k);

/* Connects and sends the greeting. 0; -errno: nobody listens. */
int keeper_connect(struct keeper *k);
void keeper_disconnect(struct keeper *k);

static inline bool keeper_is_connected(const struct keeper *k)
{
	return k->link.fd >= 0;
}

/* Connected, greeted, and all requests are answered. */
static inline bool keeper_is_idle(const struct keeper *k)
{
	return k->link.fd >= 0 && k->greeted && k->n_asked == 0;
}

/* The request that keeper_ask sends, all zeroes except its type. */
struct pp_keep_request *keeper_request(struct keeper *k, enum pp_keep_type type);

/* Sends it; the descriptors stay the caller's. 0; -errno: the connection is useless. */
int keeper_ask(struct keeper *k, const int *fds, size_t n_fds);
