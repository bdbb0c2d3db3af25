// SPDX-License-Identifier: LGPL-2.1-or-later
/* Collects a perf.data file's facts about the machine: its processor, its CPU topology, its PMUs.
 * Leaves out facts that the kernel does not report. */
#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#include "client/perfdata/perfdata.h"

#define CPU_PATH "/sys/devices/system/cpu/cpu%u/%s"
#define PMU_PATH "/sys/bus/event_source/devices"

/* Reads the beginning of a file, without the newline. Its size; 0: not readable. */
static size_t read_text(int dir_fd, const char *path, char *ret, size_t size)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);

	while (n > 0 && isspace((unsigned char)ret[n - 1]))
		n--;
	ret[MAX(n, 0)] = '\0';
	return (size_t)MAX(n, 0);
}

static bool read_number(const char *path, uint32_t *ret)
{
	char text[32], *end;
	unsigned long v;

	if (!read_text(AT_FDCWD, path, text, sizeof(text)))
		return false;
	v = strtoul(text, &end, 10);
	if (*end)
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* ── The processor ──────────────────────────────────────────────────────────────────────── */

/* A value of the first CPU in cpuinfo: "key\t: value\n". */
static bool find_value(const char *cpuinfo, const char *key, char *ret, size_t size)
{
	size_t n = strlen(key);

	for (const char *line = cpuinfo; *line;
	     line += strcspn(line, "\n"), line += *line == '\n') {
		const char *value = line + n + strspn(line + MIN(n, strlen(line)), " \t");

		if (strncmp(line, key, n) || *value != ':')
			continue;
		value += 1 + strspn(value + 1, " \t");
		snprintf(ret, size, "%.*s", (int)strcspn(value, "\n"), value);
		return true;
	}
	return false;
}

/* Only the first CPU's part: for all CPUs the kernel would have to ask each for its speed. */
static void read_cpuinfo(char *ret, size_t size)
{
	read_text(AT_FDCWD, "/proc/cpuinfo", ret, size);
}

void perfdata_cpudesc(struct blob *b)
{
	char cpuinfo[2048], text[128];

	read_cpuinfo(cpuinfo, sizeof(cpuinfo));
	if (find_value(cpuinfo, "model name", text, sizeof(text)))
		blob_string(b, text);
}

#if defined(__x86_64__)
void perfdata_cpuid(struct blob *b)
{
	static const char *const keys[] = { "vendor_id", "cpu family", "model", "stepping" };
	char cpuinfo[2048], values[ARRAY_SIZE(keys)][32], text[160];

	read_cpuinfo(cpuinfo, sizeof(cpuinfo));
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!find_value(cpuinfo, keys[i], values[i], sizeof(values[i])))
			return;
	snprintf(text, sizeof(text), "%s,%s,%s,%s", values[0], values[1], values[2], values[3]);
	blob_string(b, text);
}
#else
void perfdata_cpuid(struct blob *b)
{
	char text[64];

	if (read_text(AT_FDCWD, "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", text,
		      sizeof(text)))
		blob_string(b, text);
}
#endif

/* ── CPU topology ──────────────────────────────────────────────────────────────── */

/* The distinct lists of CPUs in the files of this name. */
static void put_lists(const char *name, uint32_t n_cpus, struct blob *b)
{
	_cleanup_(blob_done) struct blob lists = {};
	char path[128], list[1024];
	uint32_t n = 0;

	for (uint32_t cpu = 0; cpu < n_cpus; cpu++) {
		snprintf(path, sizeof(path), CPU_PATH, cpu, name);
		/* A list that begins with another CPU was there already. */
		if (!read_text(AT_FDCWD, path, list, sizeof(list)) ||
		    strtoul(list, NULL, 10) != cpu)
			continue;
		blob_string(&lists, list);
		n++;
	}
	blob_u32(b, n);
	blob_put(b, lists.bytes, lists.n);
	b->failed |= lists.failed;
}

static uint32_t cpu_number(uint32_t cpu, const char *name)
{
	char path[128];
	uint32_t v;

	snprintf(path, sizeof(path), CPU_PATH, cpu, name);
	return read_number(path, &v) ? v : UINT32_MAX; /* the CPU is offline */
}

/* Older kernels do not report dies: then none are listed. The field must be there, or perf takes a
 * record's padding for it. */
void perfdata_cpu_topology(struct blob *b)
{
	uint32_t n_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);

	if (access("/sys/devices/system/cpu/cpu0/topology/core_id", R_OK) < 0)
		return;
	put_lists("topology/core_siblings_list", n_cpus, b);
	put_lists("topology/thread_siblings_list", n_cpus, b);
	for (uint32_t cpu = 0; cpu < n_cpus; cpu++) {
		blob_u32(b, cpu_number(cpu, "topology/core_id"));
		blob_u32(b, cpu_number(cpu, "topology/physical_package_id"));
	}
	put_lists("topology/die_cpus_list", n_cpus, b);
	for (uint32_t cpu = 0; cpu < n_cpus; cpu++)
		blob_u32(b, cpu_number(cpu, "topology/die_id"));
}

/* ── PMUs ───────────────────────────────────────────────────────────────────────────────── */

void perfdata_pmu_mappings(struct blob *b)
{
	_cleanup_closedir_ DIR *dir = opendir(PMU_PATH);
	_cleanup_(blob_done) struct blob pmus = {};
	uint32_t n = 0;

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		char path[sizeof(PMU_PATH) + sizeof(entry->d_name) + 8];
		uint32_t type;

		snprintf(path, sizeof(path), "%s/%s/type", PMU_PATH, entry->d_name);
		if (entry->d_name[0] == '.' || !read_number(path, &type))
			continue;
		blob_u32(&pmus, type);
		blob_string(&pmus, entry->d_name);
		n++;
	}
	if (!n)
		return;
	blob_u32(b, n);
	blob_put(b, pmus.bytes, pmus.n);
	b->failed |= pmus.failed;
}
