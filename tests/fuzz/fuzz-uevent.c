// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Notices of CPUs that come and go. Any bytes (first byte even), or what the kernel says of a CPU
 * with the bytes behind the first in place of its number: what is taken for a notice is one, word
 * for word.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/hotplug/uevent.h"
#include "daemon/order.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *notice, size_t size)
{
	struct uevent u;
	char said[64];
	size_t n;

	if (!uevent_parse(notice, size, &u))
		return;
	if (u.cpu >= PP_CPUS_MAX)
		abort();
	n = strnlen(notice, size);
	snprintf(said, sizeof(said), "%s@/devices/system/cpu/cpu", u.online ? "online" : "offline");
	if (n == size || strncmp(notice, said, strlen(said)) != 0 ||
	    strtoul(notice + strlen(said), NULL, 10) != u.cpu)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const beginnings[] = { "online@/devices/system/cpu/cpu",
						  "offline@/devices/system/cpu/cpu" };
	const char *beginning;
	size_t n;
	char *notice;

	if (size == 0)
		return 0;
	beginning = *data & 1 ? beginnings[*data >> 1 & 1] : "";
	n = strlen(beginning);
	/* Of exactly its size, so that whoever reads on is caught. */
	notice = malloc(n + size - 1);
	if (!notice)
		return 0;
	memcpy(notice, beginning, n);
	memcpy(notice + n, data + 1, size - 1);
	check(notice, n + size - 1);
	free(notice);
	return 0;
}
