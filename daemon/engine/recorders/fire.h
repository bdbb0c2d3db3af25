/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What fires a trigger (bpf/fire.bpf.c): a function for the recording programs of the trigger's event, and a
 * program that they go on to. Knows neither the event nor the targets' names.
 */
#pragma once

#include "daemon/engine/recorders/recorder.h"
#include "daemon/trigger.h"

/* Its maps. */
struct fire {
	int state_fd;	/* of a struct pp_trigger */
	int targets_fd; /* ARRAY_OF_MAPS of tapes, PP_TARGETS_MAX slots, filled from the first */
	int pending_fd; /* PERCPU_ARRAY of one struct pp_fired: what has fired and is not told */
	int firings_fd; /* the ring buffer that tells the broker: for fire_load_tell() */
	int sending_fd; /* which CPUs are sending: likewise */
};

/* The function. The maps stay open until the programs that call it are loaded. *ret is the caller's. -errno. */
int fire_make(const struct fire *fire, struct recorder_fire *ret);
void fire_done(struct recorder_fire *fire);

/* Loads the program, for programs of that class. *ret_fd is the caller's. -errno of the kernel. */
int fire_load_tell(const struct fire *fire, const struct recorder_class *class, int *ret_fd);

/* Whether the source begins pairs, and their key is the current task (tid, pid), and no field of the
 * event. */
bool fire_key_is_task(const struct source *source, const struct pp_condition *condition);
