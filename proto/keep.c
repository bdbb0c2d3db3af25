// SPDX-License-Identifier: LGPL-2.1-or-later
#include "keep.h"

#include "macro.h"

void pp_keep_describe(const struct pp_keep_answer *a, struct pp_msg_sideband_reply *ret)
{
	const struct pp_keep_status *s = &a->status;

	*ret = (struct pp_msg_sideband_reply){
		.keeping = s->keeping != 0,
		.pid = a->pid,
		.size = a->size,
		.began = s->began,
		.complete = s->complete,
		.lost = s->lost,
		.forgotten = s->forgotten,
		.processes = s->processes,
		.ended = s->ended,
		.memory = s->memory,
		.max_memory = s->max_memory,
		.cpu_time = s->cpu_time,
		.unseen = (uint32_t)MIN(s->unseen, UINT32_MAX),
	};
}
