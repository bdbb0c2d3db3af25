// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes the function that fires triggers. See fire.h. */
#include "daemon/engine/recorders/fire.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/emit/filter-leaf.h"
#include "daemon/engine/emit/template.h"
#include "fire.skel.h"
#include "proto/macro.h"

static struct fire_bpf *template; /* loaded at first use and kept */

static int load_template(void)
{
	if (!template)
		template = fire_bpf__open_and_load();
	return template ? 0 : -errno;
}

int fire_make(int state_fd, int targets_fd, int firings_fd, struct recorder_fire *ret)
{
	_cleanup_close_ int heres = -EBADF;
	int r = load_template();

	if (r < 0)
		return r;
	heres = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "pp_heres", 4,
			       bpf_map__value_size(template->maps.heres), 1, NULL);
	if (heres < 0)
		return heres;

	const struct template_map maps[] = {
		{ .template_fd = bpf_map__fd(template->maps.heres), .fd = heres },
		{ .template_fd = bpf_map__fd(template->maps.data_state), .fd = state_fd },
		{ .template_fd = bpf_map__fd(template->maps.targets), .fd = targets_fd },
		{ .template_fd = bpf_map__fd(template->maps.firings), .fd = firings_fd },
	};

	r = template_function(template->progs.pp_fire, maps, ARRAY_SIZE(maps), &ret->insns,
			      &ret->n);
	if (r >= 0)
		ret->heres_fd = TAKE_FD(heres);
	return r;
}

void fire_done(struct recorder_fire *fire)
{
	if (fire->insns)
		close_fd(fire->heres_fd);
	free(fire->insns);
	*fire = (struct recorder_fire){};
}

bool fire_key_is_task(const struct source *source, const struct pp_condition *condition)
{
	static const char *const names[] = { "tid", "TID", "pid", "PID" };

	if (condition->kind != PP_CONDITION_PAIR || source->term >= condition->n_on ||
	    filter_find_field(source->tp, condition->key[0]))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(condition->key[0], names[i]))
			return true;
	return false;
}
