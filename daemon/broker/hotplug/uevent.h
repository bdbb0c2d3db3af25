/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's uevents about CPUs. Must not know sockets, nor whether a uevent is true. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct uevent {
	unsigned cpu;
	bool online; /* else offline */
};

/* A uevent in full: "online@/devices/system/cpu/cpu3", a NUL, and more texts that say the same.
 * Returns whether it says that a CPU came online or went offline. */
bool uevent_parse(const void *notice, size_t size, struct uevent *ret);
