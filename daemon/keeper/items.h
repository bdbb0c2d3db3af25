/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is to be told of a time, in order: which processes, which of their threads, and what of
 * them has to be said although a parent has said it. Knows no record's bytes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct table;
struct thread;

enum item_kind {
	ITEM_FORK,
	ITEM_COMM,   /* what the thread was called at first */
	ITEM_CHANGE, /* of: struct change */
	ITEM_MAP,    /* of: struct map */
	ITEM_EXIT,
	ITEM_NOTICE, /* of: struct notice; no thread */
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
	uint64_t cut; /* processes that have more mappings than are told */
};

/* Bytes that the mappings of a telling take at most. A table that holds no more than it may has
 * little more to say than what it takes itself, unless somebody wants it to. */
#define TOLD_MAPS_MAX(t) (2 * (t)->memory.max)

/*
 * By time, and of one time in the order in which they hold. They point into the table: valid until
 * that changes. busy() is called now and then. If there is too much of it, those who have most
 * mappings are told of with fewer. -ENOMEM.
 */
int items_of(const struct table *t, uint64_t since, uint64_t until, void (*busy)(void *context),
	     void *context, struct items *ret);
void items_done(struct items *items);
