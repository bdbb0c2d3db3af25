// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes a perf event for each CPU, and iterators, for the keeper. Must not know how they are used:
 * the keeper makes, maps and reads the rings.
 */
#include "daemon/engine/sideband.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/cpus.h"
#include "daemon/engine/kernel/detached.h"
#include "daemon/engine/kernel/kernel.h"
#include "daemon/engine/kernel/perf.h"
#include "daemon/engine/registry/iterators.h"
#include "proto/keep.h"
#include "proto/macro.h"
#include "proto/sideband.h"

/* ── events ─────────────────────────────────────────────────────────────────────────────── */

/*
 * Counts nothing, and reports processes on its CPU. Without build_id: the kernel (seen on 6.18)
 * reports a mapping to all interested events with one header, in which the bit for "this is a build
 * id" stays set for later events that did not ask for it: every perf record beside us would read an
 * inode as a build id, and crash. Without ksymbol and bpf_event: their records grow with each
 * listener (perf_event_ksymbol_output(), seen on 6.18), so that those of a perf record beside us
 * would end in garbage. An iterator lists BPF programs instead.
 */
static void make_attr(struct perf_event_attr *ret)
{
	*ret = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(*ret),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PP_SIDEBAND_SAMPLE_TYPE,
		.sample_id_all = 1,
		.mmap = 1, /* executable mappings; mmap_data: the others */
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.namespaces = 1,
		.cgroup = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		/* Nobody needs wakeups (daemon/keeper/keep.c): as few as possible. */
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};
}

static int open_events(const struct pp_cpumask *cpus, struct pp_cpumask *ret_cpus,
		       struct pp_fds *fds, struct failure *f)
{
	struct perf_event_attr attr;
	struct pp_cpumask online;
	int r = pp_cpus_read("online", &online);

	if (r < 0)
		return fail(f, -r, "Cannot read which CPUs are online: %s.", strerror(-r));
	make_attr(&attr);
	PP_CPUMASK_FOREACH(cpu, cpus)
	{
		int fd = pp_cpumask_test(&online, cpu) ? perf_open(&attr, cpu) : -ENODEV;

		if (fd == -ENODEV)
			continue; /* offline, or went offline meanwhile */
		if (fd < 0)
			return fail(f, -fd,
				    "Cannot open the perf event that tells of processes on CPU %u: "
				    "%s; %s.",
				    cpu, strerror(-fd),
				    fd == -EMFILE ? "raise LimitNOFILE= of the engine"
						  : "samples are recorded without it, and have "
						    "no names");
		fds->fd[fds->n++] = fd;
		pp_cpumask_set(ret_cpus, cpu);
	}
	return 0;
}

/* ── iterators ──────────────────────────────────────────────────────────────────────────── */

/* The iterator holds its program; reading it does not need the link. */
static int open_once(int link)
{
	return bpf_iter_create(link);
}

/* Each open() of a pin makes an iterator. An O_PATH descriptor allows that without a path, and is
 * not an iterator itself. The pin has a bpffs of its own: a descriptor of something in the registry
 * would keep that mounted. */
static int open_again(int link, uid_t reader)
{
	_cleanup_close_ int mount = detached_mount("bpf");
	char pin[64];
	int fd;

	if (mount < 0)
		return mount;
	/* BPF_F_PATH_FD needs Linux 6.5. */
	snprintf(pin, sizeof(pin), "/proc/self/fd/%d/programs", mount);
	if (bpf_obj_pin(link, pin) < 0 || fchmodat(mount, "programs", 0400, 0) < 0 ||
	    fchownat(mount, "programs", reader, (gid_t)-1, 0) < 0)
		return -errno;
	fd = openat(mount, "programs", O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_iterators_of(const struct iterators_bpf *skel, uid_t reader, struct pp_fds *fds)
{
	struct bpf_program *programs[] = { skel->progs.pp_tasks, skel->progs.pp_maps,
					   skel->progs.pp_programs };

	_Static_assert(ARRAY_SIZE(programs) == PP_KEEP_ITERATORS, "as the keeper wants them");
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		_cleanup_close_ int link =
			bpf_link_create(bpf_program__fd(programs[i]), 0, BPF_TRACE_ITER, NULL);
		int fd = link;

		if (link >= 0)
			fd = programs[i] == skel->progs.pp_programs ? open_again(link, reader)
								    : open_once(link);
		if (fd < 0)
			return fd;
		fds->fd[fds->n++] = fd;
	}
	return 0;
}

static int load_iterators(uid_t reader, struct pp_fds *fds)
{
	const struct iterators_bpf *skel;
	int tasks, r = iterators_load(reader, &skel, &tasks);

	if (r >= 0)
		r = tasks;
	return r < 0 ? r : open_iterators_of(skel, reader, fds);
}

static int open_iterators(uid_t reader, struct pp_fds *fds, struct failure *f)
{
	int r;

	if (!kernel_has_btf())
		return fail(f, EOPNOTSUPP,
			    "Cannot tell which processes are running: this kernel does not "
			    "describe itself in /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF); "
			    "those that were running before the first event have no names.");
	r = load_iterators(reader, fds);
	if (r < 0)
		return fail(f, -r,
			    "Cannot load the programs that tell which processes are running: %s; "
			    "those that were running before the first event have no names.",
			    strerror(-r));
	return 0;
}

int sideband_open(const struct pp_cpumask *cpus, uint32_t what, uid_t reader,
		  struct pp_cpumask *ret_cpus, struct pp_fds *ret_fds, struct failure *f)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };
	struct pp_cpumask online = {};
	int r = open_events(cpus, &online, &fds, f);

	if (r >= 0 && what & PP_SIDEBAND_TASKS)
		r = open_iterators(reader, &fds, f);
	if (r < 0)
		return r;
	*ret_cpus = online;
	*ret_fds = fds;
	fds.n = 0;
	return 0;
}
