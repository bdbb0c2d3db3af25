/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An instance's sockets, created by root where there is no service manager. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Replaces a dead socket by a listening one for its owner; leaf is "/engine" and the like. 0;
 * -errno (logged). */
int socket_listen(const char *instance, const char *leaf, mode_t mode, uid_t owner, int *ret);

/* Connects to the socket: CLOEXEC, non-blocking. -EAGAIN: a listener exists and is overloaded;
 * -errno: there is none. */
int socket_connect(const char *path);

bool socket_answers(const char *path);
