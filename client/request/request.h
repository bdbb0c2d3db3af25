/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A request: the question, the answer so far, and the callback. An answer may come in pages, or
 * (for a watch) again and again. Knows nothing of sockets. */
#pragma once

#include <sys/queue.h>

#include "client/info.h"
#include "client/perfpersist.h"
#include "client/request/away.h"
#include "client/request/limits.h"
#include "client/request/triggers.h"
#include "proto/packet.h"
#include "proto/protocol.h"

/* The result; its members depend on the operation. */
struct answer {
	bool was_asked;			 /* whether the request was sent */
	struct client_infos infos;	 /* list, show, create, delete, change, attach, claim */
	struct perfpersist_event *event; /* open */
	struct client_limits limits;
	struct client_away away; /* cpus */
	struct client_triggers triggers;
	struct client_tapes tapes;
	struct pp_msg_ping_reply ping;
	struct pp_msg_reload_reply reload;
	struct pp_msg_sideband_reply sideband;
	struct pp_msg_auxtrace_reply auxtrace;
	struct pp_msg_claim_reply claim;
	uint64_t size; /* descriptors: of the file */
	uint64_t adoption;
	uint32_t count; /* pause */
	int fd;		/* wakeup, sideband, adopt, descriptors, auxtrace */
	int *fds;	/* claim */
	size_t n_fds;
};

void answer_init(struct answer *a);
void answer_done(struct answer *a);

struct request {
	TAILQ_ENTRY(request) entry;
	struct perfpersist *p;
	uint16_t op;	 /* enum pp_op */
	uint32_t serial; /* of the packet under way; 0: none yet */
	bool sent;
	uint64_t made; /* CLOCK_MONOTONIC, ns: nothing in the answer is older */
	struct answer answer;

	struct {		   /* open, as on the first page */
		uint32_t total;	   /* number of rings */
		uint32_t set;	   /* number of the ring set */
		uint32_t copies;   /* 1: copies */
		unsigned restarts; /* because one of these changed */
	} open;

	/* Runs once, with 0 or a negative errno value; may take over the answer. */
	void (*done)(struct request *req, int error);
	perfpersist_callback callback;
	/* Watch: runs with each notice; it may start requests. */
	void (*notice)(struct request *req, const struct perfpersist_notice *notice);
	perfpersist_watch_callback watch;
	void *userdata;
	void *waiter; /* the blocking call that waits for it */
	bool goes_on; /* watch: started */

	/* The message of op; the last member, because memory is allocated only as far as it
	 * needs. */
	union {
		struct pp_msg_name name;	     /* show, delete, wakeup, fire, release */
		struct pp_msg_list_request list;     /* triggers, tapes, too */
		struct pp_msg_create_request create; /* adopt, too */
		struct pp_msg_attach_request attach;
		struct pp_msg_claim_request claim;
		struct pp_msg_trigger_request trigger;
		struct pp_msg_change_request change;
		struct pp_msg_pause_request pause;
		struct pp_msg_open_request open;
		struct pp_msg_limits_request limits;
		struct pp_msg_cpus_request cpus;
		struct pp_msg_watch_request watch;
		struct pp_msg_sideband_request sideband;
		struct pp_msg_auxtrace_request auxtrace;
	} body;
};

/* Returns NULL and stores an error message if out of memory. */
struct request *request_new(struct perfpersist *p, enum pp_op op);
void request_free(struct request *req);

static inline void request_cleanup(struct request **r)
{
	request_free(*r);
}

/*
 * Processes a reply to req. Returns 0: finished; REQUEST_MORE: body now asks for the next page;
 * REQUEST_GOES_ON: more replies will come unasked (req may be gone: its callback ran); or a
 * negative errno value: failed. Takes descriptors that it keeps out of fds.
 */
#define REQUEST_MORE 1
#define REQUEST_GOES_ON 2
int request_reply(struct request *req, const union pp_body *body, struct pp_fds *fds);
