// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Takes the input as copies of rings and their catalog, which are opened, copied, walked, merged
 * and followed. The first byte chooses how many rings there are, whether they are mapped or read,
 * whether their header is made valid, so that the fuzzer reaches the records at once, whether there
 * is a catalog, whether it is made valid, and whether the records are made valid, so that the input
 * only fills their bodies.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfpersist.h"
#include "proto/catalog.h"
#include "proto/macro.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RINGS_MAX 3
#define MODE_MAPPED (1U << 2)
#define MODE_HEADER (1U << 3)
#define MODE_CATALOG (1U << 4)
#define MODE_CATALOG_HEADER (1U << 5)
#define MODE_RECORDS (1U << 6)
#define HEAD_SIZE 24
#define SOURCES 3

static volatile uint64_t sink; /* makes the compiler read the data */

static void touch(const struct perfpersist_sample *s)
{
	const uint8_t *raw = s->raw, *record = s->record;
	uint64_t sum = s->time + s->ip + s->source;

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

/* A valid header around the fields and the sample type that the input chose. */
static void mend(struct pp_ring_header *h, uint32_t cpu, unsigned mode)
{
	h->n_sources = 1;
	if (mode & MODE_CATALOG) {
		h->n_sources = SOURCES;
		h->sample_type = PERF_SAMPLE_IDENTIFIER;
	}

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

/* Records with valid headers, as a recorder writes them: two bytes of the input choose size and
 * source, and the following bytes fill the body. */
static void write_records(uint8_t *ring, unsigned mode, const uint8_t *data, size_t size)
{
	struct pp_ring_header *h = (struct pp_ring_header *)ring;
	struct perf_event_header record = { .type = PERF_RECORD_SAMPLE };

	h->live.head = 0;
	for (int i = 0; i < 300 && size > 2; i++) {
		uint64_t id = PP_SOURCE_ID(1, data[1] % (SOURCES + 1));
		size_t n = 8 * (1 + data[0] % MIN(h->spill_size / 8, 16U)), body;
		uint8_t *at;

		record.size = (uint16_t)n;
		h->live.head -= n;
		at = ring + PP_RING_PAGE + (h->live.head & (PP_DATA_SIZE_MIN - 1));
		memset(at, 0, n);
		memcpy(at, &record, sizeof(record));
		if (mode & MODE_CATALOG && n >= 16)
			memcpy(at + 8, &id, sizeof(id));
		data += 2;
		size -= 2;
		body = n > 16 ? MIN(size, n - 16) : 0;
		memcpy(at + 16, data, body);
		data += body;
		size -= body;
		h->live.records++;
	}
	h->live.reserve = h->live.head;
}

static void repeat(uint8_t *to, size_t n, const uint8_t *data, size_t size)
{
	for (size_t i = 0; size > 0 && i < n; i += size)
		memcpy(to + i, data, MIN(size, n - i));
}

/* Short inputs reach far: the important words come first, and the records repeat. */
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
		mend(h, cpu, mode);
		data += HEAD_SIZE;
		size -= HEAD_SIZE;
		if (mode & MODE_RECORDS)
			write_records(ring, mode, data, size);
		else
			repeat(ring + PP_RING_PAGE, sizeof(ring) - PP_RING_PAGE, data, size);
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

static int make_file(const void *bytes, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
		abort();
	return fd;
}

/* Entries whose types and offsets the input chose, behind a valid header. */
static int make_catalog(const uint8_t *data, size_t size, unsigned mode)
{
	static struct {
		struct pp_catalog_header header;
		struct pp_catalog_entry entry[SOURCES];
		uint8_t text[256];
	} c;

	if (!(mode & MODE_CATALOG_HEADER))
		return make_file(data, MIN(size, 8192UL));
	memset(&c, 0, sizeof(c));
	c.header = (struct pp_catalog_header){
		.magic = PP_CATALOG_MAGIC,
		.version = PP_CATALOG_VERSION,
		.header_size = sizeof(c.header),
		.entry_size = sizeof(c.entry[0]),
		.n_sources = SOURCES,
		.size = sizeof(c),
		.event_id = 1,
	};
	for (size_t i = 0; i < SOURCES && size >= 8; i++, data += 8, size -= 8) {
		struct pp_catalog_entry *e = &c.entry[i];

		e->id = PP_SOURCE_ID(1, i);
		e->sample_type = (i ? PERF_SAMPLE_IDENTIFIER : 0) | data[0] | data[1] << 8;
		e->text_offset = data[2] * 4;
		e->text_size = data[3];
		e->attr_offset = data[4] * 4;
		e->attr_size = data[5];
		e->format_offset = data[6] * 4;
		e->format_size = data[7];
	}
	memcpy(c.text, data, MIN(size, sizeof(c.text)));
	return make_file(&c, sizeof(c));
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

static void read_sources(struct perfpersist_event *e)
{
	struct perfpersist_source s = { .sz = sizeof(s) };

	for (size_t i = 0; i < perfpersist_event_sources(e); i++) {
		const uint8_t *attr, *format;

		if (perfpersist_event_source(e, i, &s) < 0)
			abort();
		attr = s.attr;
		format = (const uint8_t *)s.format;
		for (size_t k = 0; k < s.event_size; k++)
			sink += (uint8_t)s.event[k];
		for (size_t k = 0; k < s.attr_size; k++)
			sink += attr[k];
		for (size_t k = 0; k < s.format_size; k++)
			sink += format[k];
	}
}

/* Following must end: each round returns what was there, until there is nothing new. */
static void follow(struct perfpersist_event *e, size_t newest)
{
	struct perfpersist_follow_stat stat = { .sz = sizeof(stat) };
	struct perfpersist_follow *f;
	struct perfpersist_sample sample;

	if (perfpersist_follow_new(e, newest, &f) < 0)
		abort();
	while (perfpersist_follow_next(f, &sample) == 1)
		touch(&sample);
	for (size_t i = 0; i < perfpersist_event_rings(e); i++)
		if (perfpersist_follow_stat(f, i, &stat) < 0)
			abort();
	if (perfpersist_follow_delay(f) > 100000000)
		abort();
	perfpersist_follow_free(f);
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
	read_sources(e);
	follow(e, 10);
	follow(e, SIZE_MAX);
	sink += (uint64_t)perfpersist_event_state(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perfpersist_event *e = NULL;
	int fds[RINGS_MAX + 1];
	uint64_t sample_type;
	size_t n, part, all;

	if (size < 1 + sizeof(sample_type))
		return 0;
	n = 1 + data[0] % RINGS_MAX;
	memcpy(&sample_type, data + 1, sizeof(sample_type));
	part = (size - 1 - sizeof(sample_type)) / n;
	for (size_t i = 0; i < n; i++)
		fds[i] = make_ring(data + 1 + sizeof(sample_type) + i * part, part, data[0],
				   (uint32_t)i, sample_type);
	all = n;
	if (data[0] & MODE_CATALOG)
		fds[all++] = make_catalog(data + 1 + sizeof(sample_type) + n * part / 2,
					  size - 1 - sizeof(sample_type) - n * part / 2, data[0]);
	if (perfpersist_open_fds(fds, all, &e) == 0)
		read_event(e);
	perfpersist_event_free(e);
	for (size_t i = 0; i < all; i++)
		close(fds[i]);
	return 0;
}
