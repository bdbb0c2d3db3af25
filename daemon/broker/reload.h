/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The configuration while the daemon runs: read when it starts and whenever it is asked to
 * (SIGHUP, RELOAD), and applied as far as it differs. Owns what is in force.
 */
#pragma once

#include "daemon/broker/config/configured.h"
#include "daemon/broker/config/dropins.h"
#include "daemon/broker/edge/peer.h"
#include "daemon/broker/request/request.h"
#include "daemon/broker/state/quota.h"

struct asking;

struct reload {
	/* To be filled in; all borrowed. */
	struct lifecycle *lifecycle;
	struct quota *quota;
	struct peers *peers;
	struct service *service; /* its config is set by this */
	/* A reading has begun; has ended, and all that is wanted records, or cannot. */
	void (*begun)(void *userdata);
	void (*ended)(void *userdata);
	void *userdata;

	struct dropin_places places;
	bool required;		 /* perfpersistd.conf must be there: it was named */
	struct config *base;	 /* what perfpersistd.conf says */
	struct config *in_force; /* and what events.d adds */
	struct dropins *dropins; /* while a pass is due or under way */
	struct configured configured;
	struct asking *asking, *waiting; /* clients: of this reading; of the next */
	uint32_t failed;		 /* of this reading */
	char message[512];		 /* its first complaint */
	uint64_t generation;		 /* of events, when the pass began */
	bool due, again, unfinished, ending, read_again;
	bool settled; /* all that was wanted so far is in force */
};

struct reload_options {
	const struct config *config; /* perfpersistd.conf, resolved; copied */
	const char *instance;	     /* may be "" */
	const char *named;	     /* what --config gave, or NULL */
};

/* Reads events.d for the first time; namespaces and limits are in force when it returns, events
 * are created when reload_continue finds that it is known which there are. 0; -errno. */
int reload_init(struct reload *reload, const struct reload_options *options);

/* Whenever an order has ended, or events came or went (lifecycle.changed). */
void reload_continue(struct reload *reload);

/* Reads all of it again, now or when the reading that is under way has ended. */
void reload_again(struct reload *reload);

/* The same as service.reload; userdata is the struct reload. */
void reload_request(void *userdata, struct peer *peer, const struct pp_header *header);

/* service.boot and service.forget; likewise. */
int reload_boot(void *userdata, const struct event *e, const struct pp_msg_create_request *request,
		char *sentence, size_t size);
int reload_forget(void *userdata, const struct event *e, char *sentence, size_t size);

/* Before lifecycle_done: nothing more is ordered or said. */
void reload_end(struct reload *reload);
/* After lifecycle_done and peers_done. Accepts an empty one. */
void reload_done(struct reload *reload);
