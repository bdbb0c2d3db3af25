// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes the function and loads the program that fire triggers. See fire.h. */
#include "daemon/engine/recorders/fire.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/bpf/fire.h"
#include "daemon/engine/emit/filter-leaf.h"
#include "daemon/engine/emit/template.h"
#include "daemon/engine/recorders/writer.h"
#include "fire.skel.h"
#include "proto/macro.h"

static struct fire_bpf *template; /* loaded at first use and kept */

static int load_template(void)
{
	if (!template)
		template = fire_bpf__open_and_load();
	return template ? 0 : -errno;
}

int fire_make(const struct fire *fire, struct recorder_fire *ret)
{
	int r = load_template();

	if (r < 0)
		return r;

	const struct template_map maps[] = {
		{ .template_fd = bpf_map__fd(template->maps.data_state), .fd = fire->state_fd },
		{ .template_fd = bpf_map__fd(template->maps.targets), .fd = fire->targets_fd },
		{ .template_fd = bpf_map__fd(template->maps.pending), .fd = fire->pending_fd },
	};

	return template_function(template->progs.pp_fire, maps, ARRAY_SIZE(maps), &ret->insns,
				 &ret->n);
}

void fire_done(struct recorder_fire *fire)
{
	free(fire->insns);
	*fire = (struct recorder_fire){};
}

int fire_load_tell(const struct fire *fire, const struct recorder_class *class, int *ret_fd)
{
	_cleanup_free_ struct fire_bpf__rodata *constants = NULL;
	int r = load_template();

	if (r < 0)
		return r;
	constants = writer_constants(template->maps.rodata, template->rodata);
	if (!constants)
		return -ENOMEM;
	constants->fire_constants.result = (uint64_t) class->result;

	const struct template_map maps[] = {
		{ .template_fd = bpf_map__fd(template->maps.data_state), .fd = fire->state_fd },
		{ .template_fd = bpf_map__fd(template->maps.targets), .fd = fire->targets_fd },
		{ .template_fd = bpf_map__fd(template->maps.pending), .fd = fire->pending_fd },
		{ .template_fd = bpf_map__fd(template->maps.firings), .fd = fire->firings_fd },
		{ .template_fd = bpf_map__fd(template->maps.sending), .fd = fire->sending_fd },
	};
	const struct template_changes changes = {
		.maps = maps,
		.n_maps = ARRAY_SIZE(maps),
		.rodata_fd = bpf_map__fd(template->maps.rodata),
		.constants = constants,
		.constants_size = bpf_map__value_size(template->maps.rodata),
		.class = class,
	};

	return template_load(template->progs.pp_tell, &changes, "pp_tell", ret_fd);
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
