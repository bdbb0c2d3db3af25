// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the tapes. Must not know triggers or orders. */
#include "daemon/broker/state/tapes.h"

#include <stdlib.h>
#include <string.h>

#include "proto/macro.h"

size_t tapes_after(const struct tapes *t, uint64_t id)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->all[middle]->event.truth.id <= id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct tape *tapes_find(const struct tapes *t, uint64_t id)
{
	size_t i = id ? tapes_after(t, id - 1) : t->n;

	return i < t->n && t->all[i]->event.truth.id == id ? t->all[i] : NULL;
}

struct tape *tapes_of(const struct tapes *t, uint64_t event_id)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->all[i]->of == event_id)
			return t->all[i];
	return NULL;
}

static int make_room(struct tapes *t)
{
	size_t room = t->room ? t->room * 2 : 16;
	struct tape **more;

	if (t->n < t->room)
		return 0;
	more = reallocarray(t->all, room, sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->all = more;
	t->room = room;
	return 0;
}

static struct tape *tape_new(uint64_t id, const struct pp_event *event, const struct pp_fired *by)
{
	const struct pp_spec *spec = &event->spec;
	struct tape *tape = calloc(1, sizeof(*tape));

	if (!tape)
		return NULL;
	tape->ns.owner = spec->owner;
	tape->ns.group = spec->group;
	tape->ns.mode = spec->mode;
	memcpy(tape->ns.name, spec->ns, sizeof(tape->ns.name));
	tape->event.state = PP_EVENT_PAUSED;
	tape->event.ns = &tape->ns;
	tape->event.truth = *event;
	tape->event.truth.id = id;
	tape->event.is_tape = id != event->id; /* else the event itself is it */
	tape->event.is_kept = by->action == PP_ACTION_FREEZE;
	tape->of = event->id;
	tape->by = *by;
	return tape;
}

int tapes_add(struct tapes *t, uint64_t id, const struct pp_event *event, const struct pp_fired *by,
	      uint64_t seen)
{
	struct tape *tape = tapes_find(t, id);
	size_t i = tapes_after(t, id);
	int r;

	if (tape) {
		tape->seen = seen;
		return 0;
	}
	r = make_room(t);
	if (r < 0)
		return r;
	tape = tape_new(id, event, by);
	if (!tape)
		return -ENOMEM;
	tape->seen = seen;
	memmove(&t->all[i + 1], &t->all[i], (t->n - i) * sizeof(*t->all));
	t->all[i] = tape;
	t->n++;
	return 0;
}

static void remove_at(struct tapes *t, size_t i)
{
	free(t->all[i]);
	t->n--;
	memmove(&t->all[i], &t->all[i + 1], (t->n - i) * sizeof(*t->all));
}

void tapes_remove(struct tapes *t, uint64_t id)
{
	if (tapes_find(t, id))
		remove_at(t, tapes_after(t, id - 1));
}

void tapes_sweep(struct tapes *t, uint64_t seen)
{
	for (size_t i = t->n; i > 0; i--)
		if (t->all[i - 1]->seen != seen)
			remove_at(t, i - 1);
}

void tapes_done(struct tapes *t)
{
	while (t->n > 0)
		remove_at(t, t->n - 1);
	free(t->all);
	*t = (struct tapes){ 0 };
}
