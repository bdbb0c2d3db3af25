// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes records from /proc: the running processes, if no keeper has sideband, and the place of the
 * kernel's code. All have time 0: before every sample. */
#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "client/perfdata/perfdata.h"
#include "proto/sideband.h"

#define KERNEL_PID UINT32_MAX
#define KERNEL_MAP "[kernel.kallsyms]_text"
#define KALLSYMS_MAX (256U << 10) /* of its beginning, where the text begins */
#if defined(__x86_64__)
#define KERNEL_END 0xffffffffc0000000ULL /* modules' begin there */
#else
#define KERNEL_END UINT64_MAX
#endif
#define KERNEL_SIZE (1ULL << 30)	  /* if unknown */
#define KERNEL_HALF 0xffff800000000000ULL /* likewise the kernel's begin */

/* ── Records ────────────────────────────────────────────────────────────────────────────── */

static void put_record(struct blob *b, struct pp_record *r, const char *text)
{
	void *room = blob_room(b, PP_RECORD_SIZE_MAX);

	r->id = PP_SIDEBAND_ID;
	r->text = text;
	r->text_size = strlen(text) + 1;
	if (room)
		blob_give_back(b, PP_RECORD_SIZE_MAX - pp_record_write(r, PP_SIDEBAND_SAMPLE_TYPE,
								       room, PP_RECORD_SIZE_MAX));
}

static void put_fork(struct blob *b, uint32_t ppid, uint32_t ptid, uint32_t pid, uint32_t tid)
{
	struct pp_record fork = {
		/* As if by exec: the parent's present mappings are not the child's. */
		.type = PERF_RECORD_FORK,
		.misc = PERF_RECORD_MISC_FORK_EXEC,
		.pid = pid,
		.ppid = ppid,
		.tid = tid,
		.ptid = ptid,
	};

	put_record(b, &fork, "");
}

static void put_comm(struct blob *b, uint32_t pid, uint32_t tid, const char *text)
{
	struct pp_record comm = { .type = PERF_RECORD_COMM, .pid = pid, .tid = tid };

	put_record(b, &comm, text);
}

static void put_kernel_map(struct blob *b, uint64_t start, uint64_t size, uint64_t offset,
			   const char *path)
{
	struct pp_record map = {
		.type = PERF_RECORD_MMAP,
		.misc = PERF_RECORD_MISC_KERNEL,
		.pid = KERNEL_PID,
		.start = start,
		.length = size,
		.offset = offset,
	};

	put_record(b, &map, path);
}

/* ── Processes ──────────────────────────────────────────────────────────────────────────── */

/* A line of maps: "start-end rwxp offset major:minor inode   path". */
static void put_map(struct blob *b, uint32_t pid, const char *line)
{
	unsigned long long start, end, offset, inode;
	struct pp_record map = {
		.type = PERF_RECORD_MMAP2,
		.misc = PERF_RECORD_MISC_USER,
		.pid = pid,
		.tid = pid,
		.flags = MAP_PRIVATE,
	};
	unsigned major, minor;
	char rights[5];
	int path = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, rights, &offset, &major,
		   &minor, &inode, &path) < 7 ||
	    rights[2] != 'x' || end < start || !path)
		return;
	map.start = start;
	map.length = end - start;
	map.offset = offset;
	map.file.major = major;
	map.file.minor = minor;
	map.file.inode = inode;
	map.prot = PROT_EXEC | (rights[0] == 'r' ? PROT_READ : 0) |
		   (rights[1] == 'w' ? PROT_WRITE : 0);
	put_record(b, &map, line[path] ? line + path : "//anon");
}

static void put_maps(struct blob *b, int proc, uint32_t pid)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	char path[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%u/maps", pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		close_fd(fd);
		return;
	}
	while ((n = getline(&line, &size, f)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		put_map(b, pid, line);
	}
}

/* "PID (comm) S PPID …"; comm may contain anything, so it ends at the last ")". */
static bool read_stat(int proc, uint32_t pid, uint32_t tid, char ret_comm[static 17],
		      uint32_t *ret_ppid)
{
	_cleanup_close_ int fd = -EBADF;
	char path[48], text[512], *open, *close;
	unsigned ppid;
	ssize_t n;

	snprintf(path, sizeof(path), "%u/task/%u/stat", pid, tid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close < open || sscanf(close + 1, " %*c %u", &ppid) != 1)
		return false;
	*close = '\0';
	snprintf(ret_comm, 17, "%s", open + 1);
	*ret_ppid = ppid;
	return true;
}

static bool read_id(const char *text, uint32_t *ret)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || v > INT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static void put_thread(struct blob *b, int proc, uint32_t pid, uint32_t tid)
{
	uint32_t ppid;
	char comm[17];

	if (!read_stat(proc, pid, tid, comm, &ppid))
		return;
	if (tid != pid)
		ppid = pid;
	put_fork(b, ppid, ppid, pid, tid);
	put_comm(b, pid, tid, comm);
}

static void put_process(struct blob *b, int proc, uint32_t pid)
{
	_cleanup_closedir_ DIR *tasks = NULL;
	char path[32];
	uint32_t tid;
	int fd;

	snprintf(path, sizeof(path), "%u/task", pid);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tasks = fd < 0 ? NULL : fdopendir(fd);
	if (!tasks) {
		close_fd(fd);
		return;
	}
	put_thread(b, proc, pid, pid);
	for (struct dirent *entry; (entry = readdir(tasks));)
		if (read_id(entry->d_name, &tid) && tid != pid)
			put_thread(b, proc, pid, tid);
	put_maps(b, proc, pid);
}

int synthesize_processes(struct blob *records)
{
	_cleanup_closedir_ DIR *proc = opendir("/proc");
	uint32_t pid;

	for (struct dirent *entry; proc && (entry = readdir(proc));)
		if (read_id(entry->d_name, &pid))
			put_process(records, dirfd(proc), pid);
	return records->failed ? -ENOMEM : 0;
}

/* ── The kernel ─────────────────────────────────────────────────────────────────────────── */

/* 0: the caller may not know it, or there is no such file. */
static uint64_t find_text(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long address;
	size_t read = 0;
	char line[512];

	while (f && read < KALLSYMS_MAX && fgets(line, sizeof(line), f)) {
		char name[8] = "";

		read += strlen(line);
		if (sscanf(line, "%llx %*c %7s", &address, name) == 2 &&
		    (!strcmp(name, "_text") || !strcmp(name, "_stext")))
			return address;
	}
	return 0;
}

/* From the memory layout, which only root can read. */
static uint64_t find_text_size(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/iomem", "re");
	unsigned long long start, end;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, ": Kernel code") && sscanf(line, "%llx-%llx", &start, &end) == 2 &&
		    end > start)
			return end - start + 1;
	return 0;
}

struct module {
	uint64_t at, size;
	char path[72];
};

/* "name size refs users state 0xaddress". */
static bool read_module(const char *line, struct module *ret)
{
	unsigned long long size, address;
	const char *at = strstr(line, " 0x");
	char name[64];

	if (!at || sscanf(line, "%63s %llu", name, &size) != 2 ||
	    sscanf(at, " %llx", &address) != 1 || !address)
		return false;
	*ret = (struct module){ .at = address, .size = size };
	snprintf(ret->path, sizeof(ret->path), "[%s]", name);
	return true;
}

static int compare_modules(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/*
 * Returns the lowest address above text. Since Linux 6.4 the size is that of all parts of a module, of which each is
 * somewhere else, and the address that of its code; so what is beyond the next one's is not this one's.
 */
static uint64_t put_modules(struct blob *b, uint64_t text)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/modules", "re");
	_cleanup_free_ struct module *all = NULL;
	uint64_t first = UINT64_MAX;
	char line[4096];
	size_t n = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (!GROW(all, n)) {
			b->failed = true;
			return first;
		}
		n += read_module(line, &all[n]);
	}
	if (n)
		qsort(all, n, sizeof(*all), compare_modules);
	for (size_t i = 0; i < n; i++) {
		uint64_t room = i + 1 < n ? all[i + 1].at - all[i].at : UINT64_MAX;

		put_kernel_map(b, all[i].at, MIN(all[i].size, room), 0, all[i].path);
		if (all[i].at > text)
			first = MIN(first, all[i].at);
	}
	return first;
}

void synthesize_kernel(struct blob *records)
{
	_cleanup_(blob_done) struct blob modules = {};
	uint64_t text = find_text(), size = find_text_size(), end;

	if (!text) {
		/* With an offset of 0, perf looks symbols up in its own machine's kernel. */
		put_kernel_map(records, KERNEL_HALF, UINT64_MAX - KERNEL_HALF, 0, KERNEL_MAP);
		return;
	}
	end = MIN(put_modules(&modules, text), KERNEL_END);
	size = MIN(size ?: KERNEL_SIZE, end > text ? end - text : KERNEL_SIZE);
	put_kernel_map(records, text, size, text, KERNEL_MAP);
	blob_put(records, modules.bytes, modules.n);
	records->failed |= modules.failed;
}
