/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Samples of several events as they are found, given out in order of time. A recorder writes a
 * record a moment after it took the time, so that what has been found is whole up to a little
 * while ago, and not up to now.
 */
#pragma once

#include "client/perfpersist.h"

struct reorder;

int reorder_new(struct reorder **ret);
void reorder_free(struct reorder *reorder);

/* Copies a sample. -ENOMEM. */
int reorder_push(struct reorder *reorder, int event, const struct perfpersist_sample *sample);

/* Bytes of what is held. */
size_t reorder_held(const struct reorder *reorder);

/* Gives all with a time below `until` to take(), in order of time, those of one time as they were
 * pushed; what take() returns below 0 ends it. */
int reorder_pop(struct reorder *reorder, uint64_t until,
		int (*take)(void *userdata, int event, const struct perfpersist_sample *sample),
		void *userdata);
