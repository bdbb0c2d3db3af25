/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The records to write for a span of time, in order: which processes, which of their threads, and
 * which facts must be repeated although a parent's records have them. Knows no record's bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct table;
struct thread;

enum item_kind {
	ITEM_FORK,
	ITEM_COMM,   /* the thread's first name */
	ITEM_CHANGE, /* data: struct change */
	ITEM_MAP,    /* data: struct map */
	ITEM_EXIT,
	ITEM_NOTICE, /* data: struct notice; no thread */
};

struct item {
	uint64_t time;
	const struct thread *thread;
	const void *of;
	enum item_kind kind;
};

struct items {
	struct item *item;
	size_t n, room;
	uint64_t cut; /* processes with more mappings than are selected */
};

/* Upper bound of the mappings' bytes in one file. A table within its limit needs little more than
 * its own size, unless somebody provokes it. */
#define TOLD_MAPS_MAX(t) (2 * (t)->memory.max)

/*
 * Sorted by time; items of one time in the order in which they took effect. They point into the
 * table and are valid until it changes. busy() is called from time to time. If there are too many,
 * the processes with most mappings get fewer. -ENOMEM.
 */
int items_of(const struct table *t, uint64_t since, uint64_t until, void (*busy)(void *context),
	     void *context, struct items *ret);
void items_done(struct items *items);
