/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of an event that people and programs read: the file `info`, in the registry and in saves,
 * with a line "key=value" for each. Owns the keys and the words of their values; knows no files.
 */
#pragma once

#include <stdio.h>

#include "protocol.h"

struct pp_event_text {
	struct pp_msg_event event; /* state: running or paused; without the counts */
	uint64_t saved_mono; /* both clocks when a save was made, so that its records can be */
	uint64_t saved;	     /* dated in another boot; ns; 0: it is no save, and has no such keys */
};

void pp_event_text_write(FILE *f, const struct pp_event_text *t);

/* What the text has not is left as it is; unknown keys are of later versions. Destroys the text. */
void pp_event_text_parse(char *text, struct pp_event_text *t);
