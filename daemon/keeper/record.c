// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the shapes of the kernel's records, as linux/perf_event.h has them. Believes no size. */
#include "daemon/keeper/record.h"

#include <errno.h>
#include <string.h>

#include "daemon/keeper/blob.h"
#include "proto/macro.h"

/* What is left of a record's body. */
struct body {
	const uint8_t *at;
	size_t left;
};

size_t record_extent(const uint8_t *bytes, size_t left)
{
	struct perf_event_header h;

	if (left < sizeof(h))
		return 0;
	memcpy(&h, bytes, sizeof(h));
	if (h.size % 8 || h.size < sizeof(h) + PP_SIDEBAND_ID_SIZE || h.size > left)
		return 0;
	return h.size;
}

uint64_t record_when(const uint8_t *bytes, size_t size)
{
	uint64_t time;

	memcpy(&time, bytes + size - PP_SIDEBAND_ID_SIZE + 8, sizeof(time));
	return time;
}

static bool take(struct body *b, void *to, size_t size)
{
	if (b->left < size)
		return false;
	memcpy(to, b->at, size);
	b->at += size;
	b->left -= size;
	return true;
}

static bool take_place(struct body *b, const uint8_t **ret, size_t size)
{
	if (b->left < size)
		return false;
	*ret = b->at;
	b->at += size;
	b->left -= size;
	return true;
}

#define TAKE(b, field) take(b, &(field), sizeof(field))

/* The rest of the body is text, ended by a NUL and filled up with more of them. */
static bool take_text(struct body *b, struct record *r)
{
	size_t n = strnlen((const char *)b->at, b->left);

	if (n == b->left)
		return false;
	r->text = (const char *)b->at;
	r->text_size = n + 1;
	return true;
}

static bool parse_task(struct body *b, struct record *r)
{
	uint64_t time;

	return TAKE(b, r->pid) && TAKE(b, r->ppid) && TAKE(b, r->tid) && TAKE(b, r->ptid) &&
	       TAKE(b, time);
}

static bool parse_mmap2(struct body *b, struct record *r)
{
	return TAKE(b, r->pid) && TAKE(b, r->tid) && TAKE(b, r->start) && TAKE(b, r->length) &&
	       TAKE(b, r->offset) && take_place(b, &r->file, BLOB_FILE_ID_SIZE) &&
	       TAKE(b, r->prot) && TAKE(b, r->flags) && take_text(b, r);
}

static bool parse_namespaces(struct body *b, struct record *r)
{
	uint64_t n;

	if (!TAKE(b, r->pid) || !TAKE(b, r->tid) || b->left < sizeof(n))
		return false;
	memcpy(&n, b->at, sizeof(n));
	if (n > NAMESPACES_MAX)
		return false;
	r->namespaces_size = sizeof(n) * (1 + 2 * n);
	return take_place(b, &r->namespaces, r->namespaces_size);
}

static bool parse_lost(struct body *b, struct record *r)
{
	uint64_t id;

	return TAKE(b, id) && TAKE(b, r->number);
}

static bool parse_body(struct body *b, struct record *r)
{
	switch (r->type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return parse_task(b, r);
	case PERF_RECORD_COMM:
		return TAKE(b, r->pid) && TAKE(b, r->tid) && take_text(b, r);
	case PERF_RECORD_MMAP2:
		return parse_mmap2(b, r);
	case PERF_RECORD_NAMESPACES:
		return parse_namespaces(b, r);
	case PERF_RECORD_CGROUP:
		return TAKE(b, r->number) && take_text(b, r);
	case PERF_RECORD_LOST:
		return parse_lost(b, r);
	default:
		return false;
	}
}

int record_parse(const uint8_t *bytes, size_t size, struct record *ret)
{
	struct perf_event_header h;
	struct record r = { .bytes = bytes };
	struct body b = { bytes + sizeof(h), size - sizeof(h) - PP_SIDEBAND_ID_SIZE };

	memcpy(&h, bytes, sizeof(h));
	/* An event that counts nothing is never throttled; should it be, nothing is lost. */
	if (h.type == PERF_RECORD_THROTTLE || h.type == PERF_RECORD_UNTHROTTLE)
		return 0;
	r.type = h.type;
	r.misc = h.misc;
	r.size = h.size;
	r.time = record_when(bytes, size);
	if (!parse_body(&b, &r))
		return -EBADMSG;
	*ret = r;
	return 1;
}
