/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copy jobs: the whole interface between broker and dumper.
 *
 * One SOCK_SEQPACKET packet is one job with the descriptors to copy, or one answer with as many
 * copies in the same order. Each has exactly the size of its struct, in host byte order (both ends
 * are of one build; `abi` proves it). The dumper does jobs one at a time, in order.
 *
 * A copy is a memfd of mode 0444, sealed against every change and open for reading only.
 */
#pragma once

#include <stdint.h>

#include "proto/protocol.h"

#define PP_COPY_ABI 1
#define PP_COPY_SECONDS 10 /* a job that takes longer fails and ends the dumper */

/* Bytes before a ring's data, at most: page, format text, and room to grow. */
#define PP_COPY_HEADER_MAX (1U << 20)
#define PP_COPY_CATALOG_MAX (1U << 28)

struct pp_copy_job {
	uint32_t abi;
	uint32_t count; /* descriptors that come with it: 1..PP_FDS_MAX */
	uint64_t serial;
	uint32_t catalog; /* 1: the first descriptor is a catalog; 0: all are rings */
	uint32_t reserved;
	uint32_t size[PP_FDS_MAX]; /* bytes of each that can be mapped */
	uint32_t reserved1;
};

/*
 * Each job gets two answers. The first has the copies. The dumper sends the second (`last`) when it
 * has closed its own descriptors, so that the reader then holds the only ones. After a failure only
 * the last one comes.
 */
struct pp_copy_answer {
	uint32_t abi;
	int32_t error; /* 0; or a positive errno value */
	uint64_t serial;
	uint32_t count; /* descriptors that come with it */
	uint32_t last;	/* 0, 1 */
};
