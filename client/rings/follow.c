// SPDX-License-Identifier: LGPL-2.1-or-later
/* Follows an event: rounds over all rings, each round's records in order of time, and the wait
 * before the next round. Between two rounds nothing is read from the rings. */
#include <string.h>
#include <time.h>

#include "client/public.h"
#include "client/rings/event.h"
#include "client/rings/follow-ring.h"
#include "client/rings/heap.h"
#include "proto/clock.h"

/* The delays while records come, and after a quiet time. In between, the delay is as long as it has
 * been quiet. */
#define DELAY_MIN 1000000ULL
#define DELAY_MAX 100000000ULL
/* The part of a ring that may fill during a delay, and the minimum time for measuring a rate. */
#define FILL_PART 4
#define RATE_TIME 1000000ULL

struct follower {
	struct follow_ring ring;
	size_t left;			/* records in ring.places behind next, still to be given
					 * out */
	struct perfpersist_sample next; /* the oldest one not given out yet */
	uint64_t rate_pos;		/* the ring's position when its rate measurement began */
};

struct perfpersist_follow {
	struct perfpersist_event *event;
	unsigned generation; /* generation of the event's rings that the order of followers is
			      * based on */
	struct follower *followers;
	size_t n;
	uint32_t *heap; /* rings with records to give out; the oldest on top */
	size_t n_heap;
	bool is_damaged;

	uint64_t looked;  /* CLOCK_MONOTONIC, ns: the last look */
	uint64_t found;	  /* the last one that found records, or the beginning */
	uint64_t rated;	  /* when the measuring of rates began */
	uint64_t wrap_ns; /* how long the fastest ring takes to wrap, as last measured */
};

/* ── Order ──────────────────────────────────────────────────────────────────────────────── */

static bool is_older(const void *follow, uint32_t a, uint32_t b)
{
	const struct perfpersist_follow *f = follow;
	uint64_t x = f->followers[a].next.time, y = f->followers[b].next.time;

	return x != y ? x < y : a < b;
}

static bool is_newer(const void *follow, uint32_t a, uint32_t b)
{
	return is_older(follow, b, a);
}

/* Decodes the record at places[i]; returns whether it is valid. */
static bool decode(struct perfpersist_follow *f, struct follower *w, size_t i)
{
	size_t size;
	const void *record = follow_ring_record(&w->ring, i, &size);

	w->next = (struct perfpersist_sample){ .cpu = w->ring.header.cpu };
	if (client_decode(&w->ring.header, &f->event->catalog, record, size, &w->next) >= 0)
		return true;
	w->ring.is_damaged = f->is_damaged = true;
	return false;
}

/* Decodes the ring's next record to give out; returns whether there is one. */
static bool advance(struct perfpersist_follow *f, struct follower *w)
{
	if (w->left > 0 && decode(f, w, w->left - 1)) {
		w->left--;
		return true;
	}
	w->left = 0;
	return false;
}

/* Queues the records that the rings have found. */
static void fill_heap(struct perfpersist_follow *f)
{
	f->n_heap = 0;
	for (uint32_t i = 0; i < f->n; i++) {
		struct follower *w = &f->followers[i];

		f->is_damaged |= w->ring.is_damaged;
		w->left = w->ring.n_places;
		if (advance(f, w))
			f->heap[f->n_heap++] = i;
	}
	heap_make(f->heap, f->n_heap, is_older, f);
}

/* Keeps the newest of the records that the rings have found. */
static void keep_newest(struct perfpersist_follow *f, size_t newest)
{
	f->n_heap = 0;
	for (uint32_t i = 0; i < f->n; i++) {
		struct follower *w = &f->followers[i];

		w->left = 0; /* here: how many are kept */
		if (w->ring.n_places > 0 && decode(f, w, 0))
			f->heap[f->n_heap++] = i;
	}
	heap_make(f->heap, f->n_heap, is_newer, f);
	for (; newest > 0 && f->n_heap > 0; newest--) {
		struct follower *w = &f->followers[f->heap[0]];

		w->left++;
		if (w->left == w->ring.n_places || !decode(f, w, w->left))
			f->heap[0] = f->heap[--f->n_heap];
		heap_sift(f->heap, f->n_heap, 0, is_newer, f);
	}
	for (size_t i = 0; i < f->n; i++)
		follow_ring_keep(&f->followers[i].ring, f->followers[i].left);
}

/* ── Rates ──────────────────────────────────────────────────────────────────────────────── */

static void begin_rates(struct perfpersist_follow *f, uint64_t now)
{
	f->rated = now;
	for (size_t i = 0; i < f->n; i++)
		f->followers[i].rate_pos = f->followers[i].ring.pos;
}

static void measure_rates(struct perfpersist_follow *f, uint64_t now)
{
	double time = (double)(now - f->rated);

	if (now - f->rated < RATE_TIME)
		return;
	f->wrap_ns = UINT64_MAX;
	for (size_t i = 0; i < f->n; i++) {
		const struct follower *w = &f->followers[i];
		uint64_t bytes = w->rate_pos - w->ring.pos;
		double wrap = bytes ? time / (double)bytes * (double)w->ring.header.data_size : 0;

		if (bytes && wrap < (double)f->wrap_ns)
			f->wrap_ns = (uint64_t)wrap;
	}
	begin_rates(f, now);
}

/* ── Looking ────────────────────────────────────────────────────────────────────────────── */

static struct follower *find_cpu(const struct perfpersist_follow *f, uint32_t cpu)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->followers[i].ring.header.cpu == cpu)
			return &f->followers[i];
	return NULL;
}

/* The event has newer copies of the same rings, perhaps with those of additional CPUs. */
static int renew(struct perfpersist_follow *f)
{
	const struct perfpersist_event *e = f->event;
	_cleanup_free_ struct follower *followers = calloc(e->n + 1, sizeof(*followers));
	_cleanup_free_ uint32_t *heap = calloc(e->n + 1, sizeof(*heap));

	if (!followers || !heap)
		return client_fail(-ENOMEM, "cannot follow %s/%s: out of memory", e->base.ns,
				   e->base.name);
	for (size_t i = 0; i < e->n; i++) {
		struct follower *old = find_cpu(f, e->rings[i].header.cpu);

		if (old) {
			followers[i] = *old;
			followers[i].ring.header = e->rings[i].header;
			old->ring.copy = NULL;
			old->ring.places = NULL;
		} else {
			follow_ring_begin_empty(&followers[i].ring, &e->rings[i]);
		}
	}
	for (size_t i = 0; i < f->n; i++)
		follow_ring_done(&f->followers[i].ring);
	free(f->followers);
	free(f->heap);
	f->followers = TAKE_PTR(followers);
	f->heap = TAKE_PTR(heap);
	f->n = e->n;
	f->generation = e->generation;
	return 0;
}

/* One round. -ENOMEM: the records found in the previous rings are given out all the same. */
static int look(struct perfpersist_follow *f)
{
	int r = f->generation == f->event->generation ? 0 : renew(f);

	f->looked = pp_clock_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < f->n; i++)
		f->followers[i].ring.n_places = 0; /* given out */
	for (size_t i = 0; r >= 0 && i < f->n; i++)
		r = follow_ring_look(&f->followers[i].ring, &f->event->rings[i]);
	fill_heap(f);
	measure_rates(f, f->looked);
	if (f->n_heap > 0)
		f->found = f->looked;
	return f->n_heap > 0 ? 0 : r;
}

_public_ int perfpersist_follow_next(struct perfpersist_follow *f, struct perfpersist_sample *ret)
{
	struct follower *w;

	if (f->n_heap == 0) {
		int r = f->is_damaged ? -EBADMSG : look(f);

		if (r < 0)
			return r;
	}
	if (f->n_heap == 0)
		return f->is_damaged ? -EBADMSG : 0;
	w = &f->followers[f->heap[0]];
	*ret = w->next;
	w->ring.read++;
	if (!advance(f, w))
		f->heap[0] = f->heap[--f->n_heap];
	heap_sift(f->heap, f->n_heap, 0, is_older, f);
	return 1;
}

_public_ uint64_t perfpersist_follow_delay(struct perfpersist_follow *f)
{
	uint64_t quiet = f->looked - f->found;
	uint64_t delay = MIN(MAX(quiet, DELAY_MIN), DELAY_MAX);

	return MIN(delay, f->wrap_ns / FILL_PART);
}

/* ── Beginning, counting, end ───────────────────────────────────────────────────────────── */

static int begin(struct perfpersist_follow *f, size_t newest)
{
	struct perfpersist_event *e = f->event;
	int r = 0;

	f->followers = calloc(e->n + 1, sizeof(*f->followers));
	f->heap = calloc(e->n + 1, sizeof(*f->heap));
	if (!f->followers || !f->heap)
		return client_fail(-ENOMEM, "cannot follow %s/%s: out of memory", e->base.ns,
				   e->base.name);
	f->n = e->n;
	f->generation = e->generation;
	f->looked = f->found = pp_clock_ns(CLOCK_MONOTONIC);
	f->wrap_ns = UINT64_MAX;
	for (size_t i = 0; r >= 0 && i < f->n; i++)
		r = follow_ring_begin(&f->followers[i].ring, &e->rings[i], newest);
	if (r < 0)
		return r;
	begin_rates(f, f->looked);
	if (newest < SIZE_MAX)
		keep_newest(f, newest);
	fill_heap(f);
	return 0;
}

_public_ int perfpersist_follow_new(struct perfpersist_event *e, size_t newest,
				    struct perfpersist_follow **ret)
{
	struct perfpersist_follow *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return client_fail(-ENOMEM, "cannot follow %s/%s: out of memory", e->base.ns,
				   e->base.name);
	f->event = client_event_ref(e);
	r = begin(f, newest);
	if (r < 0) {
		perfpersist_follow_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

_public_ int perfpersist_follow_stat(struct perfpersist_follow *f, size_t ring,
				     struct perfpersist_follow_stat *ret)
{
	const struct perfpersist_event *e = f->event;
	const struct follower *w;
	size_t sz = ret->sz;

	if (!SZ_IS_VALID(ret))
		return client_fail(-EINVAL,
				   "cannot fill in a struct perfpersist_follow_stat of %zu bytes: "
				   "set its sz to its size",
				   sz);
	if (ring >= e->n)
		return client_fail(-EINVAL, "the event %s/%s has no ring %zu: it has %zu",
				   e->base.ns, e->base.name, ring, e->n);
	*ret = (struct perfpersist_follow_stat){ .sz = sz };
	w = find_cpu(f, e->rings[ring].header.cpu);
	if (!w) /* new since the last look */
		return 0;
	ret->read = w->ring.read;
	ret->overwritten = w->ring.overwritten;
	ret->begin = w->ring.begin;
	return 0;
}

_public_ void perfpersist_follow_free(struct perfpersist_follow *f)
{
	if (!f)
		return;
	for (size_t i = 0; f->followers && i < f->n; i++)
		follow_ring_done(&f->followers[i].ring);
	free(f->followers);
	free(f->heap);
	perfpersist_event_free(f->event);
	free(f);
}
