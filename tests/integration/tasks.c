// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A process with threads and children, for test-task.sh.
 *
 *   tasks serve            does what the lines of its input say, and answers each with a line; ends with its input
 *     threads N            begins N threads more, which wait
 *     fault                every thread has 64 page faults; answers how many threads there are
 *     fork                 a child has 64 page faults, and has ended
 *     stay                 begins a child that has 64 page faults on each SIGUSR1; answers its number
 *     grow N               the same while it answers: each begins the next
 *     churn, calm          threads begin and end all the time, or no more
 *     first                answers the number of a thread that is not the first
 *   tasks runs LINK CMD…   prints how often the program of that BPF link runs while CMD does
 */
#include <inttypes.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/macro.h"

#define FAULTS 64
#define PAGE 4096
#define THREADS_MAX 8192

static unsigned n_threads = 1;
static _Atomic pid_t other;
static atomic_bool churns;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

/* 64 pages that nobody has touched, each of its own. */
static void fault(void)
{
	char *at = mmap(NULL, FAULTS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	if (at == MAP_FAILED)
		die("mmap");
	madvise(at, FAULTS * PAGE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < FAULTS; i++)
		at[i * PAGE] = 1;
	munmap(at, FAULTS * PAGE);
}

/* ── threads ────────────────────────────────────────────────────────────────────────────── */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* For those who wait to fault, and for who waits for them. */
static pthread_cond_t due = PTHREAD_COND_INITIALIZER, changed = PTHREAD_COND_INITIALIZER;
static unsigned round_due, n_done;

static void *wait_and_fault(void *unused _unused_)
{
	unsigned seen;

	other = (pid_t)syscall(SYS_gettid);
	pthread_mutex_lock(&lock);
	seen = round_due;
	n_threads++;
	pthread_cond_broadcast(&changed);
	for (;;) {
		while (seen == round_due)
			pthread_cond_wait(&due, &lock);
		seen = round_due;
		pthread_mutex_unlock(&lock);
		fault();
		pthread_mutex_lock(&lock);
		n_done++;
		pthread_cond_broadcast(&changed);
	}
	return NULL;
}

static void start(void *(*fn)(void *))
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attr, fn, NULL);
	pthread_attr_destroy(&attr);
	if (r) {
		errno = r;
		die("pthread_create");
	}
}

static void start_threads(unsigned n)
{
	unsigned wanted;

	pthread_mutex_lock(&lock);
	wanted = n_threads + n;
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < n; i++)
		start(wait_and_fault);
	pthread_mutex_lock(&lock);
	while (n_threads < wanted)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static unsigned growing;      /* threads that are still to begin, one after the other */
static unsigned n_wanted = 1; /* those that there will be */

static unsigned all_fault(void)
{
	fault();
	pthread_mutex_lock(&lock);
	while (growing > 0 || n_threads < n_wanted)
		pthread_cond_wait(&changed, &lock);
	n_done = 1;
	round_due++;
	pthread_cond_broadcast(&due);
	while (n_done < n_threads)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return n_threads;
}

/* Each thread begins the next: the newest is the last that is attached, and what it begins may have inherited
 * nothing. */
static void *grow(void *unused)
{
	usleep(300);
	pthread_mutex_lock(&lock);
	growing--;
	if (growing > 0)
		start(grow);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return wait_and_fault(unused);
}

static void *end_at_once(void *unused)
{
	return unused;
}

static void *churn(void *unused)
{
	while (churns) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, end_at_once, NULL) == 0)
			pthread_join(thread, NULL);
	}
	return unused;
}

/* ── children ───────────────────────────────────────────────────────────────────────────── */

static void on_signal(int unused _unused_)
{
	fault();
}

static pid_t fork_one(bool stays)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid > 0)
		return pid;
	if (!stays) {
		fault();
		_exit(0);
	}
	signal(SIGUSR1, on_signal);
	for (;;)
		pause();
}

static void serve(void)
{
	char line[64];
	unsigned n;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "threads %u", &n) == 1) {
			start_threads(MIN(n, (unsigned)THREADS_MAX));
			puts("ok");
		} else if (sscanf(line, "grow %u", &n) == 1) {
			growing = MIN(n, (unsigned)THREADS_MAX);
			n_wanted = n_threads + growing;
			start(grow);
			puts("ok");
		} else if (!strcmp(line, "fault\n")) {
			printf("%u\n", all_fault());
		} else if (!strcmp(line, "fork\n")) {
			waitpid(fork_one(false), NULL, 0);
			puts("ok");
		} else if (!strcmp(line, "stay\n")) {
			printf("%d\n", fork_one(true));
		} else if (!strcmp(line, "churn\n")) {
			churns = true;
			start(churn);
			puts("ok");
		} else if (!strcmp(line, "calm\n")) {
			churns = false;
			puts("ok");
		} else if (!strcmp(line, "first\n")) {
			printf("%d\n", other);
		} else {
			printf("what is %s", line);
		}
	}
}

/* ── how often a program runs ───────────────────────────────────────────────────────────── */

static int bpf(int cmd, union bpf_attr *attr)
{
	int r = (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	if (r < 0)
		die("bpf");
	return r;
}

static void get_info(int fd, void *info, uint32_t size)
{
	union bpf_attr attr = {
		.info.bpf_fd = (uint32_t)fd,
		.info.info_len = size,
		.info.info = (uint64_t)(uintptr_t)info,
	};

	bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

static int open_id(int cmd, uint32_t id)
{
	union bpf_attr attr = { .link_id = id };

	return bpf(cmd, &attr);
}

static uint64_t runs_of(int program)
{
	struct bpf_prog_info info = {};

	get_info(program, &info, sizeof(info));
	return info.run_cnt;
}

static void count_runs(uint32_t id, char **cmd)
{
	union bpf_attr stats = { .enable_stats.type = BPF_STATS_RUN_TIME };
	struct bpf_link_info link = {};
	uint64_t before;
	int program;
	pid_t pid;

	get_info(open_id(BPF_LINK_GET_FD_BY_ID, id), &link, sizeof(link));
	program = open_id(BPF_PROG_GET_FD_BY_ID, link.prog_id);
	bpf(BPF_ENABLE_STATS, &stats);
	before = runs_of(program);
	pid = fork();
	if (pid == 0) {
		execvp(cmd[0], cmd);
		die(cmd[0]);
	}
	waitpid(pid, NULL, 0);
	printf("%" PRIu64 "\n", runs_of(program) - before);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "serve"))
		serve();
	else if (argc > 3 && !strcmp(argv[1], "runs"))
		count_runs((uint32_t)strtoul(argv[2], NULL, 10), argv + 3);
	else
		return 2;
	return 0;
}
