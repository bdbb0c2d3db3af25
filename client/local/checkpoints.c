// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The directory of checkpoints:
 *
 *   +boot-BOOTID/ID      a file of checkpoints (checkpoint-file.h) of the rings of the event with that
 *                        id; the directory is locked by the process that writes there
 *   +boot-BOOTID/ID.new  the same, until it has a checkpoint
 *   2026-11-21T23-40-12Z/   a save (saved.h): what became of the files of another boot
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "client/local/checkpoint-write.h"
#include "client/local/saved-file.h"
#include "client/local/saved-make.h"
#include "client/local/saved-place.h"
#include "client/local/saved-remove.h"
#include "client/public.h"
#include "proto/io.h"
#include "proto/macro.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define BOOT "+boot-"
#define BOOT_NAME_SIZE (sizeof(BOOT) + 36)
#define FILE_NAME_SIZE 32

struct perfpersist_checkpoint {
	LIST_ENTRY(perfpersist_checkpoint) entry;
	struct perfpersist_checkpoints *owner;
	struct checkpoint_writer writer;
	char name[FILE_NAME_SIZE];
	bool has_name; /* else it is still NAME.new */
};

struct perfpersist_checkpoints {
	char path[PATH_MAX];
	char boot[BOOT_NAME_SIZE];
	int fd;
	int boot_fd; /* locked */
	LIST_HEAD(, perfpersist_checkpoint) all;
};

static void file_name(uint64_t event, char ret[static FILE_NAME_SIZE])
{
	snprintf(ret, FILE_NAME_SIZE, "%" PRIu64, event);
}

/* ── the directory ──────────────────────────────────────────────────────────────────────── */

static int read_boot_id(char ret[static BOOT_NAME_SIZE])
{
	_cleanup_close_ int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	char text[37] = "";

	if (fd < 0 || pp_read_all(fd, text, 36) != 36 ||
	    text[strspn(text, "0123456789abcdef-")] != '\0')
		return client_fail(-EIO,
				   "cannot write checkpoints: cannot read this boot's id in "
				   "%s",
				   BOOT_ID);
	snprintf(ret, BOOT_NAME_SIZE, BOOT "%s", text);
	return 0;
}

/* Another user who can write there could redirect what we write. */
static int check_owner(const struct perfpersist_checkpoints *c)
{
	struct stat st;

	if (fstat(c->fd, &st) < 0)
		return client_fail(-errno, "cannot look at %s: %s", c->path, strerror(errno));
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return client_fail(
			-EACCES,
			"cannot write checkpoints to %s: the directory belongs to another "
			"user, or others can write it",
			c->path);
	return 0;
}

static int open_boot(struct perfpersist_checkpoints *c)
{
	int r = read_boot_id(c->boot);

	if (r < 0)
		return r;
	if (mkdirat(c->fd, c->boot, 0700) < 0 && errno != EEXIST)
		return client_fail(-errno, "cannot write checkpoints to %s: %s", c->path,
				   strerror(errno));
	c->boot_fd = saved_dir_open(c->fd, c->boot);
	if (c->boot_fd < 0)
		return client_fail(c->boot_fd, "cannot write checkpoints to %s/%s: %s", c->path,
				   c->boot, saved_file_error(c->boot_fd));
	if (flock(c->boot_fd, LOCK_EX | LOCK_NB) < 0)
		return client_fail(-EBUSY,
				   "cannot write checkpoints to %s: another process does that; "
				   "perfpersist-checkpoint.service is there for it",
				   c->path);
	return 0;
}

static int open_directory(struct perfpersist_checkpoints *c, const char *instance,
			  const char *directory)
{
	int r = directory ? 0 : checkpoint_place(instance, c->path, sizeof(c->path));

	if (r < 0)
		return r;
	if (directory && !realpath(directory, c->path))
		return client_fail(-errno, "cannot write checkpoints to %s: %s", directory,
				   strerror(errno));
	c->fd = saved_dir_open(AT_FDCWD, c->path);
	if (c->fd < 0)
		return client_fail(c->fd, "cannot write checkpoints to %s: %s", c->path,
				   saved_file_error(c->fd));
	r = check_owner(c);
	return r < 0 ? r : open_boot(c);
}

_public_ int perfpersist_checkpoints_open(const char *instance, const char *directory,
					  struct perfpersist_checkpoints **ret)
{
	struct perfpersist_checkpoints *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return client_fail(-ENOMEM, "cannot write checkpoints: out of memory");
	c->fd = c->boot_fd = -EBADF;
	LIST_INIT(&c->all);
	r = open_directory(c, instance, directory);
	if (r < 0) {
		perfpersist_checkpoints_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

_public_ void perfpersist_checkpoints_free(struct perfpersist_checkpoints *c)
{
	if (!c)
		return;
	close_fd(c->boot_fd);
	close_fd(c->fd);
	free(c);
}

/* The file of the rings before them stays until theirs has a checkpoint. */
static bool is_written(const struct perfpersist_checkpoints *c, const char *name)
{
	const struct perfpersist_checkpoint *one;

	LIST_FOREACH(one, &c->all, entry)
	{
		size_t n = strlen(one->name);

		if (!strncmp(one->name, name, n) &&
		    (!name[n] || (!one->has_name && !strcmp(name + n, ".new"))))
			return true;
	}
	return false;
}

static bool is_among(const uint64_t *ids, size_t n, const char *name)
{
	char one[FILE_NAME_SIZE];

	for (size_t i = 0; i < n; i++) {
		file_name(ids[i], one);
		if (!strcmp(one, name))
			return true;
	}
	return false;
}

static DIR *list(int at, const char *name)
{
	_cleanup_close_ int fd = saved_dir_open(at, name);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		TAKE_FD(fd);
	return dir;
}

_public_ void perfpersist_checkpoints_sweep(struct perfpersist_checkpoints *c, const uint64_t *keep,
					    size_t n)
{
	_cleanup_closedir_ DIR *dir = list(c->boot_fd, ".");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && !is_written(c, entry->d_name) &&
		    !is_among(keep, n, entry->d_name))
			unlinkat(c->boot_fd, entry->d_name, 0);
}

/* ── one event ──────────────────────────────────────────────────────────────────────────── */

_public_ uint64_t perfpersist_checkpoint_size(struct perfpersist_event *e)
{
	/* The header has the formats; what is beside the places is small. */
	uint64_t size = 4ULL * CHECKPOINT_PAGE;

	for (size_t i = 0; i < e->n; i++) {
		const struct pp_ring_header *h = &e->rings[i].header;

		size += ALIGN_TO(checkpoint_place_size(h), CHECKPOINT_PAGE) + sizeof(*h) +
			h->format_size + 2 * sizeof(struct checkpoint_ring);
	}
	return size;
}

static int fail(const struct perfpersist_checkpoint *one, int error)
{
	const struct perfpersist_info *info = &one->writer.event->base;

	return client_fail(error, "cannot write a checkpoint of %s/%s to %s/%s: %s%s", info->ns,
			   info->name, one->owner->path, one->owner->boot, strerror(-error),
			   error == -ENOSPC || error == -EDQUOT ? "; make room there" : "");
}

/* The file of an earlier process of this boot, if there is one and it is of the same rings. */
static int resume(struct perfpersist_checkpoint *one)
{
	_cleanup_close_ int fd =
		openat(one->owner->boot_fd, one->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = checkpoint_writer_resume(&one->writer, fd);
	if (r > 0) {
		TAKE_FD(fd);
		one->has_name = true;
	}
	return r;
}

static int begin(struct perfpersist_checkpoint *one)
{
	_cleanup_close_ int fd = -EBADF;
	char name[FILE_NAME_SIZE + 8];
	int at = one->owner->boot_fd, r;

	snprintf(name, sizeof(name), "%s.new", one->name);
	unlinkat(at, name, 0);
	fd = openat(at, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = checkpoint_writer_begin(&one->writer, fd);
	if (r < 0)
		unlinkat(at, name, 0);
	else
		TAKE_FD(fd);
	return r;
}

static int open_file(struct perfpersist_checkpoint *one, struct perfpersist_event *e)
{
	const struct perfpersist_checkpoint *other;
	int r = checkpoint_writer_init(&one->writer, e);

	file_name(e->header.event_id, one->name);
	LIST_FOREACH(other, &one->owner->all, entry)
	if (!strcmp(other->name, one->name))
		return client_fail(-EEXIST, "%s/%s has a checkpoint under another name", e->base.ns,
				   e->base.name);
	if (r >= 0)
		r = resume(one);
	if (r == 0)
		r = begin(one);
	return r < 0 ? fail(one, r) : 0;
}

_public_ int perfpersist_checkpoint_new(struct perfpersist_checkpoints *c,
					struct perfpersist_event *e,
					struct perfpersist_checkpoint **ret)
{
	struct perfpersist_checkpoint *one;
	int r;

	if (e->is_copy || !e->n)
		return client_fail(
			-EINVAL,
			"cannot write checkpoints of %s/%s: that takes its own rings, not "
			"copies of them",
			e->base.ns, e->base.name);
	one = calloc(1, sizeof(*one));
	if (!one)
		return client_fail(-ENOMEM, "cannot write checkpoints: out of memory");
	one->owner = c;
	r = open_file(one, e);
	if (r < 0) {
		checkpoint_writer_done(&one->writer);
		free(one);
		return r;
	}
	LIST_INSERT_HEAD(&c->all, one, entry);
	*ret = one;
	return 0;
}

_public_ void perfpersist_checkpoint_free(struct perfpersist_checkpoint *one)
{
	if (!one)
		return;
	LIST_REMOVE(one, entry);
	checkpoint_writer_done(&one->writer);
	free(one);
}

/* With its first checkpoint it replaces the file of rings that the event had before. */
static int give_name(struct perfpersist_checkpoint *one)
{
	char name[FILE_NAME_SIZE + 8];
	int at = one->owner->boot_fd;

	if (one->has_name)
		return 0;
	snprintf(name, sizeof(name), "%s.new", one->name);
	if (renameat(at, name, at, one->name) < 0 || fsync(at) < 0 || fsync(one->owner->fd) < 0)
		return -errno;
	one->has_name = true;
	return 0;
}

_public_ int perfpersist_checkpoint_write(struct perfpersist_checkpoint *one, uint64_t max_bytes,
					  struct perfpersist_checkpoint_stat *ret)
{
	struct perfpersist_checkpoint_stat stat = {};
	int r = checkpoint_writer_write(&one->writer, max_bytes, &stat);

	if (r >= 0)
		r = give_name(one);
	if (r < 0)
		return fail(one, r);
	if (ret) {
		stat.sz = ret->sz;
		*ret = stat;
	}
	return 0;
}

/* ── another boot's ─────────────────────────────────────────────────────────────────────── */

struct recovery {
	struct perfpersist_checkpoints *c;
	struct saving saving;
	struct perfpersist_save_result result;
};

static void cannot_recover(struct recovery *v, const char *file, const char *why)
{
	if (v->result.failed++ == 0)
		snprintf(v->result.message, sizeof(v->result.message), "%.64s: %s", file, why);
}

static int begin_save(struct recovery *v)
{
	return v->saving.fd >= 0 ? 0 : saving_begin_in(v->c->path, &v->saving);
}

static int write_event(struct recovery *v, struct perfpersist_event *e,
		       const struct perfpersist_info *info)
{
	struct saved_event_counts counts = { .records = 0 };
	_cleanup_close_ int dir = -EBADF;
	char file[32] = "";
	int r = begin_save(v);

	if (r < 0)
		return r;
	r = saving_event_dir(&v->saving, info, &dir);
	if (r >= 0)
		r = saved_write_event(dir, e, info, &counts, file);
	if (r < 0)
		return saving_failed(&v->saving, file, r);
	v->result.events++;
	v->result.records += counts.records;
	v->result.bytes += counts.bytes;
	return 0;
}

/* Unlike a save, which may come from anywhere, this directory is our own. */
static int open_own(int at, const char *name)
{
	_cleanup_close_ int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? TAKE_FD(fd) : -EINVAL;
}

/* A write error ends it; a file that cannot be read is left out. */
static int recover_file(struct recovery *v, int at, const char *name)
{
	_cleanup_(client_event_cleanup) struct perfpersist_event *e = NULL;
	_cleanup_close_ int fd = open_own(at, name);
	struct perfpersist_info info;
	int r = fd < 0 ? fd : checkpoint_read(fd, &e, &info);

	if (r == -ENOMEM)
		return client_fail(r, "cannot read the checkpoints in %s: out of memory",
				   v->c->path);
	if (r < 0)
		cannot_recover(v, name,
			       r == -ENOENT ? "it has no complete checkpoint"
					    : saved_file_error(r));
	return r < 0 ? 0 : write_event(v, e, &info);
}

static bool is_unfinished(const char *name)
{
	size_t n = strlen(name);

	return name[0] == '.' || (n > 4 && !strcmp(name + n - 4, ".new"));
}

static int recover_files(struct recovery *v, const char *boot)
{
	_cleanup_closedir_ DIR *dir = list(v->c->fd, boot);
	struct dirent *entry;
	int r = 0;

	while (dir && r >= 0 && (entry = readdir(dir)))
		if (!is_unfinished(entry->d_name))
			r = recover_file(v, dirfd(dir), entry->d_name);
	if (r < 0 || !v->result.events)
		return r;
	r = saving_finish(&v->saving);
	if (r < 0)
		return r;
	memcpy(v->result.path, v->saving.path, sizeof(v->result.path));
	return 1;
}

/* The save is on the disk before its source goes. */
static int recover_boot(struct perfpersist_checkpoints *c, const char *boot, uint32_t keep,
			struct perfpersist_save_result *result)
{
	struct recovery v = { .c = c, .saving = { .parent_fd = -EBADF, .fd = -EBADF } };
	int r = recover_files(&v, boot);

	if (r > 0 && keep != PERFPERSIST_KEEP_ALL)
		v.result.removed = saved_prune(v.saving.parent_fd, keep, v.saving.name);
	saving_done(&v.saving);
	if (r < 0)
		return r;
	saved_remove(c->fd, boot);
	*result = v.result;
	return r;
}

struct boot {
	char name[BOOT_NAME_SIZE];
	struct timespec changed;
};

static int compare_boots(const void *a, const void *b)
{
	const struct timespec *x = &((const struct boot *)a)->changed;
	const struct timespec *y = &((const struct boot *)b)->changed;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/* Those of other boots, the oldest first. */
static int find_boots(const struct perfpersist_checkpoints *c, struct boot **ret, size_t *ret_n)
{
	_cleanup_closedir_ DIR *dir = list(c->fd, ".");
	_cleanup_free_ struct boot *all = NULL;
	struct dirent *entry;
	struct stat st;
	size_t n = 0;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (strncmp(name, BOOT, strlen(BOOT)) != 0 || strlen(name) >= BOOT_NAME_SIZE ||
		    !strcmp(name, c->boot) || fstatat(c->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode))
			continue;
		if (!GROW(all, n))
			return client_fail(-ENOMEM, "cannot read %s: out of memory", c->path);
		snprintf(all[n].name, sizeof(all[n].name), "%s", name);
		all[n++].changed = st.st_mtim;
	}
	if (n)
		qsort(all, n, sizeof(*all), compare_boots);
	*ret = TAKE_PTR(all);
	*ret_n = n;
	return 0;
}

_public_ int perfpersist_checkpoints_recover(struct perfpersist_checkpoints *c, uint32_t keep,
					     struct perfpersist_save_result *ret)
{
	struct perfpersist_save_result result = {};
	_cleanup_free_ struct boot *boots = NULL;
	uint32_t failed = 0;
	bool any = false;
	size_t n = 0;
	int r = find_boots(c, &boots, &n);

	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (n - i > keep) { /* of more boots than are kept, after failures */
			saved_remove(c->fd, boots[i].name);
			continue;
		}
		r = recover_boot(c, boots[i].name, keep, &result);
		any |= r > 0;
		failed += result.failed;
	}
	if (r < 0)
		return r;
	if (ret) {
		result.sz = ret->sz;
		result.failed = failed;
		*ret = result;
	}
	return any;
}
