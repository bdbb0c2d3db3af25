/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decodes the body of a PERF_RECORD_SAMPLE. Pure; knows nothing of rings. */
#ifndef PP_CLIENT_SAMPLE_H
#define PP_CLIENT_SAMPLE_H

#include "client/perfpersist.h"

/*
 * Decodes the record of `size` bytes (header included) whose fields are those of sample_type.
 * ret->cpu is untouched. Pointers lead into the record. -EBADMSG: the fields don't fit into it,
 * or sample_type has a field that no recorder writes.
 */
int sample_decode(uint64_t sample_type, const void *record, size_t size,
		  struct perfpersist_sample *ret);

#endif
