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
#define FAKE_AREAS 64

struct fake_keeper {
	sd_event *loop;
	sd_event_source *listen_io, *io;
	char path[96];
	int listen, fd;
	uint32_t abi, pid;
	enum pp_keep_type dies_at, fails_at; /* this request, once; 0: none */
	bool lies;			     /* TAKE: no descriptor; AREAS_HELD: the wrong order */
	bool hold;			     /* does not read requests */

	uint64_t generation[8]; /* generation + 1; 0: no ring */
	struct pp_keep_status status;
	unsigned asked[PP_KEEP_AREAS_TAKE + 1], connections;
	struct pp_keep_request last;
	size_t last_fds;
	uint64_t size;			       /* of the file that it returns for TAKE */
	struct pp_keep_area areas[FAKE_AREAS]; /* sorted */
	uint32_t n_beside;		       /* of the last one that was put */
	size_t n_areas;
	char did[1024]; /* about areas: "put1:0,3 pause1:1 drop1:0 take1:3", each by the event's id */
};

static struct pp_keep_answer keeper_answer;

static void keeper_hang_up(struct fake_keeper *k)
{
	k->io = sd_event_source_disable_unref(k->io);
	k->fd = close_fd(k->fd);
}

static void keeper_forget(struct fake_keeper *k)
{
	k->n_areas = 0;
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

/* ── AUX areas ──────────────────────────────────────────────────────────────────────────── */

static _printf_(2, 3) void keeper_log(struct fake_keeper *k, const char *fmt, ...)
{
	size_t n = strlen(k->did);
	va_list args;

	va_start(args, fmt);
	n += (size_t)vsnprintf(k->did + n, sizeof(k->did) - n, fmt, args);
	va_end(args);
	ck_assert_uint_lt(n, sizeof(k->did));
}

static size_t keeper_place(const struct fake_keeper *k, uint64_t event, uint32_t cpu)
{
	size_t i = 0;

	while (i < k->n_areas &&
	       (k->areas[i].event < event || (k->areas[i].event == event && k->areas[i].cpu < cpu)))
		i++;
	return i;
}

static struct pp_keep_area *keeper_area(struct fake_keeper *k, uint64_t event, uint32_t cpu)
{
	size_t i = keeper_place(k, event, cpu);

	return i < k->n_areas && k->areas[i].event == event && k->areas[i].cpu == cpu ? &k->areas[i]
										      : NULL;
}

static void keeper_drop_area(struct fake_keeper *k, uint64_t event, uint32_t cpu)
{
	struct pp_keep_area *area = keeper_area(k, event, cpu);

	ck_assert_ptr_nonnull(area);
	k->n_areas--;
	memmove(area, area + 1, (size_t)(&k->areas[k->n_areas] - area) * sizeof(*area));
}

/* Each descriptor must be that event's, on that CPU. */
static void keeper_put_area(struct fake_keeper *k, const struct pp_keep_request *r, uint32_t i,
			    int fd)
{
	const struct pp_keep_cpu *cpu = &r->cpus[i];
	size_t at = keeper_place(k, r->event, cpu->cpu);
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_size, fake_aux_size(r->event, cpu->cpu));
	if (!keeper_area(k, r->event, cpu->cpu)) {
		ck_assert_uint_lt(k->n_areas, FAKE_AREAS);
		memmove(&k->areas[at + 1], &k->areas[at],
			(k->n_areas++ - at) * sizeof(k->areas[0]));
	}
	k->areas[at] = (struct pp_keep_area){
		.event = r->event,
		.generation = cpu->generation,
		.aux_size = r->aux_size,
		.cpu = cpu->cpu,
		.paused = r->what,
	};
	keeper_log(k, "%c%u", i ? ',' : ':', cpu->cpu);
}

/* Two per page, to test several pages. */
static void keeper_list_areas(const struct fake_keeper *k, const struct pp_keep_request *r,
			      struct pp_keep_answer *a)
{
	size_t i = r->event ? keeper_place(k, r->event, r->first + 1) : 0;

	while (i < k->n_areas && a->n_areas < 2)
		a->areas[a->n_areas++] = k->areas[i++];
	a->more = i < k->n_areas;
	if (k->lies && a->n_areas == 2) {
		struct pp_keep_area first = a->areas[0];

		a->areas[0] = a->areas[1];
		a->areas[1] = first;
	}
}

static void keeper_act_on_areas(struct fake_keeper *k, const struct pp_keep_request *r,
				const struct pp_fds *fds, struct pp_keep_answer *a)
{
	static const char *const names[] = { "put", "pause", "drop", "take" };

	if (r->type == PP_KEEP_AREAS_HELD) {
		keeper_list_areas(k, r, a);
		return;
	}
	keeper_log(k, "%s%s%llu", *k->did ? " " : "", names[r->type - PP_KEEP_AREAS],
		   (unsigned long long)r->event);
	if (r->type == PP_KEEP_AREAS) {
		k->n_beside = r->n_beside;
		ck_assert_uint_eq(fds->n, r->n_cpus * (1 + r->n_beside));
		for (uint32_t i = 0; i < r->n_cpus; i++)
			keeper_put_area(k, r, i, fds->fd[i * (1 + r->n_beside)]);
		return;
	}
	keeper_log(k, ":%u", r->type == PP_KEEP_AREAS_PAUSE ? r->what : r->first);
	if (r->type == PP_KEEP_AREAS_DROP)
		keeper_drop_area(k, r->event, r->first);
	else if (r->type == PP_KEEP_AREAS_TAKE && keeper_area(k, r->event, r->first))
		a->size = k->size;
	else if (r->type == PP_KEEP_AREAS_TAKE)
		a->error = ENODATA;
	else
		for (size_t i = 0; i < k->n_areas; i++)
			if (k->areas[i].event == r->event)
				k->areas[i].paused = r->what;
}

/* ── requests ───────────────────────────────────────────────────────────────────────────── */

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
	case PP_KEEP_HELLO:
		break;
	default:
		keeper_act_on_areas(k, r, fds, a);
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
	if ((k->last.type == PP_KEEP_TAKE || k->last.type == PP_KEEP_AREAS_TAKE) && !a->error &&
	    !k->lies)
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
