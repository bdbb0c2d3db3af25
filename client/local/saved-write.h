/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes an event into a save that is being made. Knows the event's directory, not the save's.
 */
#pragma once

#include <sys/types.h>

#include "client/rings/event.h"

/* Who may have it: the group (-1: stays the caller's) and the mode of plain files. */
struct saved_rights {
	gid_t group;
	mode_t mode;
};

/* A namespace's, as a save gives them: reading alone, and to its group and others alone. */
struct saved_rights saved_rights_of(const struct perfpersist_info *info);

/* The mode that goes with it for directories. */
mode_t saved_dir_mode(const struct saved_rights *rights);

/* Gives an open file or directory its group and mode. A group that the caller may not give away to
 * gets nothing. 0 or -errno. */
int saved_give(int fd, const struct saved_rights *rights, mode_t mode);

int saved_write_file(int dir_fd, const char *name, const void *bytes, size_t n,
		     const struct saved_rights *rights);

struct saved_ring_counts {
	uint64_t held, held_bytes;		  /* what the file has */
	uint64_t records, bytes, limited, missed; /* since the ring was made */
	bool damaged;				  /* and no more of it could be read */
};

/* A ring at rest, as it is just now. 0; -ENOMEM or another -errno, of writing. */
int saved_write_ring(int dir_fd, const char *name, const struct client_ring *ring,
		     const struct client_catalog *catalog, const struct saved_rights *rights,
		     struct saved_ring_counts *ret);

struct saved_event_counts {
	uint64_t records, bytes; /* that the files have */
	size_t damaged;		 /* rings */
};

/* All files of an event. ret_file: the one that failed. */
int saved_write_event(int dir_fd, struct perfpersist_event *e, const struct perfpersist_info *info,
		      struct saved_event_counts *ret, char ret_file[static 32]);
