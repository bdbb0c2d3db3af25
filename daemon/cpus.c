// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/cpus.h"

#include <string.h>

#include "daemon/text.h"
#include "proto/macro.h"

int pp_cpus_read(const char *which, struct pp_cpumask *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[4096];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s", which);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	if (!fgets(line, sizeof(line), f))
		return -EIO;
	line[strcspn(line, "\n")] = 0;
	return pp_parse_cpus(line, ret);
}

int pp_cpus_possible(void)
{
	struct pp_cpumask mask;
	int highest = -1, r;

	r = pp_cpus_read("possible", &mask);
	if (r < 0)
		return r;
	PP_CPUMASK_FOREACH(cpu, &mask)
	highest = cpu;
	return highest + 1;
}
