// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/reorder.h"

#include <string.h>

#include "proto/macro.h"

struct held {
	struct perfpersist_sample sample; /* pointers are offsets into the record: see bind() */
	size_t at;			  /* of the record in bytes[] */
	size_t order;
	int event;
};

struct reorder {
	uint8_t *bytes;
	size_t n_bytes, cap_bytes;
	struct held *all;
	size_t n, cap;
	size_t pushed;
};

int reorder_new(struct reorder **ret)
{
	struct reorder *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	*ret = r;
	return 0;
}

void reorder_free(struct reorder *r)
{
	if (!r)
		return;
	free(r->bytes);
	free(r->all);
	free(r);
}

size_t reorder_held(const struct reorder *r)
{
	return r->n_bytes + r->n * sizeof(*r->all);
}

static int grow(void **p, size_t *cap, size_t need, size_t size)
{
	size_t n = MAX(*cap, (size_t)64);
	void *more;

	if (need <= *cap)
		return 0;
	while (n < need)
		n *= 2;
	more = reallocarray(*p, n, size);
	if (!more)
		return -ENOMEM;
	*p = more;
	*cap = n;
	return 0;
}

/* A pointer into the record, as the distance from its beginning; 0 stays NULL. */
static const void *unbound(const struct perfpersist_sample *s, const void *p)
{
	return p ? (const void *)((const uint8_t *)p - (const uint8_t *)s->record) : NULL;
}

static const void *bound(const uint8_t *record, const void *offset)
{
	return offset ? record + (uintptr_t)offset : NULL;
}

int reorder_push(struct reorder *r, int event, const struct perfpersist_sample *sample)
{
	struct held *h;

	if (grow((void **)&r->bytes, &r->cap_bytes, r->n_bytes + sample->record_size, 1) < 0 ||
	    grow((void **)&r->all, &r->cap, r->n + 1, sizeof(*r->all)) < 0)
		return -ENOMEM;
	memcpy(r->bytes + r->n_bytes, sample->record, sample->record_size);
	h = &r->all[r->n++];
	*h = (struct held){
		.sample = *sample,
		.at = r->n_bytes,
		.order = r->pushed++,
		.event = event,
	};
	h->sample.callchain = unbound(sample, sample->callchain);
	h->sample.raw = unbound(sample, sample->raw);
	r->n_bytes += sample->record_size;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	if (x->sample.time != y->sample.time)
		return x->sample.time < y->sample.time ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* What stays moves to the front, with its records. */
static void keep(struct reorder *r, size_t from)
{
	uint8_t *bytes;
	size_t n = 0;

	for (size_t i = from; i < r->n; i++)
		n += r->all[i].sample.record_size;
	if (!n) {
		r->n_bytes = 0;
		return;
	}
	bytes = malloc(n);
	if (!bytes)
		return; /* no harm: it stays where it is, with what is not needed */
	n = 0;
	for (size_t i = from; i < r->n; i++) {
		memcpy(bytes + n, r->bytes + r->all[i].at, r->all[i].sample.record_size);
		r->all[i].at = n;
		n += r->all[i].sample.record_size;
	}
	free(r->bytes);
	r->bytes = bytes;
	r->n_bytes = r->cap_bytes = n;
}

int reorder_pop(struct reorder *r, uint64_t until,
		int (*take)(void *userdata, int event, const struct perfpersist_sample *sample),
		void *userdata)
{
	size_t i;
	int err = 0;

	if (r->n)
		qsort(r->all, r->n, sizeof(*r->all), by_time);
	for (i = 0; err >= 0 && i < r->n && r->all[i].sample.time < until; i++) {
		struct perfpersist_sample s = r->all[i].sample;
		const uint8_t *record = r->bytes + r->all[i].at;

		s.callchain = bound(record, s.callchain);
		s.raw = bound(record, s.raw);
		s.record = record;
		err = take(userdata, r->all[i].event, &s);
	}
	if (i == 0)
		return err;
	keep(r, i);
	r->n -= i;
	memmove(r->all, r->all + i, r->n * sizeof(*r->all));
	return err < 0 ? err : 0;
}
