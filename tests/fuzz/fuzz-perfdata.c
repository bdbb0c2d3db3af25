// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Takes the input as a perf.data file and reads it to its end as perfctl does. The first byte says
 * what the others are: a whole file, or the records of a file whose header and events are valid,
 * seekable or in the pipe format. The order of time is checked.
 */
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#include "client/perfctl/trace/trace.h"
#include "proto/macro.h"
#include "proto/perf-file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum input { INPUT_FILE, INPUT_RECORDS, INPUT_PIPE, INPUT_FEATURES, INPUTS };

#define EVENTS 3
static const uint64_t sample_types[EVENTS] = {
	PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
		PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
	PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ |
		PERF_SAMPLE_RAW,
	PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER |
		PERF_SAMPLE_STACK_USER,
};

static volatile uint64_t sink;

static struct perf_event_attr attr(unsigned i)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = i ? PERF_TYPE_TRACEPOINT : PERF_TYPE_SOFTWARE,
		.config = i,
		.sample_period = 1,
		.sample_type = sample_types[i],
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID,
		.sample_regs_user = 0x7,
		.sample_id_all = 1,
	};
}

static void put(int fd, const void *bytes, size_t n)
{
	if (write(fd, bytes, n) != (ssize_t)n)
		abort();
}

/* The header and three events with the ids 1 to 3; then the input, as records or as the rest of the
 * file. */
static void put_file(int fd, const uint8_t *data, size_t size, bool features)
{
	struct {
		struct perf_file_header header;
		uint64_t ids[EVENTS];
		struct {
			struct perf_event_attr attr;
			struct perf_file_section ids;
		} attrs[EVENTS];
	} f = { .header = { .magic = PERF_FILE_MAGIC,
			    .size = sizeof(struct perf_file_header),
			    .attr_size = sizeof(f.attrs[0]),
			    .attrs = { .offset = offsetof(__typeof__(f), attrs),
				       .size = sizeof(f.attrs) },
			    .data = { .offset = sizeof(f), .size = features ? 0 : size },
			    .features = { features ? 0xf7fffffeULL & ~(1ULL << 24) : 0 } },
		.ids = { 1, 2, 3 } };

	for (unsigned i = 0; i < EVENTS; i++) {
		f.attrs[i].attr = attr(i);
		f.attrs[i].ids =
			(struct perf_file_section){ .offset = offsetof(__typeof__(f), ids) +
							      i * sizeof(uint64_t),
						    .size = sizeof(uint64_t) };
	}
	put(fd, &f, sizeof(f));
	put(fd, data, size);
}

static void put_pipe(int fd, const uint8_t *data, size_t size)
{
	const uint64_t header[] = { PERF_FILE_MAGIC, sizeof(struct perf_file_pipe_header) };

	put(fd, header, sizeof(header));
	for (unsigned i = 0; i < EVENTS; i++) {
		struct {
			struct perf_event_header header;
			struct perf_event_attr attr;
			uint64_t id;
		} r = { .header = { .type = PERF_FILE_ATTR, .size = sizeof(r) },
			.attr = attr(i),
			.id = i + 1 };

		put(fd, &r, sizeof(r));
	}
	put(fd, data, size);
}

static void look_at_sample(struct trace *t, const struct trace_record *r)
{
	const struct perfpersist_sample *s = &r->sample;
	const struct map *m;
	uint64_t address;

	if (!r->event || s->record_size < sizeof(struct perf_event_header))
		abort();
	for (size_t i = 0; i < s->n_callchain; i++) {
		memcpy(&address, s->callchain + i, sizeof(address));
		m = processes_find(trace_processes(t), s->pid, address, address >> 63);
		if (m && (address < m->start || address >= m->end || !m->dso->name))
			abort();
	}
	for (size_t i = 0; i < s->raw_size; i++)
		sink += ((const uint8_t *)s->raw)[i];
}

static void read_all(struct trace *t)
{
	struct trace_record r;
	uint64_t time = 0;
	int more;

	for (size_t i = 0; i < trace_events(t); i++) {
		const struct trace_event *e = trace_event(t, i);

		sink += strlen(e->name);
		for (size_t k = 0; k < e->format_size; k++)
			sink += (uint8_t)e->format[k];
	}
	while ((more = trace_next(t, &r)) > 0) {
		if (!r.comm || (r.kind == TRACE_MMAP && !r.map))
			abort();
		if (r.kind == TRACE_SAMPLE)
			look_at_sample(t, &r);
		if (r.kind == TRACE_OTHER) /* may have no time */
			continue;
		if (r.time < time)
			abort();
		time = r.time;
	}
	if (more < 0 && more != -EBADMSG)
		abort();
	if (more < 0 && !*trace_error())
		abort();
	for (size_t i = 0; i < processes_dsos(trace_processes(t)); i++)
		sink += strlen(processes_dso(trace_processes(t), i)->path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("perf.data", MFD_CLOEXEC);
	struct trace *t;
	enum input input;
	int r;

	if (size < 1 || fd < 0)
		return 0;
	input = data[0] % INPUTS;
	data++;
	size--;
	if (input == INPUT_FILE)
		put(fd, data, size);
	else if (input == INPUT_PIPE)
		put_pipe(fd, data, size);
	else
		put_file(fd, data, size, input == INPUT_FEATURES);
	r = trace_open(fd, &t);
	if (r == 0) {
		read_all(t);
		trace_free(t);
	} else if (r != -EBADMSG || !*trace_error()) {
		abort();
	}
	return 0;
}
