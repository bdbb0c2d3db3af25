// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes folded stacks. In these a semicolon ends a function and a blank ends the stack, so names
 * cannot contain them. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/pictures/folded.h"
#include "proto/printable.h"

#define DEPTH_MAX 256 /* longer than any chain */

/* Functions may contain blanks ("operator new"), because only a line's last blank counts; in
 * process names, blanks become underscores, as in stackcollapse-perf.pl. */
static void write_name(const char *name, bool comm, FILE *f)
{
	size_t n = strlen(name), len;

	for (; n; name += len, n -= len) {
		len = printable_length(name, n);
		if (*name == ';')
			putc(':', f);
		else if (!len || (comm && *name == ' '))
			putc('_', f);
		else
			fwrite(name, 1, len, f);
		len += !len;
	}
}

/* For a nameless function, at least the file is written. */
static void write_frame(const struct frame *frame, FILE *f)
{
	putc(';', f);
	if (!strcmp(frame->symbol, "[unknown]") && frame->dso[0] != '[') {
		putc('[', f);
		write_name(frame->dso, false, f);
		putc(']', f);
	} else {
		write_name(frame->symbol, false, f);
	}
	if (frame->kernel)
		fputs("_[k]", f);
}

static void write_stack(const struct flame_node *leaf, FILE *f)
{
	const struct flame_node *path[DEPTH_MAX];
	size_t n = 0;

	for (; leaf->parent && n < DEPTH_MAX; leaf = leaf->parent)
		path[n++] = leaf;
	while (n-- > 0) {
		if (path[n]->frame)
			write_frame(path[n]->frame, f);
		else
			write_name(path[n]->comm, true, f);
	}
}

static void write_event(const struct event_sum *e, struct folded *o, FILE *f)
{
	for (const struct flame_node *n = flame_next(e->root); n; n = flame_next(n)) {
		uint64_t weight = o->by_period ? n->self.period : n->self.samples;

		if (!weight)
			continue;
		write_stack(n, f);
		if (o->events || !n->frame) {
			putc(';', f);
			write_name(e->event->name, false, f);
		}
		fprintf(f, " %" PRIu64 "\n", weight);
		o->lines++;
		o->weight += weight;
	}
}

void folded_write(const struct aggregate *a, struct folded *o, FILE *f)
{
	o->lines = o->weight = 0;
	for (size_t i = 0; i < a->n_events; i++)
		write_event(&a->events[i], o, f);
}
