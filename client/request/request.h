/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A request: what is asked, what was answered so far, and whom to tell. An answer may come in
 * pages, or (of a watch) again and again. Knows nothing of sockets.
 */
#pragma once

#include <sys/queue.h>

#include "client/info.h"
#include "client/perfpersist.h"
#include "client/request/away.h"
#include "client/request/limits.h"
#include "proto/packet.h"
#include "proto/protocol.h"

/* What came of it; which members depends on the operation. */
struct answer {
	struct client_infos infos;	 /* list, show, create, delete, change */
	struct perfpersist_event *event; /* open */
	struct client_limits limits;
	struct client_away away; /* cpus */
	struct pp_msg_ping_reply ping;
	struct pp_msg_reload_reply reload;
	struct pp_msg_sideband_reply sideband;
	uint32_t count; /* pause */
	int fd;		/* wakeup, sideband */
};

void answer_init(struct answer *a);
void answer_done(struct answer *a);

struct request {
	TAILQ_ENTRY(request) entry;
	struct perfpersist *p;
	uint16_t op;	 /* enum pp_op */
	uint32_t serial; /* of the packet under way; 0: not given yet */
	bool sent;
	struct answer answer;

	struct {		   /* open, as of the first page */
		uint32_t total;	   /* rings there are */
		uint32_t set;	   /* which set of rings they are */
		uint32_t copies;   /* 1: copies */
		unsigned restarts; /* because one of these changed */
	} open;

	/* Runs once, with 0 or a negative errno value; may take the answer out of req. */
	void (*done)(struct request *req, int error);
	perfpersist_callback callback;
	/* Watch: runs with each notice; it may start requests. */
	void (*notice)(struct request *req, const struct perfpersist_notice *notice);
	perfpersist_watch_callback watch;
	void *userdata;
	void *waiter; /* of who blocks until it is done */
	bool goes_on; /* watch: it has started */

	/* The message of op, and no more memory than that: the last member. */
	union {
		struct pp_msg_name name; /* show, delete, wakeup */
		struct pp_msg_list_request list;
		struct pp_msg_create_request create;
		struct pp_msg_change_request change;
		struct pp_msg_pause_request pause;
		struct pp_msg_open_request open;
		struct pp_msg_limits_request limits;
		struct pp_msg_cpus_request cpus;
		struct pp_msg_watch_request watch;
		struct pp_msg_sideband_request sideband;
	} body;
};

/* Returns NULL and notes a sentence if out of memory. */
struct request *request_new(struct perfpersist *p, enum pp_op op);
void request_free(struct request *req);

static inline void request_cleanup(struct request **r)
{
	request_free(*r);
}

/*
 * Takes in a reply to req. Returns 0: answered; REQUEST_MORE: body asks for the next page now;
 * REQUEST_GOES_ON: more will come by itself (req may be gone: its callback ran); or a negative
 * errno value: failed. Descriptors that it keeps are taken out of fds.
 */
#define REQUEST_MORE 1
#define REQUEST_GOES_ON 2
int request_reply(struct request *req, const union pp_body *body, struct pp_fds *fds);
