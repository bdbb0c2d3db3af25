// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the set of rings of one event, and answers what their headers and live words say. */
#include "client/event.h"

#include <fcntl.h>
#include <string.h>

#include "client/info.h"
#include "client/public.h"

int client_event_new(const struct perfpersist_info *base, struct perfpersist_event **ret)
{
	struct perfpersist_event *e = calloc(1, sizeof(*e));

	if (!e)
		return client_fail(-ENOMEM, "cannot open the event: out of memory");
	e->refs = 1;
	if (base)
		e->base = *base;
	*ret = e;
	return 0;
}

struct perfpersist_event *client_event_ref(struct perfpersist_event *e)
{
	e->refs++;
	return e;
}

_public_ void perfpersist_event_free(struct perfpersist_event *e)
{
	if (!e || --e->refs > 0)
		return;
	for (size_t i = 0; i < e->n; i++)
		client_ring_close(&e->rings[i]);
	free(e->rings);
	free(e->format);
	free(e);
}

/* The ring's header against what is known of the event and its other rings. */
static int check_member(const struct perfpersist_event *e, const struct client_ring *r, int cpu)
{
	const struct pp_ring_header *h = &r->header;

	if (cpu != CLIENT_ANY_CPU && h->cpu != (uint32_t)cpu)
		return client_fail(-EBADMSG, "the ring handed out for CPU %d says it is CPU %u's",
				   cpu, h->cpu);
	if (e->base.sz && h->event_id != e->base.id)
		return client_fail(-EINVAL,
				   "the ring in descriptor %d is of event %llu (%s/%s), the others "
				   "are of event %llu: open each event by itself",
				   r->fd, (unsigned long long)h->event_id, h->ns, h->name,
				   (unsigned long long)e->base.id);
	for (size_t i = 0; i < e->n; i++) {
		const struct pp_ring_header *other = &e->rings[i].header;

		if (h->cpu == other->cpu)
			return client_fail(-EINVAL,
					   "descriptors %d and %d are both CPU %u's ring: give one",
					   e->rings[i].fd, r->fd, h->cpu);
		if (h->sample_type != other->sample_type ||
		    memcmp(h->boot_id, other->boot_id, sizeof(h->boot_id)) != 0)
			return client_fail(-EINVAL,
					   "descriptors %d and %d are rings of different events: "
					   "open each event by itself",
					   e->rings[i].fd, r->fd);
	}
	return 0;
}

/* Who opened an event by its name cannot know our descriptors, of which the sentence speaks. */
static int name_event(const struct perfpersist_event *e, int cpu, int error)
{
	char why[CLIENT_SENTENCE_SIZE];

	snprintf(why, sizeof(why), "%s", client_sentence());
	return client_fail(error, "cannot open %s/%s, CPU %d: %s", e->base.ns, e->base.name, cpu,
			   why);
}

int client_event_add(struct perfpersist_event *e, int fd, int cpu, size_t size)
{
	struct client_ring r;
	int error;

	error = client_ring_open(fd, size, &r);
	if (error < 0)
		return cpu == CLIENT_ANY_CPU ? error : name_event(e, cpu, error);
	error = check_member(e, &r, cpu);
	if (error < 0)
		goto fail;
	if (e->n == e->cap) {
		size_t cap = e->cap ? 2 * e->cap : 4;
		struct client_ring *rings = reallocarray(e->rings, cap, sizeof(*rings));

		if (!rings) {
			error = client_fail(-ENOMEM, "cannot open the event: out of memory");
			goto fail;
		}
		e->rings = rings;
		e->cap = cap;
	}
	if (!e->base.sz)
		client_info_from_header(&r.header, &e->base);
	e->rings[e->n++] = r;
	return 0;
fail:
	client_ring_close(&r);
	return error;
}

_public_ int perfpersist_open_fds(const int *fds, size_t n, struct perfpersist_event **ret)
{
	_cleanup_(client_event_cleanup) struct perfpersist_event *e = NULL;
	int error;

	if (n == 0)
		return client_fail(-EINVAL, "cannot open an event: no descriptors were given");
	error = client_event_new(NULL, &e);
	if (error < 0)
		return error;
	for (size_t i = 0; i < n; i++) {
		int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);

		if (fd < 0)
			return client_fail(-errno, "cannot use descriptor %d as a ring: %m",
					   fds[i]);
		error = client_event_add(e, fd, CLIENT_ANY_CPU, 0);
		if (error < 0)
			return error;
	}
	*ret = TAKE_PTR(e);
	return 0;
}

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
	};
	if (r->header.recorder == PP_RECORDER_OVERFLOW)
		ret->missed = CLIENT_RING_LIVE(r, missed);
}

_public_ int perfpersist_event_info(struct perfpersist_event *e, struct perfpersist_info *ret)
{
	struct perfpersist_info info = e->base;
	uint64_t missed = 0;
	int error;

	error = format_rings(e, info.cpus, sizeof(info.cpus));
	if (error < 0)
		return error;
	info.records = info.bytes = 0;
	for (size_t i = 0; i < e->n; i++) {
		struct perfpersist_ring_stat stat;

		read_stat(&e->rings[i], &stat);
		info.records += stat.records;
		info.bytes += stat.bytes;
		missed += stat.missed;
	}
	if (info.recorder == PERFPERSIST_RECORDER_OVERFLOW)
		info.missed = missed;
	return client_info_export(&info, ret);
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

_public_ const void *perfpersist_event_attr(struct perfpersist_event *e, size_t *ret_size)
{
	const struct pp_ring_header *h = e->n ? &e->rings[0].header : NULL;

	*ret_size = h ? h->attr_size : 0;
	return h && h->attr_size ? h->attr : NULL;
}

/* A private copy: whoever parses it must find the same bytes at the second look. */
static void copy_format(struct perfpersist_event *e)
{
	const struct client_ring *r = &e->rings[0];
	_cleanup_free_ char *format = malloc(r->header.format_size);

	if (!format ||
	    client_ring_read(r, PP_RING_FORMAT_OFFSET, format, r->header.format_size) < 0)
		return;
	e->format = TAKE_PTR(format);
	e->format_size = r->header.format_size;
}

_public_ const char *perfpersist_event_format(struct perfpersist_event *e, size_t *ret_size)
{
	if (!e->format && e->n && e->rings[0].header.format_size)
		copy_format(e);
	*ret_size = e->format_size;
	return e->format;
}
