// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the running kernel can do. */
#include "daemon/engine/kernel.h"

#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

bool kernel_has_btf(void)
{
	return access("/sys/kernel/btf/vmlinux", R_OK) == 0;
}

bool kernel_is_at_least(int major, int minor)
{
	struct utsname u;
	int has_major, has_minor;

	if (uname(&u) < 0 || sscanf(u.release, "%d.%d", &has_major, &has_minor) != 2)
		return false;
	return has_major > major || (has_major == major && has_minor >= minor);
}
