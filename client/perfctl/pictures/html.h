/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace as one page: the records in blocks of columns, the tables that these point into, and what
 * shows them (page/). It asks no network for anything, and says so to the browser.
 *
 * Each block is a <script> of no type that runs: zlib's deflate, as base64, so that no byte of a
 * stranger can be taken for markup. A number is a varint: 7 bits a byte, the lowest first.
 *
 *	records (many)	n, texts; then columns, each behind its size in 4 bytes: time (ns since the
 *			record before, zigzag), cpu, event, task, text, node, period, next (of the
 *			events that are switches alone: the task that runs from there on);
 *			and the block's texts, each ended by a newline
 *	nodes		how many; then of each: its number less its parent's (they count from 1, 0
 *is the root), frame (0: the root of an event's tree) info		JSON: all else, see
 *html-info.c
 *
 * What is held in memory is one block and the tables: it grows with what is different, not with the
 * records.
 */
#pragma once

#include "client/perfctl/events/input.h"
#include "client/perfctl/pictures/aggregate.h"

struct html;

/* Begins the page. t must outlive it; fd stays the caller's, and is written from where it stands.
 * -ENOMEM. */
int html_new(int fd, struct trace *t, struct html **ret);

/* Each record of the trace, in order of time; leaf: what aggregate_add() said of it (NULL: none).
 * -ENOMEM, or the error of write(2). */
int html_add(struct html *h, const struct trace_record *record, const struct flame_node *leaf);

/* What is to be said of the whole, beside what the trace says of itself. */
struct html_about {
	const char *what;     /* input.what */
	const char *selected; /* --last 10s, …; NULL: all */
	const char *damaged;  /* a sentence; NULL: it was whole */
};

/* The rest of the page. a: the sums of the same records, finished; NULL: no call chains. */
int html_finish(struct html *h, const struct aggregate *a, const struct html_about *about);
void html_free(struct html *h);
