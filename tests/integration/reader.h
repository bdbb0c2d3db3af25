/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For helpers that read as another user: connections and processes without rights.
 */
#pragma once

#include <grp.h>

#include "tests/integration/observe.h"

#define READER_ID 65534 /* nobody, in no other group */

/* Connects as nobody: the socket's credentials are those at the time of connecting. */
static inline struct perfpersist *connect_as_reader(const char *instance)
{
	gid_t groups[64];
	int n = getgroups(64, groups);
	struct perfpersist *p;

	if (n < 0 || setgroups(0, NULL) < 0 || setegid(READER_ID) < 0 || seteuid(READER_ID) < 0)
		die("cannot become uid %d: %m", READER_ID);
	p = connect_to(instance);
	if (seteuid(0) < 0 || setegid(0) < 0 || setgroups((size_t)n, groups) < 0)
		die("cannot become root again: %m");
	return p;
}

/* Cannot be undone. */
static inline void become_reader(void)
{
	if (setgroups(0, NULL) < 0 || setresgid(READER_ID, READER_ID, READER_ID) < 0 ||
	    setresuid(READER_ID, READER_ID, READER_ID) < 0)
		die("cannot become uid %d: %m", READER_ID);
}

static inline struct perfpersist_event *open_copies(struct perfpersist *p, const char *name)
{
	struct perfpersist_event *e = open_event(p, name);

	if (!perfpersist_event_is_copy(e))
		die("%s: a reader of copies got the rings", name);
	return e;
}
