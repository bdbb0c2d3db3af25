// SPDX-License-Identifier: LGPL-2.1-or-later
/* Asks the kernel for the number of a system call. See syscall.h. */
#include "daemon/engine/syscall.h"

#include <bpf/bpf.h>
#include <string.h>
#include <unistd.h>

#include "daemon/cpus.h"
#include "daemon/engine/kernel.h"
#include "daemon/engine/perf.h"
#include "proto/macro.h"
#include "syscall.skel.h"

bool syscall_is_carried(const struct tracepoint *tp)
{
	return !strcmp(tp->system, "syscalls") &&
	       (!strncmp(tp->name, "sys_enter_", 10) || !strncmp(tp->name, "sys_exit_", 9)) &&
	       kernel_preempts_syscalls();
}

const char *syscall_carrier_name(const struct tracepoint *tp)
{
	return strncmp(tp->name, "sys_enter_", 10) ? "sys_exit" : "sys_enter";
}

/* On any CPU that is online. */
static int open_event(const struct tracepoint *tp)
{
	struct perf_event_attr attr;
	struct pp_cpumask online;
	int r = pp_cpus_read("online", &online);

	if (r < 0)
		return r;
	perf_tracepoint_attr(tp, &attr);
	r = -ENODEV;
	PP_CPUMASK_FOREACH(cpu, &online)
	{
		r = perf_open(&attr, cpu);
		if (r != -ENODEV)
			break;
	}
	return r;
}

/* The iterator walks this thread's descriptors alone (6.1). */
static int read_facts(struct syscall_bpf *skel, struct syscall_facts *ret)
{
	union bpf_iter_link_info info = { .task.tid = (uint32_t)gettid() };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &info, .iter_info_len = sizeof(info));
	_cleanup_close_ int link = -EBADF, iterator = -EBADF;
	ssize_t n;

	link = bpf_link_create(bpf_program__fd(skel->progs.pp_syscall), 0, BPF_TRACE_ITER, &opts);
	if (link < 0)
		return link;
	iterator = bpf_iter_create(link);
	if (iterator < 0)
		return iterator;
	n = read(iterator, ret, sizeof(*ret));
	if (n < 0)
		return -errno;
	return n == sizeof(*ret) ? 0 : -EBADMSG;
}

int syscall_read(const struct tracepoint *tp, struct syscall_facts *ret)
{
	_cleanup_close_ int event = open_event(tp);
	struct syscall_bpf *skel;
	int r;

	if (event < 0)
		return event;
	skel = syscall_bpf__open();
	if (!skel)
		return -errno;
	skel->rodata->event_fd = (uint32_t)event;
	r = syscall_bpf__load(skel);
	if (r >= 0)
		r = read_facts(skel, ret);
	syscall_bpf__destroy(skel);
	return r;
}

int syscall_carrier(const struct tracepoint *tp, uint32_t *ret_id)
{
	struct tracepoint raw;
	int r = tracepoint_read("raw_syscalls", syscall_carrier_name(tp), &raw);

	if (r < 0)
		return r;
	*ret_id = raw.id;
	tracepoint_done(&raw);
	return 0;
}
