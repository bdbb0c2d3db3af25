// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads /sys/bus/event_source/devices. */
#include "daemon/engine/kernel/pmu.h"

#include <fcntl.h>
#include <string.h>

#include "daemon/text.h"
#include "proto/macro.h"

#define DEVICES "/sys/bus/event_source/devices"

/* The first line of a small file. */
static int read_line(const char *pmu, const char *leaf, char *buf, size_t size)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[512];

	if (snprintf(path, sizeof(path), DEVICES "/%s/%s", pmu, leaf) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	f = fopen(path, "re");
	if (!f)
		return -errno;
	if (!fgets(buf, (int)size, f))
		return -EBADMSG;
	buf[strcspn(buf, "\n")] = 0;
	return 0;
}

static bool has_type(const char *pmu, uint32_t type)
{
	char line[32];
	uint32_t its;

	return read_line(pmu, "type", line, sizeof(line)) >= 0 && pp_parse_u32(line, &its) >= 0 &&
	       its == type;
}

/* On machines with two kinds of cores PMUs have `cpus` instead. */
static int read_cpus(const char *pmu, struct pp_cpumask *ret)
{
	char line[PP_CPUS_SIZE];
	int r = read_line(pmu, "cpumask", line, sizeof(line));

	if (r == -ENOENT)
		r = read_line(pmu, "cpus", line, sizeof(line));
	return r < 0 ? r : pp_parse_cpus(line, ret);
}

int pmu_cpus(uint32_t type, struct pp_cpumask *ret)
{
	_cleanup_closedir_ DIR *d = opendir(DEVICES);
	struct dirent *e;

	if (!d)
		return -errno;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && has_type(e->d_name, type))
			return read_cpus(e->d_name, ret);
	return -ENOENT;
}
