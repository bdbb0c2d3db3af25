// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads the registry's tree. Makes no decision on who may have what it returns, and writes
 * nothing: the pins are the engine's.
 */
#include "daemon/broker/tree.h"

#include <limits.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "daemon/counts.h"
#include "proto/macro.h"

/* A raw system call: the broker has no other use for libbpf. */
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

/*
 * What is another name becomes the event itself when the first name goes: a link and the directory
 * change places (pins_move() of the engine). Who is on his way through the link just then finds
 * nothing, or a link to itself, and the event when he looks again. Nothing is there as long as
 * nobody changes it once more meanwhile.
 */
#define TRIES 3

static int look_again(const char *path)
{
	int fd = -ENOENT;

	/* Not BPF_F_RDONLY: a map's descriptor opened with it cannot be mapped at all (EINVAL).
	 * What keeps a ring read-only is that the map is frozen. */
	for (unsigned i = 0; i < TRIES && (fd == -ENOENT || fd == -ELOOP); i++)
		fd = bpf_obj_get(path, 0);
	return fd == -ELOOP ? -ENOENT : fd;
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
	return look_again(path);
}

int tree_ring_open(const char *registry, const char *ns, const char *name, unsigned cpu)
{
	return open_pin("%s/%s/%s/cpu%u", registry, ns, name, cpu);
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
	int err = read_map_info(fd, &info);

	if (err < 0)
		return err;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.max_entries != 1 || info.value_size == 0)
		return -EBADMSG;
	*ret = info.value_size;
	return 0;
}

int tree_catalog_open(const char *registry, const char *ns, const char *name)
{
	return open_pin("%s/%s/%s/catalog", registry, ns, name);
}

int tree_wakeups_open(const char *registry)
{
	return open_pin("%s/+wakeups", registry);
}

/* Its pin is not ours to write, so that it is looked up, CPU by CPU, and not mapped. */
int tree_cpus_open(const char *registry)
{
	struct bpf_map_info info;
	_cleanup_close_ int fd = -EBADF;
	char path[PATH_MAX];
	int err, n = snprintf(path, sizeof(path), "%s/" PP_CPU_STATES, registry);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = bpf_obj_get(path, BPF_F_RDONLY);
	if (fd < 0)
		return fd;
	err = read_map_info(fd, &info);
	if (err < 0)
		return err;
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

/* ── counts ─────────────────────────────────────────────────────────────────────────────── */

/* Of the registry that was asked for last: there is one. */
static struct {
	char registry[PATH_MAX];
	volatile struct pp_counts *counts;
} answer;

static void unmap_answer(void)
{
	if (answer.counts)
		munmap((void *)answer.counts, sizeof(*answer.counts));
	answer.counts = NULL;
}

static int map_answer(const char *registry)
{
	_cleanup_close_ int fd = -EBADF;
	void *at;

	if (answer.counts && strcmp(answer.registry, registry) == 0)
		return 0;
	unmap_answer();
	if (strlen(registry) >= sizeof(answer.registry))
		return -ENAMETOOLONG;
	fd = open_pin("%s/" PP_COUNTS, registry);
	if (fd < 0)
		return fd;
	at = mmap(NULL, sizeof(*answer.counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	answer.counts = at;
	strcpy(answer.registry, registry);
	return 0;
}

/* Nothing that says what comes next is no answer: the program has another map than ours. */
static int run_count(int program, uint32_t cpu)
{
	uint64_t first = cpu;
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = program;
	attr.test.ctx_in = (uint64_t)(uintptr_t)&first;
	attr.test.ctx_size_in = sizeof(first);
	answer.counts->next = 0;
	if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr)) < 0)
		return -errno;
	return answer.counts->next > cpu ? 0 : -EBADMSG;
}

static int run_counts(int program, struct tree_stat *s)
{
	uint32_t cpu = 0;

	do {
		int err = run_count(program, cpu);

		if (err < 0)
			return err;
		s->records += answer.counts->records;
		s->bytes += answer.counts->bytes;
		s->limited += answer.counts->limited;
		s->missed += answer.counts->missed;
		cpu = answer.counts->next;
	} while (cpu != PP_COUNTS_END);
	if (answer.counts->missed_unknown)
		s->missed_unknown = PP_MISSED_UNKNOWN;
	else if (answer.counts->missed_at_least)
		s->missed_unknown = PP_MISSED_AT_LEAST;
	return 0;
}

int tree_count(const char *registry, const char *ns, const char *name, struct tree_stat *ret)
{
	_cleanup_close_ int program = open_pin("%s/%s/%s/count", registry, ns, name);
	struct tree_stat s = { 0 };
	int err = program < 0 ? program : map_answer(registry);

	if (err < 0)
		return err;
	err = run_counts(program, &s);
	if (err < 0)
		unmap_answer();
	else
		*ret = s;
	return err;
}
