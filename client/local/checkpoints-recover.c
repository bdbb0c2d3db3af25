// SPDX-License-Identifier: LGPL-2.1-or-later
/* Turns what other boots have left in the directory of checkpoints into saves. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "client/local/checkpoint-file.h"
#include "client/local/checkpoints.h"
#include "client/local/saved-file.h"
#include "client/local/saved-make.h"
#include "client/local/saved-place.h"
#include "client/local/saved-remove.h"
#include "client/public.h"
#include "client/rings/event.h"
#include "proto/macro.h"

DIR *checkpoint_list(int at, const char *name)
{
	_cleanup_close_ int fd = saved_dir_open(at, name);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		TAKE_FD(fd);
	return dir;
}

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
	_cleanup_closedir_ DIR *dir = checkpoint_list(v->c->fd, boot);
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
	_cleanup_closedir_ DIR *dir = checkpoint_list(c->fd, ".");
	_cleanup_free_ struct boot *all = NULL;
	struct dirent *entry;
	struct stat st;
	size_t n = 0;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (strncmp(name, CHECKPOINT_BOOT, strlen(CHECKPOINT_BOOT)) != 0 || strlen(name) >= BOOT_NAME_SIZE ||
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
