// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzes the kernel's hotplug notices of CPUs. An even first byte takes the rest as the notice. An
 * odd one puts the rest in place of the CPU's number in a valid notice. Each accepted notice must
 * be a real one, word for word.
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
	/* Exactly as large as the input, so that ASan sees an overrun. */
	notice = malloc(n + size - 1);
	if (!notice)
		return 0;
	memcpy(notice, beginning, n);
	memcpy(notice + n, data + 1, size - 1);
	check(notice, n + size - 1);
	free(notice);
	return 0;
}
