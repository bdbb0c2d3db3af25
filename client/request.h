/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A request: what is asked, what was answered so far, and whom to tell. An answer may come in
 * pages. Knows nothing of sockets.
 */
#ifndef PP_CLIENT_REQUEST_H
#define PP_CLIENT_REQUEST_H

#include <sys/queue.h>

#include "client/info.h"
#include "client/perfpersist.h"
#include "proto/packet.h"
#include "proto/protocol.h"

struct request {
	TAILQ_ENTRY(request) entry;
	struct perfpersist *p;
	uint16_t op;	 /* enum pp_op */
	uint32_t serial; /* of the packet under way; 0: not given yet */
	bool sent;

	union {
		struct pp_msg_name name; /* show, delete */
		struct pp_msg_list_request list;
		struct pp_msg_create_request create;
		struct pp_msg_open_request open;
	} body;

	/* The answer. */
	struct client_infos infos;
	struct perfpersist_event *event;
	struct pp_msg_ping_reply ping;
	uint32_t total;	   /* open: rings there are, as of the first page */
	unsigned restarts; /* open: because that number changed */

	/* Runs once, with 0 or a negative errno value; may take the answer out of r. */
	void (*done)(struct request *r, int error);
	perfpersist_callback callback;
	void *userdata;
};

/* Returns NULL and notes a sentence if out of memory. */
struct request *request_new(struct perfpersist *p, enum pp_op op);
void request_free(struct request *r);

/*
 * Takes in a reply to r. Returns 0: answered; REQUEST_MORE: body asks for the next page now;
 * or a negative errno value: failed. Descriptors that it keeps are taken out of fds.
 */
#define REQUEST_MORE 1
int request_reply(struct request *r, const union pp_body *body, struct pp_fds *fds);

#endif
