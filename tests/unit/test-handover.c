// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Perf events that are handed over and given back, on a real bpffs and this kernel, while the engine is killed at
 * each step: then either the event is there and whole, or the perf event is its creator's as before.
 */
#include <limits.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/cpus.h"
#include "daemon/engine/budget.h"
#include "daemon/engine/event/adopt.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/event/handout.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/registry/link-facts.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/log.h"
#include "dying.h"
#include "proto/macro.h"
#include "proto/ring.h"

#include "needs.h" /* after these, because check.h has a macro fail() */

#define BROKER 61999

static bool no_reaper; /* none can be started */

pid_t fork(void)
{
	pid_t (*real)(void) = dlsym(RTLD_NEXT, "fork");

	if (!no_reaper)
		return real();
	errno = EAGAIN;
	return -1;
}

static size_t n_facts; /* of links that the machine has; 0: the kernel's */

int bpf_iter_create(int link)
{
	int (*real)(int) = dlsym(RTLD_NEXT, "bpf_iter_create");
	int fd;

	if (!n_facts)
		return real(link);
	fd = memfd_create("facts", MFD_CLOEXEC);
	return fd < 0 || ftruncate(fd, (off_t)(n_facts * sizeof(struct link_fact))) < 0 ? -errno
											: fd;
}

static int closed_to; /* no perf event can be opened in tasks and on CPUs below this; 0: all can */

long syscall(long number, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (size_t i = 0; i < ARRAY_SIZE(a); i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_perf_event_open && closed_to && (int)a[2] < closed_to) {
		errno = ENOENT;
		return -1;
	}
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static char registry[] = "/tmp/perfpersist-handover-XXXXXX";

static struct pp_spec spec;
static struct pp_parsed parsed;
static struct failure failure;
static int perf = -EBADF; /* page faults of this process: each is a sample */

static void open_perf(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
	};

	perf = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	ck_assert_int_ge(perf, 0);
}

static void setup(void)
{
	umount2(registry, MNT_DETACH); /* left by a failed test */
	ck_assert_int_eq(pins_open(registry), 0);
	memset(&failure, 0, sizeof(failure));
	spec = (struct pp_spec){
		.ns = "hand",
		.name = "over",
		.event = "page-faults",
		.data_size = 65536,
		.period = 1,
		.flags = PP_EVENT_ALL_CPUS | PP_EVENT_ADOPTED,
		.mode = 0640,
	};
	parsed = (struct pp_parsed){
		.n_sources = 1,
		.sources[0] = { .kind = PP_SOURCE_SAMPLING,
				.type = PERF_TYPE_SOFTWARE,
				.config = PERF_COUNT_SW_PAGE_FAULTS,
				.text = "page-faults" },
	};
	open_perf();
}

static void teardown(void)
{
	perf = close_fd(perf);
	event_forget_adoption(0);
	reaper_wait(INT_MAX);
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(umount2(registry, MNT_DETACH), 0);
}

static void fault(unsigned n)
{
	char *pages =
		mmap(NULL, n << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(pages, MAP_FAILED);
	madvise(pages, n << 12, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < n; i++)
		((volatile char *)pages)[i << 12] = 1;
	munmap(pages, n << 12);
}

/* All steps, or all but the last, with one link; *ret its descriptor. -errno, with a message. */
static int hand_over_with(bool more, struct pp_event *ret, int *ret_link)
{
	_cleanup_close_ int entry = -EBADF;
	struct bpf_link_info info = {};
	uint32_t size = sizeof(info);
	uint64_t id;
	int r = event_adopt(&spec, &parsed, NULL, BROKER, ret, &entry, &failure);

	if (r < 0)
		return r;
	*ret_link = bpf_link_create(entry, perf, BPF_PERF_EVENT, NULL);
	if (*ret_link < 0)
		return *ret_link;
	if (bpf_obj_get_info_by_fd(*ret_link, &info, &size) < 0)
		return -errno;
	id = info.id;
	return event_attach(ret->id, &id, 1, more, ret, &failure);
}

static int hand_over(struct pp_event *ret, int *ret_link)
{
	return hand_over_with(false, ret, ret_link);
}

static void start_again(void)
{
	event_forget_adoption(0);
	ck_assert_int_eq(pins_recover(), 0);
	ck_assert_int_eq(names_recover(BROKER), 0);
	ck_assert_int_eq(orphans_recover(), 0);
	ck_assert_int_eq(reaper_kick(), 0);
	reaper_wait(INT_MAX);
}

static uint64_t sum(const struct pp_fds *rings, unsigned n, size_t offset)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < n; i++) {
		const char *ring = mmap(NULL, PP_RING_PAGE, PROT_READ, MAP_SHARED, rings->fd[i], 0);

		ck_assert_ptr_ne(ring, MAP_FAILED);
		all += *(const uint64_t *)(ring + offset);
		munmap((void *)ring, PP_RING_PAGE);
	}
	return all;
}

static uint64_t records(const struct pp_fds *rings, unsigned n)
{
	return sum(rings, n, offsetof(struct pp_ring_header, live.records));
}

/* 0 if all are RUNNING. */
static uint32_t states(const struct pp_fds *rings, unsigned n)
{
	return (uint32_t)sum(rings, n, offsetof(struct pp_ring_header, live.state));
}

static uint64_t bytes(const struct pp_fds *rings, unsigned n)
{
	return -sum(rings, n,
		    offsetof(struct pp_ring_header, live.head)); /* it counts down from 0 */
}

/* What keeps it alive; the number of rings in *ret_rings. */
static void hand_out(const char *path, struct pp_fds *ret, unsigned *ret_rings)
{
	struct pp_event e;
	uint32_t total;

	ck_assert_int_eq(event_read(path, &e), 0);
	ret->n = 0;
	ck_assert_msg(event_hand_out(path, 0, ret, &total, &failure) == 0, "%s", failure.sentence);
	ck_assert_uint_eq(ret->n, total);
	*ret_rings = 0;
	PP_CPUMASK_FOREACH(cpu, &e.rings)
	(*ret_rings)++;
}

static void expect_whole(const char *path)
{
	struct pp_fds fds;
	unsigned rings;
	uint64_t before;

	hand_out(path, &fds, &rings);
	/* a PROG_ARRAY, and a link */
	ck_assert_uint_eq(fds.n, rings + 2);
	before = records(&fds, rings);
	fault(100);
	ck_assert_uint_ge(records(&fds, rings), before + 100);
	pp_fds_close(&fds);
}

/* A link between `event` and a program of nobody's. */
static int link_other(int event)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	_cleanup_close_ int program = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "other", "GPL", insns,
						    ARRAY_SIZE(insns), NULL);

	return bpf_link_create(program, event, BPF_PERF_EVENT, NULL);
}

static bool is_free(void)
{
	_cleanup_close_ int link = link_other(perf);

	return link >= 0;
}

/* The killed engine's own reaper may hold it for a moment. If it is never free, check's own timeout fails the
 * test. */
static void await_free(void)
{
	while (!is_free())
		usleep(1000);
}

/* The id of another's link to a perf event whose task has ended; it goes with the test. */
static uint64_t link_to_dead(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
	};
	struct bpf_link_info info = {};
	uint32_t size = sizeof(info);
	pid_t pid = fork();
	int event, link;

	if (pid == 0) {
		pause();
		_exit(0);
	}
	event = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	ck_assert_int_ge(event, 0);
	link = link_other(event);
	ck_assert_int_ge(link, 0);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(bpf_obj_get_info_by_fd(link, &info, &size), 0);
	close_fd(event);
	return info.id;
}

static void delete_it(uint64_t id)
{
	struct pp_orphans orphans;
	struct pp_event e;

	ck_assert_msg(names_delete(id, NULL, BROKER, &e, &orphans, &failure) == 0, "%s",
		      failure.sentence);
	reaper_wait(INT_MAX);
}

/* Runs `what` in an engine that dies at step `at`. Whether it did not. */
static bool survives(unsigned at, int (*what)(void))
{
	int status, r;
	pid_t pid = fork();

	if (pid == 0) {
		steps_left = at;
		r = what();
		if (r < 0)
			fprintf(stderr, "step %u: %d: %s\n", at, r, failure.sentence);
		_exit(r < 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == KILLED);
	return WEXITSTATUS(status) == 0;
}

static int hand_over_and_end(void)
{
	struct pp_event e;
	int link;

	return hand_over(&e, &link);
}

START_TEST(killed_while_it_takes)
{
	unsigned there = 0, free = 0;
	bool through = false;

	for (unsigned at = 1; !through; at += stride(4)) {
		struct pp_event e;
		int r;

		through = survives(at, hand_over_and_end);
		start_again();
		r = event_read("hand/over", &e);
		if (r == 0) {
			char path[PINS_PATH_SIZE];

			there++;
			pins_event(e.id, path);
			expect_whole(path);
			delete_it(e.id);
		} else {
			free++;
			ck_assert_int_eq(r, -ENOENT);
			ck_assert(!through);
		}
		await_free();
	}
	printf("%u steps; after %u of them the event is there\n", there + free, there);
	ck_assert_uint_gt(there, 0);
	ck_assert_uint_gt(free, 0);
}
END_TEST

static struct pp_event given; /* the event that is given back */

static int give_back(void)
{
	struct pp_orphans orphans = {};
	struct pp_event e;

	return names_give_back(given.id, &e, &orphans, &failure);
}

START_TEST(killed_while_it_gives)
{
	bool through = false;

	for (unsigned at = 1; !through; at += stride(4)) {
		char path[PINS_PATH_SIZE];
		struct pp_fds fds;
		struct pp_event e;
		unsigned rings;
		uint64_t before;
		int link = -EBADF;
		bool ours;

		ck_assert_msg(hand_over(&given, &link) == 1, "%s", failure.sentence);
		close_fd(link);
		pins_event(given.id, path);
		hand_out(path, &fds, &rings);
		through = survives(at, give_back);
		start_again();
		ours = event_read(path, &e) == 0;
		ck_assert(!through || !ours);

		/* Whoever has it, it goes on. */
		before = records(&fds, rings);
		fault(100);
		ck_assert_uint_ge(records(&fds, rings), before + 100);
		ck_assert_uint_eq(states(&fds, rings), 0);
		pp_fds_close(&fds);
		if (ours) {
			expect_whole(path);
			delete_it(given.id);
		}
		await_free();
	}
}
END_TEST

static int hand_over_in_part(void)
{
	struct pp_event e;
	int link;

	return hand_over_with(true, &e, &link);
}

enum { GIVEN_UP, REFUSED, LEFT_BEHIND, DELETED, WAYS };

static void end_links(unsigned way)
{
	struct pp_orphans orphans;
	int link = -EBADF, r = 0;
	uint64_t none = UINT32_MAX;
	struct pp_event e;

	if (way == LEFT_BEHIND)
		ck_assert(survives(0, hand_over_in_part));
	else
		r = hand_over_with(way != DELETED, &e, &link);
	ck_assert_msg(r >= 0, "%s", failure.sentence);
	close_fd(link);
	no_reaper = true;
	if (way == GIVEN_UP)
		ck_assert(event_forget_adoption(e.id));
	else if (way == REFUSED)
		ck_assert_int_eq(event_attach(e.id, &none, 1, false, &e, &failure), -ENOENT);
	else if (way == LEFT_BEHIND)
		ck_assert_int_eq(pins_recover(), 0);
	else
		ck_assert_int_eq(names_delete(e.id, NULL, BROKER, &e, &orphans, &failure), 0);
}

/* Their creator decides how long that takes: the engine leaves it to the reaper, and waits for nothing. */
START_TEST(reaper_ends_links)
{
	end_links(_i);
	ck_assert(!is_free());
	ck_assert_int_lt(access("+new-0", F_OK), 0);
	no_reaper = false;
	reaper_kick();
	reaper_wait(INT_MAX);
	await_free(); /* who lists the machine's links has it for a moment */
}
END_TEST

/* A CPU that comes online, a change and a pause leave an adopted event its links. */
START_TEST(changed_like_others)
{
	struct pp_orphans orphans;
	char path[PINS_PATH_SIZE];
	struct pp_event e;
	int link = -EBADF;

	ck_assert_msg(hand_over(&given, &link) == 1, "%s", failure.sentence);
	close_fd(link);
	pins_event(given.id, path);
	ck_assert_uint_eq(given.missed_unknown, PP_MISSED_UNKNOWN);
	ck_assert_uint_eq(given.now & PP_NOW_INCOMPLETE, 0);
	ck_assert_int_eq(event_cpus(given.id, &given.rings, BROKER, &failure), 0);
	spec.data_size *= 2;
	ck_assert_msg(event_change(given.id, PP_CHANGE_BUFFER, &spec, &parsed, NULL, BROKER,
				   &orphans, &failure) == 0,
		      "%s", failure.sentence);
	expect_whole(path);
	ck_assert_int_eq(event_pause(given.id, true, NULL, BROKER, &failure), 0);
	ck_assert_int_eq(names_give_back(given.id, &e, &orphans, &failure), -EBUSY);
	ck_assert_int_eq(event_pause(given.id, false, NULL, BROKER, &failure), 0);
	expect_whole(path);
	ck_assert_int_eq(event_read(path, &e), 0);
	ck_assert_uint_eq(e.spec.flags & PP_EVENT_ADOPTED, PP_EVENT_ADOPTED);
	delete_it(given.id);
	await_free();
}
END_TEST

/* Links of others, and what is no link. */
START_TEST(other_links)
{
	struct bpf_link_info info = {};
	uint32_t size = sizeof(info);
	int entry = -EBADF, other = -EBADF, link = -EBADF;
	struct pp_event e;
	uint64_t id;

	ck_assert_msg(hand_over(&given, &link) == 1, "%s", failure.sentence);
	ck_assert_int_eq(bpf_obj_get_info_by_fd(link, &info, &size), 0);
	id = info.id;
	strcpy(spec.name, "second");
	ck_assert_int_eq(event_adopt(&spec, &parsed, NULL, BROKER, &e, &entry, &failure), 0);
	ck_assert_int_eq(event_attach(e.id, &id, 1, false, &e, &failure), -EACCES);
	ck_assert_int_eq(event_attach(e.id, &id, 1, false, &e, &failure), -ENOENT);
	close_fd(entry);

	/* Nor is it told whether others' perf events are alive. */
	id = link_to_dead();
	strcpy(spec.name, "third");
	ck_assert_int_eq(event_adopt(&spec, &parsed, NULL, BROKER, &e, &entry, &failure), 0);
	ck_assert_int_eq(event_attach(e.id, &id, 1, false, &e, &failure), -EACCES);
	close_fd(entry);

	ck_assert_int_eq(event_adopt(&spec, &parsed, NULL, BROKER, &e, &other, &failure), 0);
	id = UINT32_MAX;
	ck_assert_int_eq(event_attach(e.id, &id, 1, true, &e, &failure), -ENOENT);
	ck_assert(!event_forget_adoption(e.id));
	close_fd(other);
	close_fd(link);
	delete_it(given.id);
}
END_TEST

static bool kernel_tells(int link)
{
	uint32_t info[64] = {}, size = sizeof(info);

	return bpf_obj_get_info_by_fd(link, info, &size) == 0 && info[4] != 0;
}

/* What they count is checked wherever such a perf event can be opened, and where none can, they are refused. */
START_TEST(counts_something_else)
{
	struct pp_cpumask online;
	int link = -EBADF, r;
	bool tells;

	ck_assert_int_eq(pp_cpus_read("online", &online), 0);
	for (int cpus = 0; cpus < 2; cpus++) {
		parsed.sources[0].config = PERF_COUNT_SW_CPU_MIGRATIONS;
		failure = (struct failure){};
		closed_to = cpus && pp_cpumask_test(&online, 1) ? 1 : 0;
		r = hand_over(&given, &link);
		tells = kernel_tells(link);
		close_fd(link);
		if (!tells)
			return;
		ck_assert_int_eq(r, -EINVAL);
		ck_assert_ptr_nonnull(strstr(failure.sentence, "counts type 1, config 0x2"));
		await_free();
		parsed.sources[0].config = PERF_COUNT_SW_PAGE_FAULTS;
		ck_assert_msg(hand_over(&given, &link) == 1, "%s", failure.sentence);
		close_fd(link);
		delete_it(given.id);
		await_free();
	}
	closed_to = INT_MAX;
	failure = (struct failure){};
	ck_assert_int_eq(hand_over(&given, &link), -EOPNOTSUPP);
	ck_assert_msg(strstr(failure.sentence, "cannot be checked") != NULL, "%s",
		      failure.sentence);
	closed_to = 0;
	close_fd(link);
}
END_TEST

/* Half a chain is no reason to refuse a precise perf event that has both. */
START_TEST(precise_with_half_a_chain)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.precise_ip = 1,
		.sample_type = PERF_SAMPLE_CALLCHAIN,
	};
	int link = -EBADF;

	perf = close_fd(perf);
	perf = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	ck_assert_int_ge(perf, 0);
	spec.flags |= PP_EVENT_CALLCHAIN | PP_EVENT_NO_KERNEL_CHAIN;
	parsed.sources[0].precise_ip = 1;
	ck_assert_msg(hand_over(&given, &link) == 1, "%s", failure.sentence);
	close_fd(link);
	delete_it(given.id);
}
END_TEST

/* All registers may be in use by then, and the kernel has no other numbers for it. */
START_TEST(a_breakpoint)
{
	static int watched;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&watched,
		.bp_len = HW_BREAKPOINT_LEN_4,
		.sample_period = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int link = -EBADF;

	perf = close_fd(perf);
	perf = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (perf < 0)
		return; /* no register, or no permission */
	parsed.sources[0].type = PERF_TYPE_BREAKPOINT;
	parsed.sources[0].config = 0;
	parsed.sources[0].bp_type = HW_BREAKPOINT_W;
	parsed.sources[0].config1 = (uintptr_t)&watched;
	parsed.sources[0].config2 = HW_BREAKPOINT_LEN_4;
	closed_to = INT_MAX;
	ck_assert_msg(hand_over(&given, &link) == 1, "%s", failure.sentence);
	closed_to = 0;
	close_fd(link);
	delete_it(given.id);
}
END_TEST

/* The kernel's own rule shows what it takes the entry for: a program that asks for call chains is refused by
 * a precise perf event without any. */
START_TEST(asks_for_chains)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.precise_ip = 1,
		.sample_type = _i ? PERF_SAMPLE_CALLCHAIN : 0,
	};
	int precise = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	int entry = -EBADF, plain = -EBADF, link;
	struct pp_event e;

	ck_assert_int_ge(precise, 0);
	ck_assert_int_eq(event_adopt(&spec, &parsed, NULL, BROKER, &e, &plain, &failure), 0);
	strcpy(spec.name, "chains");
	spec.flags |= PP_EVENT_CALLCHAIN;
	ck_assert_int_eq(event_adopt(&spec, &parsed, NULL, BROKER, &e, &entry, &failure), 0);
	link = bpf_link_create(entry, precise, BPF_PERF_EVENT, NULL);
	if (_i)
		ck_assert_int_ge(link, 0);
	else
		ck_assert_int_eq(link, -EPROTO);
	close_fd(link);
	link = bpf_link_create(plain, precise, BPF_PERF_EVENT, NULL);
	ck_assert_int_ge(link, 0);
	close_fd(link);
	close_fd(entry);
	close_fd(plain);
	close_fd(precise);
}
END_TEST

/* A perf event that has not asked for the address has what was on the kernel's stack there. */
START_TEST(no_address)
{
	struct pp_fds fds;
	char path[PINS_PATH_SIZE];
	unsigned rings;
	int link = -EBADF;

	ck_assert_msg(hand_over(&given, &link) == 1, "%s", failure.sentence);
	close_fd(link);
	ck_assert_uint_eq(given.sample_type & PERF_SAMPLE_ADDR, 0);
	pins_event(given.id, path);
	fault(100);
	ck_assert_int_eq(ioctl(perf, PERF_EVENT_IOC_DISABLE, 0), 0);
	hand_out(path, &fds, &rings);
	ck_assert_uint_ge(records(&fds, rings), 100);
	/* Header, IP, TID, TIME, PERIOD; and no more. */
	ck_assert_uint_eq(bytes(&fds, rings), 40 * records(&fds, rings));
	pp_fds_close(&fds);
	delete_it(given.id);
}
END_TEST

/* What is handed out cannot be taken back, so it is counted. */
START_TEST(entries_count)
{
	struct pp_allowance allowance = {
		.sources = 2,
		.creator_there = UINT32_MAX,
		.all_there = UINT32_MAX,
		.work = UINT32_MAX,
	};
	int entry[3] = { -EBADF, -EBADF, -EBADF }, link = -EBADF;
	struct pp_event e;

	/* That of an event is one of its programs. */
	ck_assert_msg(hand_over(&given, &link) == 1, "%s", failure.sentence);
	close_fd(link);
	strcpy(spec.name, "second");
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_msg(event_adopt(&spec, &parsed, &allowance, BROKER, &e, &entry[i],
					  &failure) == 0,
			      "%s", failure.sentence);
		ck_assert(event_forget_adoption(e.id));
	}
	ck_assert_int_eq(event_adopt(&spec, &parsed, &allowance, BROKER, &e, &entry[2], &failure),
			 -EDQUOT);
	ck_assert_ptr_nonnull(strstr(failure.sentence, "still holds the programs of 2 adoptions"));
	spec.creator++; /* another user */
	ck_assert_int_eq(event_adopt(&spec, &parsed, &allowance, BROKER, &e, &entry[2], &failure),
			 0);
	ck_assert(event_forget_adoption(e.id));
	spec.creator--;
	close_fd(entry[2]);
	close_fd(entry[0]);
	ck_assert_int_eq(event_adopt(&spec, &parsed, &allowance, BROKER, &e, &entry[0], &failure),
			 0);
	close_fd(entry[0]);
	close_fd(entry[1]);
	delete_it(given.id);
}
END_TEST

/* Rings of adoptions are memory as others' are. */
START_TEST(drafts_count)
{
	struct pp_event e;
	int entry;

	budget_set(1ULL << 20);
	budget_recount();
	ck_assert_int_eq(budget_check(&spec, &failure), 0);
	spec.data_size = 1ULL << 20;
	ck_assert_int_eq(event_adopt(&spec, &parsed, NULL, BROKER, &e, &entry, &failure), 0);
	close_fd(entry);
	spec.data_size = 65536;
	ck_assert_int_eq(budget_check(&spec, &failure), -ENOMEM);
	ck_assert(event_forget_adoption(e.id));
	ck_assert_int_eq(budget_check(&spec, &failure), 0);
}
END_TEST

/* The kernel's memory for perf events, which nobody else is charged for. */
START_TEST(perf_events_count)
{
	uint64_t rings;
	struct pp_orphans orphans;
	struct pp_event e;
	int link = -EBADF, entry;

	ck_assert_msg(hand_over(&given, &link) == 1, "%s", failure.sentence);
	close_fd(link);
	strcpy(spec.name, "draft");
	ck_assert_int_eq(event_adopt(&spec, &parsed, NULL, BROKER, &e, &entry, &failure), 0);
	close_fd(entry);
	rings = e.memory;
	ck_assert_uint_eq(given.memory, rings + 16384);
	spec.max_rate = 5;
	ck_assert_int_eq(event_change(given.id, PP_CHANGE_MAX_RATE, &spec, &parsed, NULL, BROKER,
				      &orphans, &failure),
			 0);
	ck_assert_int_eq(names_read(given.id, &e), 0);
	ck_assert_uint_eq(e.memory, rings + 16384);
	delete_it(given.id);
}
END_TEST

/* All users' drafts hold descriptors of one engine. */
START_TEST(so_many)
{
	struct pp_event e;
	unsigned n = 0;
	int entry, r;

	spec.flags = PP_EVENT_ADOPTED;
	pp_cpumask_set(&spec.cpus, 0);
	spec.data_size = 4096;
	for (;; n++) {
		snprintf(spec.name, sizeof(spec.name), "draft%u", n);
		r = event_adopt(&spec, &parsed, NULL, BROKER, &e, &entry, &failure);
		if (r < 0 || n > 256)
			break;
		close_fd(entry);
	}
	ck_assert_int_eq(r, -EBUSY);
	ck_assert_uint_eq(n, 256);
}
END_TEST

/* Its perf events are not ours to open again. */
START_TEST(no_other_period)
{
	struct pp_orphans orphans;
	char path[PINS_PATH_SIZE];
	int link = -EBADF;

	ck_assert_msg(hand_over(&given, &link) == 1, "%s", failure.sentence);
	close_fd(link);
	pins_event(given.id, path);
	spec.period = 2;
	ck_assert_int_eq(event_change(given.id, PP_CHANGE_PERIOD, &spec, &parsed, NULL, BROKER,
				      &orphans, &failure),
			 -EOPNOTSUPP);
	expect_whole(path);
	delete_it(given.id);
}
END_TEST

/* Whoever has them takes no program out of a slot. */
START_TEST(slots_to_read)
{
	struct pp_fds fds;
	char path[PINS_PATH_SIZE];
	unsigned rings, zero = 0;
	int link = -EBADF;

	ck_assert_msg(hand_over(&given, &link) == 1, "%s", failure.sentence);
	close_fd(link);
	pins_event(given.id, path);
	hand_out(path, &fds, &rings);
	ck_assert_int_eq(bpf_map_delete_elem(fds.fd[rings], &zero), -EPERM);
	pp_fds_close(&fds);
	delete_it(given.id);
}
END_TEST

/* Anybody can make links: the engine does not read any number of them. */
START_TEST(many_links)
{
	_cleanup_free_ struct link_fact *facts = NULL;
	size_t n;

	n_facts = 65536;
	ck_assert_int_eq(link_facts_read(BROKER, &facts, &n), 0);
	ck_assert_uint_eq(n, n_facts);
	n_facts++;
	free(TAKE_PTR(facts));
	ck_assert_int_eq(link_facts_read(BROKER, &facts, &n), -E2BIG);
	n_facts = 0;
}
END_TEST

int main(void)
{
	Suite *s = suite_create("handover");
	TCase *t = tcase_create("handover");
	int r;

	log_open("test-handover");
	umask(077);
	need(no_bpffs());
	need(no_btf());
	need(no_dir(registry));
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, killed_while_it_takes);
	tcase_add_test(t, killed_while_it_gives);
	tcase_add_loop_test(t, reaper_ends_links, 0, WAYS);
	tcase_add_test(t, changed_like_others);
	tcase_add_test(t, other_links);
	tcase_add_test(t, counts_something_else);
	tcase_add_test(t, precise_with_half_a_chain);
	tcase_add_test(t, a_breakpoint);
	tcase_add_loop_test(t, asks_for_chains, 0, 2);
	tcase_add_test(t, no_address);
	tcase_add_test(t, entries_count);
	tcase_add_test(t, drafts_count);
	tcase_add_test(t, perf_events_count);
	if (stride(2) == 1) /* each waits for grace periods */
		tcase_add_test(t, so_many);
	tcase_add_test(t, no_other_period);
	tcase_add_test(t, slots_to_read);
	tcase_add_test(t, many_links);
	suite_add_tcase(s, t);
	r = run_suite(s);
	rmdir(registry);
	return r;
}
