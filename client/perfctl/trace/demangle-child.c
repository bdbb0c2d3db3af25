// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Demangles C++ names with __cxa_demangle() of the installed libstdc++, in a child: a name of a few
 * hundred letters can expand to gigabytes, and comes from an untrusted file. The child has little
 * time and memory; if a name kills it, that name stays mangled.
 */
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "client/perfctl/trace/demangle.h"
#include "proto/macro.h"

#define NAME_MAX_MANGLED 4096
#define NAME_MAX_SHOWN 2047
#define CHILD_MEMORY (256 << 20) /* on top of its initial size */
#define CHILD_SECONDS 2
#define DEATHS_MAX 4

typedef char *(*cxa_demangle)(const char *name, char *buffer, size_t *size, int *status);

/* The size of our address space, which the child inherits. */
static uint64_t address_space(void)
{
	_cleanup_(cleanup_fclose) FILE *f = fopen("/proc/self/statm", "re");
	unsigned long pages;

	if (!f || fscanf(f, "%lu", &pages) != 1)
		return 0;
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit(int resource, uint64_t most)
{
	struct rlimit l = { most, most };

	setrlimit(resource, &l);
}

static _Noreturn void child(int fd)
{
	static char name[NAME_MAX_MANGLED + 1];
	cxa_demangle cxa;
	void *library;
	ssize_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	cxa = library ? (cxa_demangle)dlsym(library, "__cxa_demangle") : NULL;
	if (!cxa)
		_exit(0);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, CHILD_SECONDS);
	limit(RLIMIT_AS, address_space() + CHILD_MEMORY);
	while ((n = recv(fd, name, sizeof(name) - 1, 0)) > 0) {
		_cleanup_free_ char *shown = NULL;
		int status;

		name[n] = '\0';
		shown = cxa(name, NULL, NULL, &status);
		if (!shown || strlen(shown) > NAME_MAX_SHOWN)
			send(fd, "", 1, MSG_NOSIGNAL); /* just a NUL: it stays as it is */
		else
			send(fd, shown, strlen(shown) + 1, MSG_NOSIGNAL);
	}
	_exit(0);
}

/* Closes what the child does not need: files, events, and our output. */
static void close_others(int fd)
{
	for (int i = 0; i < 3; i++)
		if (i != fd)
			close(i);
	if (fd > 3)
		close_range(3, (unsigned)fd - 1, 0);
	close_range((unsigned)MAX(fd + 1, 3), ~0U, 0);
}

static int start(struct demangler *d)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		signal(SIGINT, SIG_IGN); /* from a terminal: the parent handles it */
		close_others(fds[1]);
		child(fds[1]);
	}
	close_fd(fds[1]);
	if (pid < 0) {
		close_fd(fds[0]);
		return -EAGAIN;
	}
	d->fd = fds[0];
	d->pid = pid;
	return 0;
}

static void stop(struct demangler *d)
{
	d->fd = close_fd(d->fd);
	if (d->pid)
		waitpid(d->pid, NULL, 0);
	d->pid = 0;
}

void demangler_init(struct demangler *d)
{
	*d = (struct demangler){ .fd = -EBADF };
}

void demangler_done(struct demangler *d)
{
	stop(d);
}

char *demangle_cpp(struct demangler *d, const char *name)
{
	static char shown[NAME_MAX_SHOWN + 1];
	size_t len = strlen(name);
	ssize_t n;

	if (d->off || len > NAME_MAX_MANGLED)
		return NULL;
	if (!d->pid && start(d) < 0) {
		d->off = true;
		return NULL;
	}
	n = send(d->fd, name, len, MSG_NOSIGNAL);
	if (n == (ssize_t)len)
		do
			n = recv(d->fd, shown, sizeof(shown), 0);
		while (n < 0 && errno == EINTR);
	if (n <= 0) {
		stop(d);
		d->off = ++d->deaths >= DEATHS_MAX;
		return NULL;
	}
	shown[n - 1] = '\0';
	return *shown ? strdup(shown) : NULL;
}
