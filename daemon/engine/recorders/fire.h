/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the function that fires a trigger (bpf/fire.bpf.c), for the recording programs of the trigger's event.
 * Knows neither the event nor the targets' names.
 */
#pragma once

#include "daemon/engine/recorders/recorder.h"
#include "daemon/trigger.h"

/*
 * Of these maps, which stay the caller's, open until the programs are loaded:
 *   state    of a struct pp_trigger
 *   targets  ARRAY_OF_MAPS of tapes, PP_TARGETS_MAX slots, filled from the first
 *   firings  the ring buffer that tells the broker
 * -errno.
 */
int fire_make(int state_fd, int targets_fd, int firings_fd, struct recorder_fire *ret);
void fire_done(struct recorder_fire *fire);

/* Whether the source begins pairs, and their key is the current task (tid, pid), and no field of the
 * event. */
bool fire_key_is_task(const struct source *source, const struct pp_condition *condition);
