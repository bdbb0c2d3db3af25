// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the shapes of the kernel's records, as linux/perf_event.h has them. Believes no size. */
#include "daemon/keeper/record.h"

#include <errno.h>
#include <string.h>

#include "daemon/keeper/blob.h"
#include "proto/macro.h"

/* Bytes before the sample_id of a BPF_EVENT, and before the name of a KSYMBOL. */
#define BPF_EVENT_SIZE 24
#define KSYMBOL_NAME 24

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

/* Of a KSYMBOL: the name ends in a NUL, and is filled up with more of them. */
static size_t name_end(const uint8_t *bytes, size_t limit)
{
	size_t n = strnlen((const char *)bytes + KSYMBOL_NAME, limit - KSYMBOL_NAME);

	return KSYMBOL_NAME + ALIGN_TO(n + 1, 8U);
}

/*
 * Where the sample_id begins. It ends the record, except in KSYMBOL and BPF_EVENT: the kernel adds
 * to their size for each listener that it has written them to, and behind the sample_id leaves what
 * the ring held before. Their contents say where they end.
 */
static size_t id_place(const uint8_t *bytes, size_t size)
{
	size_t last = size - PP_SIDEBAND_ID_SIZE, at = last;
	struct perf_event_header h;

	memcpy(&h, bytes, sizeof(h));
	if (h.type == PERF_RECORD_BPF_EVENT)
		at = BPF_EVENT_SIZE;
	else if (h.type == PERF_RECORD_KSYMBOL && last > KSYMBOL_NAME)
		at = name_end(bytes, last);
	return MIN(at, last);
}

uint64_t record_when(const uint8_t *bytes, size_t size)
{
	uint64_t time;

	memcpy(&time, bytes + id_place(bytes, size) + 8, sizeof(time));
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

static bool parse_ksymbol(struct body *b, struct record *r)
{
	uint32_t length;
	uint16_t type, flags;

	if (!TAKE(b, r->start) || !TAKE(b, length) || !TAKE(b, type) || !TAKE(b, flags))
		return false;
	r->length = length;
	r->flags = flags;
	return take_text(b, r);
}

static bool parse_bpf_event(struct body *b, struct record *r)
{
	uint32_t number;
	uint16_t type, flags;
	const uint8_t *tag;

	if (!TAKE(b, type) || !TAKE(b, flags) || !TAKE(b, number) || !take_place(b, &tag, 8))
		return false;
	r->what = type;
	r->flags = flags;
	r->number = number;
	return true;
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
	case PERF_RECORD_KSYMBOL:
		return parse_ksymbol(b, r);
	case PERF_RECORD_BPF_EVENT:
		return parse_bpf_event(b, r);
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
	size_t id = id_place(bytes, size);
	struct body b = { bytes + sizeof(h), id - sizeof(h) };

	memcpy(&h, bytes, sizeof(h));
	/* An event that counts nothing is never throttled; should it be, nothing is lost. */
	if (h.type == PERF_RECORD_THROTTLE || h.type == PERF_RECORD_UNTHROTTLE)
		return 0;
	r.type = h.type;
	r.misc = h.misc;
	r.size = (uint16_t)(id + PP_SIDEBAND_ID_SIZE);
	r.time = record_when(bytes, size);
	if (!parse_body(&b, &r))
		return -EBADMSG;
	*ret = r;
	return 1;
}
