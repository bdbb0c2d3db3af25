// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The order SIDEBAND, sent to the engine's own loop over a socket: compares its iterators' output
 * with /proc, and its perf events' with what a program did.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#undef fail /* check has one, too */
#include "daemon/cpus.h"
#include "daemon/engine/server.h"
#include "daemon/tasks.h"
#include "proto/clock.h"
#include "proto/keep.h"
#include "proto/macro.h"
#include "proto/packet.h"
#include "proto/sideband.h"
#include "tests/unit/needs.h"

#define RING_SIZE (64UL << 10)

/* ── an engine, and orders to it ────────────────────────────────────────────────────────── */

static char directory[] = "/tmp/perfpersist-sideband-XXXXXX";
static pid_t engine;
static int connection = -EBADF;
static struct pp_order order;
static struct pp_answer answer;
static struct pp_fds fds;

static void engine_run(int listener)
{
	sigset_t none;

	sigemptyset(&none);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(serve(listener, signalfd(-1, &none, SFD_CLOEXEC | SFD_NONBLOCK),
		    &(struct accept_rule){ .uid = geteuid() }) < 0);
}

static void engine_start(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/engine", directory);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	engine = fork();
	if (engine == 0)
		engine_run(listener);
	close(listener);
	connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(connection, (struct sockaddr *)&address, sizeof(address)), 0);
	unlink(address.sun_path);
	rmdir(directory);
}

static void engine_end(void)
{
	pp_fds_close(&fds);
	connection = close_fd(connection);
	kill(engine, SIGKILL);
	waitpid(engine, NULL, 0);
}

static void ask(const struct pp_cpumask *cpus, uint32_t what)
{
	size_t size = pp_order_size(PP_ORDER_SIDEBAND);

	order.abi = PP_ORDER_ABI;
	order.type = PP_ORDER_SIDEBAND;
	order.serial++;
	order.what = what;
	order.spec.cpus = *cpus;
	ck_assert_int_eq(pp_packet_send(connection, &order, size, NULL, 0), 0);
	pp_fds_close(&fds);
	ck_assert_int_eq(
		pp_packet_receive(connection, &answer, sizeof(answer), PP_FDS_MAX, &fds, 0),
		sizeof(answer));
	ck_assert_msg(answer.type == PP_ANSWER_DONE, "%s", answer.sentence);
	ck_assert_uint_eq(answer.serial, order.serial);
}

/* ── reading iterators ──────────────────────────────────────────────────────────────────── */

static char *entries;
static size_t entries_size;

static void read_entries(int fd)
{
	FILE *to = open_memstream(&entries, &entries_size);
	char buf[4099]; /* odd size: entries are cut */
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		fwrite(buf, 1, (size_t)n, to);
	ck_assert_int_eq(n, 0);
	fclose(to);
}

struct entry {
	uint32_t type, size;
};

static const struct entry *next_entry(size_t *offset)
{
	const struct entry *e = (const void *)(entries + *offset);

	if (*offset == entries_size)
		return NULL;
	ck_assert_uint_ge(entries_size - *offset, sizeof(*e));
	ck_assert_uint_le(e->size, entries_size - *offset);
	ck_assert_uint_eq(e->size % 8, 0);
	ck_assert_uint_gt(e->size, 0);
	*offset += e->size;
	return e;
}

/* Only tasks; returns their number. */
static size_t check_tasks(void)
{
	const struct pp_task *t;
	size_t offset = 0, n = 0;

	for (; (t = (const void *)next_entry(&offset)); n++) {
		ck_assert_uint_eq(t->type, PP_TASK);
		ck_assert_uint_eq(t->size, sizeof(*t));
	}
	return n;
}

/* (Each ck_assert() that holds makes a system call, and this runs for every thread on the
 * machine.) */
static const struct pp_task *find_task(pid_t pid, pid_t tid)
{
	const struct pp_task *found = NULL, *t = (const void *)entries;

	for (; (const char *)t < entries + entries_size; t++) {
		if (t->pid != (uint32_t)pid || t->tid != (uint32_t)tid)
			continue;
		ck_assert_ptr_null(found); /* once */
		found = t;
	}
	return found;
}

/* ── what runs ──────────────────────────────────────────────────────────────────────────── */

static void *wait_named(void *userdata)
{
	prctl(PR_SET_NAME, "a-named-thread");
	*(pid_t *)userdata = gettid();
	pause();
	return NULL;
}

#define FLAG_EXITING 4 /* the kernel's PF_EXITING */

/* An exiting one does not count. */
static bool is_there(pid_t pid, pid_t tid, int *ret_ppid, char ret_comm[static 64])
{
	char path[64], line[512] = "", state;
	unsigned flags;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	(void)!fgets(line, sizeof(line), f);
	fclose(f);
	if (!strchr(line, '(') || !strrchr(line, ')') ||
	    sscanf(strrchr(line, ')'), ") %c %d %*d %*d %*d %*d %u", &state, ret_ppid, &flags) != 3)
		return false;
	*strrchr(line, ')') = 0;
	snprintf(ret_comm, 64, "%s", strchr(line, '(') + 1);
	return state != 'Z' && state != 'X' && !(flags & FLAG_EXITING);
}

/* A security guard on the machine may hide processes from root and from programs alike. */
static bool is_hidden(pid_t pid)
{
	char path[64], ns[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return readlink(path, ns, sizeof(ns)) < 0 && errno == EACCES;
}

/* ps knows all threads; those that exist before and after must be in the entries, with the parent
 * and the name that they had at both times. */
static unsigned compare_with_ps(FILE *ps)
{
	int pid, tid, ppid, ppid_now;
	char comm[64], comm_now[64];
	unsigned n = 0;

	while (fscanf(ps, "%d %d %d %63[^\n]", &pid, &tid, &ppid, comm) == 4) {
		const struct pp_task *t = find_task(pid, tid);

		if (!is_there(pid, tid, &ppid_now, comm_now) || is_hidden(pid))
			continue;
		ck_assert_msg(t, "%d/%d (%s) is missing", pid, tid, comm);
		if (ppid == ppid_now)
			ck_assert_uint_eq(t->ppid, ppid);
		/* The kernel's workers change theirs at will. */
		if (ppid != 2 && !strcmp(comm, comm_now))
			ck_assert_str_eq(t->comm, comm);
		n++;
	}
	return n;
}

START_TEST(threads)
{
	static const struct pp_cpumask none;
	volatile pid_t tid = 0;
	const struct pp_task *t;
	pthread_t thread;
	uint64_t created = pp_clock_ns(CLOCK_MONOTONIC);
	FILE *before;
	unsigned n;

	pthread_create(&thread, NULL, wait_named, (void *)&tid);
	while (!tid)
		sched_yield();
	before = tmpfile();
	ck_assert_ptr_nonnull(before);
	if (fork() == 0) {
		dup2(fileno(before), STDOUT_FILENO);
		execlp("ps", "ps", "-eLo", "pid=,tid=,ppid=,comm=", NULL);
		_exit(127);
	}
	wait(NULL);
	rewind(before);
	ask(&none, PP_SIDEBAND_TASKS);
	ck_assert_uint_eq(fds.n, PP_KEEP_ITERATORS);
	read_entries(fds.fd[0]);
	check_tasks();
	n = compare_with_ps(before);
	ck_assert_uint_gt(n, 10);

	t = find_task(getpid(), tid);
	ck_assert_ptr_nonnull(t);
	ck_assert_str_eq(t->comm, "a-named-thread");
	ck_assert_uint_eq(t->ppid, getppid());
	ck_assert_uint_gt(t->started, created);
	ck_assert_uint_lt(t->started, pp_clock_ns(CLOCK_MONOTONIC));
	ck_assert_uint_lt(find_task(getpid(), getpid())->started, created);
	ck_assert_ptr_null(find_task(engine, 1)); /* the comparison can fail */
}
END_TEST

/* A process that has exited but was not waited for: perf has reported its exit. */
START_TEST(zombies)
{
	static const struct pp_cpumask none;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	ask(&none, PP_SIDEBAND_TASKS);
	read_entries(fds.fd[0]);
	ck_assert_uint_gt(check_tasks(), 0);
	ck_assert_ptr_null(find_task(pid, pid));
	waitpid(pid, NULL, 0);
}
END_TEST

/* ── what is mapped ─────────────────────────────────────────────────────────────────────── */

static uint64_t parse_prot(const char *p)
{
	return (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) |
	       (p[2] == 'x' ? PROT_EXEC : 0);
}

/* Only mappings; returns how many are this process's. */
static unsigned check_maps(void)
{
	const struct pp_task_map *m;
	size_t offset = 0;
	unsigned n = 0;

	while ((m = (const void *)next_entry(&offset))) {
		ck_assert_uint_eq(m->type, PP_TASK_MAP);
		ck_assert_uint_eq(m->size, ALIGN_TO(sizeof(*m) + m->path_size, 8));
		ck_assert_uint_eq(strlen(m->path) + 1, m->path_size);
		for (uint32_t i = m->path_size; i < m->size - sizeof(*m); i++)
			if (m->path[i])
				ck_abort_msg("a byte behind %s is not 0", m->path);
		n += m->pid == (uint32_t)getpid();
	}
	return n;
}

static const struct pp_task_map *find_map(uint64_t start)
{
	const struct pp_task_map *m, *found = NULL;
	uint32_t pid = (uint32_t)getpid();

	for (const char *at = entries; at < entries + entries_size; at += m->size) {
		m = (const void *)at;
		if (m->pid != pid || m->start != start)
			continue;
		ck_assert_ptr_null(found);
		found = m;
	}
	return found;
}

static void compare_map(const char *line)
{
	unsigned long start, end, offset, inode;
	const struct pp_task_map *m;
	unsigned major_, minor_;
	int at = 0;
	char prot[8];
	const char *path;

	ck_assert_int_eq(sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &start, &end, prot, &offset,
				&major_, &minor_, &inode, &at),
			 7);
	m = find_map(start);
	ck_assert_msg(m, "missing: %s", line);
	ck_assert_uint_eq(m->end, end);
	ck_assert_uint_eq(m->prot, parse_prot(prot));
	ck_assert_uint_eq(m->flags, prot[3] == 's' ? MAP_SHARED : MAP_PRIVATE);
	ck_assert_uint_eq(m->inode, inode);
	ck_assert_uint_eq(m->major, major_);
	ck_assert_uint_eq(m->minor, minor_);
	if (inode)
		ck_assert_uint_eq(m->offset, offset);
	path = line[at] ? line + at : "//anon";
	if (strlen(path) >= PP_TASK_PATH_SIZE)
		path += strlen(path) - (PP_TASK_PATH_SIZE - 1);
	ck_assert_str_eq(m->path, path);
}

/* Maps a file whose path has more than a thousand characters. */
static void *map_deep_file(size_t depth)
{
	char name[201], root[64];
	int top, at, fd;
	void *mapped;

	snprintf(root, sizeof(root), "/tmp/perfpersist-deep-%d-XXXXXX", getpid());
	ck_assert_ptr_nonnull(mkdtemp(root));
	memset(name, 'd', 200);
	name[200] = 0;
	top = at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < depth; i++) {
		ck_assert_int_eq(mkdirat(at, name, 0700), 0);
		at = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	fd = openat(at, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	ck_assert_int_eq(ftruncate(fd, 4096), 0);
	mapped = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(mapped, MAP_FAILED);
	close(top);
	return mapped;
}

static void remove_deep_files(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf /tmp/perfpersist-deep-%d-??????", getpid());
	ck_assert_int_eq(system(command), 0);
}

START_TEST(maps)
{
	static const struct pp_cpumask none;
	char line[8192];
	unsigned n = 0, vdso = 0, own;
	FILE *f;

	ck_assert_ptr_ne(
		mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		MAP_FAILED);
	map_deep_file(1);
	map_deep_file(6);
	ask(&none, PP_SIDEBAND_TASKS);
	read_entries(fds.fd[1]);
	own = check_maps();
	f = fopen("/proc/self/maps", "re");
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (strstr(line, "[vsyscall]") || !strstr(line, "x") ||
		    line[strcspn(line, " ") + 3] != 'x')
			continue;
		vdso += strstr(line, "[vdso]") != NULL;
		compare_map(line);
		n++;
	}
	fclose(f);
	remove_deep_files();
	ck_assert_uint_eq(vdso, 1);
	ck_assert_uint_gt(n, 5);
	ck_assert_uint_eq(own, n);
}
END_TEST

/* ── what happens ───────────────────────────────────────────────────────────────────────── */

static void pin_to(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0);
}

static bool of_type(const struct perf_event_header *h, uint32_t type, pid_t pid)
{
	const uint32_t *words = (const void *)(h + 1);

	return h->type == type && words[0] == (uint32_t)pid;
}

struct seen {
	bool fork, comm, exit;
	unsigned maps, inodes, programs;
};

/* A mapping of that program, by device and inode; build ids are not requested. */
static bool is_of_true(const struct perf_event_header *h)
{
	const struct {
		uint32_t pid, tid;
		uint64_t start, length, offset;
		uint32_t major, minor;
		uint64_t inode;
	} *m = (const void *)(h + 1);
	struct stat st;

	ck_assert_int_eq(stat("/bin/true", &st), 0);
	return m->major == major(st.st_dev) && m->minor == minor(st.st_dev) &&
	       m->inode == st.st_ino;
}

static void see(const struct perf_event_header *h, pid_t pid, struct seen *s)
{
	s->fork |= of_type(h, PERF_RECORD_FORK, pid);
	s->exit |= of_type(h, PERF_RECORD_EXIT, pid);
	if (of_type(h, PERF_RECORD_COMM, pid) && h->misc & PERF_RECORD_MISC_COMM_EXEC)
		s->comm |= !strcmp((const char *)(h + 1) + 8, "true");
	if (of_type(h, PERF_RECORD_MMAP2, pid)) {
		s->maps++;
		s->inodes += is_of_true(h);
	}
	s->programs += h->type == PERF_RECORD_KSYMBOL || h->type == PERF_RECORD_BPF_EVENT;
}

static uint64_t head_of(const struct perf_event_mmap_page *page)
{
	return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

/* From data_tail on. */
static struct seen read_ring(const char *ring, pid_t pid)
{
	const struct perf_event_mmap_page *page = (const void *)ring;
	const char *data = ring + sysconf(_SC_PAGESIZE);
	_Alignas(uint64_t) static char copy[2 * RING_SIZE];
	uint64_t head = head_of(page), at = page->data_tail;
	struct seen s = {};

	ck_assert_uint_gt(head, at);
	memcpy(copy, data, RING_SIZE);
	memcpy(copy + RING_SIZE, data, RING_SIZE);
	while (at < head) {
		const struct perf_event_header *h = (const void *)(copy + at % RING_SIZE);
		const uint64_t *id;

		ck_assert_uint_ge(h->size, sizeof(*h) + PP_SIDEBAND_ID_SIZE);
		id = (const void *)((const char *)h + h->size - PP_SIDEBAND_ID_SIZE);
		ck_assert_uint_gt(id[1], 0); /* time */
		see(h, pid, &s);
		at += h->size;
	}
	return s;
}

static void load_program(void)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uint64_t)(uintptr_t)code,
		.insn_cnt = ARRAY_SIZE(code),
		.license = (uint64_t)(uintptr_t) "GPL",
	};
	int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	ck_assert_int_ge(fd, 0);
	close(fd);
}

/* What finds no room the kernel drops. No record is longer: a mapping with its path. */
#define LONGEST 8192

static pid_t run_true(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	return pid;
}

START_TEST(rings)
{
	unsigned cpu = (unsigned)sched_getcpu();
	struct perf_event_mmap_page *page;
	struct pp_cpumask cpus = {};
	struct seen s;
	char *ring;
	pid_t pid;

	pin_to(cpu);
	pp_cpumask_set(&cpus, cpu);
	ask(&cpus, 0);
	ck_assert_uint_eq(fds.n, 1);
	ring = mmap(NULL, RING_SIZE + (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		    MAP_SHARED, fds.fd[0], 0);
	ck_assert_ptr_ne(ring, MAP_FAILED);
	/* The ring has what all processes of this CPU do: again, if there was not room for all of it. */
	page = (void *)ring;
	do {
		page->data_tail = head_of(page);
		pid = run_true();
		load_program();
	} while (head_of(page) - page->data_tail > RING_SIZE - LONGEST);
	s = read_ring(ring, pid);
	ck_assert(s.fork);
	ck_assert(s.comm);
	ck_assert(s.exit);
	ck_assert_uint_ge(s.maps, 2);
	ck_assert_uint_ge(s.inodes, 1);
	ck_assert_uint_eq(s.programs, 0); /* each listener would damage other listeners' records */
}
END_TEST

START_TEST(cpus_and_iterators)
{
	struct pp_cpumask online, asked;
	unsigned n = 0;

	ck_assert_int_ge(pp_cpus_read("online", &online), 0);
	PP_CPUMASK_FOREACH(cpu, &online)
	n++;
	asked = online;
	pp_cpumask_set(&asked, PP_CPUS_MAX - 1); /* no such CPU */
	ask(&asked, PP_SIDEBAND_TASKS);
	ck_assert_mem_eq(&answer.event.rings, &online, sizeof(online));
	ck_assert_uint_eq(fds.n, n + PP_KEEP_ITERATORS);
	/* The next answer has its own rings, and none of these. */
	memset(&asked, 0, sizeof(asked));
	pp_cpumask_set(&asked, PP_CPUS_MAX - 1);
	ask(&asked, 0);
	ck_assert_uint_eq(fds.n, 0);
}
END_TEST

static int engine_fds(void)
{
	char command[64];
	FILE *f;
	int n = 0;

	snprintf(command, sizeof(command), "ls /proc/%d/fd | wc -l", engine);
	f = popen(command, "re");
	ck_assert_int_eq(fscanf(f, "%d", &n), 1);
	pclose(f);
	return n;
}

/* The engine keeps no descriptor that it hands out. It closes them after it has sent the answer; if
 * it does not, this never ends. */
START_TEST(nothing_stays)
{
	struct pp_cpumask online, none = {};
	int before;

	ck_assert_int_ge(pp_cpus_read("online", &online), 0);
	pp_cpumask_set(&none, PP_CPUS_MAX - 1);
	ask(&online, PP_SIDEBAND_TASKS); /* the programs are loaded, and stay */
	ask(&none, 0);			 /* the connection exists */
	before = engine_fds();
	ck_assert_int_gt(before, 3);
	ask(&online, PP_SIDEBAND_TASKS);
	ask(&online, PP_SIDEBAND_TASKS);
	while (engine_fds() != before)
		sched_yield();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sideband-order");
	TCase *tc = tcase_create("sideband-order");

	need(no_bpf());
	need(no_btf());
	tcase_add_checked_fixture(tc, engine_start, engine_end);
	add_test_unless(no_program("ps"), tc, threads);
	tcase_add_test(tc, zombies);
	tcase_add_test(tc, maps);
	tcase_add_test(tc, rings);
	tcase_add_test(tc, cpus_and_iterators);
	tcase_add_test(tc, nothing_stays);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
