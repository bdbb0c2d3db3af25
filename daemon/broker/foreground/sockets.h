/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An instance's sockets, made by root where no service manager makes them. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* A listening socket in the place of a dead one, for its owner; leaf is "/engine" and the like.
 * 0; -errno (logged). */
int socket_listen(const char *instance, const char *leaf, mode_t mode, uid_t owner, int *ret);

/* A connection to whoever listens there: CLOEXEC, non-blocking. -EAGAIN: somebody does, and has
 * more to do than it can; -errno: nobody. */
int socket_connect(const char *path);

bool socket_answers(const char *path);
