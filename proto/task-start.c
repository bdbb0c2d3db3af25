// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads /proc/TID/stat. See task-start.h. */
#include "task-start.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "macro.h"

#define STATE_FIELD 3
#define START_FIELD 22

/* The name in front of the state may have blanks, newlines and brackets in it; the last bracket is its end. */
static const char *find_state(const char *text)
{
	const char *bracket = strrchr(text, ')');

	return bracket && bracket[1] == ' ' && bracket[2] ? bracket + 2 : NULL;
}

static const char *skip_fields(const char *at, unsigned n)
{
	for (; at && n > 0; n--) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at;
}

int pp_task_start(uint32_t tid, uint64_t *ret, char *ret_state)
{
	char path[32], text[1024] = "";
	_cleanup_fclose_ FILE *f = NULL;
	const char *state, *start;

	snprintf(path, sizeof(path), "/proc/%u/stat", tid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	errno = 0;
	if (!fread(text, 1, sizeof(text) - 1, f))
		return errno ? -errno : -ESRCH; /* ESRCH: it has ended meanwhile */
	state = find_state(text);
	start = skip_fields(state, START_FIELD - STATE_FIELD);
	if (!start || sscanf(start, "%" SCNu64, ret) != 1)
		return -EBADMSG;
	if (ret_state)
		*ret_state = *state;
	return 0;
}
