/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads an event's text files in the registry, `info` and `stat`. Knows no other file there. */
#pragma once

#include "client/perfpersist.h"

/* dir_fd: the event's directory. -ENOENT (no such file: not an event), -EBADMSG (id or names are
 * missing), another -errno of reading. */
int textfile_read_event(int dir_fd, struct perfpersist_info *ret);

/* Parses the text of `info`, and modifies it. -EBADMSG: id or names are missing or wrong. */
int textfile_parse_info(char *text, struct perfpersist_info *ret);

/* Likewise from a save, where nothing is trusted: errors as above, or those of saved_file_open();
 * -EBADMSG also if the time of the save is missing. */
int textfile_read_saved(int dir_fd, struct perfpersist_info *ret);
