// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts what cannot be taken back. See entries.h. */
#include "daemon/engine/event/entries.h"

#include <bpf/bpf.h>
#include <stdlib.h>

#include "proto/macro.h"

struct entry {
	uint32_t program; /* the kernel's id */
	uid_t uid;
	uint64_t event;
};

static struct entry *entries;
static size_t n_entries;

static bool is_there(const struct entry *e)
{
	_cleanup_close_ int fd = bpf_prog_get_fd_by_id(e->program);

	return fd != -ENOENT;
}

static void drop_ended(void)
{
	size_t n = 0;

	for (size_t i = 0; i < n_entries; i++)
		if (is_there(&entries[i]))
			entries[n++] = entries[i];
	n_entries = n;
}

int entries_check(uid_t uid, const struct pp_allowance *allowance, bool (*is_charged)(uint64_t id),
		  struct failure *f)
{
	size_t kept = 0;

	drop_ended();
	for (size_t i = 0; i < n_entries; i++)
		kept += entries[i].uid == uid && !is_charged(entries[i].event);
	if (!allowance || kept < allowance->sources)
		return 0;
	return fail(f, EDQUOT,
		    "User %u still holds the programs of %zu adoptions that have ended, and these "
		    "count as programs: close them, or their processes (MaxProgramsPerUser=).",
		    uid, kept);
}

int entries_add(int program, uid_t uid, uint64_t event)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);
	struct entry *more;

	if (bpf_obj_get_info_by_fd(program, &info, &size) < 0)
		return -errno;
	more = reallocarray(entries, n_entries + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	entries = more;
	entries[n_entries++] = (struct entry){ .program = info.id, .uid = uid, .event = event };
	return 0;
}
