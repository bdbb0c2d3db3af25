// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Listens to the kernel's own uevents instead of udev's: those reach every network namespace,
 * including our unit's, and systems without udev. (An sd_device_monitor only hears udev: libsystemd
 * does not let one choose the kernel's group.)
 */
#include "daemon/broker/hotplug/hotplug.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "daemon/broker/hotplug/uevent.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/clock.h"
#include "proto/macro.h"

#define LOOK_USEC (10 * 1000000ULL)
#define LOOK_ACCURACY_USEC (2 * 1000000ULL) /* lets the timer share another wakeup */
#define KERNEL_GROUP 1			    /* of NETLINK_KOBJECT_UEVENT */
#define NOTICE_SIZE 8192		    /* the kernel's own buffer is smaller */

/* ── what is online ─────────────────────────────────────────────────────────────────────── */

static void tell(struct hotplug *h, unsigned cpu, bool online)
{
	log_info("CPU %u is %s.", cpu, online ? "online" : "offline");
	h->away[cpu].since = online ? 0 : pp_clock_ns(CLOCK_MONOTONIC);
	h->away[cpu].seen = online ? 0 : h->looked_at;
	h->changed(h->userdata, cpu, online);
}

/* For a CPU that is online: was it offline? */
static bool has_come(struct hotplug *h, unsigned cpu, bool before, bool noticed)
{
	bool went = pp_cpumask_test(&h->went, cpu);

	if (!before) {
		tell(h, cpu, true);
	} else if (noticed && went) {
		/* The CPU went offline and came back between two looks. */
		tell(h, cpu, false);
		tell(h, cpu, true);
	}
	if (!before || noticed)
		pp_cpumask_clear(&h->went, cpu);
	return !before || noticed;
}

void hotplug_update(struct hotplug *h, const struct pp_cpumask *online,
		    const struct pp_cpumask *came, bool lost)
{
	struct pp_cpumask before = h->online;
	bool any = lost;

	h->online = *online;
	for (unsigned cpu = 0; cpu < PP_CPUS_MAX; cpu++) {
		bool was = pp_cpumask_test(&before, cpu);
		bool noticed = came && pp_cpumask_test(came, cpu);

		if (pp_cpumask_test(online, cpu)) {
			any |= has_come(h, cpu, was, noticed);
			continue;
		}
		pp_cpumask_clear(&h->went, cpu);
		if (was)
			tell(h, cpu, false);
	}
	h->looked_at = pp_clock_ns(CLOCK_MONOTONIC);
	if (any)
		h->came(h->userdata, &h->online);
}

/* The file stays open: each look is one system call. */
static int read_online(struct hotplug *h, struct pp_cpumask *ret)
{
	char line[4096];
	ssize_t n = pread(h->sysfs, line, sizeof(line) - 1, 0);

	if (n < 0)
		return -errno;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return pp_parse_cpus(line, ret);
}

/* Treats CPUs that the account reports like CPUs with a uevent. */
static void hear_account(struct hotplug *h, const struct pp_cpumask *online,
			 struct pp_cpumask *came)
{
	struct pp_cpumask bounced = { 0 };

	if (h->bounced)
		h->bounced(h->userdata, online, &bounced);
	PP_CPUMASK_FOREACH(cpu, &bounced)
	{
		pp_cpumask_set(came, cpu);
		if (pp_cpumask_test(&h->online, cpu))
			pp_cpumask_set(&h->went, cpu);
	}
}

static void look(struct hotplug *h, struct pp_cpumask *came, bool lost)
{
	struct pp_cpumask online;
	int r = read_online(h, &online);

	if (r < 0) {
		log_warning("Cannot find out which CPUs are online: %s.", strerror(-r));
		return;
	}
	hear_account(h, &online, came);
	hotplug_update(h, &online, came, lost);
}

/* ── the kernel's notices ───────────────────────────────────────────────────────────────── */

void hotplug_notice(struct hotplug *h, const void *notice, size_t size, struct pp_cpumask *came)
{
	struct uevent u;

	if (!uevent_parse(notice, size, &u))
		return;
	if (u.online)
		pp_cpumask_set(came, u.cpu);
	else if (pp_cpumask_test(&h->online, u.cpu))
		pp_cpumask_set(&h->went, u.cpu);
}

/* 1: took one; 0: there are no more; -errno. */
static int take_notice(struct hotplug *h, struct pp_cpumask *came)
{
	struct sockaddr_nl from = { 0 };
	socklen_t from_size = sizeof(from);
	char notice[NOTICE_SIZE];
	ssize_t n = recvfrom(h->fd, notice, sizeof(notice), MSG_DONTWAIT, (struct sockaddr *)&from,
			     &from_size);

	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (from.nl_pid ==
	    0) /* from the kernel, and not from a process that may send such messages */
		hotplug_notice(h, notice, n, came);
	return 1;
}

/* Takes all uevents, and looks once. ENOBUFS: the socket overflowed, and any CPU may have been
 * offline. */
static int on_io(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_,
		 void *userdata)
{
	struct hotplug *h = userdata;
	struct pp_cpumask came = { 0 };
	bool lost = false;
	int r;

	while ((r = take_notice(h, &came)) != 0) {
		if (r == -ENOBUFS)
			lost = true;
		else if (r < 0 && r != -EINTR)
			break;
	}
	if (lost)
		log_notice("The kernel's notices about CPUs overflowed; all CPUs are checked.");
	if (r < 0) {
		log_error(
			"The kernel's notices about CPUs are no longer available (%s); the online "
			"CPUs are checked every ten seconds instead.",
			strerror(-r));
		h->io = sd_event_source_disable_unref(h->io);
		sd_event_source_set_enabled(h->timer, SD_EVENT_ONESHOT);
		lost = true;
	}
	look(h, &came, lost);
	return 0;
}

static void look_unasked(struct hotplug *h)
{
	struct pp_cpumask came = { 0 };

	look(h, &came, false);
	h->looked(h->userdata);
}

/* Runs after any other wakeup, at least that of the manager's timer, so that it never causes one. */
static int on_anything(sd_event_source *s _unused_, void *userdata)
{
	struct hotplug *h = userdata;

	if (pp_clock_ns(CLOCK_MONOTONIC) - h->looked_at >= LOOK_USEC * 1000)
		look_unasked(h);
	return 0;
}

/* Runs while there are no uevents. */
static int on_timer(sd_event_source *s, uint64_t usec _unused_, void *userdata)
{
	look_unasked(userdata);
	sd_event_source_set_time_relative(s, LOOK_USEC);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

/*
 * A classic BPF filter (unprivileged users may attach it): of "ACTION@/devices/…" it passes online
 * and offline only. Hardly anything but CPUs sends those, so other uevents do not even wake us.
 */
static int filter_notices(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x6f6e6c69 /* "onli" */, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x6f66666c /* "offl" */, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno
											   : 0;
}

static int listen_to_kernel(struct hotplug *h, sd_event *loop)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP };
	_cleanup_close_ int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	int r;

	if (fd < 0)
		return -errno;
	r = filter_notices(fd);
	if (r < 0)
		return r;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	r = sd_event_add_io(loop, &h->io, fd, EPOLLIN, on_io, h);
	/* Uevents go before the account, so that a CPU is reported once. */
	if (r >= 0)
		r = sd_event_source_set_priority(h->io, SD_EVENT_PRIORITY_IMPORTANT);
	if (r < 0)
		return r;
	h->fd = TAKE_FD(fd);
	return 0;
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

int hotplug_init(struct hotplug *h, sd_event *loop)
{
	struct pp_cpumask earlier;
	int r;

	h->fd = -EBADF;
	h->sysfs = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	r = h->sysfs < 0 ? -errno
			 : sd_event_add_time_relative(loop, &h->timer, CLOCK_MONOTONIC, LOOK_USEC,
						      LOOK_ACCURACY_USEC, on_timer, h);
	if (r >= 0)
		r = sd_event_add_post(loop, &h->post, on_anything, h);
	if (r < 0)
		return r;
	r = listen_to_kernel(h, loop);
	if (r >= 0)
		r = sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);
	else
		log_notice(
			"The kernel's notices about CPUs are not available (%s); the online CPUs "
			"are checked every ten seconds instead.",
			strerror(-r));
	/* After the socket is open: no uevent is missed. */
	h->looked_at = pp_clock_ns(CLOCK_MONOTONIC);
	r = read_online(h, &h->online);
	if (r >= 0 && h->bounced)
		h->bounced(h->userdata, &h->online, &earlier);
	return r;
}

void hotplug_done(struct hotplug *h)
{
	if (!h->timer)
		return;
	h->timer = sd_event_source_disable_unref(h->timer);
	h->post = sd_event_source_disable_unref(h->post);
	h->io = sd_event_source_disable_unref(h->io);
	h->fd = close_fd(h->fd);
	h->sysfs = close_fd(h->sysfs);
}
