// SPDX-License-Identifier: LGPL-2.1-or-later
/* Attaches one source to the kernel. See attach.h. */
#include "daemon/engine/sources/attach.h"

#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/engine/registry/reaper.h"
#include "daemon/engine/sources/sources.h"
#include "proto/macro.h"

#define TEXT_SIZE (PP_TP_NAME_SIZE * 2)
#define ATTEMPTS 10 /* while all places are in use */
#define REAPER_MS 1000

/* ── attaching ──────────────────────────────────────────────────────────────────────────── */

/* A tracepoint has few places for programs, a processor few registers. */
bool attach_is_used_up(int r)
{
	return r == -E2BIG || r == -ENOSPC;
}

/*
 * Deleted events may still hold a place: the reaper may not have reached a tracepoint, which in the
 * worst case takes longer than other orders may wait; and the kernel releases it some grace periods
 * after the last pin has gone. A barrier of all CPUs waits for one.
 */
static int attach_again(const struct source *source, int entry, const struct perf_place *at, int r,
			int *ret_fd)
{
	if (r == -E2BIG) {
		reaper_kick();
		reaper_wait(REAPER_MS);
	}
	for (int i = 0; attach_is_used_up(r) && i < ATTEMPTS; i++) {
		/* (With nohz_full the kernel has no such barrier.) */
		if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0)
			usleep(20000);
		r = source->recorder->attach(source, entry, at, ret_fd);
	}
	return r;
}

int attach_source(const struct source *source, int entry, const struct perf_place *at, int *ret_fd)
{
	int r = source->recorder->attach(source, entry, at, ret_fd);

	return attach_is_used_up(r) ? attach_again(source, entry, at, r, ret_fd) : r;
}

/* ── explaining failures ────────────────────────────────────────────────────────────────── */

static bool can_open(const struct perf_event_attr *attr, const struct perf_place *at)
{
	struct perf_event_attr a = *attr;
	int fd = perf_open_at(&a, at);

	close_fd(fd);
	return fd >= 0;
}

/* Whether it would be counted on the CPU, if that were not for a cgroup alone. */
static bool can_open_for_all(const struct perf_event_attr *attr, const struct perf_place *at)
{
	struct perf_place all = *at;

	all.cgroup = -EBADF;
	return at->cgroup >= 0 && can_open(attr, &all);
}

/* The attributes that the PMU accepts instead show why it refused these. */
static int sampling_failure(const struct source *source, int r, const struct perf_place *at,
			    struct failure *f)
{
	static const struct perf_place self = { .cpu = -1, .tid = 0, .cgroup = -EBADF };
	const char *text = source->parsed->text;
	struct perf_event_attr count = source->attr;

	count.freq = 0;
	count.sample_period = 0;
	count.sample_type = 0;
	count.precise_ip = 0;
	if (can_open(&count, at)) {
		count.precise_ip = source->attr.precise_ip;
		return fail(f, EOPNOTSUPP,
			    "'%s' can be counted and not %s (%s): its PMU %s; `perf stat -e` shows "
			    "it, and `cpu-clock` can be sampled everywhere.",
			    text, count.precise_ip ? "sampled so precisely" : "sampled",
			    strerror(-r),
			    count.precise_ip ? "has no such mode" : "cannot interrupt");
	}
	if (can_open_for_all(&count, at))
		return fail(
			f, EOPNOTSUPP,
			"'%s' cannot be counted in one cgroup (%s): the kernel has no controller "
			"perf_event in the hierarchy of version 2, or it is mounted with version "
			"1; use --cgroup, which is a filter.",
			text, strerror(-r));
	if (at->cpu >= 0 && can_open(&count, &self))
		return fail(f, EOPNOTSUPP,
			    "'%s' counts within a process only, and not on a CPU (%s), so that it "
			    "cannot be made persistent for all; bind it to one (-p).",
			    text, strerror(-r));
	if (at->cpu < 0 && source->parsed->type != PERF_TYPE_BREAKPOINT)
		return fail(
			f, EOPNOTSUPP,
			"'%s' cannot be counted in one task (%s): its PMU counts for whole CPUs or "
			"packages; leave out -p or -t.",
			text, strerror(-r));
	if (r == -EINVAL && source->parsed->type == PERF_TYPE_BREAKPOINT)
		return fail(
			f, EOPNOTSUPP,
			"This processor cannot watch '%s' (%s); most can watch writes (w), writes "
			"and reads (rw) and instructions (x), at multiples of the length.",
			text, strerror(-r));
	if (r == -EINVAL)
		return fail(f, EOPNOTSUPP,
			    "The kernel does not accept '%s' with these options (%s).", text,
			    strerror(-r));
	return fail(f, EOPNOTSUPP,
		    "This machine cannot count or sample '%s' (%s); `perfctl events` shows what it "
		    "can, `cpu-clock` works everywhere.",
		    text, strerror(-r));
}

/* Only kernel functions: the broker checks files itself. */
static int kprobe_failure(const struct source *source, int r, struct failure *f)
{
	const struct pp_source *parsed = source->parsed;

	switch (-r) {
	case ENOENT:
		return fail(f, ENOENT,
			    "This kernel has no function '%s' for '%s'; /proc/kallsyms lists those "
			    "it has.",
			    parsed->name, parsed->text);
	case EADDRNOTAVAIL:
		return fail(
			f, EINVAL,
			"This kernel has several functions '%s' (/proc/kallsyms), and '%s' does "
			"not tell which; probe another one.",
			parsed->name, parsed->text);
	case EILSEQ:
		return fail(f, EINVAL,
			    "No instruction begins at '%s'; choose another offset, or none.",
			    parsed->text);
	default:
		return fail(f, EOPNOTSUPP,
			    "The kernel allows no probe at '%s' (%s), since probes use such code "
			    "themselves (/sys/kernel/debug/kprobes/blacklist).",
			    parsed->text, strerror(-r));
	}
}

int attach_failure(const struct source *source, int r, const struct perf_place *at,
		   struct failure *f)
{
	char text[TEXT_SIZE], where[32];

	source_text(source, text, sizeof(text));
	snprintf(where, sizeof(where), at->cpu < 0 ? "task %d" : "CPU %d",
		 at->cpu < 0 ? at->tid : at->cpu);
	switch (-r) {
	case E2BIG:
		return fail(
			f, E2BIG,
			"Tracepoint '%s' already runs 64 BPF programs, the most that the "
			"kernel allows for all tools together; share an existing event (--share), "
			"delete one on it, or end another tool that uses it.",
			text);
	case ENOSPC:
		return fail(f, ENOSPC,
			    "All registers of %s that can count or watch '%s' are in use: a "
			    "processor has few, for all tools together; delete an event that has "
			    "one, or end another tool.",
			    where, text);
	case ENODEV:
		return fail(f, ENODEV, "%s is offline; choose CPUs that are online.", where);
	case ESRCH:
		return fail(f, ESRCH, "The %s has ended.", where);
	case EACCES:
	case EPERM:
		return fail(f, -r,
			    "The kernel does not allow '%s' to be recorded (%s); see "
			    "kernel.perf_event_paranoid and kernel lockdown.",
			    text, strerror(-r));
	case ENOENT:
	case EOPNOTSUPP:
	case EINVAL:
	case EILSEQ:
	case EADDRNOTAVAIL:
		if (source->parsed->kind == PP_SOURCE_SAMPLING)
			return sampling_failure(source, r, at, f);
		if (source->parsed->kind == PP_SOURCE_KPROBE)
			return kprobe_failure(source, r, f);
		return fail(f, EOPNOTSUPP,
			    "The kernel does not let programs run on '%s' (%s); use another "
			    "event.",
			    text, strerror(-r));
	default:
		return fail(f, -r, "Cannot attach to '%s' on %s: %s.", text, where, strerror(-r));
	}
}
