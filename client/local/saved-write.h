/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes an event into a save that is being made. Knows the event's directory, not the save's.
 */
#pragma once

#include <stdio.h>
#include <sys/types.h>

#include "client/rings/event.h"

/* Access rights: the group (-1: the caller's) and the mode of plain files. */
struct saved_rights {
	gid_t group;
	mode_t mode;
};

/* A namespace's rights as a save gives them: read-only, for its group and others. */
struct saved_rights saved_rights_of(const struct perfpersist_info *info);

/* The matching mode for directories. */
mode_t saved_dir_mode(const struct saved_rights *rights);

/* Gives an open file or directory its group and mode. If the caller may not set the group, the
 * group gets no rights. 0 or -errno. */
int saved_give(int fd, const struct saved_rights *rights, mode_t mode);

int saved_write_file(int dir_fd, const char *name, const void *bytes, size_t n,
		     const struct saved_rights *rights);

/* The text of an event, as `info` has it; saved, saved_mono 0: without them. */
void saved_print_info(FILE *f, const struct perfpersist_info *info);

struct saved_ring_counts {
	uint64_t held, held_bytes;		  /* in the file */
	uint64_t records, bytes, limited, missed; /* since the ring was made */
	bool damaged;				  /* the rest could not be read */
};

/* Writes a ring at rest, as it is now. 0; -ENOMEM or another -errno of writing. */
int saved_write_ring(int dir_fd, const char *name, const struct client_ring *ring,
		     const struct client_catalog *catalog, const struct saved_rights *rights,
		     struct saved_ring_counts *ret);

struct saved_event_counts {
	uint64_t records, bytes; /* in the files */
	size_t damaged;		 /* rings */
};

/* Writes all files of an event. event->saved 0: it is saved now. ret_file: the one that failed. */
int saved_write_event(int dir_fd, struct perfpersist_event *e, const struct perfpersist_info *event,
		      struct saved_event_counts *ret, char ret_file[static 32]);
