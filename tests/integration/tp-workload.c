// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fires tracepoints of many kinds: files, pipes, sockets on loopback, processes, memory, timers,
 * signals, the scheduler.
 *
 *   tp-workload DIRECTORY [ROUNDS]
 *
 * DIRECTORY is scratch space of its own, and is empty again afterwards. A call that a kernel or a
 * sandbox lacks fails silently: only the fired tracepoints count.
 */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

#include "proto/macro.h"
#include "tests/integration/tp-workload-calls.h"

#define AT(call) ((void)((call) == 0)) /* the result does not matter */

static char buffer[65536];

/* ── calls that need nothing, or are refused at once ────────────────────────────────────── */

static void make_calls(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		const long *a = calls[i].args;

		syscall(calls[i].nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
}

/* ── files ──────────────────────────────────────────────────────────────────────────────── */

static void lock_file(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 100 };
	pid_t pid;

	AT(fcntl(fd, F_SETLK, &lock));
	lock.l_type = F_UNLCK;
	AT(fcntl(fd, F_SETLK, &lock));
	AT(flock(fd, LOCK_EX));
	pid = fork();
	if (pid == 0) {
		int own = open("file", O_RDWR | O_CLOEXEC);

		AT(flock(own, LOCK_EX | LOCK_NB));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	AT(flock(fd, LOCK_UN));
	AT(fcntl(fd, F_SETLEASE, F_RDLCK));
	AT(fcntl(fd, F_SETLEASE, F_UNLCK));
}

static void write_file(int fd)
{
	struct iovec iov[2] = { { buffer, 5000 }, { buffer + 5000, 300 } };
	int copy = open("copy", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	off_t from = 0;
	void *map;

	for (int i = 0; i < 8; i++)
		AT(write(fd, buffer, sizeof(buffer)));
	AT(pwritev(fd, iov, 2, 12345));
	AT(pwrite(fd, buffer, 77, 1 << 20));
	AT(fsync(fd));
	AT(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 8192));
	AT(fallocate(fd, 0, 2 << 20, 65536));
	AT(lseek(fd, 0, SEEK_DATA));
	AT(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	AT(readahead(fd, 0, 1 << 18));
	AT(preadv(fd, iov, 2, 4096));
	AT(copy_file_range(fd, &from, copy, NULL, 70000, 0));
	AT(sendfile(copy, fd, &from, 70000));
	map = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED) {
		memset(map, 'x', 1 << 16);
		AT(msync(map, 1 << 16, MS_SYNC));
		munmap(map, 1 << 16);
	}
	AT(sync_file_range(fd, 0, 1 << 16, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
	AT(fdatasync(copy));
	AT(ftruncate(fd, 1000));
	close_fd(copy);
}

static void name_files(int fd)
{
	char path[4096];
	struct statfs fs;
	struct stat st;
	int dir;

	AT(fsetxattr(fd, "user.a", "value", 5, 0));
	AT(fgetxattr(fd, "user.a", path, sizeof(path)));
	AT(listxattr("file", path, sizeof(path)));
	AT(removexattr("file", "user.a"));
	AT(fchmod(fd, 0640));
	AT(fchown(fd, 0, 0));
	AT(futimens(fd, NULL));
	AT(link("file", "link"));
	AT(symlink("a-name-that-leads-nowhere", "symlink"));
	AT(readlink("symlink", path, sizeof(path)));
	AT(rename("link", "renamed"));
	AT(mkdir("dir", 0700));
	AT(mkfifo("dir/fifo", 0600));
	AT(stat("dir/fifo", &st));
	AT(lstat("symlink", &st));
	AT(access("dir/nothing", R_OK));
	AT(statfs(".", &fs));
	AT(truncate("renamed", 3));
	dir = open("dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AT(syscall(SYS_getdents64, dir, buffer, sizeof(buffer)));
	AT(fsync(dir));
	close_fd(dir);
	AT(getcwd(path, sizeof(path)) ? 0 : -1);
	AT(unlink("dir/fifo"));
	AT(rmdir("dir"));
	AT(unlink("renamed"));
	AT(unlink("symlink"));
}

static void files(void)
{
	int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	int fd, direct;

	AT(inotify_add_watch(watch, ".", IN_ALL_EVENTS));
	fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	write_file(fd);
	lock_file(fd);
	name_files(fd);
	direct = open("copy", O_RDONLY | O_DIRECT | O_CLOEXEC);
	AT(read(direct, (void *)ALIGN_TO((uintptr_t)buffer, 4096), 4096));
	close_fd(direct);
	close_fd(fd);
	AT(unlink("file"));
	AT(unlink("copy"));
	AT(read(watch, buffer, sizeof(buffer)));
	close_fd(watch);
}

/* ── pipes and sockets ──────────────────────────────────────────────────────────────────── */

static void pipes(void)
{
	struct iovec iov = { buffer, 4096 };
	struct pollfd poll_fd = { .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN };
	int a[2], b[2], epoll = epoll_create1(EPOLL_CLOEXEC);

	if (pipe2(a, O_CLOEXEC) < 0 || pipe2(b, O_CLOEXEC) < 0)
		return;
	poll_fd.fd = a[0];
	AT(epoll_ctl(epoll, EPOLL_CTL_ADD, a[0], &event));
	AT(vmsplice(a[1], &iov, 1, 0));
	AT(poll(&poll_fd, 1, 100));
	AT(epoll_wait(epoll, &event, 1, 100));
	AT(tee(a[0], b[1], 100, 0));
	AT(splice(a[0], NULL, b[1], NULL, 1000, 0));
	AT(read(b[0], buffer, 200));
	for (int i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
	}
	close_fd(epoll);
}

static void talk(int type)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval patience = { .tv_sec = 2 };
	struct msghdr message = {};
	struct iovec iov = { buffer, 3000 };
	socklen_t size = sizeof(to);
	int server = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	int client = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	int peer = -EBADF;

	message.msg_iov = &iov;
	message.msg_iovlen = 1;
	AT(setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	AT(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	AT(bind(server, (struct sockaddr *)&to, sizeof(to)));
	AT(getsockname(server, (struct sockaddr *)&to, &size));
	AT(listen(server, 1));
	if (connect(client, (struct sockaddr *)&to, sizeof(to)) == 0) {
		if (type == SOCK_STREAM)
			peer = accept4(server, NULL, NULL, SOCK_CLOEXEC);
		AT(sendmsg(client, &message, 0));
		AT(send(client, buffer, 500, 0));
		AT(recv(peer >= 0 ? peer : server, buffer, sizeof(buffer), 0));
		if (peer >= 0)
			AT(sendto(peer, buffer, 100, 0, NULL, 0));
		AT(recv(client, buffer, sizeof(buffer), peer >= 0 ? 0 : MSG_DONTWAIT));
		AT(shutdown(client, SHUT_RDWR));
	}
	close_fd(peer);
	close_fd(client);
	close_fd(server);
}

static void sockets(void)
{
	struct sockaddr_in nowhere = { .sin_family = AF_INET,
				       .sin_port = htons(1),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int pair[2], fd;

	talk(SOCK_STREAM);
	talk(SOCK_DGRAM);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	AT(connect(fd, (struct sockaddr *)&nowhere, sizeof(nowhere))); /* the connection is reset */
	close_fd(fd);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	AT(sendto(fd, "x", 1, 0, (struct sockaddr *)&nowhere, sizeof(nowhere)));
	close_fd(fd);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	AT(send(pair[0], buffer, 1000, 0));
	AT(recv(pair[1], buffer, 1000, 0));
	close(pair[0]);
	close(pair[1]);
}

/* ── processes, memory ──────────────────────────────────────────────────────────────────── */

static void *wait_for(void *word)
{
	struct timespec limit = { .tv_nsec = 20000000 };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0);
	return NULL;
}

static void threads(void)
{
	pthread_t thread[3];
	uint32_t word = 0;
	size_t n = 0;

	while (n < ARRAY_SIZE(thread) && !pthread_create(&thread[n], NULL, wait_for, &word))
		n++;
	sched_yield();
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	while (n > 0)
		pthread_join(thread[--n], NULL);
}

static void run(pid_t pid, const char *program)
{
	if (pid == 0) {
		execl(program, program, (char *)NULL);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void processes(void)
{
	run(fork(), "/bin/true");
	run(vfork(), "/bin/true");
	run(fork(), "/nowhere/at/all");
	AT(system("exit 0"));
}

static void places(void)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return;
	for (int cpu = 0, n = 0; cpu < CPU_SETSIZE && n < 4; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		AT(sched_setaffinity(0, sizeof(one), &one));
		n++;
	}
	AT(sched_setaffinity(0, sizeof(all), &all));
}

static void memory(void)
{
	const size_t size = 8 << 20;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char resident[16];
	int id;

	if (p == MAP_FAILED)
		return;
	AT(madvise(p, size, MADV_HUGEPAGE));
	for (size_t i = 0; i < size; i += 4096)
		p[i] = 1;
	AT(mprotect(p, 4096, PROT_READ));
	AT(mincore(p, 16 * 4096, resident));
	AT(mlock(p, 65536));
	AT(munlock(p, 65536));
	AT(madvise(p, 1 << 20, MADV_DONTNEED));
	AT(madvise(p + (1 << 20), 1 << 20, MADV_PAGEOUT));
	p = mremap(p, size, size * 2, MREMAP_MAYMOVE);
	if (p != MAP_FAILED)
		munmap(p, size * 2);
	id = shmget(IPC_PRIVATE, 65536, IPC_CREAT | 0600);
	if (id < 0)
		return;
	p = shmat(id, NULL, 0);
	if (p != (void *)-1) {
		p[0] = 1;
		shmdt(p);
	}
	AT(shmctl(id, IPC_RMID, NULL));
}

/* ── timers, signals ────────────────────────────────────────────────────────────────────── */

static void handler(int signal _unused_)
{
}

static void timers(void)
{
	struct itimerspec soon = { .it_value.tv_nsec = 300000 }, left;
	struct itimerval itimer = { .it_value.tv_usec = 500 };
	struct timespec nap = { .tv_nsec = 200000 };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	uint64_t expirations;
	timer_t timer;

	AT(timerfd_settime(fd, 0, &soon, NULL));
	AT(timerfd_gettime(fd, &left));
	AT(read(fd, &expirations, sizeof(expirations)));
	close_fd(fd);
	if (timer_create(CLOCK_MONOTONIC, &none, &timer) == 0) {
		AT(timer_settime(timer, 0, &soon, NULL));
		AT(timer_gettime(timer, &left));
		AT(timer_delete(timer));
	}
	for (int i = 0; i < 10; i++)
		AT(nanosleep(&nap, NULL));
	signal(SIGALRM, handler);
	AT(setitimer(ITIMER_REAL, &itimer, NULL));
	AT(clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = 5000000 }, NULL));
}

static void signals(void)
{
	const union sigval value = { .sival_int = 5 };
	sigset_t set, old;
	int fd;

	signal(SIGUSR1, handler);
	AT(raise(SIGUSR1));
	AT(kill(getpid(), SIGUSR1));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	AT(sigprocmask(SIG_BLOCK, &set, &old));
	AT(sigqueue(getpid(), SIGUSR2, value));
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	AT(read(fd, buffer, 128));
	close_fd(fd);
	AT(sigqueue(getpid(), SIGUSR2, value));
	AT(sigtimedwait(&set, NULL, &(struct timespec){}));
	AT(sigprocmask(SIG_SETMASK, &old, NULL));
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 3;

	if (argc < 2 || chdir(argv[1]) < 0) {
		fprintf(stderr, "usage: tp-workload DIRECTORY [ROUNDS]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < rounds; i++) {
		make_calls();
		files();
		pipes();
		sockets();
		threads();
		processes();
		places();
		memory();
		timers();
		signals();
	}
	return 0;
}
