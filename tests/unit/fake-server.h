/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A daemon that follows a script, for tests: listens in a directory of its own, accepts one
 * connection and passes it to the script, in a thread.
 */
#pragma once

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "client/perfpersist.h"
#include "proto/macro.h"
#include "proto/packet.h"
#include "proto/protocol.h"
#include "tests/unit/needs.h"

struct server {
	char dir[32];
	char socket[48];
	int listener;
	pthread_t thread;
	void (*script)(int fd);
};

static inline void *server_run(void *arg)
{
	struct server *s = arg;
	_cleanup_close_ int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	s->script(fd);
	return NULL;
}

static inline void server_start(struct server *s, void (*script)(int fd))
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*s = (struct server){ .dir = "/tmp/test-connection-XXXXXX", .script = script };
	ck_assert_ptr_nonnull(mkdtemp(s->dir));
	snprintf(s->socket, sizeof(s->socket), "%s/control", s->dir);
	memcpy(address.sun_path, s->socket, sizeof(s->socket));
	s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(s->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(s->listener, 4), 0);
	ck_assert_int_eq(pthread_create(&s->thread, NULL, server_run, s), 0);
}

static inline struct perfpersist *server_connect(struct server *s)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .socket = s->socket };
	struct perfpersist *p = NULL;

	ck_assert_int_eq(perfpersist_connect(&opts, &p), 0);
	return p;
}

static inline void server_end(struct server *s)
{
	ck_assert_int_eq(pthread_join(s->thread, NULL), 0);
	close(s->listener);
	unlink(s->socket);
	rmdir(s->dir);
}

/* Receives the next request, which must be op; returns its serial and body. */
static inline uint32_t server_expect(int fd, uint16_t op, union pp_body *body)
{
	static _Thread_local uint8_t packet[PP_PACKET_MAX];
	struct pp_header h;
	ssize_t n = pp_packet_receive(fd, packet, sizeof(packet), 0, NULL, 0);

	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(pp_decode(packet, (size_t)n, 0, false, &h, body), 0);
	ck_assert_uint_eq(h.opcode, op);
	ck_assert_uint_ne(h.serial, 0);
	return h.serial;
}

static inline void server_send(int fd, uint16_t opcode, uint32_t serial, const void *body,
			       const int *fds, size_t n_fds)
{
	static _Thread_local uint8_t packet[PP_PACKET_MAX];
	struct pp_header h = { .version = PP_PROTOCOL_VERSION,
			       .opcode = opcode,
			       .serial = serial,
			       .fds = (uint32_t)n_fds };
	ssize_t n = pp_encode(&h, body, packet, sizeof(packet));

	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(pp_packet_send(fd, packet, (size_t)n, fds, n_fds), 0);
}

static inline void server_error(int fd, uint32_t serial, int error, const char *sentence)
{
	struct pp_msg_error m = { .error = error };

	snprintf(m.message, sizeof(m.message), "%s", sentence);
	server_send(fd, PP_OP_ERROR, serial, &m, NULL, 0);
}
