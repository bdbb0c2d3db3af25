/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tapes: the rings that a trigger's firing has turned an event away from. Nothing is written to them
 * any more, and they are kept until the broker says that they are saved: the directory "+tape-ID"
 * (or "+kept-ID", if nobody saves them unasked) has their pins, the event's `meta`, and the firing.
 * Their memory is charged as orphans of this id.
 */
#pragma once

#include "daemon/order.h"
#include "daemon/trigger.h"

struct tape {
	uint64_t id;
	struct pp_event event; /* as it was then */
	struct pp_fired by;
};

/* Pins the firing in the event's directory. -errno. */
int tapes_mark(const char *path, const char *leaf, const struct pp_fired *by);

/* Likewise, so that what is replaced or removed becomes a tape; also one that is kept for whoever asks. */
int tapes_mark_fired(const char *path, const struct pp_fired *by);

/* -ENOENT: there is none; -errno. */
int tapes_read_mark(const char *path, const char *leaf, struct pp_fired *ret);

/* Runs fn for each tape, until it returns < 0; returns that, or 0. Logs those that it cannot read,
 * and leaves them out. */
int tapes_foreach(int (*fn)(const struct tape *tape, void *userdata), void *userdata);

/* -ENOENT: there is none with this id; -errno. */
int tapes_read(uint64_t id, struct tape *ret);

/* It is saved, or nobody wants it: goes as the rings of a deleted event do. -ENOENT; -errno. */
int tapes_release(uint64_t id);
