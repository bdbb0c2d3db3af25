// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/hook.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "client/perfctl/events/spool.h"
#include "client/perfctl/perfctl.h"
#include "proto/clock.h"

#define SECOND ((uint64_t)1000000000)
#define RETRY_MIN (60 * SECOND)
#define RETRY_MAX (3600 * SECOND)
#define LOOK_AGAIN (60 * SECOND)

/* A snapshot whose command has failed, or which is done and could not be marked. */
struct tried {
	char name[SPOOL_NAME_SIZE];
	unsigned failures;
	unsigned round; /* the last one that tried it */
	bool done;
};

struct hook {
	const struct hook_options *options;
	char spool_path[4096], done_path[4096];
	int spool, done; /* the directories: of snapshots, and of what is done */
	int watch;	 /* inotify */
	struct tried *tried;
	size_t n_tried;
	unsigned round;	 /* of trying again what has failed */
	uint64_t pause;	 /* ns before that; 0: nothing has failed */
	uint64_t due;	 /* CLOCK_MONOTONIC, ns: when it ends */
	uint64_t failed; /* in all: commands, and marks that they are done */
};

static void hook_done(struct hook *h)
{
	free(h->tried);
	close_fd(h->watch);
	close_fd(h->done);
	close_fd(h->spool);
}

/* ── which one ──────────────────────────────────────────────────────────────────────────── */

static bool is_marked(const struct hook *h, const struct spooled *f)
{
	return faccessat(h->done, f->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static struct tried *find_tried(const struct hook *h, const char *name)
{
	for (size_t i = 0; i < h->n_tried; i++)
		if (!strcmp(h->tried[i].name, name))
			return &h->tried[i];
	return NULL;
}

static bool is_there(const struct spooled *all, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(all[i].name, name))
			return true;
	return false;
}

/* Forgets snapshots that are gone. */
static void forget(struct hook *h, const struct spooled *all, size_t n)
{
	_cleanup_close_ int fd = openat(h->done, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct spooled f;
	struct dirent *e;
	size_t kept = 0;

	if (dir)
		TAKE_FD(fd);
	while (dir && (e = readdir(dir)))
		if (spool_parse(e->d_name, &f) >= 0 && !is_there(all, n, e->d_name))
			unlinkat(dirfd(dir), e->d_name, 0);
	for (size_t i = 0; i < h->n_tried; i++)
		if (is_there(all, n, h->tried[i].name))
			h->tried[kept++] = h->tried[i];
	h->n_tried = kept;
}

/* A directory that was removed or moved away, and made again, is another: that one gets the snapshots,
 * or the one that is open here has lost its marks. */
static int check_directory(int fd, const char *path)
{
	struct stat here, there;

	if (fstat(fd, &here) < 0)
		return -errno;
	if (lstat(path, &there) < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	return here.st_dev == there.st_dev && here.st_ino == there.st_ino ? 0 : -ESTALE;
}

static int check_directories(const struct hook *h)
{
	int r = check_directory(h->spool, h->spool_path);

	return r < 0 ? r : check_directory(h->done, h->done_path);
}

/* The oldest that was not tried yet, else the oldest that this round has not tried. 1; 0: none. */
static int find_next(struct hook *h, struct spooled *ret)
{
	_cleanup_free_ struct spooled *all = NULL;
	size_t n = 0, again = SIZE_MAX;
	int r = spool_list_at(h->spool, &all, &n);

	if (r >= 0)
		r = check_directories(h);
	if (r < 0)
		return r;
	forget(h, all, n);
	for (size_t i = 0; i < n; i++) {
		const struct tried *t;

		if (is_marked(h, &all[i]))
			continue;
		t = find_tried(h, all[i].name);
		if (!t) {
			*ret = all[i];
			return 1;
		}
		if (!t->done && t->round < h->round && again == SIZE_MAX)
			again = i;
	}
	if (again == SIZE_MAX)
		return 0;
	*ret = all[again];
	return 1;
}

/* ── its command ────────────────────────────────────────────────────────────────────────── */

#define PREFIX "PERFPERSIST_"
#define VARIABLES 8

/* One after the other, each with its NUL. The names and numbers of a spool's file hold no character that
 * means anything to a shell. */
static char *print_variables(const struct spooled *f, const char *path)
{
	char *text = NULL;
	int n = asprintf(&text,
			 PREFIX "FILE=%s%c" PREFIX "NAMESPACE=%s%c" PREFIX "TRIGGER=%s%c" PREFIX
				"NUMBER=%" PRIu64 "%c" PREFIX "TIME=%" PRIu64 "%c" PREFIX
				"COMM=%s%c" PREFIX "PID=%" PRIu32 "%c" PREFIX "BYTES=%" PRIu64,
			 path, 0, f->ns, 0, f->trigger, 0, f->number, 0, f->time, 0, f->comm, 0,
			 f->pid, 0, f->bytes);

	return n < 0 ? NULL : text;
}

/* This process's own, but those of our names, and then ours. */
static char **make_environment(char *variables)
{
	size_t n = 0, kept = 0;
	char **all;

	while (environ[n])
		n++;
	all = calloc(n + VARIABLES + 1, sizeof(*all));
	if (!all)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], PREFIX, strlen(PREFIX)) != 0)
			all[kept++] = environ[i];
	for (size_t i = 0; i < VARIABLES; i++, variables += strlen(variables) + 1)
		all[kept++] = variables;
	return all;
}

static char **make_arguments(char **command, const char *path)
{
	size_t n = 0;
	char **all;

	while (command[n])
		n++;
	all = calloc(n + 2, sizeof(*all));
	if (!all)
		return NULL;
	memcpy(all, command, n * sizeof(*all));
	all[n] = (char *)path;
	return all;
}

/* In a process group of its own, with the signals as a program expects them. */
static int spawn(char **arguments, char **environment, pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none;
	int r;

	sigemptyset(&none);
	posix_spawnattr_init(&how);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&how, 0);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	r = posix_spawnp(ret, arguments[0], &files, &how, arguments, environment);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	return -r;
}

/* Whether it has ended; it is reaped later, so that its number is still its group's. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = {};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid;
}

/* Its wait status. -ETIMEDOUT; -EINTR: this program is to end. Nothing of its group is left. */
static int wait_for(pid_t pid, uint64_t timeout)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC), end = now + timeout;
	int r = 0, status = 0;

	while (!has_ended(pid)) {
		now = pp_clock_ns(CLOCK_MONOTONIC);
		r = signals_caught() ? -EINTR : now >= end ? -ETIMEDOUT : 0;
		if (r < 0)
			break;
		signals_wait(end - now, -1);
	}
	kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return r < 0 ? r : status;
}

static int run(const struct hook *h, const struct spooled *f, const char *path)
{
	_cleanup_free_ char **arguments = make_arguments(h->options->command, path);
	_cleanup_free_ char *variables = print_variables(f, path);
	_cleanup_free_ char **environment = variables ? make_environment(variables) : NULL;
	pid_t pid;
	int r;

	if (!arguments || !environment)
		return -ENOMEM;
	r = spawn(arguments, environment, &pid);
	return r < 0 ? r : wait_for(pid, h->options->timeout);
}

/* ── and what became of it ──────────────────────────────────────────────────────────────── */

/* NULL: no memory; it is tried again at once then. */
static struct tried *note(struct hook *h, const struct spooled *f)
{
	struct tried *t = find_tried(h, f->name);

	if (!t) {
		if (!GROW(h->tried, h->n_tried))
			return NULL;
		t = &h->tried[h->n_tried++];
		*t = (struct tried){};
		memcpy(t->name, f->name, sizeof(t->name));
	}
	t->round = h->round;
	return t;
}

static int done(struct hook *h, const struct spooled *f)
{
	int fd = openat(h->done, f->name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : 0;
	struct tried *t;

	close_fd(fd);
	printf("%s: done\n", f->name);
	fflush(stdout);
	if (r < 0)
		complain("cannot make %s/%s: %s; the command runs again for this snapshot when "
			 "this service is started again",
			 h->done_path, f->name, strerror(-r));
	h->failed += r < 0;
	/* One that had failed before waits no more either. */
	t = r < 0 ? note(h, f) : find_tried(h, f->name);
	if (t)
		t->done = true;
	return r < 0 && !t ? -ENOMEM : 0;
}

static int failed(struct hook *h, const struct spooled *f, int status)
{
	struct tried *t = note(h, f);
	char why[64];

	if (!t)
		return -ENOMEM;
	t->failures++;
	h->failed++;
	if (status == -ETIMEDOUT)
		snprintf(why, sizeof(why), "it took longer than %" PRIu64 " s, and was killed",
			 h->options->timeout / SECOND);
	else if (status < 0)
		snprintf(why, sizeof(why), "%s", strerror(-status));
	else if (WIFEXITED(status))
		snprintf(why, sizeof(why), "exit status %d", WEXITSTATUS(status));
	else
		snprintf(why, sizeof(why), "signal %d", WTERMSIG(status));
	complain("%s failed for %s (attempt %u; %" PRIu64 " failures in all): %s%s",
		 h->options->command[0], f->name, t->failures, h->failed, why,
		 h->options->once ? "" : "; it is tried again");
	return 0;
}

/* For all that this round has not tried. */
static int run_all(struct hook *h)
{
	char path[4096 + SPOOL_NAME_SIZE];
	struct spooled f;
	int r = 0;

	while (r >= 0 && !signals_caught()) {
		r = find_next(h, &f);
		if (r <= 0)
			break;
		snprintf(path, sizeof(path), "%s/%s", h->spool_path, f.name);
		r = run(h, &f, path);
		if (r == -EINTR)
			return 0;
		r = r == 0 ? done(h, &f) : failed(h, &f, r);
	}
	if (r == -ESTALE)
		complain("%s or %s was removed or moved away; start this service again",
			 h->spool_path, h->done_path);
	else if (r < 0)
		complain("cannot go on with the snapshots in %s: %s", h->spool_path, strerror(-r));
	return r;
}

/* ── all the time ───────────────────────────────────────────────────────────────────────── */

static bool has_failures(const struct hook *h)
{
	for (size_t i = 0; i < h->n_tried; i++)
		if (!h->tried[i].done)
			return true;
	return false;
}

/* When what has failed is tried again. */
static void plan(struct hook *h, uint64_t now)
{
	if (!has_failures(h)) {
		h->pause = h->due = 0;
	} else if (!h->due) {
		h->pause = h->pause ? MIN(2 * h->pause, RETRY_MAX) : RETRY_MIN;
		h->due = now + h->pause;
	}
}

static void wait_for_more(struct hook *h)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	char events[4096];

	plan(h, now);
	/* What came while it looked is in the queue already. That a directory is gone is told to nobody who
	 * has it open. */
	if (!h->due || h->due > now)
		signals_wait(h->due ? MIN(h->due - now, LOOK_AGAIN) : LOOK_AGAIN, h->watch);
	while (read(h->watch, events, sizeof(events)) > 0)
		;
	if (h->due && pp_clock_ns(CLOCK_MONOTONIC) >= h->due) {
		h->round++;
		h->due = 0;
	}
}

static int cannot_use(const char *path, const char *why)
{
	complain("cannot use %s: %s", path, why);
	return EXIT_FAILED;
}

static int is_not_ours(const char *path)
{
	return cannot_use(path,
			  "it belongs to another user, or others can write it; use one of your "
			  "own, with -D");
}

/* Makes it if it is missing. All that follows is about the directory that is open here, whatever has its
 * name by then. */
static int open_directory(const char *path, int *ret, struct stat *ret_stat)
{
	_cleanup_close_ int fd = -EBADF;

	if (mkdir(path, 0750) < 0 && errno != EEXIST)
		return cannot_use(path, strerror(errno));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return cannot_use(path, "it is no directory, or a link; give the directory itself");
	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return cannot_use(path, strerror(errno));
	if (ret_stat->st_mode & 022)
		return is_not_ours(path);
	*ret = TAKE_FD(fd);
	return EXIT_OK;
}

/* Write access to the first decides what the command reads, and write access to the second, for which
 * snapshots it does not run. Root runs it for the daemon's user, too. */
static int open_directories(struct hook *h)
{
	uid_t self = geteuid();
	struct stat spool, done;
	int r = open_directory(h->spool_path, &h->spool, &spool);

	if (!r && self && spool.st_uid && spool.st_uid != self)
		r = is_not_ours(h->spool_path);
	if (!r)
		r = open_directory(h->done_path, &h->done, &done);
	if (!r && done.st_uid && done.st_uid != self && done.st_uid != spool.st_uid)
		r = is_not_ours(h->done_path);
	return r;
}

/* Without a slash at its end, which would follow a link, and make the second a part of the first. */
static int set_paths(struct hook *h)
{
	const char *path = h->options->directory;
	int n = (int)strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	if ((size_t)snprintf(h->done_path, sizeof(h->done_path), "%.*s.done", n, path) >=
	    sizeof(h->done_path))
		return cannot_use(path, strerror(ENAMETOOLONG));
	snprintf(h->spool_path, sizeof(h->spool_path), "%.*s", n, path);
	return EXIT_OK;
}

static int watch(struct hook *h)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", h->spool);
	h->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (h->watch >= 0 &&
	    inotify_add_watch(h->watch, self, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) >= 0)
		return EXIT_OK;
	complain("cannot watch %s: %s", h->spool_path, strerror(errno));
	return EXIT_FAILED;
}

int hook(const struct hook_options *options)
{
	_cleanup_(hook_done) struct hook h = {
		.options = options,
		.spool = -EBADF,
		.done = -EBADF,
		.watch = -EBADF,
		.round = 1,
	};
	int r = set_paths(&h) ?: open_directories(&h) ?: watch(&h);

	if (r)
		return r;
	signals_catch();
	signals_catch_also(SIGCHLD);
	do {
		if (run_all(&h) < 0)
			return EXIT_FAILED;
		if (options->once && signals_caught())
			complain("interrupted: the command may not have run for every snapshot");
		if (options->once)
			return h.failed || signals_caught() ? EXIT_FAILED : EXIT_OK;
		wait_for_more(&h);
	} while (!signals_caught());
	return EXIT_OK;
}
