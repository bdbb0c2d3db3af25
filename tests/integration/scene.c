// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Something goes wrong on a machine, for some time: scene NAME MILLISECONDS
 *
 *   hog          sc-hog takes the CPU for 30 ms, four times a second, from sc-loop, which wants to
 *                run each millisecond
 *   mutex-spin   sc-holder holds a mutex for 50 ms, five times a second, and computes meanwhile;
 *   mutex-sleep  or it sleeps. sc-waiter takes the mutex each millisecond
 *   stall        sc-server answers each millisecond, and searches for 150 ms in keys_command(),
 *                twice a second
 *   fork-stall   sc-server has much memory, and forks twice a second to save it
 *   write        sc-writer writes 4 KB to the file `small` here and waits until they are on the disk,
 *                each 20 ms
 *   crash        sc-crasher, a child, ends by SIGSEGV; at once
 *   flock        sc-holder, another process, holds a lock for 100 ms, four times a second, and sleeps;
 *                sc-waiter takes it each millisecond
 *   hang         the same, but at half of the time sc-holder takes it for good: until it is killed
 *   convoy       sc-holder holds a mutex for 50 ms, five times a second; sc-w0 to sc-w3 take it each
 *                2 ms, and each is woken by the one before it
 *   chain        sc-front asks sc-middle each 4 ms, which asks sc-backend, which sleeps for 60 ms each 20th
 *                time; all are processes
 *   inversion    sc-mid keeps sc-low from the CPU, which holds a mutex that sc-high wants
 *   preempted    sc-hog takes the CPU for 100 ms, four times a second, from sc-calc, which computes
 *   vfork        sc-parent is blocked in vfork() by sc-child for 100 ms, again and again
 *   stop         sc-stopper stops sc-loop, which wants to run each millisecond, for 200 ms, each 400 ms
 *   restart      sc-super begins sc-service anew each 40 ms, as that ends at once
 *
 * It prints NAME=PID of each thread that the scene is about, and at the end of some longest=MILLISECONDS, which
 * the longest of what goes wrong has taken: a hog's turn, the holding of a mutex, a search, an answer. SCENE in the
 * environment stands for "sc", at most 7 bytes: other tests play scenes, too.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define MEMORY (UINT64_C(384) << 20)

static uint64_t until; /* CLOCK_MONOTONIC */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void sleep_ms(uint64_t ms)
{
	struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000 * MS) };

	nanosleep(&t, NULL);
}

static uint64_t computed(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* So much work, which takes longer where others have the CPU. Mostly here, and not in the clock, which has no
 * frame. */
static __attribute__((noinline)) void spin(uint64_t ms)
{
	for (uint64_t end = computed() + ms * MS; computed() < end;)
		for (volatile unsigned i = 0; i < 100000; i++)
			;
}

static __attribute__((noinline)) void keys_command(void)
{
	spin(150);
	__asm__ volatile("");
}

static void call_me(const char *whose)
{
	const char *scene = getenv("SCENE") ?: "sc";
	char name[16];

	snprintf(name, sizeof(name), "%.7s%.8s", scene, whose + strlen("sc"));
	prctl(PR_SET_NAME, name);
	printf("%s=%ld\n", name, syscall(SYS_gettid));
	fflush(stdout);
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t longest;

static void took(uint64_t begun)
{
	uint64_t time = now() - begun;

	if (time > longest)
		longest = time;
}

static void tell_longest(void)
{
	printf("longest=%llu\n", (unsigned long long)(longest / MS));
	fflush(stdout);
}

/* ── a CPU ── */

static void on_first_cpu(void)
{
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void be_urgent(int priority)
{
	struct sched_param urgent = { .sched_priority = priority };

	if (sched_setscheduler(0, SCHED_FIFO, &urgent) < 0)
		fail("SCHED_FIFO");
}

/* sc-hog, which computes and sleeps so long, is on our CPU. */
static pid_t begin_hog(uint64_t computes, uint64_t sleeps)
{
	uint64_t begun;
	pid_t child;

	on_first_cpu();
	child = fork();
	if (child == 0) {
		call_me("sc-hog");
		be_urgent(10);
		for (; now() < until; sleep_ms(sleeps)) {
			begun = now();
			spin(computes);
			took(begun);
		}
		tell_longest();
		exit(0);
	}
	return child;
}

static void hog(void)
{
	pid_t child = begin_hog(30, 220);

	call_me("sc-loop");
	/* Nothing else on the machine delays it. */
	if (setpriority(PRIO_PROCESS, 0, -20) < 0)
		fail("setpriority");
	for (; now() < until; sleep_ms(1))
		;
	waitpid(child, NULL, 0);
}

static void preempted(void)
{
	pid_t child = begin_hog(100, 150);

	call_me("sc-calc");
	while (now() < until)
		spin(1);
	waitpid(child, NULL, 0);
}

/* ── a mutex ── */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool holder_sleeps;

static void *hold(void *unused)
{
	uint64_t begun;

	call_me("sc-holder");
	/* Its last sleep is over before the waiter's end: to join it would be one more wait for it. */
	for (; now() + 200 * MS < until; sleep_ms(150)) {
		pthread_mutex_lock(&mutex);
		begun = now();
		if (holder_sleeps)
			sleep_ms(50);
		else
			spin(50);
		pthread_mutex_unlock(&mutex);
		took(begun);
	}
	return unused;
}

static void contend(bool sleeps)
{
	pthread_t holder;

	holder_sleeps = sleeps;
	if (pthread_create(&holder, NULL, hold, NULL))
		fail("pthread_create");
	call_me("sc-waiter");
	/* What is usual shows in ten sleeps, at least. */
	for (unsigned n = 0; now() < until || n < 30; n++, sleep_ms(1)) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
	pthread_join(holder, NULL);
	tell_longest();
}

static void *wait_in_line(void *name)
{
	call_me(name);
	for (; now() < until; sleep_ms(2)) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void convoy(void)
{
	static char names[4][8] = { "sc-w0", "sc-w1", "sc-w2", "sc-w3" };
	pthread_t holder, waiters[4];

	holder_sleeps = true;
	if (pthread_create(&holder, NULL, hold, NULL))
		fail("pthread_create");
	for (size_t i = 0; i < 4; i++)
		if (pthread_create(&waiters[i], NULL, wait_in_line, names[i]))
			fail("pthread_create");
	for (size_t i = 0; i < 4; i++)
		pthread_join(waiters[i], NULL);
	pthread_join(holder, NULL);
}

/* low takes the mutex first; then high wants it, and mid gets the CPU. */
static void *be_high(void *unused)
{
	call_me("sc-high");
	be_urgent(30);
	while (now() < until) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		/* Twice: at each turn it waits for the mutex, too, and a long wait stands out from the usual sleep only
		 * if most are short. */
		sleep_ms(2);
		sleep_ms(2);
	}
	return unused;
}

static void *be_mid(void *unused)
{
	call_me("sc-mid");
	be_urgent(20);
	for (; now() < until; sleep_ms(100))
		spin(150);
	return unused;
}

static void inversion(void)
{
	pthread_t high, mid;

	on_first_cpu();
	if (pthread_create(&high, NULL, be_high, NULL) || pthread_create(&mid, NULL, be_mid, NULL))
		fail("pthread_create");
	call_me("sc-low");
	for (; now() < until; sleep_ms(1)) {
		pthread_mutex_lock(&mutex);
		spin(20);
		pthread_mutex_unlock(&mutex);
	}
	pthread_join(high, NULL);
	pthread_join(mid, NULL);
}

/* ── other processes ── */

static int open_lock(void)
{
	int fd = open("lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		fail("lock");
	return fd;
}

static void wait_for_flock(void)
{
	int fd = open_lock();

	call_me("sc-waiter");
	for (; now() < until; sleep_ms(1)) {
		flock(fd, LOCK_EX);
		flock(fd, LOCK_UN);
	}
	close(fd);
}

static void hold_flock(void)
{
	pid_t waiter = fork();
	int fd;

	if (waiter == 0) {
		wait_for_flock();
		_exit(0);
	}
	fd = open_lock();
	call_me("sc-holder");
	for (; now() < until; sleep_ms(150)) {
		flock(fd, LOCK_EX);
		sleep_ms(100);
		flock(fd, LOCK_UN);
	}
	close(fd);
	waitpid(waiter, NULL, 0);
}

/* Until it is killed. */
static void hang(void)
{
	uint64_t half = (until - now()) / 2;
	int fd;

	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		until = UINT64_MAX;
		wait_for_flock();
	}
	sleep_ms(half / MS);
	fd = open_lock();
	flock(fd, LOCK_EX);
	call_me("sc-holder");
	for (;;)
		pause();
}

static void vforks(void)
{
	call_me("sc-parent");
	for (; now() < until; sleep_ms(20)) {
		pid_t child = vfork();

		if (child == 0) {
			prctl(PR_SET_NAME, "sc-child");
			sleep_ms(100);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

static void stop(void)
{
	pid_t child = fork();

	if (child == 0) {
		call_me("sc-loop");
		for (; now() < until; sleep_ms(1))
			;
		_exit(0);
	}
	call_me("sc-stopper");
	while (now() < until) {
		sleep_ms(200);
		kill(child, SIGSTOP);
		waitpid(child, NULL, WUNTRACED); /* it has stopped */
		sleep_ms(200);
		kill(child, SIGCONT);
	}
	waitpid(child, NULL, 0);
}

static void restart(void)
{
	call_me("sc-super");
	for (; now() < until; sleep_ms(40)) {
		pid_t child = fork();

		if (child == 0) {
			prctl(PR_SET_NAME, "sc-service");
			_exit(1);
		}
		waitpid(child, NULL, 0);
	}
}

/* ── a server ── */

static void stall(void)
{
	call_me("sc-server");
	/* Once at least, however seldom it gets the CPU. */
	for (uint64_t i = 1; now() < until || i <= 300; i++) {
		uint64_t begun;

		sleep_ms(1);
		if (i % 300)
			continue;
		begun = now();
		keys_command();
		took(begun);
	}
	tell_longest();
}

static void fork_stall(void)
{
	uint64_t begun = now();
	char *memory =
		mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	madvise(memory, MEMORY, MADV_NOHUGEPAGE);
	memset(memory, 1, MEMORY);
	until += now() - begun;
	call_me("sc-server");
	for (uint64_t i = 1; now() < until || i <= 300; i++) {
		sleep_ms(1);
		if (i % 300)
			continue;
		if (fork() == 0)
			_exit(0);
		wait(NULL);
	}
}

/* ── a disk ── */

static void write_small(void)
{
	char page[4096] = "";
	int fd = open("small", O_WRONLY | O_CREAT | O_TRUNC | O_DSYNC | O_CLOEXEC, 0600);

	if (fd < 0)
		fail("small");
	call_me("sc-writer");
	for (off_t at = 0; now() < until; at = (at + (off_t)sizeof(page)) % (1 << 20)) {
		if (pwrite(fd, page, sizeof(page), at) < 0)
			fail("small");
		sleep_ms(20);
	}
	close(fd);
}

/* ── asking others ── */

/* Answers what comes from one end, having asked at the other, if there is one. */
static pid_t begin_server(const char *name, int from, int ask)
{
	pid_t child = fork();
	char c;

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	call_me(name);
	for (int n = 1; read(from, &c, 1) == 1; n++) {
		if (ask < 0)
			sleep_ms(n % 20 ? 0 : 60);
		else if (write(ask, &c, 1) != 1 || read(ask, &c, 1) != 1)
			break;
		if (write(from, &c, 1) != 1)
			break;
	}
	exit(0);
}

static void chain(void)
{
	int middle[2], backend[2];
	pid_t children[2];
	uint64_t begun;
	char c = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, middle) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, backend) < 0)
		fail("socketpair");
	children[0] = begin_server("sc-backend", backend[1], -1);
	children[1] = begin_server("sc-middle", middle[1], backend[0]);
	call_me("sc-front");
	for (; now() < until; sleep_ms(4)) {
		begun = now();
		if (write(middle[0], &c, 1) != 1 || read(middle[0], &c, 1) != 1)
			fail("sc-middle");
		took(begun);
	}
	tell_longest();
	for (int i = 0; i < 2; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
}

/* ── a crash ── */

static void crash(void)
{
	char *nothing = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rlimit none = {};
	pid_t child = fork();

	if (child == 0) {
		setrlimit(RLIMIT_CORE, &none);
		call_me("sc-crasher");
		*(volatile char *)nothing = 1;
	}
	waitpid(child, NULL, 0);
}

static void contend_spinning(void)
{
	contend(false);
}

static void contend_sleeping(void)
{
	contend(true);
}

int main(int argc, char *argv[])
{
	static const struct {
		const char *name;
		void (*play)(void);
	} scenes[] = {
		{ "hog", hog },
		{ "mutex-spin", contend_spinning },
		{ "mutex-sleep", contend_sleeping },
		{ "stall", stall },
		{ "fork-stall", fork_stall },
		{ "write", write_small },
		{ "crash", crash },
		{ "flock", hold_flock },
		{ "hang", hang },
		{ "convoy", convoy },
		{ "chain", chain },
		{ "inversion", inversion },
		{ "preempted", preempted },
		{ "vfork", vforks },
		{ "stop", stop },
		{ "restart", restart },
	};

	until = now() + (argc == 3 ? strtoull(argv[2], NULL, 10) : 0) * MS;
	for (size_t i = 0; argc == 3 && i < sizeof(scenes) / sizeof(*scenes); i++)
		if (!strcmp(argv[1], scenes[i].name)) {
			scenes[i].play();
			return 0;
		}
	return 2;
}
