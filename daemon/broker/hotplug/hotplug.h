/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hotplug: which CPUs are online, and word of each that comes or goes. What is online
 * /sys/devices/system/cpu/online says, and nothing else: the kernel's notices are the reason to
 * look at once, and they tell of CPUs that were away so shortly that nobody saw it. When ten seconds
 * have passed it looks with whatever wakes the daemon next, its watchdog at the latest, so that a
 * notice that is late, or lost, is made up for; who was away in between an account tells, if there
 * is one.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/order.h"

struct hotplug {
	/* To be filled in. A CPU is online, or offline, and was not. */
	void (*changed)(void *userdata, unsigned cpu, bool online);
	/* These are online, and some have come, or come back: what died with them is to be made
	 * anew. Called after changed, once for all that came together. */
	void (*came)(void *userdata, const struct pp_cpumask *cpus);
	/* It has looked unasked: what could not be had may be tried again. */
	void (*looked)(void *userdata);
	/* May be NULL. Which of those that are online were away since it was last asked, by an
	 * account that misses none. */
	void (*bounced)(void *userdata, const struct pp_cpumask *online, struct pp_cpumask *ret);
	void *userdata;

	struct pp_cpumask online;
	struct {
		uint64_t since; /* CLOCK_MONOTONIC, ns: when one that is offline was seen to be
				 * gone; 0: before us */
		uint64_t seen;	/* and when it was last seen online */
	} away[PP_CPUS_MAX];
	uint64_t looked_at;	/* likewise */
	struct pp_cpumask went; /* the kernel says that they went, and they were online by then */
	int sysfs;		/* the file */
	int fd;			/* of the kernel's notices */
	sd_event_source *io, *post, *timer;
};

/* h is all zeroes but for the hooks and userdata. Where the kernel's notices cannot be had the
 * looking now and then must do. 0; -errno. */
int hotplug_init(struct hotplug *h, sd_event *loop);
/* Accepts one that is all zeroes. */
void hotplug_done(struct hotplug *h);

/* What on_io and the timer do, each with what it found: these are online; `came` (may be NULL):
 * notices say that these came; lost: there were notices that nobody knows. */
void hotplug_update(struct hotplug *h, const struct pp_cpumask *online,
		    const struct pp_cpumask *came, bool lost);

/* A notice of the kernel's, as it came; sets bits in came. */
void hotplug_notice(struct hotplug *h, const void *notice, size_t size, struct pp_cpumask *came);
