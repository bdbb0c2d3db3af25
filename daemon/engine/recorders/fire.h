/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads the program that fires a trigger (bpf/fire.bpf.c). The recording programs of the trigger's
 * event go on to it (recorder_target.fire_fd). Knows neither the event nor the targets' names.
 */
#pragma once

#include "daemon/trigger.h"
#include "daemon/engine/recorders/recorder.h"

struct fire {
	int state_fd;	/* of a struct pp_trigger */
	int targets_fd; /* ARRAY_OF_MAPS of tapes, PP_TARGETS_MAX slots, filled from the first */
	int firings_fd; /* the ring buffer that tells the broker */
};

/* Loads it for programs of that class. *ret_fd is the caller's. -errno of the kernel. */
int fire_load(const struct fire *fire, const struct recorder_class *class, int *ret_fd);

/* Whether the source begins pairs, and their key is the current task (tid, pid), and no field of the
 * event. */
bool fire_key_is_task(const struct source *source, const struct pp_condition *condition);
