/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hotplug: which CPUs are online, and callbacks when that changes. Only
 * /sys/devices/system/cpu/online decides. A uevent from the kernel triggers a look at once, and
 * reveals CPUs that were offline too briefly to be seen. After ten seconds the next wakeup of the
 * daemon, at the latest its watchdog, triggers a look too. That makes up for late or lost uevents;
 * the account, if there is one, reveals CPUs that were offline in between.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/order.h"

struct hotplug {
	/* The caller sets these. A CPU came online or went offline. */
	void (*changed)(void *userdata, unsigned cpu, bool online);
	/* These CPUs are online, and some of them came or came back: lost rings and perf events
	 * must be created anew. Called after changed, once for all CPUs that came together. */
	void (*came)(void *userdata, const struct pp_cpumask *cpus);
	/* A look without a uevent: failed operations may be retried. */
	void (*looked)(void *userdata);
	/* May be NULL. Finds the CPUs of `online` that were offline since the last call, from an
	 * account that misses none. */
	void (*bounced)(void *userdata, const struct pp_cpumask *online, struct pp_cpumask *ret);
	void *userdata;

	struct pp_cpumask online;
	struct {
		uint64_t since; /* CLOCK_MONOTONIC, ns: first seen offline; 0: before our start */
		uint64_t seen;	/* when it was last seen online */
	} away[PP_CPUS_MAX];
	uint64_t looked_at;	/* CLOCK_MONOTONIC, ns */
	struct pp_cpumask went; /* CPUs that were online at a uevent that says they went */
	int sysfs;		/* the open file */
	int fd;			/* receives uevents */
	sd_event_source *io, *post, *timer;
};

/* h is all zeroes except the hooks and userdata. Without uevents, periodic looks must do. 0;
 * -errno. */
int hotplug_init(struct hotplug *h, sd_event *loop);
/* Accepts a struct of zeroes. */
void hotplug_done(struct hotplug *h);

/* Called by on_io and the timer with their results. `online`: the online CPUs; `came` (may be
 * NULL): CPUs with a uevent; lost: some uevents were lost. */
void hotplug_update(struct hotplug *h, const struct pp_cpumask *online,
		    const struct pp_cpumask *came, bool lost);

/* Handles the bytes of a uevent; sets bits in came. */
void hotplug_notice(struct hotplug *h, const void *notice, size_t size, struct pp_cpumask *came);
