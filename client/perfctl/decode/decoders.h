/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decoders for a file's events, one for each format: a decoder takes kilobytes, and a small file
 * can have thousands of events of one tracepoint. */
#pragma once

#include "client/perfctl/decode/decode.h"
#include "client/perfctl/trace/trace.h"

struct decoders {
	struct decoder_place {
		bool tried;
		struct decoder *decoder;
	} * of_format; /* by trace_event.format_index */
	size_t n;
};

int decoders_init(struct decoders *d, size_t n_events); /* 0 or -ENOMEM */
void decoders_done(struct decoders *d);
/* *ret lives as long as d; NULL: the event has no format, or one that cannot be parsed. -ENOMEM. */
int decoders_get(struct decoders *d, const struct trace_event *e, struct decoder **ret);
