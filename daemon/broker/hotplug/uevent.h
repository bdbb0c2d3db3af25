/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernel says when a CPU comes or goes. Must not know sockets, nor what is true. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct uevent {
	unsigned cpu;
	bool online; /* else offline */
};

/* A notice as it came: "online@/devices/system/cpu/cpu3", a NUL, and more texts that say the same.
 * Returns whether it is about a CPU that came online or went offline. */
bool uevent_parse(const void *notice, size_t size, struct uevent *ret);
