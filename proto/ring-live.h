/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the live words of a ring that is being written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring.h"

/*
 * Reads head and the counts that belong to it: while reserve == head no record is under way, and if
 * head is the same before and after, none has come. On a ring that never rests, the counts may be
 * ahead of head by the records under way. Returns whether they are exact.
 *
 * load: reads a word of 8 bytes at an offset of the ring (acquire).
 */
bool pp_ring_read_live(uint64_t (*load)(const void *ring, size_t at), const void *ring,
		       struct pp_ring_live *ret);
