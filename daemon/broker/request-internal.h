/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What request.c, request-change.c and request-open.c share, and nobody else sees. */
#ifndef PP_BROKER_REQUEST_INTERNAL_H
#define PP_BROKER_REQUEST_INTERNAL_H

#include "daemon/broker/describe.h"
#include "daemon/broker/request.h"

/* A request being handled. */
struct request {
	struct service *service;
	struct peer *peer;
	const struct pp_header *header;
};

#define refuse(r, error, ...) peer_fail((r)->peer, (r)->header, error, __VA_ARGS__)

/* Each of these has refused the request when it returns false, or NULL. */
bool request_may(struct request *r, const struct namespace *ns, enum pp_right right);
bool request_is_synced(struct request *r);
bool request_is_made(struct request *r, const struct event *e);
struct event *request_find(struct request *r, const struct pp_msg_name *which, enum pp_right right);

void request_reply_event(struct request *r, const struct event *e);

void request_create(struct request *r, const struct pp_msg_create_request *request);
void request_delete(struct request *r, const struct pp_msg_name *request);
void request_open(struct request *r, const struct pp_msg_open_request *request);

#endif
