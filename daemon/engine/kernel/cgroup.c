// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds cgroups of version 2. See cgroup.h. */
#include "daemon/engine/kernel/cgroup.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/macro.h"

#define INITIAL_NAMESPACE 0xEFFFFFFBU /* the kernel's PROC_CGROUP_INIT_INO */

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
		return -errno;
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
	return -ENOENT;
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

int cgroup_find(const char *path, uint64_t *ret_id, unsigned *ret_level, struct failure *f)
{
	char place[PATH_MAX + PATH_MAX], mount[PATH_MAX];
	int levels = count_levels(path), r;
	struct stat st;
	uint64_t id = 0;

	if (levels < 0)
		return fail(f, EINVAL,
			    "The filter's cgroup '%s' is not a path from the root of the cgroups; "
			    "write "
			    "it as /proc/PID/cgroup shows it, beginning with '/'.",
			    path);
	if (stat("/proc/self/ns/cgroup", &st) == 0 && st.st_ino != INITIAL_NAMESPACE)
		return fail(f, EOPNOTSUPP,
			    "A filter by cgroup is not possible here: the daemon runs in a cgroup "
			    "namespace and sees a part of the cgroups only.");
	r = find_mount(mount);
	if (r < 0)
		return fail(f, ENOENT,
			    "A filter by cgroup is not possible here: no cgroup hierarchy of "
			    "version 2 is mounted as a whole.");
	snprintf(place, sizeof(place), "%s%s", mount, path);
	r = read_id(place, &id);
	if (r < 0)
		return fail(f, -r,
			    "The filter's cgroup '%s' cannot be found under %s (%s); see "
			    "/proc/PID/cgroup for those there are.",
			    path, mount, strerror(-r));
	*ret_id = id;
	*ret_level = (unsigned)levels;
	return 0;
}
