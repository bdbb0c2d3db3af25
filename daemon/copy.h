/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copy jobs: all that the broker can ask of the dumper, and all that the dumper answers. They
 * are the only thing the two share.
 *
 * One SOCK_SEQPACKET packet is one job with the descriptors of what to copy, or one answer, with
 * as many copies in the same order; each is of exactly the size of its struct, in host byte order
 * (both ends are of one build; `abi` proves it). Jobs are done one at a time and in turn.
 *
 * A copy is a memfd, sealed against every change, of mode 0444 and opened for reading only.
 */
#pragma once

#include <stdint.h>

#include "proto/protocol.h"

#define PP_COPY_ABI 1
#define PP_COPY_SECONDS 10 /* a job that takes longer ends the dumper, and has failed */

/* Bytes before a ring's data, at most: page, format text, and room to grow. */
#define PP_COPY_HEADER_MAX (1U << 20)
#define PP_COPY_CATALOG_MAX (1U << 28)

struct pp_copy_job {
	uint32_t abi;
	uint32_t count; /* descriptors that come with it: 1..PP_FDS_MAX */
	uint64_t serial;
	uint32_t catalog; /* 1: the first of them is a catalog; 0: all are rings */
	uint32_t reserved;
	uint32_t size[PP_FDS_MAX]; /* bytes that can be mapped of each */
	uint32_t reserved1;
};

/*
 * Two of them: one with the copies, and one, the last, when the dumper has closed its own
 * descriptors, so that who gets the copies is the only one to have them. After a failure only
 * the last.
 */
struct pp_copy_answer {
	uint32_t abi;
	int32_t error; /* 0; or a positive errno value */
	uint64_t serial;
	uint32_t count; /* descriptors that come with it */
	uint32_t last;	/* 0, 1 */
};
