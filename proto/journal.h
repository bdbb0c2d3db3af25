/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether a file is the systemd journal: then an entry with fields says more than a line in it. */
#pragma once

#include <stdbool.h>

/* JOURNAL_STREAM names the stream that systemd connected; the file may be another one since. */
bool pp_is_journal(int fd);
