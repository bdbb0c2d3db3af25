/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A record as a person or a program reads it.
 */
#pragma once

#include "client/perfctl/decode/sources.h"

/* source: the record's, as sources_of() told it; NULL: it names none that is there. */
/* realtime: when it was, where the time alone says too little (of another boot); else 0. */
void record_print(struct source *source, const struct perfpersist_sample *s, uint64_t realtime,
		  FILE *f);
/* One object on a line of its own. */
void record_json(struct source *source, const struct perfpersist_sample *s, uint64_t realtime,
		 FILE *f);

/* What of it its format tells: d decodes it; NULL: nobody can, and it is shown in hex. */
void payload_print(struct decoder *d, const struct perfpersist_sample *s, FILE *f);
void payload_json(struct decoder *d, const struct perfpersist_sample *s, struct json *j);
