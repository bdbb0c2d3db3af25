/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the registry's text files of an event, `info` and `stat`. Knows no other file there. */
#pragma once

#include "client/perfpersist.h"

/*
 * From the event's directory. -ENOENT (no such file: not an event), -EBADMSG (it lacks its id or
 * its names), another -errno of reading.
 */
int textfile_read_event(int dir_fd, struct perfpersist_info *ret);

/*
 * The same from a save, where nothing is trusted: as above, or what saved_file_open() returns;
 * -EBADMSG also if it does not say when it was saved.
 */
int textfile_read_saved(int dir_fd, struct perfpersist_info *ret);
