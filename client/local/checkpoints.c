// SPDX-License-Identifier: LGPL-2.1-or-later
/* The files of this boot in the directory of checkpoints: one for each event. */
#include "client/local/checkpoints.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "client/local/checkpoint-write.h"
#include "client/local/saved-file.h"
#include "client/local/saved-place.h"
#include "client/public.h"
#include "proto/io.h"
#include "proto/macro.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define FILE_NAME_SIZE 32

struct perfpersist_checkpoint {
	LIST_ENTRY(perfpersist_checkpoint) entry;
	struct perfpersist_checkpoints *owner;
	struct checkpoint_writer writer;
	char name[FILE_NAME_SIZE];
	bool has_name;	/* else it is still NAME.new */
	bool is_synced; /* the name is on the disk */
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
	snprintf(ret, BOOT_NAME_SIZE, CHECKPOINT_BOOT "%s", text);
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

_public_ void perfpersist_checkpoints_sweep(struct perfpersist_checkpoints *c, const uint64_t *keep,
					    size_t n)
{
	_cleanup_closedir_ DIR *dir = checkpoint_list(c->boot_fd, ".");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && !is_written(c, entry->d_name) &&
		    !is_among(keep, n, entry->d_name))
			unlinkat(c->boot_fd, entry->d_name, 0);
}

/* ── one event ──────────────────────────────────────────────────────────────────────────── */

_public_ uint64_t perfpersist_checkpoint_size(struct perfpersist_event *e)
{
	const struct pp_catalog_header *catalog = e->catalog.bytes;
	/* The header has the catalog and the formats; what is beside the places is small. */
	uint64_t size = 4ULL * CHECKPOINT_PAGE + (catalog ? catalog->size : 0);

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
	return r < 0 ? fail(one, r) : one->has_name;
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
	return r;
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

	snprintf(name, sizeof(name), "%s.new", one->name);
	if (!one->has_name && renameat(at, name, at, one->name) < 0)
		return -errno;
	one->has_name = true;
	return 0;
}

/* EINVAL: this file system has nothing to sync of a directory. */
static int sync_directory(int fd)
{
	return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

/* Also of a file that was resumed: who gave it its name may not have got so far. */
static int sync_name(struct perfpersist_checkpoint *one)
{
	int r = one->is_synced ? 0 : sync_directory(one->owner->boot_fd);

	if (r >= 0 && !one->is_synced)
		r = sync_directory(one->owner->fd);
	one->is_synced = r >= 0;
	return r;
}

_public_ int perfpersist_checkpoint_write(struct perfpersist_checkpoint *one, uint64_t max_bytes,
					  struct perfpersist_checkpoint_stat *ret)
{
	struct perfpersist_checkpoint_stat stat = {};
	int r;

	if (ret && !SZ_IS_VALID(ret))
		return client_fail(-EINVAL,
				   "cannot fill in a struct perfpersist_checkpoint_stat of %zu "
				   "bytes: set its sz to its size",
				   ret->sz);
	r = checkpoint_writer_write(&one->writer, max_bytes, &stat);
	if (r >= 0)
		r = give_name(one);
	if (r >= 0)
		r = sync_name(one);
	if (r < 0)
		return fail(one, r);
	if (ret) {
		stat.sz = ret->sz;
		*ret = stat;
	}
	return 0;
}
