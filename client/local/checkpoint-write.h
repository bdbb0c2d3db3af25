/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes an event's checkpoints to its file. Knows an open file, not its directory. */
#pragma once

#include "client/local/checkpoint-file.h"
#include "client/rings/event.h"

struct checkpoint_writer {
	struct perfpersist_event *event;
	unsigned generation; /* of its rings, for which the layout is */
	struct checkpoint_layout layout;
	struct checkpoint_slot *slot; /* as it is on the disk; the next checkpoint begins with it */
	struct checkpoint_slot *next;
	unsigned which;	    /* the slot that is written next */
	uint64_t *complete; /* of each ring: CLOCK_MONOTONIC, ns, until when nothing of it waits */
	size_t first;	    /* the ring that the next checkpoint begins with */
	int fd;
};

/* Lays out an event's file; the writer has no file yet. Keeps a reference to e. */
int checkpoint_writer_init(struct checkpoint_writer *w, struct perfpersist_event *e);
void checkpoint_writer_done(struct checkpoint_writer *w);

/* Makes the contents of an empty file, with all of its space. Takes fd over if it succeeds. */
int checkpoint_writer_begin(struct checkpoint_writer *w, int fd);

/* Goes on with a file that has at least one checkpoint. 1: it is this event's, fd is taken over; 0: it
 * is not. */
int checkpoint_writer_resume(struct checkpoint_writer *w, int fd);

/* See perfpersist_checkpoint_write(). */
int checkpoint_writer_write(struct checkpoint_writer *w, uint64_t max_bytes,
			    struct perfpersist_checkpoint_stat *ret);
