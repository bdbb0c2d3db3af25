// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/spool.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "client/perfctl/perfctl.h"
#include "proto/clock.h"
#include "proto/fired.h"
#include "proto/io.h"
#include "proto/places.h"
#include "proto/regular.h"

#define SECOND 1000000000ULL

int spool_place(const char *instance, char *buf, size_t size)
{
	char run[256];
	int n, r = pp_place(instance, "", run, sizeof(run));

	if (r < 0)
		return r;
	/* The instance's name follows the last slash of the run directory. */
	n = snprintf(buf, size, "/var/lib%s/snapshots", strrchr(run, '/'));
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* ── names ──────────────────────────────────────────────────────────────────────────────── */

/* A task may call itself anything, or nothing. */
static void plain(const char *comm, char ret[16])
{
	size_t n = 0;

	if (!comm[0])
		comm = "_";
	for (; n < 15 && comm[n]; n++)
		ret[n] = isalnum((unsigned char)comm[n]) || comm[n] == '_' ? comm[n] : '_';
	ret[n] = 0;
}

void spool_name(struct spooled *f)
{
	time_t t = (time_t)(f->time / SECOND);
	char when[24] = "9999-12-31T23-59-59Z", comm[16];
	struct tm tm;

	if (gmtime_r(&t, &tm) && tm.tm_year < 8100)
		strftime(when, sizeof(when), "%Y-%m-%dT%H-%M-%SZ", &tm);
	plain(f->comm, comm);
	snprintf(f->name, sizeof(f->name), "%s.%s.%s.%" PRIu64 ".%s-%u.%" PRIu64 ".data", when,
		 f->ns, f->trigger, f->number, comm, f->pid, f->id);
}

/* The next part, up to the separator; *p moves behind it. */
static bool part(const char **p, char separator, char *ret, size_t size)
{
	const char *end = strchr(*p, separator);
	size_t n = end ? (size_t)(end - *p) : 0;

	if (n == 0 || n >= size)
		return false;
	memcpy(ret, *p, n);
	ret[n] = 0;
	*p = end + 1;
	return true;
}

static bool number(const char **p, char separator, uint64_t *ret)
{
	char text[24];

	return part(p, separator, text, sizeof(text)) && parse_number(text, ret) >= 0;
}

int spool_parse(const char *name, struct spooled *ret)
{
	struct spooled f = {};
	struct tm tm = {};
	const char *p = name, *end;
	char when[24];
	uint64_t pid;

	if (!part(&p, '.', when, sizeof(when)))
		return -EINVAL;
	end = strptime(when, "%Y-%m-%dT%H-%M-%SZ", &tm);
	if (!end || *end)
		return -EINVAL;
	if (!part(&p, '.', f.ns, sizeof(f.ns)) || !part(&p, '.', f.trigger, sizeof(f.trigger)) ||
	    !number(&p, '.', &f.number) || !part(&p, '-', f.comm, sizeof(f.comm)) ||
	    !number(&p, '.', &pid) || pid > UINT32_MAX || !number(&p, '.', &f.id) ||
	    strcmp(p, "data") != 0 || !name_is_valid(f.ns) || !name_is_valid(f.trigger))
		return -EINVAL;
	f.pid = (uint32_t)pid;
	f.time = (uint64_t)timegm(&tm) * SECOND;
	/* Other spellings, 2026-1-2 and the like, are not ours. */
	spool_name(&f);
	if (strcmp(f.name, name) != 0)
		return -EINVAL;
	*ret = f;
	return 0;
}

/* ── the directory ──────────────────────────────────────────────────────────────────────── */

static int by_id(const void *a, const void *b)
{
	const struct spooled *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->time != y->time ? (x->time < y->time ? -1 : 1) : strcmp(x->name, y->name);
}

static bool is_file(int directory, const char *name, struct spooled *ret)
{
	struct stat st;

	if (spool_parse(name, ret) < 0 || fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return false;
	ret->bytes = (uint64_t)st.st_blocks * 512;
	ret->mtime = (uint64_t)st.st_mtim.tv_sec * SECOND + (uint64_t)st.st_mtim.tv_nsec;
	return true;
}

int spool_list_at(int directory, struct spooled **ret, size_t *ret_n)
{
	_cleanup_close_ int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	_cleanup_free_ struct spooled *all = NULL;
	struct dirent *e;
	struct spooled f;
	size_t n = 0;

	if (!dir)
		return -errno;
	TAKE_FD(fd);
	while ((errno = 0, e = readdir(dir))) {
		if (!is_file(dirfd(dir), e->d_name, &f))
			continue;
		if (!GROW(all, n))
			return -ENOMEM;
		all[n++] = f;
	}
	if (errno) /* what was not read is not gone */
		return -errno;
	if (n)
		qsort(all, n, sizeof(*all), by_id);
	*ret = TAKE_PTR(all);
	*ret_n = n;
	return 0;
}

int spool_list(const char *directory, struct spooled **ret, size_t *ret_n)
{
	_cleanup_close_ int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		return spool_list_at(fd, ret, ret_n);
	if (errno != ENOENT)
		return -errno;
	*ret = NULL;
	*ret_n = 0;
	return 0;
}

static int remove_file(const char *directory, const char *name)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", directory, name) >= sizeof(path))
		return -ENAMETOOLONG;
	return unlink(path) < 0 && errno != ENOENT ? -errno : 1;
}

/* ── which tapes a file has ─────────────────────────────────────────────────────────────── */

/* A file's last bytes. */
struct mark {
	uint64_t trigger, number;	/* the firing; a trigger that is made anew has another id */
	uint64_t tapes[PP_TARGETS_MAX]; /* 0: no more */
	char magic[8];
};

static const char mark_magic[8] = "PPTAPES"; /* with its NUL */

int spool_mark(int fd, const struct perfpersist_tape *tapes, size_t n)
{
	struct mark mark = { .trigger = tapes->trigger, .number = tapes->number };

	memcpy(mark.magic, mark_magic, sizeof(mark.magic));
	for (size_t i = 0; i < MIN(n, (size_t)PP_TARGETS_MAX); i++)
		mark.tapes[i] = tapes[i].id;
	if (lseek(fd, 0, SEEK_END) < 0)
		return -errno;
	return pp_write_all(fd, &mark, sizeof(mark));
}

bool spool_has(const char *directory, const struct spooled *f, const struct perfpersist_tape *tape)
{
	_cleanup_close_ int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int fd = dir < 0 ? -1 : regular_open(dir, f->name, RESOLVE_NO_SYMLINKS);
	off_t at = fd < 0 ? -1 : lseek(fd, -(off_t)sizeof(struct mark), SEEK_END);
	struct stat st, of_directory;
	struct mark mark;

	/* In a directory where others may write, what they say of a tape is not to be believed. */
	if (fd >= 0 && (fstat(fd, &st) < 0 || fstat(dir, &of_directory) < 0 ||
			(st.st_uid != geteuid() && st.st_uid != of_directory.st_uid)))
		return false;
	if (at < 0 || pp_pread_all(fd, &mark, sizeof(mark), (uint64_t)at) != sizeof(mark) ||
	    memcmp(mark.magic, mark_magic, sizeof(mark.magic)) != 0 ||
	    mark.trigger != tape->trigger || mark.number != tape->number)
		return false;
	for (size_t i = 0; i < PP_TARGETS_MAX; i++)
		if (mark.tapes[i] == tape->id)
			return true;
	return false;
}

/* ── limits ─────────────────────────────────────────────────────────────────────────────── */

static bool is_of(const struct spooled *f, const struct spooled *coming)
{
	return coming && !strcmp(f->ns, coming->ns) && !strcmp(f->trigger, coming->trigger);
}

static bool exceeds(uint64_t n, uint64_t max)
{
	return max && n > max;
}

/* What a namespace has here. */
struct share {
	const char *ns;
	uint64_t files, bytes;
};

struct room {
	const char *directory;
	struct spooled *all; /* the oldest first; a name that is empty has been removed */
	size_t n;
	struct share *shares; /* of all; of each namespace; one that is empty */
	size_t removed;
};

static void room_done(struct room *room)
{
	free(room->all);
	free(room->shares);
}

static struct share *room_share(const struct room *room, const char *ns)
{
	struct share *share = room->shares + 1;

	while (share->ns && strcmp(share->ns, ns) != 0)
		share++;
	share->ns = ns;
	return share;
}

/* files: 1; -1: one less. */
static void room_count(const struct room *room, const struct spooled *f, int64_t files,
		       uint64_t bytes)
{
	struct share *const shares[] = { room->shares, room_share(room, f->ns) };

	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		shares[i]->files += (uint64_t)files;
		shares[i]->bytes += (uint64_t)files * bytes;
	}
}

/* coming: NULL, or the one that is to come, of so many bytes. 0; -errno. */
static int room_init(struct room *room, const char *directory, const struct spooled *coming,
		     uint64_t bytes)
{
	int r;

	*room = (struct room){ .directory = directory };
	r = spool_list(directory, &room->all, &room->n);
	if (r < 0)
		return r;
	room->shares = calloc(room->n + 3, sizeof(*room->shares));
	if (!room->shares)
		return -ENOMEM;
	for (size_t i = 0; i < room->n; i++)
		room_count(room, &room->all[i], 1, room->all[i].bytes);
	if (coming)
		room_count(room, coming, 1, bytes);
	return 0;
}

static int room_remove(struct room *room, struct spooled *f)
{
	int r = remove_file(room->directory, f->name);

	if (r < 0)
		return r;
	room_count(room, f, -1, f->bytes);
	f->name[0] = 0;
	room->removed++;
	return 0;
}

/* The oldest file of the namespace that has most; but none of the last `kept`. So who fires often removes his own, once
 * he has as much as others have. NULL: there is none. */
static struct spooled *room_victim(const struct room *room, bool by_bytes, size_t kept)
{
	struct spooled *victim = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i + kept < room->n; i++) {
		const struct share *share = room_share(room, room->all[i].ns);
		uint64_t has = by_bytes ? share->bytes : share->files;

		if (!room->all[i].name[0] || (victim && has <= most))
			continue;
		victim = &room->all[i];
		most = has;
	}
	return victim;
}

/* The newest stays, unless one more is to come. */
int spool_make_room(const char *directory, const struct spool_limits *limits,
		    const struct spooled *coming, uint64_t bytes)
{
	_cleanup_(room_done) struct room room = {};
	uint64_t now = pp_clock_ns(CLOCK_REALTIME), of_trigger = !!coming;
	int r = room_init(&room, directory, coming, bytes);
	size_t kept = !coming;

	for (size_t i = 0; r >= 0 && i < room.n; i++)
		of_trigger += is_of(&room.all[i], coming);
	for (size_t i = 0; r >= 0 && i + kept < room.n; i++) {
		struct spooled *f = &room.all[i];
		bool old = limits->age && now > f->mtime && now - f->mtime > limits->age;
		bool of_one = is_of(f, coming);

		if (!old && !(of_one && exceeds(of_trigger, limits->files_of_trigger)))
			continue;
		of_trigger -= of_one;
		r = room_remove(&room, f);
	}
	while (r >= 0) {
		bool by_bytes = exceeds(room.shares[0].bytes, limits->bytes);
		struct spooled *f = NULL;

		if (by_bytes || exceeds(room.shares[0].files, limits->files))
			f = room_victim(&room, by_bytes, kept);
		if (!f)
			break;
		r = room_remove(&room, f);
	}
	return r < 0 ? r : (int)room.removed;
}

int spool_remove_one(const char *directory, const struct spooled *coming, uint64_t bytes,
		     uint64_t *ret_bytes)
{
	_cleanup_(room_done) struct room room = {};
	int r = room_init(&room, directory, coming, bytes);
	struct spooled *f = r < 0 ? NULL : room_victim(&room, true, 1);

	if (f) {
		*ret_bytes = f->bytes;
		r = room_remove(&room, f);
	}
	return r < 0 ? r : (int)room.removed;
}

void spool_sweep(const char *directory)
{
	_cleanup_closedir_ DIR *dir = opendir(directory);
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		const char *dash = strrchr(e->d_name, '-');
		char name[SPOOL_NAME_SIZE];
		struct spooled f;

		if (e->d_name[0] != '.' || !dash || strlen(dash + 1) != 16)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(dash - e->d_name - 1), e->d_name + 1);
		if (spool_parse(name, &f) >= 0)
			unlinkat(dirfd(dir), e->d_name, 0);
	}
}
