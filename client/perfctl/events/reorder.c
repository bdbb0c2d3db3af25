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
	struct reorder *reorder = calloc(1, sizeof(*reorder));

	if (!reorder)
		return -ENOMEM;
	*ret = reorder;
	return 0;
}

void reorder_free(struct reorder *reorder)
{
	if (!reorder)
		return;
	free(reorder->bytes);
	free(reorder->all);
	free(reorder);
}

size_t reorder_held(const struct reorder *reorder)
{
	return reorder->n_bytes + reorder->n * sizeof(*reorder->all);
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

int reorder_push(struct reorder *reorder, int event, const struct perfpersist_sample *sample)
{
	struct held *h;

	if (grow((void **)&reorder->bytes, &reorder->cap_bytes,
		 reorder->n_bytes + sample->record_size, 1) < 0 ||
	    grow((void **)&reorder->all, &reorder->cap, reorder->n + 1, sizeof(*reorder->all)) < 0)
		return -ENOMEM;
	memcpy(reorder->bytes + reorder->n_bytes, sample->record, sample->record_size);
	h = &reorder->all[reorder->n++];
	*h = (struct held){
		.sample = *sample,
		.at = reorder->n_bytes,
		.order = reorder->pushed++,
		.event = event,
	};
	h->sample.callchain = unbound(sample, sample->callchain);
	h->sample.raw = unbound(sample, sample->raw);
	reorder->n_bytes += sample->record_size;
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
static void keep(struct reorder *reorder, size_t from)
{
	uint8_t *bytes;
	size_t n = 0;

	for (size_t i = from; i < reorder->n; i++)
		n += reorder->all[i].sample.record_size;
	if (!n) {
		reorder->n_bytes = 0;
		return;
	}
	bytes = malloc(n);
	if (!bytes)
		return; /* no harm: it stays where it is, with what is not needed */
	n = 0;
	for (size_t i = from; i < reorder->n; i++) {
		memcpy(bytes + n, reorder->bytes + reorder->all[i].at,
		       reorder->all[i].sample.record_size);
		reorder->all[i].at = n;
		n += reorder->all[i].sample.record_size;
	}
	free(reorder->bytes);
	reorder->bytes = bytes;
	reorder->n_bytes = reorder->cap_bytes = n;
}

int reorder_pop(struct reorder *reorder, uint64_t until,
		int (*take)(void *userdata, int event, const struct perfpersist_sample *sample),
		void *userdata)
{
	size_t i;
	int r = 0;

	if (reorder->n)
		qsort(reorder->all, reorder->n, sizeof(*reorder->all), by_time);
	for (i = 0; r >= 0 && i < reorder->n && reorder->all[i].sample.time < until; i++) {
		struct perfpersist_sample s = reorder->all[i].sample;
		const uint8_t *record = reorder->bytes + reorder->all[i].at;

		s.callchain = bound(record, s.callchain);
		s.raw = bound(record, s.raw);
		s.record = record;
		r = take(userdata, reorder->all[i].event, &s);
	}
	if (i == 0)
		return r;
	keep(reorder, i);
	reorder->n -= i;
	memmove(reorder->all, reorder->all + i, reorder->n * sizeof(*reorder->all));
	return r < 0 ? r : 0;
}
