// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads the registry's tree. Does not decide on rights and writes nothing: the pins are the
 * engine's.
 */
#include "daemon/broker/handout/tree.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

#include "daemon/totals.h"
#include "proto/macro.h"
#include "proto/places.h"

/* A raw system call: the broker needs nothing else of libbpf. */
static int bpf_obj_get(const char *path, uint32_t flags)
{
	union bpf_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uint64_t)(uintptr_t)path;
	attr.file_flags = flags;
	fd = syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));
	return fd < 0 ? -errno : (int)fd;
}

static _printf_(1, 2) int open_pin(const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	/* Not BPF_F_RDONLY: the kernel refuses to map a map whose descriptor was opened with it
	 * (EINVAL). A ring's map is frozen, which keeps it read-only. */
	return bpf_obj_get(path, 0);
}

const char *tree_event(uint64_t origin, char buf[TREE_DIRECTORY_SIZE])
{
	snprintf(buf, TREE_DIRECTORY_SIZE, PP_BY_ID "/%" PRIu64, origin);
	return buf;
}

const char *tree_tape(uint64_t id, bool kept, char buf[TREE_DIRECTORY_SIZE])
{
	snprintf(buf, TREE_DIRECTORY_SIZE, "+%s-%" PRIu64, kept ? "kept" : "tape", id);
	return buf;
}

int tree_ring_open(const char *registry, const char *directory, unsigned cpu)
{
	return open_pin("%s/%s/cpu%u", registry, directory, cpu);
}

static int read_map_info(int fd, struct bpf_map_info *ret)
{
	union bpf_attr attr;

	memset(ret, 0, sizeof(*ret));
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = fd;
	attr.info.info_len = sizeof(*ret);
	attr.info.info = (uint64_t)(uintptr_t)ret;
	return syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

int tree_ring_size(int fd, uint32_t *ret)
{
	struct bpf_map_info info;
	int r = read_map_info(fd, &info);

	if (r < 0)
		return r;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.max_entries != 1 || info.value_size == 0)
		return -EBADMSG;
	*ret = info.value_size;
	return 0;
}

int tree_catalog_open(const char *registry, const char *directory)
{
	return open_pin("%s/%s/catalog", registry, directory);
}

int tree_wakeups_open(const char *registry)
{
	return open_pin("%s/+wakeups", registry);
}

int tree_firings_open(const char *registry)
{
	return open_pin("%s/" PP_FIRINGS, registry);
}

int tree_pairs_open(const char *registry, uint64_t origin)
{
	struct bpf_map_info info;
	_cleanup_close_ int fd = open_pin("%s/" PP_BY_ID "/%" PRIu64 "/pairs", registry, origin);
	int r = fd < 0 ? fd : read_map_info(fd, &info);

	if (r < 0)
		return r;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size != PP_PAIRS_SIZE)
		return -EBADMSG;
	return TAKE_FD(fd);
}

int tree_trigger_read(const char *registry, uint64_t origin, struct pp_trigger *ret)
{
	struct bpf_map_info info;
	_cleanup_close_ int fd = -EBADF;
	char path[PATH_MAX];
	uint32_t zero = 0;
	union bpf_attr attr;
	int r, n = snprintf(path, sizeof(path), "%s/" PP_BY_ID "/%" PRIu64 "/trigger", registry,
			    origin);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = bpf_obj_get(path, BPF_F_RDONLY);
	if (fd < 0)
		return fd;
	r = read_map_info(fd, &info);
	if (r < 0)
		return r;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size != sizeof(*ret))
		return -EBADMSG;
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = fd;
	attr.key = (uint64_t)(uintptr_t)&zero;
	attr.value = (uint64_t)(uintptr_t)ret;
	return syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

/* We may not write the pin, so the map cannot be mapped; the code looks CPUs up one by one. */
int tree_cpus_open(const char *registry)
{
	struct bpf_map_info info;
	_cleanup_close_ int fd = -EBADF;
	char path[PATH_MAX];
	int r, n = snprintf(path, sizeof(path), "%s/" PP_CPU_STATES, registry);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = bpf_obj_get(path, BPF_F_RDONLY);
	if (fd < 0)
		return fd;
	r = read_map_info(fd, &info);
	if (r < 0)
		return r;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.key_size != sizeof(uint32_t) ||
	    info.value_size != sizeof(struct pp_cpu_state))
		return -EBADMSG;
	return TAKE_FD(fd);
}

int tree_cpus_read(int fd, unsigned cpu, struct pp_cpu_state *ret)
{
	uint32_t key = cpu;
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = fd;
	attr.key = (uint64_t)(uintptr_t)&key;
	attr.value = (uint64_t)(uintptr_t)ret;
	return syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

uint64_t tree_cpus_generation(int fd, unsigned cpu)
{
	struct pp_cpu_state state;

	return fd < 0 || tree_cpus_read(fd, cpu, &state) < 0 ? 0 : state.generation;
}

int tree_totals_open(const char *registry)
{
	return open_pin("%s/" PP_TOTALS, registry);
}

int tree_totals_read(int program, uint64_t origin, uint32_t set, struct tree_stat *ret)
{
	struct pp_totals totals = { .id = origin, .set = set };
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = program;
	attr.test.ctx_in = (uint64_t)(uintptr_t)&totals;
	attr.test.ctx_size_in = sizeof(totals);
	if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr)) < 0)
		return -errno;
	if (!totals.known)
		return -ENOENT;
	*ret = (struct tree_stat){
		.records = totals.records,
		.bytes = totals.bytes,
		.limited = totals.limited,
		.missed = totals.missed_unknown ? 0 : totals.missed,
		.missed_unknown = totals.missed_unknown	   ? PP_MISSED_UNKNOWN
				  : totals.missed_at_least ? PP_MISSED_AT_LEAST
							   : PP_MISSED_COUNTED,
	};
	return 0;
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

/* Parses "total records=N bytes=N limited=N missed=N|N+|unknown", and maybe more, each after a
 * blank. 0; -EBADMSG. */
static int parse_stat(const char *line, struct tree_stat *ret)
{
	struct tree_stat s = { 0 };
	const char *p = line;

	if (strncmp(p, "total", 5) != 0)
		return -EBADMSG;
	p += 5;
	if (take_count(&p, " records=", &s.records) < 0 ||
	    take_count(&p, " bytes=", &s.bytes) < 0 || take_count(&p, " limited=", &s.limited) < 0)
		return -EBADMSG;
	if (strncmp(p, " missed=unknown", 15) == 0) {
		s.missed_unknown = PP_MISSED_UNKNOWN;
		p += 15;
	} else if (take_count(&p, " missed=", &s.missed) < 0) {
		return -EBADMSG;
	} else if (*p == '+') {
		s.missed_unknown = PP_MISSED_AT_LEAST;
		p++;
	}
	if (*p != '\0' && *p != '\n' && *p != ' ')
		return -EBADMSG;
	*ret = s;
	return 0;
}

/* Whether the text ends with the complete line of the total. */
static bool has_total(const char *text, size_t size)
{
	const char *line;

	if (size == 0 || text[size - 1] != '\n')
		return false;
	line = memrchr(text, '\n', size - 1);
	line = line ? line + 1 : text;
	return strncmp(line, "total ", 6) == 0;
}

/*
 * The total is the last line, after one per CPU, so only the end of the file is kept. Listing many
 * events reads as many files; stopping at the total saves the read that would only return end of
 * file.
 */
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
		used += n;
		buf[used] = '\0';
		if (n == 0 || has_total(buf, used))
			return 0;
	}
}

int tree_stat_read(const char *registry, uint64_t origin, struct tree_stat *ret)
{
	_cleanup_close_ int fd = -EBADF;
	char path[PATH_MAX], buf[8192];
	int n = snprintf(path, sizeof(path), "%s/" PP_BY_ID "/%" PRIu64 "/stat", registry, origin);
	const char *total;
	int r;

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	r = read_tail(fd, buf, sizeof(buf));
	if (r < 0)
		return r;
	total = strstr(buf, "\ntotal ");
	total = total ? total + 1 : buf;
	return parse_stat(total, ret);
}

int tree_count(const char *registry, uint64_t origin, uint32_t set, int *totals,
	       struct tree_stat *ret)
{
	if (*totals >= 0 && tree_totals_read(*totals, origin, set, ret) == 0)
		return 0;
	close_fd(*totals);
	*totals = tree_totals_open(registry);
	return tree_stat_read(registry, origin, ret);
}
