// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Any bytes as the copies of rings: opened, copied, walked and merged. The first byte tells
 * how: in how many rings the rest is cut, whether they are mapped or read, and whether the
 * header is made to hold, so that the fuzzer gets to the records at once.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfpersist.h"
#include "proto/macro.h"
#include "proto/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RINGS_MAX 3
#define MODE_MAPPED (1U << 2)
#define MODE_HEADER (1U << 3)
#define HEAD_SIZE 24

static volatile uint64_t sink; /* what is read must really be read */

static void touch(const struct perfpersist_sample *s)
{
	const uint8_t *raw = s->raw, *record = s->record;
	uint64_t sum = s->time + s->ip;

	for (size_t i = 0; i < s->raw_size; i++)
		sum += raw[i];
	for (size_t i = 0; i < s->n_callchain; i++) {
		uint64_t ip;

		memcpy(&ip, (const uint8_t *)s->callchain + 8 * i, sizeof(ip));
		sum += ip;
	}
	for (size_t i = 0; i < s->record_size; i++)
		sum += record[i];
	sink = sum;
}

/* A header that holds, around the words and the sample type that the input chose. */
static void mend(struct pp_ring_header *h, uint32_t cpu)
{
	h->magic = PP_RING_MAGIC;
	h->version = PP_RING_VERSION;
	h->header_size = PP_RING_PAGE;
	h->data_size = PP_DATA_SIZE_MIN;
	h->spill_size = 8 * (1 + h->spill_size % 64);
	h->cpu = cpu;
	h->event_id = 1;
	h->attr_size %= sizeof(h->attr) + 1;
	h->format_size %= PP_RING_PAGE - PP_RING_FORMAT_OFFSET + 1;
	h->ns[PP_NAME_SIZE - 1] = h->name[PP_NAME_SIZE - 1] = h->event[PP_EVENT_TEXT_SIZE - 1] = 0;
	memset(h->boot_id, 0, sizeof(h->boot_id));
}

/* Short inputs reach far: the words that matter come first, and the records repeat. */
static int make_ring(const uint8_t *data, size_t size, unsigned mode, uint32_t cpu,
		     uint64_t sample_type)
{
	static uint8_t ring[PP_RING_PAGE + PP_DATA_SIZE_MIN + 8 * 64];
	struct pp_ring_header *h = (struct pp_ring_header *)ring;
	_cleanup_close_ int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t n = MIN(size, sizeof(ring));

	if (mode & MODE_HEADER && size > HEAD_SIZE) {
		memset(ring, 0, sizeof(ring));
		memcpy(&h->live, data, 16); /* head, reserve */
		h->spill_size = data[16];
		h->format_size = h->attr_size = data[17];
		h->sample_type = sample_type;
		mend(h, cpu);
		data += HEAD_SIZE;
		size -= HEAD_SIZE;
		for (size_t i = 0; i < sizeof(ring) - PP_RING_PAGE; i += size)
			memcpy(ring + PP_RING_PAGE + i, data,
			       MIN(size, sizeof(ring) - PP_RING_PAGE - i));
		n = sizeof(ring);
	} else {
		memcpy(ring, data, n);
	}
	if (fd < 0 || write(fd, ring, n) != (ssize_t)n)
		abort();
	if (mode & MODE_MAPPED)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	return TAKE_FD(fd);
}

static void walk(struct perfpersist_snapshot *s, size_t n)
{
	struct perfpersist_sample sample;

	for (size_t i = 0; i < n; i++) {
		struct perfpersist_cursor *c;

		if (perfpersist_cursor_new(s, i, &c) < 0)
			abort();
		while (perfpersist_cursor_next(c, &sample) == 1)
			touch(&sample);
		perfpersist_cursor_free(c);
	}
	for (int order = PERFPERSIST_OLDEST_FIRST; order <= PERFPERSIST_NEWEST_FIRST; order++) {
		struct perfpersist_merge *m;

		if (perfpersist_merge_new(s, (enum perfpersist_order)order, order ? 10 : 0, &m) < 0)
			abort();
		while (perfpersist_merge_next(m, &sample) == 1)
			touch(&sample);
		if (perfpersist_merge_damaged(m) > n)
			abort();
		perfpersist_merge_free(m);
	}
}

static void read_event(struct perfpersist_event *e)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist_snapshot *s;
	const uint8_t *bytes;
	size_t n;

	if (perfpersist_event_info(e, &info) < 0 || strnlen(info.name, sizeof(info.name)) > 63)
		abort();
	bytes = perfpersist_event_attr(e, &n);
	for (size_t i = 0; i < n; i++)
		sink += bytes[i];
	bytes = (const uint8_t *)perfpersist_event_format(e, &n);
	for (size_t i = 0; i < n; i++)
		sink += bytes[i];
	if (perfpersist_snapshot_new(e, &s) < 0)
		abort();
	walk(s, perfpersist_event_rings(e)); /* nothing taken yet */
	for (int i = 0; i < 2; i++) {
		if (perfpersist_snapshot_take(s) < 0)
			abort();
		walk(s, perfpersist_event_rings(e));
	}
	perfpersist_snapshot_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perfpersist_event *e = NULL;
	int fds[RINGS_MAX];
	uint64_t sample_type;
	size_t n, part;

	if (size < 1 + sizeof(sample_type))
		return 0;
	n = 1 + data[0] % RINGS_MAX;
	memcpy(&sample_type, data + 1, sizeof(sample_type));
	part = (size - 1 - sizeof(sample_type)) / n;
	for (size_t i = 0; i < n; i++)
		fds[i] = make_ring(data + 1 + sizeof(sample_type) + i * part, part, data[0],
				   (uint32_t)i, sample_type);
	if (perfpersist_open_fds(fds, n, &e) == 0)
		read_event(e);
	perfpersist_event_free(e);
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
	return 0;
}
