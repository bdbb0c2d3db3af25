// SPDX-License-Identifier: LGPL-2.1-or-later
/* Loads the engine's iterators. See iterators.h. */
#include "daemon/engine/registry/iterators.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <unistd.h>

#include "daemon/cpus.h"
#include "daemon/engine/kernel/kernel.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/log.h"
#include "daemon/totals.h"
#include "proto/macro.h"

/* Each CPU reserves up to that many free elements of such a map for itself (LOCAL_FREE_TARGET in
 * kernel/bpf/bpf_lru_list.c, 6.1 to 7.3). */
#define KNOWN_EVENTS 4096
#define KNOWN_BY_CPU 128

static struct iterators_bpf *skeleton;
static int without_tasks; /* why */

/* Begins with a new map if another engine's has another form; else goes on with the one there is. */
static int share_known(struct bpf_map *known)
{
	_cleanup_close_ int fd = bpf_obj_get(PP_TOTALS_KNOWN);
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);

	if (fd < 0 && fd != -ENOENT)
		return fd;
	if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	if (fd >= 0 &&
	    (info.type != bpf_map__type(known) || info.key_size != bpf_map__key_size(known) ||
	     info.value_size != bpf_map__value_size(known) ||
	     info.max_entries != bpf_map__max_entries(known) ||
	     info.map_flags != bpf_map__map_flags(known)) &&
	    unlink(PP_TOTALS_KNOWN) < 0)
		return -errno;
	return bpf_map__set_pin_path(known, PP_TOTALS_KNOWN);
}

static int set_up(struct iterators_bpf *s, bool totals, bool tasks)
{
	int possible = pp_cpus_possible(), r;

	if (possible < 0)
		return possible;
	bpf_program__set_autoload(s->progs.totals, totals);
	bpf_program__set_autoload(s->progs.pp_tasks, tasks);
	bpf_program__set_autoload(s->progs.pp_maps, tasks);
	bpf_program__set_autoload(s->progs.pp_programs, tasks);
	bpf_program__set_autoload(s->progs.pp_links, tasks);
	s->rodata->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	s->rodata->possible_cpus = (uint32_t)possible;
	r = bpf_map__set_max_entries(s->maps.known, KNOWN_EVENTS + possible * KNOWN_BY_CPU);
	if (r >= 0 && totals)
		r = share_known(s->maps.known);
	return r;
}

static int load_with(bool totals, bool tasks)
{
	struct iterators_bpf *s = iterators_bpf__open();
	int r;

	if (!s)
		return -errno;
	r = set_up(s, totals, tasks);
	if (r >= 0)
		r = iterators_bpf__load(s);
	if (r < 0)
		iterators_bpf__destroy(s);
	else
		skeleton = s;
	return r;
}

static int load_with_totals(bool tasks, uid_t broker)
{
	int r = load_with(true, tasks);

	return r < 0 ? r
		     : pins_put(".", bpf_program__fd(skeleton->progs.totals), PP_TOTALS, broker, 0,
				0660);
}

/* Whether to try with fewer programs: the kernel refuses these, and does so at the next call. */
static bool is_refused(int r)
{
	return !skeleton && !kernel_lacks_for_now(r);
}

/* Without totals the registry has its files, and lists take longer. */
static int load(uid_t broker)
{
	int r = load_with_totals(true, broker), without_totals = r;

	without_tasks = 0;
	if (is_refused(r))
		r = load_with(false, true);
	if (is_refused(r)) {
		without_tasks = r;
		r = without_totals = load_with_totals(false, broker);
	}
	if (is_refused(r))
		r = load_with(false, false);
	if (!skeleton)
		return r;
	if (without_totals < 0)
		log_notice("Lists of many events take longer: the program that counts for them "
			   "cannot be loaded (%s).",
			   strerror(-without_totals));
	return 0;
}

int iterators_load(uid_t broker, const struct iterators_bpf **ret, int *ret_tasks)
{
	int r = 0;

	if (!skeleton)
		r = kernel_has_btf() ? load(broker) : -EOPNOTSUPP;
	if (r < 0)
		return r;
	*ret = skeleton;
	*ret_tasks = without_tasks;
	return 0;
}
