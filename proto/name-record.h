/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The record of each name of an event: a map of one element, pinned beside the event's
 * rings as "name-ID". The engine writes it; root may read it (perfctl --direct).
 */
#pragma once

#include <stdint.h>

#include "proto/ring.h"

#define PP_NAME_RECORD_LEAF "name-"
#define PP_NAME_RECORD_MAGIC 0x656d616e2d702bULL /* "+p-name" */
#define PP_NAME_RECORD_VERSION 1

struct pp_name_record {
	uint64_t magic;
	uint32_t version;
	uint32_t size;		     /* of this struct */
	uint64_t id;		     /* of the name */
	uint32_t owner, group, mode; /* of its namespace */
	uint32_t creator;	     /* uid */
	uint32_t flags;		     /* PP_EVENT_CONFIGURED */
	uint32_t reserved;
	char ns[PP_NAME_SIZE];
	char name[PP_NAME_SIZE];
};
