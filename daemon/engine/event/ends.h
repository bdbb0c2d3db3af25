/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Watches the targets of bound events, to tell the broker when one has ended: by pidfds; of what has none, a cgroup or
 * (before Linux 6.9) a thread, by a look a second, while there is such a one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/protocol.h"

/* So many at most, of all users: each holds a descriptor. */
#define ENDS_MAX 1024

/* Whether another can be watched. */
bool ends_have_room(void);

/* id: of the event; replaces what is watched for it. -ENOSPC: ENDS_MAX; -ENOMEM; -errno. */
int ends_watch(uint64_t id, const struct pp_msg_target *target);

/* 0: all. */
void ends_forget(uint64_t id);

/* To be polled: readable when a target has ended. -EBADF: none is watched so. */
int ends_fd(void);

/* Milliseconds until the next look is due; -1: none. */
int ends_timeout(void);

/* Tells each event whose target has ended, once, and forgets it. */
void ends_look(void (*fn)(uint64_t id, void *userdata), void *userdata);
