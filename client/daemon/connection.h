/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A connection: the socket, the requests under way, and the error message of the last failure.
 * Knows only how to send a request and where to pass its reply. */
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
	int ended;				    /* why no request is possible any more; 0 */
	uint32_t serial;			    /* the last one used */
	TAILQ_HEAD(request_list, request) requests; /* in the order of sending */
	uint8_t *packet;			    /* PP_PACKET_MAX bytes, for both directions */
	union pp_body *body;
	char error[CLIENT_SENTENCE_SIZE];
};

/* Makes the thread's last error message this connection's; returns error. */
int connection_fail(struct perfpersist *p, int error);

/* Takes the request over and sends or queues it. Its done() runs in a later perfpersist_dispatch()
 * or perfpersist_free(). On failure the request is freed and done() does not run. */
int connection_submit(struct perfpersist *p, struct request *req);

/* Blocks until *done. */
void connection_wait(struct perfpersist *p, const bool *done);
