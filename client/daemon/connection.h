/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A connection: the socket, the requests under way, and the sentence about the last failure.
 * Knows of a request only how to send it and whom to give its reply.
 */
#pragma once

#include <sys/queue.h>

#include "client/perfpersist.h"
#include "client/public.h"
#include "client/request/request.h"
#include "proto/protocol.h"

struct perfpersist {
	int fd;					    /* -EBADF: direct, or a save */
	char *socket;				    /* its path; NULL: direct, or a save */
	char *registry;				    /* direct: its path */
	char *saved;				    /* a save: its path */
	int saved_fd;				    /* its directory */
	char *instance;				    /* NULL: the system's own */
	int ended;				    /* why nothing can be asked any more; 0 */
	uint32_t serial;			    /* the last one given */
	TAILQ_HEAD(request_list, request) requests; /* in the order of sending */
	uint8_t *packet; /* of PP_PACKET_MAX bytes, for either direction */
	union pp_body *body;
	char error[CLIENT_SENTENCE_SIZE];
};

/* Makes the thread's last sentence this connection's; returns error. */
int connection_fail(struct perfpersist *p, int error);

/*
 * Takes the request over and sends it, or queues it. Its done() runs in a later
 * perfpersist_dispatch() or perfpersist_free(). On failure it is freed without.
 */
int connection_submit(struct perfpersist *p, struct request *req);

/* Blocks until *done. */
void connection_wait(struct perfpersist *p, const bool *done);
