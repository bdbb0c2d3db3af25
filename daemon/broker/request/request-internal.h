/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the request-*.c files share, and nobody else sees. */
#pragma once

#include "daemon/broker/request/describe.h"
#include "daemon/broker/request/request.h"

/* A request being handled. */
struct request {
	struct service *service;
	struct peer *peer;
	const struct pp_header *header;
	/* Whether users without rights may load programs: asked of the machine once. */
	enum { REQUEST_BPF_UNASKED, REQUEST_BPF_OPEN, REQUEST_BPF_CLOSED } bpf;
};

#define refuse(r, error, ...) peer_fail((r)->peer, (r)->header, error, __VA_ARGS__)

/* Each of these has refused the request when it returns false, or NULL. */
bool request_may(struct request *req, const struct namespace *ns, enum pp_right right);
bool request_is_synced(struct request *req);
bool request_is_made(struct request *req, const struct event *e);
struct event *request_find(struct request *req, const struct pp_msg_name *which,
			   enum pp_right right);

/* Whether the peer, who may read there, may hold live rings of that namespace; else it gets
 * copies. */
bool request_may_hold(struct request *req, const struct namespace *ns);

/* The event as this peer is to see it. */
void request_describe(struct request *req, const struct event *e, const struct tree_stat *stat,
		      struct pp_msg_event *ret);
void request_reply_event(struct request *req, const struct event *e);

/* One reply with copies or sideband at a time of a peer: whether one is under way; the next when
 * that has been read. */
bool request_has_opening(const struct request *req);
bool request_has_sideband(const struct request *req);

/* A request that is answered when an order ends: with the event, unless `answer` says otherwise. */
struct pending {
	struct waiter waiter; /* first: a waiter of ours is a pending request */
	struct service *service;
	struct peer_claim claim;
	struct pp_header header;
	/* What it led to; runs also when the peer is gone: then r->peer is NULL. Returns whether
	 * that was all; else it waits for the end of one more order, and may be gone by now. */
	bool (*answer)(struct request *req, struct pending *p, const struct event *e);
	void *data;	       /* the answer's own; freed with it */
	struct tree_stat stat; /* likewise */
	uint32_t count;	       /* likewise */
};

/* One that has claimed the request; or NULL, and the request is refused. */
struct pending *request_wait(struct request *req);

/* For what an order was refused with (see lifecycle.h); 0: nothing. Refuses the request and
 * frees what would have waited. */
void request_ordered(struct request *req, struct pending *p, int err, const char *ns,
		     const char *name);

/* The sentence on what lifecycle.h returned. */
void request_explain(const struct request *req, int err, const char *ns, const char *name,
		     char *buf, size_t size);

void request_create(struct request *req, const struct pp_msg_create_request *request);
void request_delete(struct request *req, const struct pp_msg_name *request);
void request_change(struct request *req, const struct pp_msg_change_request *request);
void request_pause(struct request *req, const struct pp_msg_pause_request *request);
void request_limits(struct request *req, const struct pp_msg_limits_request *request);
void request_open(struct request *req, const struct pp_msg_open_request *request);
void request_watch(struct request *req, const struct pp_msg_watch_request *request);
void request_cpus(struct request *req, const struct pp_msg_cpus_request *request);
void request_wakeup(struct request *req, const struct pp_msg_name *request);
void request_sideband(struct request *req, const struct pp_msg_sideband_request *request);
