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
	struct mark mark;

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

/* The newest stays, unless one more is to come. */
int spool_make_room(const char *directory, const struct spool_limits *limits,
		    const struct spooled *coming, uint64_t bytes)
{
	_cleanup_free_ struct spooled *all = NULL;
	uint64_t now = pp_clock_ns(CLOCK_REALTIME);
	size_t n = 0, removed = 0;
	int r = spool_list(directory, &all, &n);
	uint64_t files = n + !!coming, of_trigger = !!coming;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		of_trigger += is_of(&all[i], coming);
		bytes += all[i].bytes;
	}
	for (size_t i = 0; r >= 0 && i < n; i++) {
		bool is_last = i + 1 == n && !coming;
		bool old = limits->age && now > all[i].mtime && now - all[i].mtime > limits->age;
		bool too_many = exceeds(files, limits->files) || exceeds(bytes, limits->bytes);
		bool of_one =
			is_of(&all[i], coming) && exceeds(of_trigger, limits->files_of_trigger);

		if (is_last || (!old && !too_many && !of_one))
			continue;
		r = remove_file(directory, all[i].name);
		removed += r > 0;
		files--;
		of_trigger -= is_of(&all[i], coming);
		bytes -= all[i].bytes;
	}
	return r < 0 ? r : (int)removed;
}

int spool_remove_oldest(const char *directory)
{
	_cleanup_free_ struct spooled *all = NULL;
	size_t n = 0;
	int r = spool_list(directory, &all, &n);

	if (r < 0 || n < 2)
		return MIN(r, 0);
	return remove_file(directory, all[0].name);
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
