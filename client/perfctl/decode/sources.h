/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An opened event's sources, with their names and decoders. */
#pragma once

#include "client/perfctl/decode/decode.h"
#include "client/perfpersist.h"

struct source {
	struct perfpersist_source info;
	char *name; /* the event in perf's notation */
	/* made when first needed; NULL: no format, or none that can be parsed */
	struct decoder *decoder;
	bool tried;
};

struct sources {
	struct source *all;
	size_t n;
};

/* Valid as long as e. 0; -ENOMEM; -errno of the library. */
int sources_open(struct perfpersist_event *e, struct sources *ret);
void sources_done(struct sources *s);

/* The source of a record; NULL: it names an unknown one. */
struct source *sources_of(struct sources *s, const struct perfpersist_sample *sample);
