// SPDX-License-Identifier: LGPL-2.1-or-later
/* Describes an opened event from its headers, catalog and live words. */
#include <string.h>

#include "client/info.h"
#include "client/public.h"
#include "client/rings/event.h"

/* ── From headers and live words ────────────────────────────────────────────────────── */

static int compare_cpus(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int format_rings(const struct perfpersist_event *e, char *buf, size_t size)
{
	_cleanup_free_ uint32_t *cpus = malloc(e->n * sizeof(*cpus) + 1);

	if (!cpus)
		return client_fail(-ENOMEM, "cannot describe the event: out of memory");
	for (size_t i = 0; i < e->n; i++)
		cpus[i] = e->rings[i].header.cpu;
	qsort(cpus, e->n, sizeof(*cpus), compare_cpus);
	client_format_cpus(cpus, e->n, buf, size);
	return 0;
}

static void read_stat(const struct client_ring *r, struct perfpersist_ring_stat *ret)
{
	*ret = (struct perfpersist_ring_stat){
		.sz = sizeof(*ret),
		.records = CLIENT_RING_LIVE(r, records),
		.bytes = 0 - CLIENT_RING_LIVE(r, head), /* written downward from 0 */
		.missed = CLIENT_RING_LIVE(r, missed),
		.limited = CLIENT_RING_LIMIT(r, limited),
		.idle = CLIENT_RING_LIVE(r, idle),
		.missed_time = CLIENT_RING_LIMIT(r, missed_time),
	};
}

_public_ int perfpersist_event_info(struct perfpersist_event *e, struct perfpersist_info *ret)
{
	struct perfpersist_info info = e->base;
	uint64_t missed = 0;
	int r;

	r = format_rings(e, info.cpus, sizeof(info.cpus));
	if (r < 0)
		return r;
	info.records = info.bytes = info.limited = 0;
	for (size_t i = 0; i < e->n; i++) {
		struct perfpersist_ring_stat stat;

		read_stat(&e->rings[i], &stat);
		info.records += stat.records;
		info.bytes += stat.bytes;
		info.limited += stat.limited;
		missed += stat.missed;
	}
	/* Rings of a single sampling event count all misses; others only a part. */
	if (info.recorder == PERFPERSIST_RECORDER_OVERFLOW && info.sources <= 1)
		info.missed = missed;
	else
		info.missed = MAX(info.missed, missed);
	return client_info_export(&info, ret);
}

_public_ enum perfpersist_ring_state perfpersist_event_state(struct perfpersist_event *e)
{
	enum pp_ring_state state = PP_RING_RUNNING;

	_Static_assert((int)PERFPERSIST_RINGS_RUNNING == (int)PP_RING_RUNNING &&
			       (int)PERFPERSIST_RINGS_PAUSED == (int)PP_RING_PAUSED &&
			       (int)PERFPERSIST_RINGS_RETIRED == (int)PP_RING_RETIRED &&
			       (int)PERFPERSIST_RINGS_DELETED == (int)PP_RING_DELETED,
		       "states of rings");
	/* Rings are marked one after the other, and later states have greater numbers. */
	for (size_t i = 0; i < e->n; i++)
		state = MAX(state, client_ring_state(&e->rings[i]));
	return (enum perfpersist_ring_state)state;
}

_public_ bool perfpersist_event_is_copy(struct perfpersist_event *e)
{
	return e->is_copy;
}

_public_ size_t perfpersist_event_rings(struct perfpersist_event *e)
{
	return e->n;
}

static int no_such_ring(const struct perfpersist_event *e, size_t ring)
{
	return client_fail(-EINVAL, "the event %s/%s has no ring %zu: it has %zu", e->base.ns,
			   e->base.name, ring, e->n);
}

_public_ int perfpersist_ring_cpu(struct perfpersist_event *e, size_t ring)
{
	return ring < e->n ? (int)e->rings[ring].header.cpu : no_such_ring(e, ring);
}

_public_ int perfpersist_ring_fd(struct perfpersist_event *e, size_t ring)
{
	return ring < e->n ? e->rings[ring].fd : no_such_ring(e, ring);
}

_public_ int perfpersist_catalog_fd(struct perfpersist_event *e)
{
	return e->catalog.bytes ? e->catalog.fd : -ENOENT;
}

_public_ int perfpersist_ring_stat(struct perfpersist_event *e, size_t ring,
				   struct perfpersist_ring_stat *ret)
{
	struct perfpersist_ring_stat stat;

	if (!SZ_IS_VALID(ret))
		return client_fail(-EINVAL,
				   "cannot fill in a struct perfpersist_ring_stat of %zu "
				   "bytes: set its sz to its size",
				   ret->sz);
	if (ring >= e->n)
		return no_such_ring(e, ring);
	read_stat(&e->rings[ring], &stat);
	stat.sz = ret->sz;
	*ret = stat;
	return 0;
}

/* ── The sources ────────────────────────────────────────────────────────────────────────── */

_public_ size_t perfpersist_event_sources(struct perfpersist_event *e)
{
	return e->catalog.bytes ? e->catalog.n : 1;
}

/* A private copy: its parser must find the same bytes at a second look. */
static void copy_format(struct perfpersist_event *e)
{
	const struct client_ring *r = &e->rings[0];
	_cleanup_free_ char *format = malloc(e->header.format_size);

	if (!format || r->header.format_size != e->header.format_size ||
	    client_ring_read(r, PP_RING_FORMAT_OFFSET, format, e->header.format_size) < 0)
		return;
	e->format = TAKE_PTR(format);
	e->format_size = e->header.format_size;
}

static void the_source(struct perfpersist_event *e, struct perfpersist_source *ret)
{
	const struct pp_ring_header *h = &e->header;

	if (!e->format && e->n && h->format_size)
		copy_format(e);
	*ret = (struct perfpersist_source){
		.sz = ret->sz,
		.sample_type = h->sample_type,
		.recorder = h->recorder,
		.event = h->event,
		.event_size = strlen(h->event),
		.attr = h->attr_size ? h->attr : NULL,
		.attr_size = h->attr_size,
		.format = e->format,
		.format_size = e->format_size,
	};
}

_public_ int perfpersist_event_source(struct perfpersist_event *e, size_t source,
				      struct perfpersist_source *ret)
{
	if (!SZ_IS_VALID(ret))
		return client_fail(-EINVAL,
				   "cannot fill in a struct perfpersist_source of %zu bytes: set "
				   "its sz to its size",
				   ret->sz);
	if (source >= perfpersist_event_sources(e))
		return client_fail(-EINVAL, "the event %s/%s has no source %zu: it has %zu",
				   e->base.ns, e->base.name, source, perfpersist_event_sources(e));
	if (e->catalog.bytes)
		client_catalog_source(&e->catalog, (uint32_t)source, ret);
	else
		the_source(e, ret);
	return 0;
}

_public_ const void *perfpersist_event_attr(struct perfpersist_event *e, size_t *ret_size)
{
	struct perfpersist_source s = { .sz = sizeof(s) };

	perfpersist_event_source(e, 0, &s);
	*ret_size = s.attr_size;
	return s.attr;
}

_public_ const char *perfpersist_event_format(struct perfpersist_event *e, size_t *ret_size)
{
	struct perfpersist_source s = { .sz = sizeof(s) };

	perfpersist_event_source(e, 0, &s);
	*ret_size = s.format_size;
	return s.format;
}
