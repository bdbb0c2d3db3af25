// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/stream/reorder.h"

#include <string.h>

#include "client/public.h"

void reorder_done(struct reorder *reorder)
{
	for (size_t i = reorder->next; i < reorder->n; i++)
		perfpersist_event_free(reorder->all[i].event);
	free(reorder->bytes);
	free(reorder->all);
	*reorder = (struct reorder){};
}

static int make_room(struct reorder *reorder, size_t more)
{
	size_t cap = MAX(reorder->cap_bytes, (size_t)4096);
	uint8_t *bytes;

	while (cap - reorder->n_bytes < more)
		cap *= 2;
	bytes = cap == reorder->cap_bytes ? reorder->bytes : realloc(reorder->bytes, cap);
	if (!bytes)
		return -ENOMEM;
	reorder->bytes = bytes;
	reorder->cap_bytes = cap;
	return GROW(reorder->all, reorder->n) ? 0 : -ENOMEM;
}

/* A pointer into the record, as an offset from its beginning; NULL stays NULL. */
static const void *unbound(const struct perfpersist_sample *s, const void *p)
{
	return p ? (const void *)((const uint8_t *)p - (const uint8_t *)s->record) : NULL;
}

static const void *bound(const uint8_t *record, const void *offset)
{
	return offset ? record + (uintptr_t)offset : NULL;
}

/* Held records use offsets instead of pointers, because bytes[] moves. */
static void bind(struct perfpersist_sample *s, const uint8_t *record)
{
	s->callchain = bound(record, s->callchain);
	s->raw = bound(record, s->raw);
	s->user_regs = bound(record, s->user_regs);
	s->user_stack = bound(record, s->user_stack);
	s->record = record;
}

int reorder_reserve(struct reorder *reorder)
{
	return make_room(reorder, 0) < 0
		       ? client_fail(-ENOMEM, "cannot put records in order: out of memory")
		       : 0;
}

int reorder_push(struct reorder *reorder, const struct perfpersist_stream_item *item,
		 struct perfpersist_event *event)
{
	const struct perfpersist_sample *s = &item->sample;
	struct held *h;

	if (make_room(reorder, s->record_size) < 0) {
		perfpersist_event_free(event);
		return client_fail(-ENOMEM, "cannot put records in order: out of memory");
	}
	if (s->record_size)
		memcpy(reorder->bytes + reorder->n_bytes, s->record, s->record_size);
	h = &reorder->all[reorder->n];
	*h = (struct held){
		.item = *item,
		.event = event,
		.at = reorder->n_bytes,
		.order = reorder->pushed++,
	};
	h->item.sample.callchain = unbound(s, s->callchain);
	h->item.sample.raw = unbound(s, s->raw);
	h->item.sample.user_regs = unbound(s, s->user_regs);
	h->item.sample.user_stack = unbound(s, s->user_stack);
	reorder->unsorted |= reorder->n > reorder->next && h[-1].item.time > item->time;
	reorder->n_bytes += s->record_size;
	reorder->n++;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	if (x->item.time != y->item.time)
		return x->item.time < y->item.time ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* Moves the remaining items to the front, with their records. Waits until they are the smaller
 * part, so that no record moves again and again. */
static void forget(struct reorder *reorder)
{
	size_t left = reorder->n - reorder->next, n = 0;
	uint8_t *bytes;

	if (reorder->next < left || !reorder->next)
		return;
	if (!left) {
		reorder->n_bytes = reorder->n = reorder->next = reorder->ready = 0;
		return;
	}
	for (size_t i = reorder->next; i < reorder->n; i++)
		n += reorder->all[i].item.sample.record_size;
	bytes = malloc(n + 1);
	if (!bytes)
		return; /* harmless: the items stay where they are, with what is not needed */
	n = 0;
	for (size_t i = 0; i < left; i++) {
		struct held *h = &reorder->all[i];

		*h = reorder->all[reorder->next + i];
		if (h->item.sample.record_size)
			memcpy(bytes + n, reorder->bytes + h->at, h->item.sample.record_size);
		h->at = n;
		n += h->item.sample.record_size;
	}
	free(reorder->bytes);
	reorder->bytes = bytes;
	reorder->n_bytes = n;
	reorder->cap_bytes = n + 1;
	reorder->n = left;
	reorder->ready -= reorder->next;
	reorder->next = 0;
}

void reorder_release(struct reorder *reorder, uint64_t until)
{
	forget(reorder);
	if (reorder->unsorted)
		qsort(reorder->all + reorder->next, reorder->n - reorder->next,
		      sizeof(*reorder->all), by_time);
	reorder->unsorted = false;
	while (reorder->ready < reorder->n && reorder->all[reorder->ready].item.time < until)
		reorder->ready++;
}

bool reorder_pop(struct reorder *reorder, struct perfpersist_stream_item *ret,
		 struct perfpersist_event **ret_event)
{
	struct held *h;

	if (reorder->next == reorder->ready)
		return false;
	h = &reorder->all[reorder->next++];
	*ret = h->item;
	*ret_event = TAKE_PTR(h->event);
	if (ret->sample.record)
		bind(&ret->sample, reorder->bytes + h->at);
	return true;
}
