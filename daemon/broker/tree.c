// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads the registry's tree. Makes no decision on who may have what it returns, and writes
 * nothing: the pins are the engine's.
 */
#include "daemon/broker/tree.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>

#include "proto/macro.h"

/* A raw system call: the broker has no other use for libbpf. */
static int bpf_obj_get(const char *path)
{
	union bpf_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uint64_t)(uintptr_t)path;
	/* Not BPF_F_RDONLY: a map's descriptor opened with it cannot be mapped at all (EINVAL).
	 * What keeps the ring read-only is that the map is frozen. */
	fd = syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));
	return fd < 0 ? -errno : (int)fd;
}

int tree_ring_open(const char *registry, const char *ns, const char *name, unsigned cpu)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s/%s/cpu%u", registry, ns, name, cpu);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return bpf_obj_get(path);
}

/* " key=" and a decimal number; moves *p behind it. */
static int take_count(const char **p, const char *key, uint64_t *ret)
{
	size_t n = strlen(key);
	char *end;

	if (strncmp(*p, key, n) != 0 || (*p)[n] < '0' || (*p)[n] > '9')
		return -EBADMSG;
	errno = 0;
	*ret = strtoull(*p + n, &end, 10);
	if (errno)
		return -EBADMSG;
	*p = end;
	return 0;
}

/* "total records=N bytes=N missed=N|unknown". 0; -EBADMSG. */
static int parse_stat(const char *line, struct tree_stat *ret)
{
	struct tree_stat s = { 0 };
	const char *p = line;

	if (strncmp(p, "total", 5) != 0)
		return -EBADMSG;
	p += 5;
	if (take_count(&p, " records=", &s.records) < 0 || take_count(&p, " bytes=", &s.bytes) < 0)
		return -EBADMSG;
	if (strncmp(p, " missed=unknown", 15) == 0) {
		s.missed_unknown = true;
		p += 15;
	} else if (take_count(&p, " missed=", &s.missed) < 0) {
		return -EBADMSG;
	}
	if (*p != '\0' && *p != '\n')
		return -EBADMSG;
	*ret = s;
	return 0;
}

/* The total is the last line, behind one per CPU: only the end of the file is kept. */
static int read_tail(int fd, char *buf, size_t size)
{
	size_t used = 0;

	for (;;) {
		ssize_t n;

		if (used == size - 1) {
			memmove(buf, buf + size / 2, used - size / 2);
			used -= size / 2;
		}
		n = read(fd, buf + used, size - 1 - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += n;
	}
	buf[used] = '\0';
	return 0;
}

int tree_stat_read(const char *registry, const char *ns, const char *name, struct tree_stat *ret)
{
	_cleanup_close_ int fd = -EBADF;
	char path[PATH_MAX], buf[8192];
	int n = snprintf(path, sizeof(path), "%s/%s/%s/stat", registry, ns, name);
	const char *total;
	int err;

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	err = read_tail(fd, buf, sizeof(buf));
	if (err < 0)
		return err;
	total = strstr(buf, "\ntotal ");
	total = total ? total + 1 : buf;
	return parse_stat(total, ret);
}
