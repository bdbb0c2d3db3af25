// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds cgroups of version 2. See cgroup.h. */
#include "daemon/engine/kernel/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/macro.h"

#define INITIAL_NAMESPACE 0xEFFFFFFBU /* the kernel's PROC_CGROUP_INIT_INO */
#define SLICES_MAX 4096		      /* that are searched for a unit */
#define DEPTH_MAX 32

/* mountinfo writes bytes that would end a word as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *s = text; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* Finds the mount of the whole hierarchy. 0 or -ENOENT. */
static int find_mount(char ret[static PATH_MAX])
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	if (!file)
		return errno == ENOENT ? -EIO : -errno;
	while (getline(&line, &size, file) > 0) {
		char root[PATH_MAX], at[PATH_MAX];
		const char *type = strstr(line, " - ");

		if (!type || strncmp(type, " - cgroup2 ", 11) ||
		    sscanf(line, "%*s %*s %*s %4095s %4095s", root, at) != 2 || strcmp(root, "/"))
			continue;
		unescape(at);
		strcpy(ret, at);
		return 0;
	}
	return ferror(file) ? -EIO : -ENOENT;
}

/* The number of names in the path; -EINVAL: not an absolute path, or it has . or .. */
static int count_levels(const char *path)
{
	int levels = 0;

	if (*path != '/')
		return -EINVAL;
	while (*path) {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if ((n == 1 && *path == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
			return -EINVAL;
		levels += n > 0;
		path += n;
	}
	return levels;
}

/* A file handle of a cgroup holds its id. */
static int read_id(const char *path, uint64_t *ret)
{
	union {
		struct file_handle handle;
		char bytes[sizeof(struct file_handle) + sizeof(uint64_t)];
	} u = { .handle.handle_bytes = sizeof(uint64_t) };
	int mount;

	if (name_to_handle_at(AT_FDCWD, path, &u.handle, &mount, 0) < 0)
		return -errno;
	if (u.handle.handle_bytes != sizeof(uint64_t))
		return -EBADMSG;
	memcpy(ret, u.handle.f_handle, sizeof(uint64_t));
	return 0;
}

/* ── units of systemd ───────────────────────────────────────────────────────────────────── */

static bool is_slice(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return d->d_type == DT_DIR && n > 6 && strcmp(d->d_name + n - 6, ".slice") == 0;
}

/* Appends "/" + name to the path. */
static int append(char path[static PATH_MAX], size_t n, const char *name)
{
	int m = snprintf(path + n, PATH_MAX - n, "/%s", name);

	return m < 0 || (size_t)m >= PATH_MAX - n ? -ENAMETOOLONG : 0;
}

/*
 * Extends the path of a slice by that of the unit. systemd puts a unit directly into its slice, and
 * slices into each other. The inside of any other unit is not searched: it may belong to a user,
 * who could make a cgroup of that name there. 0; -ENOENT; another -errno.
 */
static int find_unit(char path[static PATH_MAX], const char *unit, unsigned depth, unsigned *left)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	size_t n = strlen(path);
	const struct dirent *d;
	struct stat st;
	int r = append(path, n, unit);

	if (r < 0)
		return r;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	while (dir && depth<DEPTH_MAX && * left> 0 && (d = readdir(dir))) {
		if (!is_slice(d) || append(path, n, d->d_name) < 0)
			continue;
		(*left)--;
		r = find_unit(path, unit, depth + 1, left);
		if (r >= 0)
			return r;
	}
	path[n] = '\0';
	return -ENOENT;
}

static int find_path_of_unit(const char *what, const char *mount, const char *unit,
			     char ret[static PATH_MAX], struct failure *f)
{
	unsigned left = SLICES_MAX;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", mount);
	if (find_unit(path, unit, 0, &left) < 0)
		return fail(f, ENOENT,
			    "%s '%s' cannot be found: no slice under %s has such a unit, and a "
			    "unit has a cgroup while it runs; start it, or write a path as "
			    "/proc/PID/cgroup shows it.",
			    what, unit, mount);
	snprintf(ret, PATH_MAX, "%s", path + strlen(mount));
	return 0;
}

/* ── both ───────────────────────────────────────────────────────────────────────────────── */

static int find_hierarchy(const char *what, char ret[static PATH_MAX], struct failure *f)
{
	struct stat st;
	int r;

	if (stat("/proc/self/ns/cgroup", &st) == 0 && st.st_ino != INITIAL_NAMESPACE)
		return fail(f, EOPNOTSUPP,
			    "%s cannot be found here: the daemon runs in a cgroup namespace and "
			    "sees a part of the cgroups only.",
			    what);
	r = find_mount(ret);
	if (r < 0 && r != -ENOENT) /* which says that the cgroup has ended */
		return fail(f, -r, "%s cannot be found: /proc/self/mountinfo cannot be read (%s).",
			    what, strerror(-r));
	if (r < 0)
		return fail(f, ENOENT,
			    "%s cannot be found here: no cgroup hierarchy of version 2 is mounted "
			    "as a whole.",
			    what);
	return 0;
}

static bool is_unit(const char *text)
{
	return *text && !strchr(text, '/') && strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

/* A cgroup that is there. */
struct found {
	char mount[PATH_MAX], path[PATH_MAX]; /* the path is from the hierarchy's root */
	uint64_t id;
};

/* The last slash: the files of a cgroup are none. */
static void place_of(const struct found *c, char ret[static PATH_MAX + PATH_MAX + 1])
{
	snprintf(ret, PATH_MAX + PATH_MAX + 1, "%s%s/", c->mount, c->path);
}

/* what: as a message begins. */
static int find(const char *what, const char *text, struct found *ret, struct failure *f)
{
	char place[PATH_MAX + PATH_MAX + 1];
	int r;

	if (!is_unit(text) && count_levels(text) < 0)
		return fail(f, EINVAL,
			    "%s '%s' is neither the name of a unit nor a path from the root of "
			    "the cgroups; write it as /proc/PID/cgroup shows it, beginning with "
			    "'/'.",
			    what, text);
	r = find_hierarchy(what, ret->mount, f);
	if (r < 0)
		return r;
	snprintf(ret->path, sizeof(ret->path), "%s", text);
	if (is_unit(text))
		r = find_path_of_unit(what, ret->mount, text, ret->path, f);
	if (r < 0)
		return r;
	place_of(ret, place);
	r = read_id(place, &ret->id);
	if (r < 0)
		return fail(f, -r,
			    "%s '%s' cannot be found under %s (%s); see /proc/PID/cgroup for "
			    "those there are.",
			    what, ret->path, ret->mount, strerror(-r));
	return 0;
}

int cgroup_find(const char *text, uint64_t *ret_id, unsigned *ret_level, struct failure *f)
{
	struct found found;
	int r = find("The filter's cgroup", text, &found, f);

	if (r < 0)
		return r;
	*ret_id = found.id;
	*ret_level = (unsigned)count_levels(found.path);
	return 0;
}

int cgroup_take(char *text, size_t size, uint64_t *ret_id, struct failure *f)
{
	struct found found;
	int r = find("The cgroup", text, &found, f);

	if (r < 0)
		return r;
	if (strlen(found.path) >= size)
		return fail(f, ENAMETOOLONG,
			    "The path of cgroup '%s' is too long: %zu bytes are the most.", text,
			    size - 1);
	snprintf(text, size, "%s", found.path);
	*ret_id = found.id;
	return 0;
}

int cgroup_open(const char *path, uint64_t id)
{
	_cleanup_close_ int fd = -EBADF;
	char place[PATH_MAX + PATH_MAX + 1];
	struct failure unused = {};
	struct found found;
	int r = find("The cgroup", path, &found, &unused);

	if (r < 0)
		return r;
	if (found.id != id)
		return -ENOENT;
	place_of(&found, place);
	fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Another may have its path meanwhile. */
	r = read_id(place, &found.id);
	if (r >= 0 && found.id != id)
		r = -ENOENT;
	return r < 0 ? r : TAKE_FD(fd);
}
