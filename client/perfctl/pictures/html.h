/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace as one page: the records in blocks of columns, the tables that these point into, and the
 * viewer (page/). It loads nothing from a network, and has the browser enforce that.
 *
 * Each block is a <script> of no type that runs: zlib's deflate, as base64, so that no untrusted
 * byte can be taken for markup. A number is a varint: 7 bits a byte, the lowest first.
 *
 *	records (many)	n, texts; then columns, each behind its size in 4 bytes: time (ns since the
 *			record before, zigzag), cpu, event, task, text, node, period, next (of the
 *			events that are switches alone: the task that runs from there on),
 *			about (if the info says so: how many tasks it names, and these);
 *			and the block's texts, each ended by a newline
 *	nodes		how many; then of each: its number less its parent's (from 1; 0 is the
 *			root), frame (0: the root of an event's tree)
 *	latencies	JSON, if there are any: as `perfctl report --json` has each kind
 *	against		JSON, if it was asked for: what was different
 *	info		JSON: everything else, see html-info.c
 *
 * Memory holds one block and the tables: it grows with the number of different items, not with the
 * records.
 */
#pragma once

#include "client/perfctl/events/input.h"
#include "client/perfctl/pictures/aggregate.h"

struct html;

/* Begins the page. t must outlive it; the caller keeps fd, which is written from its present
 * position. has_about: html_add() is told of processes that records name. -ENOMEM. */
int html_new(int fd, struct trace *t, bool has_about, struct html **ret);

/* Adds each record of the trace, in order of time; leaf: aggregate_add()'s result for it (NULL:
 * none). -ENOMEM, or the error of write(2). */
int html_add(struct html *h, const struct trace_record *record, const struct flame_node *leaf,
	     const struct about *about);

/* Facts about the whole, beside those in the trace. */
struct html_about {
	const char *what;      /* input.what */
	const char *selected;  /* --last 10s, …; NULL: all */
	const char *damaged;   /* a sentence; NULL: it was whole */
	const char *latencies; /* JSON, an array: how long things took; NULL: nothing */
	const char *against;   /* JSON, an object: what was different; NULL: not asked for */
};

/* Writes the rest of the page. a: the finished sums of the same records; NULL: no call chains. */
int html_finish(struct html *h, const struct aggregate *a, const struct html_about *about);
void html_free(struct html *h);
