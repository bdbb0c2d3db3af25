// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tasks by /proc and pidfds, cgroups by their ids. See target.h. */
#include "daemon/engine/kernel/target.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/engine/kernel/cgroup.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/task-start.h"

#define PIDFD_OF_THREAD O_EXCL /* Linux 6.9's PIDFD_THREAD, which older headers lack */

/* ── tasks ──────────────────────────────────────────────────────────────────────────────── */

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* The number is looked up first: if the task with this start time is there afterwards, it is that one. */
static int watch_task(const struct pp_msg_target *t)
{
	bool is_thread = t->kind == PP_TARGET_THREAD;
	_cleanup_close_ int fd =
		(int)syscall(SYS_pidfd_open, t->pid, is_thread ? PIDFD_OF_THREAD : 0);
	int no_fd = fd < 0 ? errno : 0, r;
	uint64_t start = 0;
	char state = 0;

	r = pp_task_start(t->pid, &start, &state);
	if (r < 0)
		return r;
	if (start != t->start || no_fd == ESRCH || (fd >= 0 && is_readable(fd)) ||
	    (is_thread && (state == 'Z' || state == 'X')))
		return -ESRCH;
	if (no_fd)
		return no_fd == EINVAL ? -EOPNOTSUPP : -no_fd;
	return TAKE_FD(fd);
}

static int no_task(const struct pp_msg_target *t, int r, struct failure *f)
{
	const char *what = t->kind == PP_TARGET_THREAD ? "thread" : "process";

	if (r == -ESRCH)
		return fail(f, ESRCH,
			    "There is no %s %u that began when the request says: it has ended, and "
			    "another may have its number; or the number is that of another pid "
			    "namespace than the daemon's.",
			    what, t->pid);
	return fail(f, -r, "Cannot look at %s %u: %s.", what, t->pid, strerror(-r));
}

/* Only the first thread of a process has its number in /proc/PID/task. */
static int check_leader(const struct pp_msg_target *t, struct failure *f)
{
	char path[64], line[64];
	_cleanup_fclose_ FILE *file = NULL;
	unsigned process = 0;

	snprintf(path, sizeof(path), "/proc/%u/status", t->pid);
	file = fopen(path, "re");
	if (!file)
		return no_task(t, errno == ENOENT ? -ESRCH : -errno, f);
	while (!process && fgets(line, sizeof(line), file))
		(void)sscanf(line, "Tgid: %u", &process);
	if (!process)
		return no_task(t, -ESRCH, f);
	return process == t->pid ? 0
				 : fail(f, EINVAL,
					"%u is a thread of process %u; record the process (-p %u), "
					"or the thread alone (-t %u).",
					t->pid, process, process, t->pid);
}

static int take_task(const struct pp_msg_target *t, struct failure *f)
{
	_cleanup_close_ int fd = watch_task(t);
	int r;

	/* First, as the rest tells of whoever has the number. */
	if (fd == -ESRCH)
		return no_task(t, fd, f);
	r = t->kind == PP_TARGET_PROCESS ? check_leader(t, f) : 0;
	if (r < 0)
		return r;
	return fd < 0 && fd != -EOPNOTSUPP ? no_task(t, fd, f) : 0;
}

static int add_thread(pid_t **v, size_t *n, pid_t tid)
{
	pid_t *more = reallocarray(*v, *n + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	*v = more;
	more[(*n)++] = tid;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static int read_threads(const struct pp_msg_target *t, pid_t **v, size_t *n)
{
	_cleanup_closedir_ DIR *dir = NULL;
	const struct dirent *d;
	char path[32];
	uint32_t tid;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%u/task", t->pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (r >= 0 && (errno = 0, d = readdir(dir)))
		if (pp_parse_u32(d->d_name, &tid) >= 0)
			r = add_thread(v, n, (pid_t)tid);
	if (r >= 0 && errno)
		r = errno == ENOENT ? -ESRCH : -errno;
	return r < 0 ? r : *n ? 0 : -ESRCH;
}

bool target_has_thread(const pid_t *v, size_t n, pid_t tid)
{
	return bsearch(&tid, v, n, sizeof(*v), by_number);
}

int target_threads(const struct pp_msg_target *t, pid_t **ret, size_t *ret_n)
{
	_cleanup_free_ pid_t *v = NULL;
	size_t n = 0;
	int r = t->kind == PP_TARGET_THREAD ? add_thread(&v, &n, (pid_t)t->pid)
					    : read_threads(t, &v, &n);

	if (r < 0)
		return r;
	qsort(v, n, sizeof(*v), by_number);
	*ret = TAKE_PTR(v);
	*ret_n = n;
	return 0;
}

/* ── both ───────────────────────────────────────────────────────────────────────────────── */

int target_take(struct pp_msg_target *t, struct failure *f)
{
	return target_is_task(t) ? take_task(t, f)
				 : cgroup_take(t->cgroup, sizeof(t->cgroup), &t->start, f);
}

int target_watch(const struct pp_msg_target *t)
{
	_cleanup_close_ int fd = -EBADF;

	if (target_is_task(t))
		return watch_task(t);
	fd = cgroup_open(t->cgroup, t->start);
	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd;
	return -EOPNOTSUPP;
}

bool target_has_ended(const struct pp_msg_target *t)
{
	int fd = target_watch(t);

	close_fd(fd);
	return fd == -ESRCH;
}
