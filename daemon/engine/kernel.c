// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the running kernel can do. */
#include "daemon/engine/kernel.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "proto/macro.h"

bool kernel_has_btf(void)
{
	return access("/sys/kernel/btf/vmlinux", R_OK) == 0;
}

/* "none integrity [confidentiality]" */
bool kernel_is_confidential(void)
{
	_cleanup_fclose_ FILE *file = fopen("/sys/kernel/security/lockdown", "re");
	char line[128];

	return file && fgets(line, sizeof(line), file) && strstr(line, "[confidentiality]");
}

bool kernel_is_at_least(int major, int minor)
{
	struct utsname u;
	int has_major, has_minor;

	if (uname(&u) < 0 || sscanf(u.release, "%d.%d", &has_major, &has_minor) != 2)
		return false;
	return has_major > major || (has_major == major && has_minor >= minor);
}

/* The kernel's coarse clocks go by its ticks, and say so. */
uint64_t kernel_tick(void)
{
	struct timespec t = { .tv_nsec = 10000000 };

	clock_getres(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_nsec;
}
