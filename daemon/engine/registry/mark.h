/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells readers that have an event's rings mapped about a new state: pp_ring_live.state. Rings are
 * frozen, so not even the engine can write them; but programs can, and one made for the purpose
 * runs once.
 */
#pragma once

#include <stddef.h>

#include "proto/ring.h"

/* Writes the state into these rings. -errno: some may not have it. */
int mark_rings(const int *ring_fds, size_t n, enum pp_ring_state state);

/*
 * The same for the rings that the `meta` in an event's directory ("NAMESPACE/EVENT", "+del-ID")
 * lists, as far as they still exist. -errno.
 */
int mark_path(const char *event_path, enum pp_ring_state state);
