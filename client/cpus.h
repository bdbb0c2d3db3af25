/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sets of CPUs, their lists as text ("0-3,8"), and sysfs's sets. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLIENT_CPUS_MAX 4096 /* numbers are below this */

struct client_cpus {
	uint64_t bits[CLIENT_CPUS_MAX / 64];
};

static inline bool client_cpus_have(const struct client_cpus *c, unsigned cpu)
{
	return cpu < CLIENT_CPUS_MAX && (c->bits[cpu / 64] >> (cpu % 64) & 1);
}

/* An empty list is an empty set. 0 or -EINVAL. */
int client_cpus_parse(const char *text, struct client_cpus *ret);

/* Ranges that do not fit are left out entirely. */
void client_cpus_format(const struct client_cpus *c, char *buf, size_t size);

/* Removes the CPUs of b from a. */
void client_cpus_remove(struct client_cpus *a, const struct client_cpus *b);

/* /sys/devices/system/cpu/WHICH: online, present. 0 or -errno. */
int client_cpus_read(const char *which, struct client_cpus *ret);
