// SPDX-License-Identifier: LGPL-2.1-or-later
#include "proto/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

bool pp_is_journal(int fd)
{
	const char *v = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;
	int end = 0;

	return v && sscanf(v, "%llu:%llu%n", &dev, &ino, &end) == 2 && !v[end] &&
	       fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}
