// SPDX-License-Identifier: LGPL-2.1-or-later
/* perf.data files that are valid, truncated, damaged, or no such file. */
#include "tests/unit/perfdata-writer.h"

#include <fcntl.h>
#include <inttypes.h>

#include "client/perfctl/decode/decoders.h"
#include "tests/unit/needs.h"

static struct perfdata w;
static struct trace *t;
static struct trace_record r;
static int fd = -EBADF;

static void teardown(void)
{
	trace_free(TAKE_PTR(t));
	fd = close_fd(fd);
}

static int open_it(void)
{
	teardown();
	fd = perfdata_fd(&w);
	return trace_open(fd, &t);
}

/* Counts the samples; *ret_end is the last result. */
static unsigned count(int *ret_end)
{
	unsigned n = 0;

	while ((*ret_end = trace_next(t, &r)) > 0)
		n += r.kind == TRACE_SAMPLE;
	return n;
}

static void ck_next(enum trace_kind kind, uint64_t time)
{
	ck_assert_int_eq(trace_next(t, &r), 1);
	ck_assert_int_eq(r.kind, kind);
	ck_assert_uint_eq(r.time, time);
}

static void ck_says(const char *what)
{
	ck_assert_msg(strstr(trace_error(), what) != NULL, "\"%s\" does not say \"%s\"",
		      trace_error(), what);
}

/* ── What is right ──────────────────────────────────────────────────────────────────────── */

static void put_life(void)
{
	static const uint8_t build_id[20] = { 0xab, 0xcd };

	put_comm(&w, 100, 10, "shell", false);
	put_task(&w, PERF_RECORD_FORK, 110, 10, 20);
	put_sample(&w, 1, 120, 20, 0x1234);
	put_comm(&w, 130, 20, "prog", true);
	put_mmap2(&w, 140, 20, 0x1000, 0x1000, "/usr/bin/prog", build_id);
	put_sample(&w, 2, 150, 20, 0x1234);
	put_task(&w, PERF_RECORD_EXIT, 160, 10, 20);
	put_sample(&w, 1, 170, 20, 0x1234);
	end_data(&w);
}

static void ck_life(void)
{
	const struct map *m;

	ck_next(TRACE_COMM, 100);
	ck_next(TRACE_FORK, 110);
	ck_assert_uint_eq(r.pid, 20);
	ck_assert_uint_eq(r.ppid, 10);
	ck_next(TRACE_SAMPLE, 120);
	ck_assert_str_eq(r.comm, "shell");
	ck_assert_str_eq(r.event->name, "cpu-clock");
	ck_assert_uint_eq(r.event->period, 10);
	ck_assert_uint_eq(r.cpu, 3);
	ck_assert_uint_eq(r.sample.ip, 0x1234);
	ck_assert_uint_eq(r.sample.tid, 21);
	ck_assert_uint_eq(r.sample.period, 77);
	ck_assert_uint_eq(r.sample.n_callchain, 2);
	ck_assert_ptr_null(processes_find(trace_processes(t), 20, 0x1234, false));
	ck_next(TRACE_COMM, 130);
	ck_assert(r.exec);
	ck_next(TRACE_MMAP, 140);
	ck_assert_str_eq(r.map->dso->path, "/usr/bin/prog");
	ck_next(TRACE_SAMPLE, 150);
	ck_assert_str_eq(r.comm, "prog");
	ck_assert_str_eq(r.event->name, "page-faults");
	m = processes_find(trace_processes(t), 20, 0x1234, false);
	ck_assert_uint_eq(m->dso->build_id_size, 20);
	ck_assert_uint_eq(m->dso->build_id[1], 0xcd);
	ck_assert_uint_eq(m->offset, 0x400);
	ck_next(TRACE_EXIT, 160);
	ck_next(TRACE_SAMPLE, 170);
	ck_assert_str_eq(r.comm, "prog");
	ck_assert_int_eq(trace_next(t, &r), 0);
	ck_assert_int_eq(trace_next(t, &r), 0);
}

START_TEST(file)
{
	begin_file(&w);
	put_life();
	ck_assert_int_eq(open_it(), 0);
	ck_assert_uint_eq(trace_events(t), EVENTS);
	ck_assert_str_eq(trace_info(t)->hostname, "");
	ck_assert(!trace_info(t)->pipe);
	ck_life();
}
END_TEST

START_TEST(pipe_format)
{
	begin_pipe(&w);
	put_life();
	ck_assert_int_eq(open_it(), 0);
	ck_assert(trace_info(t)->pipe);
	ck_life();
}
END_TEST

/* A pipe can be read only once, and is read to its end. */
START_TEST(through_a_pipe)
{
	int fds[2];

	begin_pipe(&w);
	put_life();
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(write(fds[1], w.bytes, w.size), (ssize_t)w.size);
	close(fds[1]);
	fd = fds[0];
	ck_assert_int_eq(trace_open(fd, &t), 0);
	ck_life();
}
END_TEST

/* The last record in the file may be the first in time: each counts at its own time. */
START_TEST(order)
{
	begin_file(&w);
	for (uint64_t i = 0; i < 1000; i++)
		put_sample(&w, 1 + i % 2, 1000 + (i * 7919) % 1000, 20, i);
	put_comm(&w, 1500, 20, "later", true);
	put_comm(&w, 0, 20, "from /proc", false);
	end_data(&w);
	ck_assert_int_eq(open_it(), 0);
	ck_next(TRACE_COMM, 0);
	for (uint64_t time = 1000; time < 2000; time++) {
		ck_next(TRACE_SAMPLE, time);
		ck_assert_str_eq(r.comm, time <= 1500 ? "from /proc" : "later");
		if (time == 1500)
			ck_next(TRACE_COMM, 1500);
	}
	ck_assert_int_eq(trace_next(t, &r), 0);
}
END_TEST

/* Records of one time keep their order. */
START_TEST(same_time)
{
	begin_file(&w);
	for (uint64_t i = 0; i < 1000; i++)
		put_sample(&w, 1, i < 500 ? 2 : 1, 20, i);
	end_data(&w);
	ck_assert_int_eq(open_it(), 0);
	for (uint64_t i = 0; i < 1000; i++) {
		ck_next(TRACE_SAMPLE, i < 500 ? 1 : 2);
		ck_assert_uint_eq(r.sample.ip, (i + 500) % 1000);
	}
}
END_TEST

/* Larger than one read, so that records cross its borders. */
START_TEST(large)
{
	unsigned n = 0;
	int end;

	begin_file(&w);
	put_u64(&w, 0); /* not at a multiple of anything */
	put(&w, "odd", 3);
	file_header(&w)->data.offset = w.data = w.size;
	while (w.size + 200 < sizeof(w.bytes)) {
		put_sample(&w, 1, n, 20, n);
		n++;
	}
	end_data(&w);
	ck_assert_int_eq(open_it(), 0);
	for (unsigned i = 0; i < n; i++) {
		ck_next(TRACE_SAMPLE, i);
		ck_assert_uint_eq(r.sample.ip, i);
	}
	ck_assert_uint_eq(count(&end), 0);
	ck_assert_int_eq(end, 0);
}
END_TEST

START_TEST(kinds)
{
	size_t at;

	begin_file(&w);
	at = begin_record(&w, PERF_RECORD_LOST, 0);
	put_u64(&w, 2);
	put_u64(&w, 42);
	put_sample_id(&w, 0, 1);
	end_record(&w, at);
	at = begin_record(&w, PERF_RECORD_LOST_SAMPLES, 0);
	put_u64(&w, 43);
	put_sample_id(&w, 0, 2);
	end_record(&w, at);
	at = begin_record(&w, PERF_RECORD_KSYMBOL, 0);
	put_u64(&w, 0xffffffffc0000000);
	put_u32(&w, 0x100);
	put_u32(&w, 1);
	put_text(&w, "bpf_prog_6deef7357e7b4530_x");
	put_sample_id(&w, 0, 3);
	end_record(&w, at);
	put_sample(&w, 99, 4, 20, 1); /* of an event that does not exist */
	at = begin_record(&w, 200, 0);
	end_record(&w, at);
	end_data(&w);
	ck_assert_int_eq(open_it(), 0);
	ck_next(TRACE_LOST, 1);
	ck_assert_uint_eq(r.lost, 42);
	ck_assert_str_eq(r.event->name, "page-faults");
	ck_next(TRACE_LOST, 2);
	ck_assert_uint_eq(r.lost, 43);
	ck_next(TRACE_MMAP, 3);
	ck_assert_ptr_eq(processes_find(trace_processes(t), 1, 0xffffffffc0000010, true), r.map);
	ck_assert_str_eq(r.map->dso->name, "bpf_prog_6deef7357e7b4530_x");
	ck_next(TRACE_OTHER, 0);
	ck_assert_uint_eq(r.type, PERF_RECORD_SAMPLE);
	ck_next(TRACE_OTHER, 0);
	ck_assert_uint_eq(r.type, 200);
	ck_assert_int_eq(trace_next(t, &r), 0);
}
END_TEST

static void put_ksymbol(uint64_t address, const char *name, bool gone, uint64_t time)
{
	size_t at = begin_record(&w, PERF_RECORD_KSYMBOL, 0);

	put_u64(&w, address);
	put_u32(&w, 0x100);
	put_u32(&w, 1 | (gone ? PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER << 16 : 0));
	put_text(&w, name);
	put_sample_id(&w, 0, time);
	end_record(&w, at);
}

static void ck_symbol(uint64_t address, const char *name)
{
	const struct map *map = processes_find(trace_processes(t), 1, address, true);

	ck_assert_str_eq(map ? map->dso->name : "", name);
}

/* An unregistered symbol names nothing any more, except for its replacement. */
static void put_history(uint64_t id, uint32_t n_events, uint32_t cpu, uint64_t from,
			uint64_t missed)
{
	size_t at = begin_record(&w, PERF_FILE_EVENT_UPDATE, 0);

	put_u64(&w, PERF_FILE_UPDATE_HISTORY);
	put_u64(&w, id);
	put_u32(&w, n_events);
	put_u32(&w, cpu);
	put_u64(&w, from);
	put_u64(&w, 1000 + cpu);
	put_u64(&w, missed);
	put_u64(&w, 5);
	put_u64(&w, missed ? PERF_FILE_HISTORY_AT_LEAST : 0);
	end_record(&w, at);
}

/* An event's on each CPU, and on all; and those of several events together. */
START_TEST(histories)
{
	struct trace_history h;
	size_t at;

	begin_file(&w);
	put_sample(&w, 1, 120, 20, 0x1234);
	at = begin_record(&w, PERF_RECORD_LOST_SAMPLES, 0);
	put_u64(&w, 43);
	put_sample_id(&w, 0, 130);
	end_record(&w, at);
	put_history(1, 1, 0, 100, 0);
	put_history(1, 1, 7, 300, 0);
	put_history(2, 1, 0, 200, 9);
	end_data(&w);
	ck_assert_int_eq(open_it(), 0);
	h = trace_history(t, 0);
	ck_assert(h.known && !h.missed_at_least);
	ck_assert_uint_eq(h.from, 300);
	ck_assert_uint_eq(h.to, 1000);
	ck_assert_uint_eq(h.missed, 0);
	ck_assert_uint_eq(h.limited, 5);
	ck_assert_uint_eq(h.n_cpus, 2);
	ck_assert_uint_eq(h.cpus[1].cpu, 7);
	ck_assert_uint_eq(h.cpus[0].from, 100);
	h = trace_histories(t, (const bool[]){ false, true, false });
	ck_assert_uint_eq(h.from, 200);
	h = trace_histories(t, (const bool[]){ true, true, false });
	ck_assert(h.known && h.missed_at_least);
	ck_assert_uint_eq(h.from, 300);
	ck_assert_uint_eq(h.lost, 43);
	ck_assert_uint_eq(h.missed, 9);
	ck_assert_uint_eq(h.limited, 10);
	ck_assert(!trace_histories(t, (const bool[]){ false, false, false }).known);

	begin_file(&w); /* together in the file, too: then they have missed the same records */
	put_sample(&w, 1, 120, 20, 0x1234);
	put_history(1, 2, 0, 100, 9);
	end_data(&w);
	ck_assert_int_eq(open_it(), 0);
	ck_assert_uint_eq(trace_histories(t, (const bool[]){ true, true, false }).missed, 9);
	ck_assert_uint_eq(trace_history(t, 1).from, 100);
}
END_TEST

/* Of more events than there are, of none, and two of one event. */
START_TEST(hostile_histories)
{
	static const struct {
		uint64_t id;
		uint32_t n_events;
	} bad[] = { { 1, 0 }, { 1, UINT32_MAX }, { 2, 2 } };
	int end;

	for (size_t i = 0; i < ARRAY_SIZE(bad) + 1; i++) {
		begin_file(&w);
		put_sample(&w, 1, 1, 20, 1);
		put_history(2, 1, 0, 100, 0);
		if (i < ARRAY_SIZE(bad))
			put_history(bad[i].id, bad[i].n_events, 0, 100, 0);
		else
			put_history(1, 2, 0, 100, 0);
		end_data(&w);
		ck_assert_int_eq(open_it(), 0);
		ck_assert_uint_eq(count(&end), 1);
		ck_assert_int_eq(end, -EBADMSG);
	}
}
END_TEST

START_TEST(symbols_end)
{
	const uint64_t a = 0xffffffffc0000000, b = a + 0x100, c = b + 0x100;

	begin_file(&w);
	put_ksymbol(a, "bpf_a", false, 1);
	put_ksymbol(b, "bpf_b", false, 2);
	put_ksymbol(c, "bpf_c", false, 3);
	put_ksymbol(b, "bpf_b", true, 4);
	put_ksymbol(b, "bpf_d", false, 5);
	put_ksymbol(b, "bpf_b", true, 6); /* late */
	put_ksymbol(a + 0x10, "bpf_a", true, 7);
	put_ksymbol(c + 0x100, "bpf_e", true, 8); /* an unreported one */
	end_data(&w);
	ck_assert_int_eq(open_it(), 0);
	ck_next(TRACE_MMAP, 1);
	ck_next(TRACE_MMAP, 2);
	ck_next(TRACE_MMAP, 3);
	ck_symbol(b + 0x10, "bpf_b");
	ck_next(TRACE_OTHER, 4);
	ck_symbol(a + 0xff, "bpf_a");
	ck_symbol(b, "");
	ck_symbol(b + 0xff, "");
	ck_symbol(c, "bpf_c");
	ck_next(TRACE_MMAP, 5);
	ck_next(TRACE_OTHER, 6);
	ck_symbol(b + 0x10, "bpf_d");
	ck_next(TRACE_OTHER, 7);
	ck_symbol(a + 0x10, "bpf_a");
	ck_next(TRACE_OTHER, 8);
	ck_symbol(c, "bpf_c");
	ck_assert_int_eq(trace_next(t, &r), 0);
}
END_TEST

/* ── Features ───────────────────────────────────────────────────────────────────────────── */

/*
 * The formats of tracepoints, one system with one format. If 20,000 events of one format had a
 * decoder each (8 KiB), and a name with the system as prefix, that could be half a megabyte.
 */
START_TEST(events_of_one_format_share_it)
{
	static const char magic[] = "\x17\x08\x44tracing0.6", head[] = "header_page",
			  event[] = "header_event";
	static const char format[] =
		"name: x\nID: 7\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
		"\tfield:int a;\toffset:4;\tsize:4;\tsigned:1;\n\nprint fmt: \"%d\", REC->a\n";
	struct perf_event_attr attr = writer_attr(0);
	static char system[10000];
	struct decoder *first, *second;
	struct decoders decoders;
	size_t at, begin;
	uint32_t size;

	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = 7;
	begin_pipe(&w);
	for (unsigned i = 0; i < 2; i++) {
		at = begin_record(&w, PERF_FILE_ATTR, 0);
		put(&w, &attr, sizeof(attr));
		put_u64(&w, 10 + i);
		end_record(&w, at);
	}
	at = begin_record(&w, PERF_FILE_TRACING_DATA, 0);
	put_u32(&w, 0);
	end_record(&w, at);
	begin = w.size;
	put(&w, magic, sizeof(magic));
	put(&w, "\0\x08\0\x10\0\0", 6); /* byte order, a long, a page */
	put(&w, head, sizeof(head));
	put_u64(&w, 0);
	put(&w, event, sizeof(event));
	put_u64(&w, 0);
	put_u32(&w, 0);
	put_u32(&w, 1);
	memset(system, 's', sizeof(system) - 1);
	put(&w, system, sizeof(system));
	put_u32(&w, 1);
	put_u64(&w, strlen(format));
	put(&w, format, strlen(format));
	size = (uint32_t)(w.size - begin);
	memcpy(w.bytes + begin - sizeof(size), &size, sizeof(size));
	put(&w, "\0\0\0\0\0\0\0", ALIGN_TO(size, 8U) - size);
	ck_assert_int_eq(open_it(), 0);
	ck_assert_uint_eq(trace_events(t), EVENTS + 2);
	ck_assert_ptr_nonnull(trace_event(t, EVENTS)->format);
	ck_assert_ptr_eq(trace_event(t, EVENTS)->format, trace_event(t, EVENTS + 1)->format);
	ck_assert_ptr_eq(trace_event(t, EVENTS)->name, trace_event(t, EVENTS + 1)->name);
	ck_assert_uint_lt(strlen(trace_event(t, EVENTS)->name), 600);
	ck_assert_int_eq(decoders_init(&decoders, trace_events(t)), 0);
	ck_assert_int_eq(decoders_get(&decoders, trace_event(t, EVENTS), &first), 0);
	ck_assert_int_eq(decoders_get(&decoders, trace_event(t, EVENTS + 1), &second), 0);
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_eq(first, second);
	ck_assert_int_eq(decoders_get(&decoders, trace_event(t, 0), &second), 0);
	ck_assert_ptr_null(second);
	decoders_done(&decoders);
}
END_TEST

static void put_feature_text(struct perfdata *d, const char *text)
{
	put_u32(d, (uint32_t)ALIGN_TO(strlen(text) + 1, 8U));
	put_text(d, text);
}

/* Sections after the data: three of text, and one of numbers. */
static void put_features(void)
{
	static const unsigned features[] = { FEATURE_HOSTNAME, FEATURE_OSRELEASE, FEATURE_CMDLINE,
					     FEATURE_CLOCK_DATA };
	size_t table = w.size, at;
	struct perf_file_section s;

	for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
		file_header(&w)->features[0] |= 1ULL << features[i];
		put_u64(&w, 0);
		put_u64(&w, 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
		at = w.size;
		if (features[i] == FEATURE_HOSTNAME)
			put_feature_text(&w, "here");
		if (features[i] == FEATURE_OSRELEASE)
			put_feature_text(&w, "6.1.0");
		if (features[i] == FEATURE_CMDLINE) {
			put_u32(&w, 2);
			put_feature_text(&w, "perfctl");
			put_feature_text(&w, "snapshot");
		}
		if (features[i] == FEATURE_CLOCK_DATA) {
			put_u32(&w, 1);
			put_u32(&w, 1);
			put_u64(&w, 5000);
			put_u64(&w, 2000);
		}
		s = (struct perf_file_section){ .offset = at, .size = w.size - at };
		memcpy(w.bytes + table + i * sizeof(s), &s, sizeof(s));
	}
}

START_TEST(features)
{
	begin_file(&w);
	put_life();
	put_features();
	ck_assert_int_eq(open_it(), 0);
	ck_assert_str_eq(trace_info(t)->hostname, "here");
	ck_assert_str_eq(trace_info(t)->release, "6.1.0");
	ck_assert_str_eq(trace_info(t)->cmdline, "perfctl snapshot");
	ck_assert_uint_eq(trace_info(t)->realtime_offset, 3000);
	ck_life();
}
END_TEST

/* A complete file without records. */
START_TEST(empty)
{
	begin_file(&w);
	end_data(&w);
	put_features();
	ck_assert_int_eq(open_it(), 0);
	ck_assert_str_eq(trace_info(t)->hostname, "here");
	ck_assert_int_eq(trace_next(t, &r), 0);
}
END_TEST

/* ── What is not right ──────────────────────────────────────────────────────────────────── */

/* Cut at any point: the reader returns all records before it, and reports it. */
START_TEST(cut_off)
{
	size_t whole;
	int end;

	begin_file(&w);
	for (uint64_t i = 0; i < 5; i++)
		put_sample(&w, 1, i, 20, i);
	end_data(&w);
	whole = w.size;
	for (w.size = w.data; w.size < whole; w.size++) {
		unsigned before = (unsigned)((w.size - w.data) / ((whole - w.data) / 5));

		ck_assert_int_eq(open_it(), 0);
		ck_assert_uint_eq(count(&end), before);
		ck_assert_int_eq(end, -EBADMSG);
		ck_says("cut off");
		ck_assert_int_eq(trace_next(t, &r), -EBADMSG);
	}
	for (w.size = 0; w.size < w.data; w.size++) {
		int n = open_it();

		ck_assert(n == -EBADMSG || (n == 0 && count(&end) == 0 && end == -EBADMSG));
	}
}
END_TEST

/* perf was killed: the header says 0 bytes. */
START_TEST(not_closed)
{
	int end;

	begin_file(&w);
	put_life();
	file_header(&w)->data.size = 0;
	file_header(&w)->features[0] = 1 << FEATURE_HOSTNAME;
	ck_assert_int_eq(open_it(), 0);
	ck_assert_uint_eq(count(&end), 3);
	ck_assert_int_eq(end, -EBADMSG);
	ck_says("did not come to its end");
}
END_TEST

START_TEST(damaged)
{
	static const uint16_t sizes[] = { 0, 1, 7, 8, 40, 0xffff };
	char offset[32];
	int end;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t at;

		begin_file(&w);
		put_sample(&w, 1, 1, 20, 1);
		put_sample(&w, 1, 2, 20, 2);
		at = w.size;
		put_sample(&w, 1, 3, 20, 3);
		put_sample(&w, 1, 4, 20, 4);
		end_data(&w);
		memcpy(w.bytes + at + 6, &sizes[i], 2);
		snprintf(offset, sizeof(offset), "offset %zu", at);
		ck_assert_int_eq(open_it(), 0);
		ck_assert_uint_eq(count(&end), 2);
		ck_assert_int_eq(end, -EBADMSG);
		ck_says(offset);
	}
}
END_TEST

/* Counts in records that point outside them. */
START_TEST(hostile_counts)
{
	static const uint64_t counts[] = { 3, UINT32_MAX, 1ULL << 61, UINT64_MAX };
	int end;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		begin_file(&w);
		put_sample(&w, 1, 1, 20, 1);
		end_data(&w);
		memcpy(w.bytes + w.size - 24, &counts[i], 8); /* of the call chain */
		ck_assert_int_eq(open_it(), 0);
		ck_assert_uint_eq(count(&end), 0);
		ck_assert_int_eq(end, -EBADMSG);
		ck_says("too short");
	}
}
END_TEST

START_TEST(name_without_end)
{
	int end;

	begin_file(&w);
	put_comm(&w, 1, 20, "x", false);
	end_data(&w);
	memset(w.bytes + w.data + 16, 'x', 8);
	ck_assert_int_eq(open_it(), 0);
	ck_assert_uint_eq(count(&end), 0);
	ck_assert_int_eq(end, -EBADMSG);
}
END_TEST

START_TEST(damaged_features)
{
	int end;

	begin_file(&w);
	put_life();
	put_features();
	/* The section with the host's name lies elsewhere. */
	memset(w.bytes + file_header(&w)->data.offset + file_header(&w)->data.size, 0xff, 8);
	ck_assert_int_eq(open_it(), 0);
	ck_assert_str_eq(trace_info(t)->release, "6.1.0");
	ck_assert_uint_eq(count(&end), 3);
	ck_assert_int_eq(end, -EBADMSG);
	ck_says("section 3");
}
END_TEST

/* Each section claims the whole file, which would be copied for each. */
START_TEST(all_is_features)
{
	static const unsigned unread[] = { 14, 15 }; /* NUMA_TOPOLOGY, BRANCH_STACK */
	struct perf_file_section all;
	int end;

	begin_file(&w);
	put_life();
	end_data(&w);
	all = (struct perf_file_section){ .offset = 0, .size = w.size };
	for (size_t i = 0; i < ARRAY_SIZE(unread); i++) {
		file_header(&w)->features[0] |= 1ULL << unread[i];
		put(&w, &all, sizeof(all));
	}
	ck_assert_int_eq(open_it(), 0);
	count(&end);
	ck_assert_int_eq(end, -EBADMSG);
	ck_says("section 15");
}
END_TEST

/* Another process truncates it during the read: no signal, but an error. */
START_TEST(shrinks)
{
	unsigned n = 1;
	int end;

	begin_file(&w);
	while (w.size + 200 < sizeof(w.bytes))
		put_sample(&w, 1, w.size, 20, 1);
	end_data(&w);
	ck_assert_int_eq(open_it(), 0);
	ck_assert_int_eq(trace_next(t, &r), 1);
	/* Blocks that were read stay; drop them as well. */
	trace_free(TAKE_PTR(t));
	ck_assert_int_eq(trace_open(fd, &t), 0);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	n = count(&end);
	ck_assert(end == -EBADMSG || (end == 0 && n > 0));
	if (end < 0)
		ck_says("changed while it was read");
}
END_TEST

static void ck_refused(const char *why)
{
	ck_assert_int_eq(open_it(), -EBADMSG);
	ck_says(why);
}

/* Each event claims the whole file as its ids. */
static void all_are_ids(void)
{
	const struct perf_file_header *h = file_header(&w);
	struct perf_file_section all = { 0, w.size & ~7UL };

	for (size_t i = 0; i < EVENTS; i++)
		memcpy(w.bytes + h->attrs.offset + (i + 1) * h->attr_size - sizeof(all), &all,
		       sizeof(all));
}

START_TEST(refused)
{
	size_t at;

	begin_file(&w);
	put_life();
	file_header(&w)->magic = PERF_FILE_MAGIC_SWAPPED;
	ck_refused("byte order");
	file_header(&w)->magic = 1;
	ck_refused("does not begin");
	file_header(&w)->magic = PERF_FILE_MAGIC;
	file_header(&w)->size = 105;
	ck_refused("header");
	file_header(&w)->size = sizeof(struct perf_file_header);
	file_header(&w)->features[0] = 1ULL << FEATURE_COMPRESSED;
	ck_refused("compressed");
	file_header(&w)->features[0] = 1ULL << FEATURE_DIR_FORMAT;
	ck_refused("directory");
	file_header(&w)->features[0] = 0;
	file_header(&w)->attrs.size--;
	ck_refused("table of events");
	file_header(&w)->attrs.size++;
	all_are_ids();
	ck_refused("more than it has bytes");
	file_header(&w)->attrs.size = 0;
	ck_refused("no event");
	w.size = 0;
	ck_refused("empty");
	begin_pipe(&w);
	at = begin_record(&w, PERF_FILE_COMPRESSED, 0);
	end_record(&w, at);
	ck_refused("compressed");
	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(trace_open(fd, &t), -EBADMSG);
	ck_says("directory");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("trace");
	TCase *c = tcase_create("trace");

	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_add_test(c, file);
	tcase_add_test(c, pipe_format);
	tcase_add_test(c, through_a_pipe);
	tcase_add_test(c, order);
	tcase_add_test(c, events_of_one_format_share_it);
	tcase_add_test(c, same_time);
	tcase_add_test(c, large);
	tcase_add_test(c, kinds);
	tcase_add_test(c, histories);
	tcase_add_test(c, hostile_histories);
	tcase_add_test(c, symbols_end);
	tcase_add_test(c, features);
	tcase_add_test(c, empty);
	tcase_add_test(c, cut_off);
	tcase_add_test(c, not_closed);
	tcase_add_test(c, damaged);
	tcase_add_test(c, hostile_counts);
	tcase_add_test(c, name_without_end);
	tcase_add_test(c, damaged_features);
	tcase_add_test(c, all_is_features);
	tcase_add_test(c, shrinks);
	tcase_add_test(c, refused);
	suite_add_tcase(s, c);
	return run_suite(s);
}
