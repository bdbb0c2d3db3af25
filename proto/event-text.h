/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of an event for people and programs: the file `info`, in the registry and in saves, with
 * a line "key=value" for each field. Owns the keys and the words of their values; knows no files.
 */
#pragma once

#include <stdio.h>

#include "protocol.h"

struct pp_event_text {
	struct pp_msg_event event; /* state: running or paused; without the counts */
	uint64_t saved_mono; /* both clocks when a save was made, so that its records can be */
	uint64_t saved;	     /* dated in another boot; ns; 0: it is no save, and has no such keys */
	uint64_t skipped;    /* bytes that a limit left out of it */
};

void pp_event_text_write(FILE *f, const struct pp_event_text *t);

/* Leaves fields that the text lacks as they are; unknown keys are of later versions. Modifies the
 * text. */
void pp_event_text_parse(char *text, struct pp_event_text *t);
