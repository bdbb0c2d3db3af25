// SPDX-License-Identifier: LGPL-2.1-or-later
/* When CPUs went offline. See cpu-states.h. */
#include "daemon/engine/registry/cpu-states.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "cpu-states.skel.h"
#include "daemon/cpus.h"
#include "daemon/engine/kernel/kernel.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/hotplug.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"

static struct {
	int fd;
	struct pp_cpu_state *of; /* each CPU; NULL: unknown */
	unsigned n;
} states = { .fd = -EBADF };

int cpu_states_fd(void)
{
	return states.fd;
}

/* The program writes `away` before the generation, so this reads them in reverse. */
uint64_t cpu_states_generation(unsigned cpu)
{
	uint64_t generation;

	if (cpu >= states.n)
		return 0;
	generation = __atomic_load_n(&states.of[cpu].generation, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&states.of[cpu].away, __ATOMIC_ACQUIRE) ? CPU_STATES_NONE
								       : generation;
}

/* ── the state in sysfs ─────────────────────────────────────────────────────────────────── */

static void replace(__u64 *word, __u64 old, __u64 new)
{
	__atomic_compare_exchange_n(word, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Marks CPUs that were offline before the program existed. They may come online meanwhile. */
static int note_offline(uint64_t time)
{
	struct pp_cpumask present, online;
	int r = pp_cpus_read("present", &present);

	if (r >= 0)
		r = pp_cpus_read("online", &online);
	for (unsigned cpu = 0; r >= 0 && cpu < states.n; cpu++)
		if (pp_cpumask_test(&present, cpu) && !pp_cpumask_test(&online, cpu))
			replace(&states.of[cpu].away, 0, time);
	if (r >= 0)
		r = pp_cpus_read("online", &online);
	for (unsigned cpu = 0; r >= 0 && cpu < states.n; cpu++)
		if (pp_cpumask_test(&online, cpu))
			replace(&states.of[cpu].away, time, 0);
	return r;
}

/* Clears an engine's mark of a CPU that is online and that the program never saw offline. */
static int note_online(void)
{
	struct pp_cpumask online;
	int r = pp_cpus_read("online", &online);

	for (unsigned cpu = 0; r >= 0 && cpu < states.n; cpu++) {
		struct pp_cpu_state *s = &states.of[cpu];
		uint64_t away = __atomic_load_n(&s->away, __ATOMIC_ACQUIRE);

		if (away && pp_cpumask_test(&online, cpu) && !s->generation)
			replace(&s->away, away, 0);
	}
	return r;
}

/* ── map and link ───────────────────────────────────────────────────────────────────────── */

static int map_states(int fd)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);
	void *at;

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	if (info.value_size != sizeof(struct pp_cpu_state))
		return -ESTALE;
	at = mmap(NULL, info.max_entries * sizeof(struct pp_cpu_state), PROT_READ | PROT_WRITE,
		  MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	states.of = at;
	states.n = info.max_entries;
	states.fd = fd;
	return 0;
}

static void forget_states(void)
{
	if (states.of)
		munmap(states.of, states.n * sizeof(*states.of));
	states.of = NULL;
	states.n = 0;
	states.fd = close_fd(states.fd);
}

/*
 * The running kernel's number of the hotplug step in which perf events start and stop. BTF has it
 * as well, but would have to be read as a whole for it, while the boot waits.
 */
static int perf_step(void)
{
	_cleanup_fclose_ FILE *file = fopen("/sys/devices/system/cpu/hotplug/states", "re");
	char name[128];
	int step;

	/* " 154: perf:online" */
	while (file && fscanf(file, "%d: %127[^\n] ", &step, name) == 2)
		if (!strcmp(name, "perf:online"))
			return step;
	return -EOPNOTSUPP;
}

/* Loads the program, with this map or one of its own, and attaches it. The link is pinned before
 * the map: where the map is pinned the link was, too. */
static int load_and_attach(struct cpu_states_bpf *skel, int map_fd, int *ret_link)
{
	int possible = pp_cpus_possible(), step = perf_step(), r;

	if (possible < 0 || step < 0)
		return possible < 0 ? possible : step;
	skel->rodata->perf_online = step;
	if (map_fd >= 0)
		r = bpf_map__reuse_fd(skel->maps.pp_cpu_states, map_fd);
	else
		r = bpf_map__set_max_entries(skel->maps.pp_cpu_states, possible);
	if (r >= 0)
		r = cpu_states_bpf__load(skel);
	if (r < 0)
		return r;
	*ret_link = bpf_raw_tracepoint_open("cpuhp_enter", bpf_program__fd(skel->progs.pp_cpus));
	return *ret_link < 0 ? *ret_link : 0;
}

static int make_link(int map_fd, int *ret_map)
{
	struct cpu_states_bpf *skel = cpu_states_bpf__open();
	_cleanup_close_ int link = -EBADF;
	int r;

	if (!skel)
		return -EOPNOTSUPP;
	r = load_and_attach(skel, map_fd, &link);
	if (r >= 0 && bpf_obj_pin(link, PP_CPU_STATES_LINK) < 0)
		r = -errno;
	if (r >= 0)
		r = fcntl(bpf_map__fd(skel->maps.pp_cpu_states), F_DUPFD_CLOEXEC, 0);
	if (r >= 0)
		*ret_map = r;
	cpu_states_bpf__destroy(skel);
	return r < 0 ? r : 0;
}

/* Through its pin the map is read-only, even for us; by its id it can be written. */
static int open_map(void)
{
	LIBBPF_OPTS(bpf_obj_get_opts, opts, .file_flags = BPF_F_RDONLY);
	_cleanup_close_ int fd = bpf_obj_get_opts(PP_CPU_STATES, &opts);
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);

	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	return bpf_map_get_fd_by_id(info.id);
}

/* ── both ───────────────────────────────────────────────────────────────────────────────── */

static int find_or_make(bool *ret_new, bool *ret_doubt)
{
	_cleanup_close_ int fd = open_map(), made = -EBADF;
	int r;

	*ret_new = fd == -ENOENT;
	if (fd < 0 && !*ret_new)
		return fd;
	*ret_doubt = !*ret_new && access(PP_CPU_STATES_LINK, F_OK) < 0;
	if (*ret_new || *ret_doubt) {
		/* An engine that died between the two leaves a link without a map. */
		unlink(PP_CPU_STATES_LINK);
		r = make_link(fd, &made);
		if (r < 0)
			return r;
		close_fd(fd);
		fd = TAKE_FD(made);
	}
	r = map_states(fd);
	if (r >= 0)
		TAKE_FD(fd);
	return r;
}

/* The link was removed: any CPU may have been offline since. */
static void doubt_all(void)
{
	log_warning("The link " PP_CPU_STATES_LINK
		    " was missing in the registry; all counters of CPUs are attached again.");
	for (unsigned cpu = 0; cpu < states.n; cpu++)
		__atomic_fetch_add(&states.of[cpu].generation, 1, __ATOMIC_SEQ_CST);
}

static int make_true(uid_t broker, bool is_new, bool doubt)
{
	uint64_t time = pp_clock_ns(CLOCK_MONOTONIC);
	int r;

	if (doubt)
		doubt_all();
	r = note_offline(time);
	if (r >= 0)
		r = note_online();
	if (r >= 0 && is_new && bpf_obj_pin(states.fd, PP_CPU_STATES) < 0)
		r = -errno;
	return r < 0 ? r : pins_own(PP_CPU_STATES, broker, 0440);
}

int cpu_states_open(uid_t broker)
{
	bool is_new, doubt;
	int r = find_or_make(&is_new, &doubt);

	if (r >= 0)
		r = make_true(broker, is_new, doubt);
	if (r < 0) {
		forget_states();
		if (kernel_lacks_for_now(r))
			return r;
		log_notice("This kernel does not report CPUs that go offline (%s); counters are "
			   "attached again to every CPU that is said to have come online.",
			   strerror(-r));
	}
	return 0;
}
