/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Answers requests from a save: a directory that mirrors the registry (proto/places.h), in plain
 * files.
 *
 *   NAMESPACE/EVENT/info, stat   text as in the registry; info also says when it was saved
 *   NAMESPACE/EVENT/cpuN         a ring at rest (proto/ring.h)
 *   NAMESPACE/EVENT/catalog      if several sources (proto/catalog.h)
 *   +sideband                    processes (proto/sideband.h); for its owner alone
 *
 * Access to the files decides who may read events. The files are untrusted: they may come from
 * anywhere.
 */
#pragma once

#include "client/request/request.h"

/*
 * Opens a save: the one at a path, the newest in the directory at a path, the instance's own of
 * that name, or (which is "") the instance's newest. *ret_path is for free(3), *ret_fd is its
 * directory. -ENOENT, or another -errno, with an error message.
 */
int saved_open(const char *instance, const char *which, char **ret_path, int *ret_fd);

/* Carries out a request and fills in its answer: 0 or a negative errno value. */
int saved_run(const char *path, int fd, struct request *req);
