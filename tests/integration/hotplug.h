/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shows the daemon a CPU hotplug without touching a CPU: runs the instance's program for the
 * kernel's hotplug steps as the kernel would run it, and sends the engine the order that follows,
 * on a connection that replaces the broker's (which reconnects at once). Root only.
 */
#pragma once

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/hotplug.h"
#include "daemon/order.h"
#include "proto/places.h"
#include "tests/integration/census.h"
#include "tests/integration/services.h"

static inline int hotplug_open_pin(const char *instance, const char *leaf)
{
	char registry[128], path[512];
	union bpf_attr attr;
	int fd;

	if (pp_place(instance, "/registry", registry, sizeof(registry)) < 0)
		die("no such instance: %s", instance);
	snprintf(path, sizeof(path), "%s/%s", registry, leaf);
	attr = (union bpf_attr){ .pathname = (uintptr_t)path };
	fd = census_bpf(BPF_OBJ_GET, &attr);
	if (fd < 0)
		die("cannot open %s: %m", path);
	return fd;
}

/* The ids of a link and of its program. */
static inline struct bpf_link_info hotplug_link(const char *instance, const char *leaf)
{
	_cleanup_close_ int fd = hotplug_open_pin(instance, leaf);
	struct bpf_link_info info = { 0 };
	union bpf_attr attr = {
		.info = { .bpf_fd = fd, .info_len = sizeof(info), .info = (uintptr_t)&info },
	};

	if (census_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) < 0)
		die("nothing is known of %s: %m", leaf);
	return info;
}

static inline struct pp_cpu_state hotplug_state(const char *instance, unsigned cpu)
{
	_cleanup_close_ int fd = hotplug_open_pin(instance, PP_CPU_STATES);
	struct pp_cpu_state state;
	union bpf_attr attr = { .map_fd = fd, .key = (uintptr_t)&cpu, .value = (uintptr_t)&state };

	if (census_bpf(BPF_MAP_LOOKUP_ELEM, &attr) < 0)
		die("CPU %u has no state: %m", cpu);
	return state;
}

/* The number of the step at which perf events start and stop: sysfs lists the steps. */
static inline unsigned hotplug_perf_step(void)
{
	_cleanup_fclose_ FILE *f = fopen("/sys/devices/system/cpu/hotplug/states", "re");
	char line[256], name[128];
	unsigned step;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%u: %127s", &step, name) == 2 && !strcmp(name, "perf:online"))
			return step;
	die("sysfs has no step perf:online");
}

/* Calls the program as the kernel calls the tracepoint: the CPU is on its way to a target step, and
 * about to do `step`. */
static inline void hotplug_run(const char *instance, unsigned cpu, unsigned target, unsigned step)
{
	uint64_t args[4] = { cpu, target, step, 0 };
	union bpf_attr attr = { .prog_id = hotplug_link(instance, PP_CPU_STATES_LINK).prog_id };
	_cleanup_close_ int fd = census_bpf(BPF_PROG_GET_FD_BY_ID, &attr);

	attr = (union bpf_attr){
		.test = { .prog_fd = fd, .ctx_in = (uintptr_t)args, .ctx_size_in = sizeof(args) },
	};
	if (fd < 0 || census_bpf(BPF_PROG_TEST_RUN, &attr) < 0)
		die("the program on hotplug steps cannot be run: %m");
}

/* ── orders ─────────────────────────────────────────────────────────────────────────────── */

static inline int hotplug_connect(const char *instance)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || pp_place(instance, "/engine", address.sun_path, sizeof(address.sun_path)) < 0)
		die("no socket: %m");
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("cannot connect to %s: %m", address.sun_path);
	return fd;
}

/* Whether there was an answer: the engine may die, and the broker may interfere. */
static inline bool hotplug_ask(const char *instance, const struct pp_order *order,
			       struct pp_answer *ret)
{
	size_t size = offsetof(struct pp_order, parsed); /* size of an order of these types */
	_cleanup_close_ int fd = hotplug_connect(instance);

	if (send(fd, order, size, MSG_NOSIGNAL) != (ssize_t)size)
		return false;
	do {
		if (recv(fd, ret, sizeof(*ret), 0) != sizeof(*ret))
			return false;
	} while (order->type == PP_ORDER_ENUMERATE && ret->type == PP_ANSWER_FOUND &&
		 ret->event.id != order->id);
	return true;
}

/* Orders the engine to handle these online CPUs for one event. */
static inline void hotplug_order(const char *instance, uint64_t id, const struct pp_cpumask *cpus,
				 struct pp_answer *ret)
{
	static struct pp_order order;

	order = (struct pp_order){
		.abi = PP_ORDER_ABI, .type = PP_ORDER_CPUS, .serial = 1, .id = id
	};
	order.spec.cpus = *cpus;
	while (!hotplug_ask(instance, &order, ret))
		;
}

/* Finds the event in the enumeration; false: there is none. */
static inline bool hotplug_find(const char *instance, uint64_t id, struct pp_event *ret)
{
	static struct pp_order order;
	static struct pp_answer answer;

	order = (struct pp_order){
		.abi = PP_ORDER_ABI, .type = PP_ORDER_ENUMERATE, .serial = 1, .id = id
	};
	while (!hotplug_ask(instance, &order, &answer))
		;
	*ret = answer.event;
	return answer.type == PP_ANSWER_FOUND;
}
