// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Block requests, known by device and first sector: queued from their insertion to their issue, then
 * with the device until they are complete. A request that the scheduler never saw is only issued.
 */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/replay/latency-parts.h"

#define SPARE_REQUESTS 1024

/* A request that is complete says nothing any more. At most half of them, and a few, are such. */
static int forget_complete(struct latency *l)
{
	size_t n = 0;
	int r = 0;

	hash_done(&l->request_hash);
	for (size_t i = 0; i < l->n_requests && r >= 0; i++) {
		const struct request *request = &l->requests[i];

		if (!request->queued.open && !request->issued.open)
			continue;
		r = hash_add(&l->request_hash, hash_numbers(request->device, request->sector),
			     (uint32_t)n);
		l->requests[n++] = *request;
	}
	l->n_requests = n;
	l->max_requests = 2 * n + SPARE_REQUESTS;
	return r;
}

static int find_request(struct latency *l, uint32_t device, uint64_t sector, struct request **ret)
{
	uint32_t hash = hash_numbers(device, sector), i;

	for (size_t pos = hash; hash_next(&l->request_hash, hash, &pos, &i);)
		if (l->requests[i].device == device && l->requests[i].sector == sector) {
			*ret = &l->requests[i];
			return 0;
		}
	if (l->n_requests >= l->max_requests && forget_complete(l) < 0)
		return -ENOMEM;
	if (!GROW(l->requests, l->n_requests) ||
	    hash_add(&l->request_hash, hash, (uint32_t)l->n_requests) < 0)
		return -ENOMEM;
	*ret = &l->requests[l->n_requests++];
	**ret = (struct request){ .device = device, .sector = sector };
	return 0;
}

/* By the letter behind the flush that may precede it (blk_fill_rwbs()). */
static const char *operation_name(const char *rwbs)
{
	switch (rwbs[0] == 'F' && rwbs[1] && rwbs[1] != 'F' ? rwbs[1] : rwbs[0]) {
	case 'R':
		return "read";
	case 'W':
		return "write";
	case 'D':
		return "discard";
	case 'F':
		return "flush";
	default:
		return "other";
	}
}

/* "8:0 write queue" */
static int label_of(struct latency *l, const struct latency_request *r, const char *what,
		    uint32_t *ret)
{
	char text[64];

	snprintf(text, sizeof(text), "%u:%u %s %s", r->device >> 20, r->device & 0xfffff,
		 operation_name(r->operation), what);
	return latency_label(l, text, ret);
}

static int end_of(struct latency *l, const struct latency_now *now, struct request *request,
		  struct begin *b)
{
	struct latency_about about = { .thread = LATENCY_NOBODY, .who = &request->who };

	return latency_end(l, LATENCY_BLOCK, b, now, &about);
}

static void missing(struct latency *l, const struct latency_now *now, const struct begin *b)
{
	if (b->open)
		latency_count(l, LATENCY_BLOCK, LATENCY_NOBODY, now, true);
}

int latency_insert(struct latency *l, const struct latency_now *now,
		   const struct latency_request *request)
{
	struct request *r;
	uint32_t label;

	if (find_request(l, request->device, request->sector, &r) < 0 ||
	    label_of(l, request, "queue", &label) < 0)
		return -ENOMEM;
	/* One that was issued may be inserted again, because the device was busy. */
	missing(l, now, &r->queued);
	r->issued.open = false;
	r->who = now->who;
	r->queued = latency_begin(l, LATENCY_BLOCK, now, label);
	return 0;
}

int latency_issue(struct latency *l, const struct latency_now *now,
		  const struct latency_request *request)
{
	struct request *r;
	uint32_t label;
	int failed = 0;

	if (find_request(l, request->device, request->sector, &r) < 0 ||
	    label_of(l, request, "device", &label) < 0)
		return -ENOMEM;
	missing(l, now, &r->issued);
	if (r->queued.open)
		failed = end_of(l, now, r, &r->queued);
	else
		r->who = now->who;
	r->issued = latency_begin(l, LATENCY_BLOCK, now, label);
	r->left = request->n_sectors;
	return failed;
}

/* The rest goes on under its own first sector. */
static int complete_part(struct latency *l, struct request *r, uint64_t n_sectors)
{
	struct request before = *r, *rest;

	r->issued.open = false;
	if (find_request(l, before.device, before.sector + n_sectors, &rest) < 0)
		return -ENOMEM;
	rest->left = before.left - n_sectors;
	rest->who = before.who;
	rest->issued = before.issued;
	return 0;
}

int latency_complete(struct latency *l, const struct latency_now *now,
		     const struct latency_request *request)
{
	struct request *r;

	if (find_request(l, request->device, request->sector, &r) < 0)
		return -ENOMEM;
	if (!r->issued.open) {
		/* A flush without data completes with the device's own, and is never issued. */
		if (!request->n_sectors && !r->queued.open)
			return 0;
		latency_count(l, LATENCY_BLOCK, LATENCY_NOBODY, now, r->queued.open);
		r->queued.open = false;
		return 0;
	}
	if (request->n_sectors && request->n_sectors < r->left)
		return complete_part(l, r, request->n_sectors);
	return end_of(l, now, r, &r->issued);
}

int latency_block_finish(struct latency *l, uint64_t end)
{
	int r = 0;

	for (size_t i = 0; i < l->n_requests && r >= 0; i++) {
		const struct request *request = &l->requests[i];
		struct latency_about about = { .thread = LATENCY_NOBODY, .who = &request->who };

		r = latency_still_open(l, LATENCY_BLOCK, &request->queued, end, &about);
		if (r >= 0)
			r = latency_still_open(l, LATENCY_BLOCK, &request->issued, end, &about);
	}
	return r;
}
