/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The spool: a directory of perf.data files, one for each firing of a trigger. A file is there as a
 * whole or not at all, and within limits: the namespace that has most loses its oldest first, and the newest of
 * all stays in any case.
 *
 * A name is TIME.NAMESPACE.TRIGGER.NUMBER.COMM-PID.ID.data, TIME in UTC as of the firing. IDs count
 * up whatever the clock does, so they give the order: each is that of its tapes, or the next one after those that
 * are there. So an ID does not tell which tapes a file has; that stands behind perf's data, where perf does
 * not look.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SPOOL_NAME_SIZE 256

struct spooled {
	char name[SPOOL_NAME_SIZE];
	char ns[64], trigger[64];
	uint64_t number, id;
	char comm[16];
	/* 0: fired by hand (comm is "hand"), on an idle CPU, or because an end was missing ("overdue") whose
	 * key is no task */
	uint32_t pid;
	uint64_t time;	/* CLOCK_REALTIME, ns; in whole seconds */
	uint64_t bytes; /* on the disk */
	uint64_t mtime; /* CLOCK_REALTIME, ns */
};

/* "/var/lib/perfpersist[-INSTANCE]/snapshots". 0; -EINVAL, -ENAMETOOLONG. */
int spool_place(const char *instance, char *buf, size_t size);

/* Writes the name of what f says. */
void spool_name(struct spooled *f);

/* 0; -EINVAL: no name of the spool. Does not set bytes and mtime. */
int spool_parse(const char *name, struct spooled *ret);

/* Lists the directory, the oldest first; *ret is for free(3). A directory that does not exist is
 * empty. -errno. */
int spool_list(const char *directory, struct spooled **ret, size_t *ret_n);
int spool_list_at(int directory, struct spooled **ret, size_t *ret_n);

struct spool_limits {
	uint64_t files, files_of_trigger; /* 0: no limit; like the others */
	uint64_t bytes;
	uint64_t age; /* ns */
};

/*
 * Removes files until one more, of that trigger (NULL: none is to come) and of so many bytes, is within the limits:
 * those that are too old, by their own times; the oldest of a trigger that has too many; and, while all are
 * too many, the oldest of the namespace that has most files, or bytes. Returns how many it removed; -errno of the
 * first that could not be.
 */
int spool_make_room(const char *directory, const struct spool_limits *limits,
		    const struct spooled *coming, uint64_t bytes);

/* Writes behind a whole file that it has these tapes (one, or more) of one firing. -errno. */
struct perfpersist_tape;
int spool_mark(int fd, const struct perfpersist_tape *tapes, size_t n);

/* Whether it does; false, too, if that cannot be read. An event that is frozen without a second set is its own
 * tape, with one id for all firings: the firing counts, too. */
bool spool_has(const char *directory, const struct spooled *f, const struct perfpersist_tape *tape);

/* Removes what a writer that was killed left under a hidden name (output/outfile.h). */
void spool_sweep(const char *directory);

/* For one more, of so many bytes: removes the oldest of the namespace that has most bytes then, but not the newest of
 * all. ret_bytes: what that took on the disk. 1; 0: there is no other; -errno. */
int spool_remove_one(const char *directory, const struct spooled *coming, uint64_t bytes,
		     uint64_t *ret_bytes);
