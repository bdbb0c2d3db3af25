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
	else if (fd < 0)
		errno = -fd;
	return dir;
}

/* ── one boot ───────────────────────────────────────────────────────────────────────────── */

struct recovery {
	struct perfpersist_checkpoints *c;
	const char *boot;
	struct saving saving;
	struct perfpersist_save_result result;
};

static void leave_out(struct recovery *v, const char *file, const char *why)
{
	if (v->result.failed++ == 0)
		snprintf(v->result.message, sizeof(v->result.message), "%.64s: %s", file, why);
}

static int begin_save(struct recovery *v)
{
	return v->saving.fd >= 0 ? 0 : saving_begin_in(v->c->path, &v->saving);
}

static int cannot_write(struct recovery *v, const struct perfpersist_info *info, const char *file,
			int error)
{
	char what[256];

	snprintf(what, sizeof(what), "writing %s/%s%s%s", info->ns, info->name, *file ? "/" : "",
		 file);
	return saving_failed(&v->saving, what, error);
}

static int write_event(struct recovery *v, const char *name, struct perfpersist_event *e,
		       const struct perfpersist_info *info)
{
	struct saved_event_counts counts = { .records = 0 };
	_cleanup_close_ int dir = -EBADF;
	char file[32] = "";
	int r = begin_save(v);

	if (r < 0)
		return r;
	r = saving_event_dir(&v->saving, info, &dir);
	if (r == -EEXIST) {
		leave_out(v, name, "a newer event of the same name has checkpoints, too");
		return 0;
	}
	if (r >= 0)
		r = saved_write_event(dir, e, info, &counts, file);
	if (r < 0)
		return cannot_write(v, info, file, r);
	v->result.events++;
	v->result.records += counts.records;
	v->result.bytes += counts.bytes;
	return 0;
}

/* What will be no better the next time: it says what the file is, or that its disk is damaged. */
static bool is_lost(int error)
{
	static const int errors[] = { ENOENT, EBADMSG, EINVAL, ESTALE, ELOOP, EIO };

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (error == -errors[i])
			return true;
	return false;
}

static int cannot_read(const struct recovery *v, const char *name, int error)
{
	return client_fail(error, "cannot read the checkpoints in %s/%s%s%s: %s; %s", v->c->path,
			   v->boot, *name ? "/" : "", name,
			   error == -EPROTONOSUPPORT ? "a newer version of perfpersist wrote them"
						     : strerror(-error),
			   error == -EPROTONOSUPPORT ? "they stay there for it"
						     : "they stay there for the next start");
}

/* A file that is damaged is left out. One that cannot be read now, and a write error, end it. */
static int recover_file(struct recovery *v, int at, const char *name)
{
	_cleanup_(client_event_cleanup) struct perfpersist_event *e = NULL;
	_cleanup_close_ int fd = saved_file_open(at, name);
	struct perfpersist_info info;
	int r = fd < 0 ? fd : checkpoint_read(fd, &e, &info);

	if (r >= 0)
		return write_event(v, name, e, &info);
	if (!is_lost(r))
		return cannot_read(v, name, r);
	leave_out(v, name, r == -ENOENT ? "it has no complete checkpoint" : saved_file_error(r));
	return 0;
}

static int is_finished(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return entry->d_name[0] != '.' && (n <= 4 || strcmp(entry->d_name + n - 4, ".new") != 0);
}

/* Names are the numbers of events, and these count up. */
static int newest_first(const struct dirent **a, const struct dirent **b)
{
	size_t x = strlen((*a)->d_name), y = strlen((*b)->d_name);

	return x != y ? (x < y ? 1 : -1) : strcmp((*b)->d_name, (*a)->d_name);
}

static int recover_files(struct recovery *v)
{
	_cleanup_close_ int at = saved_dir_open(v->c->fd, v->boot);
	struct dirent **entries = NULL;
	int r = 0, n;

	if (at < 0)
		return cannot_read(v, "", at);
	n = scandirat(at, ".", &entries, is_finished, newest_first);
	if (n < 0)
		return cannot_read(v, "", -errno);
	for (int i = 0; i < n; i++) {
		if (r >= 0)
			r = recover_file(v, at, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return r;
}

static int make_save(struct recovery *v)
{
	int r = recover_files(v);

	if (r < 0 || !v->result.events)
		return r;
	r = saving_finish(&v->saving);
	if (r < 0)
		return r;
	memcpy(v->result.path, v->saving.path, sizeof(v->result.path));
	return 0;
}

static int discard(const struct perfpersist_checkpoints *c, const char *boot)
{
	int r = saved_discard(c->fd, boot);

	return r < 0 ? client_fail(r, "cannot remove the checkpoints in %s/%s: %s", c->path, boot,
				   strerror(-r))
		     : 0;
}

/* What cannot be renamed cannot be discarded later: each start would make one more save of it. A name
 * that stays after a crash in between is that of a boot, too. */
static int check_discard(const struct perfpersist_checkpoints *c, const char *boot)
{
	char other[BOOT_NAME_SIZE];

	snprintf(other, sizeof(other), "%s~", boot);
	if (renameat(c->fd, boot, c->fd, other) == 0 && renameat(c->fd, other, c->fd, boot) == 0)
		return 0;
	return client_fail(
		-errno,
		"cannot rename %s/%s: %s; its checkpoints stay there for the next start, "
		"because they could not be removed after a save",
		c->path, boot, strerror(errno));
}

/* The save is on the disk before its source goes, and earlier saves go after that. *ret: what was made, even
 * if it fails then. */
static int recover_boot(struct perfpersist_checkpoints *c, const char *boot, uint32_t keep,
			struct perfpersist_save_result *ret)
{
	struct recovery v = {
		.c = c,
		.boot = boot,
		.saving = { .parent_fd = -EBADF, .fd = -EBADF },
	};
	int r = check_discard(c, boot);

	if (r >= 0)
		r = make_save(&v);
	if (r >= 0) {
		*ret = v.result;
		r = discard(c, boot);
	}
	if (r >= 0 && v.result.events && keep != PERFPERSIST_KEEP_ALL)
		ret->removed = saved_prune(v.saving.parent_fd, keep, v.saving.name);
	saving_done(&v.saving);
	return r;
}

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

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

static bool is_other_boot(const struct perfpersist_checkpoints *c, const char *name,
			  struct timespec *ret_changed)
{
	struct stat st;

	if (strncmp(name, CHECKPOINT_BOOT, strlen(CHECKPOINT_BOOT)) != 0 ||
	    strlen(name) >= BOOT_NAME_SIZE || !strcmp(name, c->boot) ||
	    fstatat(c->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return false;
	*ret_changed = st.st_mtim;
	return true;
}

/* Those of other boots, the oldest first. */
static int find_boots(const struct perfpersist_checkpoints *c, struct boot **ret, size_t *ret_n)
{
	_cleanup_closedir_ DIR *dir = checkpoint_list(c->fd, ".");
	_cleanup_free_ struct boot *all = NULL;
	struct timespec changed;
	struct dirent *entry;
	size_t n = 0;

	while (dir && (errno = 0, entry = readdir(dir))) {
		if (!is_other_boot(c, entry->d_name, &changed))
			continue;
		if (!GROW(all, n))
			return client_fail(-ENOMEM, "cannot read %s: out of memory", c->path);
		snprintf(all[n].name, sizeof(all[n].name), "%s", entry->d_name);
		all[n++].changed = changed;
	}
	if (!dir || errno)
		return client_fail(-errno, "cannot read %s: %m", c->path);
	if (n)
		qsort(all, n, sizeof(*all), compare_boots);
	*ret = TAKE_PTR(all);
	*ret_n = n;
	return 0;
}

/* What one boot became, to that of those before it. */
static void add_result(struct perfpersist_save_result *all,
		       const struct perfpersist_save_result *one, const char *why)
{
	struct perfpersist_save_result before = *all;

	if (one->events)
		*all = *one;
	all->failed = before.failed + one->failed + !!why; /* a boot that failed is one */
	if (before.failed)
		why = before.message;
	else if (one->failed)
		why = one->message;
	snprintf(all->message, sizeof(all->message), "%.*s", (int)sizeof(all->message) - 1,
		 why ?: "");
}

/* There are more than are kept after failures. */
static int remove_boot(const struct perfpersist_checkpoints *c, const char *boot, uint32_t keep)
{
	int r = discard(c, boot);

	return r < 0 ? r
		     : client_fail(-EDQUOT,
				   "the checkpoints in %s/%s are removed: only those of the newest "
				   "%u boots are kept",
				   c->path, boot, keep);
}

/* -errno: of the last boot that failed; the others are recovered all the same. */
static int recover_all(struct perfpersist_checkpoints *c, uint32_t keep, const struct boot *boots,
		       size_t n, struct perfpersist_save_result *result)
{
	char why[CLIENT_SENTENCE_SIZE];
	int error = 0;

	for (size_t i = 0; i < n; i++) {
		struct perfpersist_save_result one = {};
		int r = n - i > keep ? remove_boot(c, boots[i].name, keep)
				     : recover_boot(c, boots[i].name, keep, &one);

		if (r < 0) {
			error = r;
			snprintf(why, sizeof(why), "%s", client_sentence());
		}
		add_result(result, &one, r < 0 ? why : NULL);
	}
	return error < 0 ? client_fail(error, "%s", why) : 0;
}

_public_ int perfpersist_checkpoints_recover(struct perfpersist_checkpoints *c, uint32_t keep,
					     struct perfpersist_save_result *ret)
{
	struct perfpersist_save_result result = {};
	_cleanup_free_ struct boot *boots = NULL;
	size_t n = 0;
	int r;

	if (ret && !SZ_IS_VALID(ret))
		return client_fail(-EINVAL,
				   "cannot fill in a struct perfpersist_save_result of %zu bytes: "
				   "set its sz to its size",
				   ret->sz);
	saved_sweep(c->fd);
	r = find_boots(c, &boots, &n);
	if (r >= 0)
		r = recover_all(c, keep, boots, n, &result);
	if (ret) {
		result.sz = ret->sz;
		*ret = result;
	}
	return r < 0 && !result.events ? r : result.events > 0;
}
