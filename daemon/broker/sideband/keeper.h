/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The connection to the keeper: greets it, sends requests, hands on answers in turn, and ends one
 * that is of another build than ours, or does not answer. Must not know what is asked, nor when.
 */
#pragma once

#include "daemon/broker/link/link.h"
#include "proto/keep.h"
#include "proto/packet.h"

#define KEEPER_ASKED_MAX 4

struct keeper {
	/* To be filled in. The answer to a request of this type, the greeting too; descriptors that
	 * are to stay are taken out of fds. */
	void (*answered)(void *userdata, enum pp_keep_type type,
			 const struct pp_keep_answer *answer, struct pp_fds *fds);
	/* The connection has ended, and with it all that was asked; not after keeper_disconnect. */
	void (*ended)(void *userdata);
	void *userdata;

	struct link link;
	sd_event_source *patience;
	bool greeted; /* the greeting was answered: it is of our build */
	bool mute;    /* the last greeting was not answered in time, nor was one since */
	bool stuck;   /* the last one that answered did not go on to, and was killed */
	int process; /* pidfd of whoever answered last, also after the connection; < 0: not known */
	uint64_t silent_since; /* CLOCK_MONOTONIC, usec: of a greeting that is not answered; 0 */

	enum pp_keep_type asked[KEEPER_ASKED_MAX]; /* and not answered, the oldest first */
	size_t n_asked;
	uint64_t serial; /* of the newest */
	struct pp_keep_request out;
	struct pp_keep_answer in;
};

/* k is all zeroes but for the hooks and userdata. Does not connect. 0; -errno. */
int keeper_init(struct keeper *k, sd_event *loop, const char *path);
/* Accepts a half-made or empty one. */
void keeper_done(struct keeper *k);

/* Connects, and greets. 0; -errno: nobody is there. */
int keeper_connect(struct keeper *k);
void keeper_disconnect(struct keeper *k);

static inline bool keeper_is_connected(const struct keeper *k)
{
	return k->link.fd >= 0;
}

/* Connected, greeted, and all that was asked is answered. */
static inline bool keeper_is_idle(const struct keeper *k)
{
	return k->link.fd >= 0 && k->greeted && k->n_asked == 0;
}

/* The request that keeper_ask sends, all zeroes but for its type. */
struct pp_keep_request *keeper_request(struct keeper *k, enum pp_keep_type type);

/* Sends it; the descriptors stay the caller's. 0; -errno: the connection is of no more use. */
int keeper_ask(struct keeper *k, const int *fds, size_t n_fds);
