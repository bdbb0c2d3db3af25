/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The real keeper's loop in a child process, as an ordinary user, listening on a socket of the
 * test's choice; requests to it; and a walk over its file.
 */
#pragma once

#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "daemon/keeper/server.h"
#include "proto/keep.h"
#include "proto/macro.h"
#include "proto/packet.h"
#include "proto/sideband.h"
#include "tests/unit/needs.h"

#define KEEPER_USER 61999

struct keeper_process {
	char directory[64];
	struct sockaddr_un address;
	int listen;
	pid_t pid;
};

static inline void keeper_process_start(struct keeper_process *k, bool exit_idle)
{
	*k = (struct keeper_process){ .directory = "/tmp/pp-keeper-XXXXXX" };
	ck_assert_ptr_nonnull(mkdtemp(k->directory));
	chmod(k->directory, 0755);
	k->address.sun_family = AF_UNIX;
	snprintf(k->address.sun_path, sizeof(k->address.sun_path), "%s/socket", k->directory);
	k->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(k->listen, (struct sockaddr *)&k->address, sizeof(k->address)), 0);
	ck_assert_int_eq(listen(k->listen, 8), 0);
	k->pid = fork();
	ck_assert_int_ge(k->pid, 0);
	if (k->pid == 0) {
		if (setgroups(0, NULL) < 0 || setgid(KEEPER_USER) < 0 || setuid(KEEPER_USER) < 0)
			_exit(9);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "keeper");
		_exit(serve_keeping(k->listen, exit_idle) < 0);
	}
}

/* It exits by itself. */
static inline void keeper_process_wait(struct keeper_process *k)
{
	int status;

	ck_assert_int_eq(waitpid(k->pid, &status, 0), k->pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	k->pid = 0;
}

static inline void keeper_process_done(struct keeper_process *k)
{
	if (k->pid) {
		kill(k->pid, SIGKILL);
		waitpid(k->pid, NULL, 0);
	}
	close_fd(k->listen);
	unlink(k->address.sun_path);
	rmdir(k->directory);
}

static inline int keeper_connect(const struct keeper_process *k)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (const struct sockaddr *)&k->address, sizeof(k->address)), 0);
	return fd;
}

/* Returns the answer; *ret_fd, if not NULL, is its descriptor, or -EBADF. */
static inline struct pp_keep_answer keeper_ask(int socket_fd, struct pp_keep_request *r,
					       const int *fds, size_t n_fds, int *ret_fd)
{
	static uint64_t serial;
	struct pp_keep_answer a;
	struct pp_fds came;

	r->abi = PP_KEEP_ABI;
	r->serial = ++serial;
	ck_assert_int_eq(pp_packet_send(socket_fd, r, sizeof(*r), fds, n_fds), 0);
	ck_assert_int_eq(pp_packet_receive(socket_fd, &a, sizeof(a), 1, &came, 0), sizeof(a));
	ck_assert_uint_eq(a.abi, PP_KEEP_ABI);
	ck_assert_uint_eq(a.serial, serial);
	ck_assert(came.n == 0 || ret_fd);
	if (ret_fd)
		*ret_fd = came.n ? came.fd[0] : -EBADF;
	return a;
}

static inline struct pp_keep_answer keeper_ask_for(int socket_fd, uint32_t type)
{
	struct pp_keep_request r = { .type = type };

	return keeper_ask(socket_fd, &r, NULL, 0, NULL);
}

/* ── its file ───────────────────────────────────────────────────────────────────────────── */

struct sideband {
	const struct pp_sideband_header *header;
	const uint8_t *at;
	uint64_t left;
};

static inline struct sideband sideband_map(int fd)
{
	struct sideband s = { 0 };
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	s.header = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(s.header, MAP_FAILED);
	ck_assert_uint_eq(s.header->magic, PP_SIDEBAND_MAGIC);
	ck_assert_uint_eq(s.header->version, PP_SIDEBAND_VERSION);
	ck_assert_uint_eq(s.header->size, (uint64_t)st.st_size);
	s.at = (const uint8_t *)s.header + s.header->header_size;
	s.left = s.header->size - s.header->header_size;
	return s;
}

static inline void sideband_unmap(struct sideband *s)
{
	munmap((void *)s->header, s->header->size);
}

static inline const struct perf_event_header *sideband_next(struct sideband *s)
{
	const struct perf_event_header *h = (const void *)s->at;

	if (s->left == 0)
		return NULL;
	ck_assert_uint_ge(s->left, sizeof(*h) + PP_SIDEBAND_ID_SIZE);
	ck_assert_uint_ge(s->left, h->size);
	ck_assert_uint_ge(h->size, sizeof(*h) + PP_SIDEBAND_ID_SIZE);
	s->at += h->size;
	s->left -= h->size;
	return h;
}

/* The number at an offset from the record's beginning. */
static inline uint32_t record_u32(const struct perf_event_header *h, size_t at)
{
	uint32_t value;

	memcpy(&value, (const uint8_t *)h + at, sizeof(value));
	return value;
}

static inline uint64_t record_u64(const struct perf_event_header *h, size_t at)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)h + at, sizeof(value));
	return value;
}

static inline uint64_t record_at(const struct perf_event_header *h)
{
	return record_u64(h, h->size - PP_SIDEBAND_ID_SIZE + 8);
}
