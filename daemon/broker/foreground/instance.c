// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes, locks and removes the folder of an instance. Must not know the processes in it. */
#include "daemon/broker/foreground/instance.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/vfs.h>

#include "daemon/broker/foreground/sockets.h"
#include "daemon/log.h"
#include "proto/macro.h"
#include "proto/places.h"

#define LOCK_SECONDS 15 /* longer than a launcher takes to end its children */
#define TAKE_TRIES 10	/* an earlier daemon removes the folder once */

/* ── taking it ──────────────────────────────────────────────────────────────────────────── */

static int make_directory(const char *instance)
{
	char path[PATH_MAX];
	struct stat st;
	int r = pp_place(instance, "", path, sizeof(path));

	if (r < 0)
		return r;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		goto fail;
	if (lstat(path, &st) < 0)
		goto fail;
	if (!S_ISDIR(st.st_mode) || st.st_uid != 0) {
		log_error("%s is there, but it is not a directory of root's; remove it.", path);
		return -ENOTDIR;
	}
	if (chmod(path, 0755) < 0)
		goto fail;
	return 0;
fail:
	r = -errno;
	log_error("Cannot make the directory %s: %s.", path, strerror(-r));
	return r;
}

static void on_alarm(int signal_number _unused_)
{
}

/* flock(2) with a timeout: the processes of a killed daemon are about to end. */
static int lock_patiently(int fd)
{
	struct sigaction action = { .sa_handler = on_alarm }, old;
	int r;

	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	log_notice("Waiting for what is left of an earlier perfpersistd to end.");
	sigaction(SIGALRM, &action, &old);
	alarm(LOCK_SECONDS);
	r = flock(fd, LOCK_EX) < 0 ? -errno : 0;
	alarm(0);
	sigaction(SIGALRM, &old, NULL);
	return r;
}

static int take_lock(const char *path, int *ret)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r;

	if (fd < 0) {
		r = -errno;
		if (r != -ENOENT)
			log_error("Cannot make the lock %s: %s.", path, strerror(-r));
		return r;
	}
	r = lock_patiently(fd);
	if (r < 0) {
		log_error("Another perfpersistd of this instance is starting or ending: it holds "
			  "%s. Try again when it is done.",
			  path);
		return r;
	}
	*ret = TAKE_FD(fd);
	return 0;
}

/* An earlier daemon may have removed the file; somebody else may hold a new one. */
static bool is_at(int fd, const char *path)
{
	struct stat ours, theirs;

	return fstat(fd, &ours) == 0 && lstat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino;
}

int instance_take(const char *instance, int *ret_lock)
{
	char control[PATH_MAX], lock[PATH_MAX];
	int r = pp_place(instance, "/control", control, sizeof(control));

	if (r >= 0)
		r = pp_place(instance, "/lock", lock, sizeof(lock));
	for (int i = 0; r >= 0 && i < TAKE_TRIES; i++) {
		_cleanup_close_ int fd = -EBADF;

		r = make_directory(instance);
		if (r < 0)
			return r;
		if (socket_answers(control)) {
			log_error("Another perfpersistd is running: it answers on %s. End it "
				  "first, or give this one a name of its own with --instance.",
				  control);
			return -EADDRINUSE;
		}
		r = take_lock(lock, &fd);
		if (r >= 0 && is_at(fd, lock)) {
			*ret_lock = TAKE_FD(fd);
			return 0;
		}
		if (r == -ENOENT) /* the folder was removed in the meantime */
			r = 0;
	}
	if (r < 0)
		return r;
	log_error("Other processes removed the lock %s %d times while this one waited for it. Try "
		  "again when they are done.",
		  lock, TAKE_TRIES);
	return -EBUSY;
}

/* ── leaving it ─────────────────────────────────────────────────────────────────────────── */

static bool is_directory(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Whether there may be directories: namespaces, events (also one that no name leads to), and orphan
 * rings that somebody still maps, and is charged for. */
static bool has_directories(const char *path)
{
	_cleanup_closedir_ DIR *d = opendir(path);
	const struct dirent *e;

	if (!d)
		return errno != ENOENT;
	while (errno = 0, (e = readdir(d)))
		if (e->d_name[0] != '.' && strcmp(e->d_name, PP_BY_ID) != 0 &&
		    is_directory(dirfd(d), e->d_name))
			return true;
	return errno != 0;
}

bool instance_is_empty(const char *instance)
{
	char registry[PATH_MAX], events[PATH_MAX];

	return pp_place(instance, "/registry", registry, sizeof(registry)) >= 0 &&
	       pp_place(instance, "/registry/" PP_BY_ID, events, sizeof(events)) >= 0 &&
	       !has_directories(registry) && !has_directories(events);
}

static bool unmount(const char *path)
{
	struct statfs fs;

	if (statfs(path, &fs) < 0 || (unsigned long)fs.f_type != BPF_FS_MAGIC)
		return true;
	/* Nothing of ours is in it. Others look into it now and then, as any `bpftool --bpffs` does. */
	return umount2(path, UMOUNT_NOFOLLOW | MNT_DETACH) == 0;
}

void instance_remove(const char *instance)
{
	/* The lock last: a process that gets the lock then checks that the path still names it. */
	static const char *const files[] = { "/control", "/engine", "/engine.lock",
					     "/dumper",	 "/keeper", "/lock" };
	char path[PATH_MAX];

	if (pp_place(instance, "/registry", path, sizeof(path)) < 0)
		return;
	if (!unmount(path)) {
		log_notice("%s stays mounted: %s.", path, strerror(errno));
		return;
	}
	rmdir(path);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (pp_place(instance, files[i], path, sizeof(path)) == 0)
			unlink(path);
	if (pp_place(instance, "", path, sizeof(path)) == 0)
		rmdir(path);
}
