/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A keeper that only counts its requests, on the same event loop; a test can make it die, forget,
 * speak another version, lie, fail, and be slow.
 */
#pragma once

#include "broker-fixture.h"
#include "proto/sideband.h"

/* A pid that no process has. */
#define FAKE_KEEPER_PID 999999999U

struct fake_keeper {
	sd_event *loop;
	sd_event_source *listen_io, *io;
	char path[96];
	int listen, fd;
	uint32_t abi, pid;
	enum pp_keep_type dies_at, fails_at; /* this request, once; 0: none */
	bool lies;			     /* TAKE: no descriptor */
	bool hold;			     /* does not read requests */

	uint64_t generation[8]; /* generation + 1; 0: no ring */
	struct pp_keep_status status;
	unsigned asked[PP_KEEP_AREAS_TAKE + 1], connections;
	struct pp_keep_request last;
	size_t last_fds;
	uint64_t size; /* of the file that it returns for TAKE */
};

static struct pp_keep_answer keeper_answer;

static void keeper_hang_up(struct fake_keeper *k)
{
	k->io = sd_event_source_disable_unref(k->io);
	k->fd = close_fd(k->fd);
}

static void keeper_forget(struct fake_keeper *k)
{
	memset(k->generation, 0, sizeof(k->generation));
	k->status.keeping = k->status.tasks = 0;
}

static int keeper_file(const struct fake_keeper *k)
{
	int fd = memfd_create("sideband", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)k->size), 0);
	return fd;
}

static void keeper_act(struct fake_keeper *k, const struct pp_keep_request *r,
		       const struct pp_fds *fds, struct pp_keep_answer *a)
{
	switch ((enum pp_keep_type)r->type) {
	case PP_KEEP_CPUS_HELD: /* one per page, to test several pages */
		for (uint32_t cpu = r->first; cpu < 8 && a->n_cpus == 0; cpu++)
			if (k->generation[cpu])
				a->cpus[a->n_cpus++] = (struct pp_keep_cpu){
					.cpu = cpu, .generation = k->generation[cpu] - 1
				};
		a->more = a->n_cpus > 0;
		break;
	case PP_KEEP_RINGS:
		ck_assert_uint_eq(fds->n, r->n_cpus);
		for (uint32_t i = 0; i < r->n_cpus; i++)
			k->generation[r->cpus[i].cpu] = r->cpus[i].generation + 1;
		k->status.keeping = 1;
		break;
	case PP_KEEP_TASKS:
		ck_assert_uint_eq(fds->n, PP_KEEP_ITERATORS);
		ck_assert_uint_eq(k->status.keeping, 1);
		k->status.tasks = 1;
		break;
	case PP_KEEP_LIMIT:
		k->status.max_memory = r->max_memory;
		break;
	case PP_KEEP_TAKE:
		a->error = k->status.keeping ? 0 : ENODATA;
		a->size = k->status.keeping ? k->size : 0;
		break;
	case PP_KEEP_DROP:
	case PP_KEEP_END:
		keeper_forget(k);
		break;
	default: /* HELLO; or AREAS_…: it holds no area */
		break;
	}
}

static int keeper_on_request(sd_event_source *s _unused_, int fd, uint32_t revents _unused_,
			     void *userdata)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };
	struct fake_keeper *k = userdata;
	struct pp_keep_answer *a = &keeper_answer;
	int file = -EBADF;
	ssize_t n =
		pp_packet_receive(fd, &k->last, sizeof(k->last), PP_FDS_MAX, &fds, MSG_DONTWAIT);

	if (n != sizeof(k->last)) {
		ck_assert_int_le(n, 0);
		keeper_hang_up(k);
		return 0;
	}
	k->asked[k->last.type]++;
	k->last_fds = fds.n;
	if (k->last.type == k->dies_at) {
		k->dies_at = 0;
		keeper_forget(k);
		keeper_hang_up(k);
		return 0;
	}
	*a = (struct pp_keep_answer){ .abi = k->abi, .serial = k->last.serial, .pid = k->pid };
	if (k->last.type == k->fails_at) {
		k->fails_at = 0;
		a->error = ENOMEM;
	} else {
		keeper_act(k, &k->last, &fds, a);
	}
	a->status = k->status;
	if (k->last.type == PP_KEEP_TAKE && !a->error && !k->lies)
		file = keeper_file(k);
	/* The broker does not wait for the answer to END. */
	ck_assert(pp_packet_send(fd, a, sizeof(*a), &file, file >= 0 ? 1 : 0) == 0 ||
		  k->last.type == PP_KEEP_END);
	close_fd(file);
	return 0;
}

static void keeper_hold(struct fake_keeper *k, bool hold)
{
	k->hold = hold;
	if (k->io)
		sd_event_source_set_enabled(k->io, hold ? SD_EVENT_OFF : SD_EVENT_ON);
}

static int keeper_on_connection(sd_event_source *s _unused_, int fd _unused_,
				uint32_t revents _unused_, void *userdata)
{
	struct fake_keeper *k = userdata;

	keeper_hang_up(k);
	k->connections++;
	k->fd = accept4(k->listen, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(k->fd, 0);
	ck_assert_int_ge(sd_event_add_io(k->loop, &k->io, k->fd, EPOLLIN, keeper_on_request, k), 0);
	keeper_hold(k, k->hold);
	return 0;
}

static void keeper_start(struct fake_keeper *k, struct broker *b)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*k = (struct fake_keeper){
		.loop = b->loop,
		.fd = -EBADF,
		.abi = PP_KEEP_ABI,
		.pid = FAKE_KEEPER_PID,
	};
	memcpy(k->path, b->keeper, sizeof(k->path));
	memcpy(address.sun_path, k->path, sizeof(k->path));
	k->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(k->listen, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(k->listen, 8), 0);
	ck_assert_int_ge(sd_event_add_io(k->loop, &k->listen_io, k->listen, EPOLLIN,
					 keeper_on_connection, k),
			 0);
}

static void keeper_stop(struct fake_keeper *k)
{
	keeper_hang_up(k);
	k->listen_io = sd_event_source_disable_unref(k->listen_io);
	k->listen = close_fd(k->listen);
	unlink(k->path);
}
