/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The configuration while the daemon runs: read at the start and on request (SIGHUP, RELOAD), and
 * applied as far as it differs. Owns the configuration in force.
 */
#pragma once

#include "daemon/broker/config/configured.h"
#include "daemon/broker/config/dropins.h"
#include "daemon/broker/edge/peer.h"
#include "daemon/broker/request/request.h"
#include "daemon/broker/state/quota.h"

struct asking;

struct reload {
	/* The caller sets these; all borrowed. */
	struct lifecycle *lifecycle;
	struct quota *quota;
	struct peers *peers;
	struct service *service; /* this struct sets its config */
	/* A reload has begun; a reload has ended: all configured events record, or have failed. */
	void (*begun)(void *userdata);
	void (*ended)(void *userdata);
	void *userdata;

	struct dropin_places places;
	bool required;		 /* perfpersistd.conf must exist: --config names it */
	struct config *base;	 /* the contents of perfpersistd.conf */
	struct config *in_force; /* with events.d */
	struct dropins *dropins; /* while a pass is due or under way */
	struct configured configured;
	struct asking *asking, *waiting; /* clients: of this reload; of the next */
	uint32_t failed;		 /* of this reload */
	char message[512];		 /* its first complaint */
	uint64_t generation;		 /* of the enumeration, when the pass began */
	bool due, again, unfinished, ending, read_again;
	bool settled; /* the whole configuration is in force */
};

struct reload_options {
	const struct config *config; /* perfpersistd.conf, resolved; copied */
	const char *instance;	     /* may be "" */
	const char *named;	     /* the argument of --config, or NULL */
};

/* Reads events.d for the first time. Namespaces and limits are in force at return; reload_continue
 * creates the events once the running events are known. 0; -errno. */
int reload_init(struct reload *reload, const struct reload_options *options);

/* Call this whenever an order has completed, or events came or went (lifecycle.changed). */
void reload_continue(struct reload *reload);

/* Reads everything again, now or after the present reload. */
void reload_again(struct reload *reload);

/* The same as service.reload; userdata is the struct reload. */
void reload_request(void *userdata, struct peer *peer, const struct pp_header *header);

/* service.boot and service.forget; likewise. */
int reload_boot(void *userdata, const struct event *e, const struct pp_msg_create_request *request,
		char *sentence, size_t size);
int reload_forget(void *userdata, const struct event *e, char *sentence, size_t size);

/* Removes the file of a name that ended with another's rings. Does not wait for the disk, because
 * there may be many: after a crash such a name may return. */
void reload_ended(struct reload *reload, const struct event *e);

/* Call this before lifecycle_done: no order or report follows. */
void reload_end(struct reload *reload);
/* Call this after lifecycle_done and peers_done. Accepts an empty struct. */
void reload_done(struct reload *reload);
