/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decodes the body of a PERF_RECORD_SAMPLE. Pure; knows nothing of rings. */
#pragma once

#include "client/perfpersist.h"
#include "proto/perf-record.h"

/* Size of the record that begins there; 8 bytes are readable: a multiple of 8, at least 8, at most
 * max; 0: not a record. */
size_t sample_record_size(const void *record, size_t max);

/*
 * Decodes the record of `size` bytes (header included) whose fields are those of form.
 * ret->cpu is untouched, source is 0. Pointers lead into the record. -EBADMSG: the fields don't fit
 * into it, or the sample type has a field that no recorder writes.
 */
int sample_decode(const struct pp_sample_form *form, const void *record, size_t size,
		  struct perfpersist_sample *ret);
