// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the numbers of system calls from the kernel. See syscall.h. */
#include "daemon/engine/recorders/syscall.h"

#include <bpf/bpf.h>
#include <string.h>
#include <unistd.h>

#include "daemon/cpus.h"
#include "daemon/engine/bpf/syscall.h"
#include "daemon/engine/kernel/kernel.h"
#include "daemon/engine/kernel/perf.h"
#include "proto/macro.h"
#include "syscall.skel.h"

bool syscall_is_carried(const struct tracepoint *tp, bool of_many)
{
	return !strcmp(tp->system, "syscalls") &&
	       (!strncmp(tp->name, "sys_enter_", 10) || !strncmp(tp->name, "sys_exit_", 9)) &&
	       (of_many || kernel_preempts_syscalls());
}

const char *syscall_carrier_name(const struct tracepoint *tp)
{
	return strncmp(tp->name, "sys_enter_", 10) ? "sys_exit" : "sys_enter";
}

/* Opens it on any online CPU. */
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

/* Numbers stay the same as long as the kernel runs. */
static struct syscall_table *table;

/* The iterator walks only this thread's descriptors (6.1), and finds the event. */
static int run(struct syscall_bpf *skel)
{
	union bpf_iter_link_info info = { .task.tid = (uint32_t)gettid() };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &info, .iter_info_len = sizeof(info));
	_cleanup_close_ int link = -EBADF, iterator = -EBADF;
	char c;

	link = bpf_link_create(bpf_program__fd(skel->progs.pp_syscall), 0, BPF_TRACE_ITER, &opts);
	if (link < 0)
		return link;
	iterator = bpf_iter_create(link);
	if (iterator < 0)
		return iterator;
	return read(iterator, &c, 1) < 0 ? -errno : 0;
}

static int load_and_run(int event, struct syscall_table *ret)
{
	struct syscall_bpf *skel = syscall_bpf__open();
	int r;

	if (!skel)
		return -errno;
	skel->rodata->event_fd = (uint32_t)event;
	r = syscall_bpf__load(skel);
	if (r >= 0)
		r = run(skel);
	if (r >= 0)
		*ret = skel->bss->table;
	syscall_bpf__destroy(skel);
	return r;
}

static int read_table(const struct tracepoint *tp)
{
	_cleanup_close_ int event = open_event(tp);
	_cleanup_free_ struct syscall_table *new = NULL;
	int r;

	if (event < 0)
		return event;
	new = malloc(sizeof(*new));
	r = new ? load_and_run(event, new) : -ENOMEM;
	if (r < 0)
		return r;
	if (new->n > SYSCALL_TRACEPOINTS_MAX)
		return -E2BIG;
	free(table);
	table = TAKE_PTR(new);
	return 0;
}

static int find(uint32_t tracepoint, struct syscall_facts *ret)
{
	for (uint32_t i = 0; table && i < table->n; i++) {
		if (table->calls[i].tracepoint != tracepoint || table->calls[i].number < 0)
			continue;
		*ret = (struct syscall_facts){
			.number = (uint32_t)table->calls[i].number,
			.compat_offset = table->compat_offset,
			.compat_mask = table->compat_mask,
		};
		return 0;
	}
	return -ENOENT;
}

int syscall_read(const struct tracepoint *tp, struct syscall_facts *ret)
{
	int r;

	if (find(tp->id, ret) == 0)
		return 0;
	r = read_table(tp);
	return r < 0 ? r : find(tp->id, ret);
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
