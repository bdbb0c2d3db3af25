// SPDX-License-Identifier: LGPL-2.1-or-later
/* The perf.data writer: the file's parts, the order of records, and refusals. */
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "client/perfdata/perfdata.h"
#include "proto/sideband.h"
#include "tests/unit/needs.h"
#include "tests/unit/ring-writer.h"

static const char format_a[] = "name: one\nID: 77\nformat:\n\tfield:unsigned short common_type;"
			       "\toffset:0;\tsize:2;\tsigned:0;\n\nprint fmt: \"\"\n";
static const char format_b[] = "name: two\nID: 77\nformat:\n\tfield:unsigned short common_type;"
			       "\toffset:0;\tsize:2;\tsigned:0;\n\nprint fmt: \"b\"\n";

/* An empty ring of a tracepoint with that format; returns its event. */
static struct perfpersist_event *tracepoint(struct writer *w, const char *format)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = 77,
		.sample_period = 1,
		.sample_type = WRITER_SAMPLE_TYPE,
	};

	*w = writer_new(0, 4096, 1024);
	w->header->attr_size = PERF_ATTR_SIZE_VER7;
	memcpy(w->header->attr, &attr, PERF_ATTR_SIZE_VER7);
	w->header->format_size = (uint32_t)strlen(format);
	memcpy(w->ring + PP_RING_FORMAT_OFFSET, format, strlen(format));
	return writer_open(w, 1);
}

/* ── Sideband files ─────────────────────────────────────────────────────────────────────── */

struct comm {
	struct perf_event_header header;
	uint32_t pid, tid;
	char text[8];
	uint32_t id_pid, id_tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t id;
};

struct sideband {
	struct pp_sideband_header header;
	struct comm comms[2];
};

static struct sideband sideband_of(uint64_t first, uint64_t second)
{
	struct sideband s = { .header = {
				      .magic = PP_SIDEBAND_MAGIC,
				      .version = PP_SIDEBAND_VERSION,
				      .header_size = sizeof(s.header),
				      .size = sizeof(s),
				      .records = 2,
			      } };

	for (size_t i = 0; i < 2; i++)
		s.comms[i] = (struct comm){
			.header = { .type = PERF_RECORD_COMM, .size = sizeof(struct comm) },
			.pid = 5,
			.tid = 5,
			.text = "comm",
			.time = i ? second : first,
			.id = PP_SIDEBAND_ID,
		};
	return s;
}

static int memory_with(const void *bytes, size_t n)
{
	int fd = memfd_create("sideband", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	return fd;
}

/* ── What was written ───────────────────────────────────────────────────────────────────── */

struct file {
	int fd;
	struct perf_file_header header;
	uint8_t data[65536];
};

static void file_read(struct file *f)
{
	ck_assert_int_eq(pread(f->fd, &f->header, sizeof(f->header), 0), sizeof(f->header));
	ck_assert_uint_eq(f->header.magic, PERF_FILE_MAGIC);
	ck_assert_uint_eq(f->header.size, sizeof(f->header));
	ck_assert_uint_le(f->header.data.size, sizeof(f->data));
	ck_assert_int_eq(pread(f->fd, f->data, f->header.data.size, (off_t)f->header.data.offset),
			 (ssize_t)f->header.data.size);
}

/* The next record of a type, or NULL. */
static const struct perf_event_header *next_of(const struct file *f, size_t *at, uint32_t a,
					       uint32_t b)
{
	while (*at < f->header.data.size) {
		const struct perf_event_header *h = (const void *)(f->data + *at);

		ck_assert_uint_ge(h->size, sizeof(*h));
		ck_assert_uint_eq(h->size % 8, 0);
		*at += h->size;
		ck_assert_uint_le(*at, f->header.data.size);
		if (h->type == a || h->type == b)
			return h;
	}
	return NULL;
}

static uint64_t u64_at(const struct perf_event_header *h, size_t offset)
{
	uint64_t v;

	memcpy(&v, (const uint8_t *)h + offset, sizeof(v));
	return v;
}

static struct perfpersist_perfdata *perfdata(int fd, bool pipe)
{
	const struct perfpersist_perfdata_options o = { .sz = sizeof(o), .pipe = pipe };
	struct perfpersist_perfdata *d = NULL;

	ck_assert_int_eq(perfpersist_perfdata_new(fd, &o, &d), 0);
	return d;
}

static struct perfpersist_sample sample_at(uint64_t time, const void *raw, size_t size)
{
	return (struct perfpersist_sample){
		.cpu = 3,
		.pid = 10,
		.tid = 11,
		.time = time,
		.raw = raw,
		.raw_size = size,
	};
}

/* ── Tests ──────────────────────────────────────────────────────────────────────────────── */

START_TEST(sideband_comes_before_samples_of_its_time)
{
	const uint16_t raw[6] = { 77 };
	static const uint64_t samples[] = { 3, 5, 9 };
	static const struct {
		uint32_t type;
		uint64_t time;
	} expected[] = {
		{ PERF_RECORD_SAMPLE, 3 }, { PERF_RECORD_COMM, 5 },  { PERF_RECORD_SAMPLE, 5 },
		{ PERF_RECORD_SAMPLE, 9 }, { PERF_RECORD_COMM, 20 },
	};
	struct sideband s = sideband_of(5, 20);
	int side = memory_with(&s, sizeof(s));
	struct file f = { .fd = memfd_create("file", MFD_CLOEXEC) };
	struct perfpersist_perfdata *d = perfdata(f.fd, false);
	struct writer w;
	struct perfpersist_event *e = tracepoint(&w, format_a);
	size_t at = 0;

	ck_assert_int_eq(perfpersist_perfdata_event(d, e), 0);
	ck_assert_int_eq(perfpersist_perfdata_sideband(d, side), 0);
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct perfpersist_sample one = sample_at(samples[i], raw, sizeof(raw));

		ck_assert_int_eq(perfpersist_perfdata_sample(d, 0, &one), 0);
	}
	ck_assert_int_eq(perfpersist_perfdata_event(d, e), -EBUSY);
	ck_assert_int_eq(perfpersist_perfdata_sideband(d, side), -EBUSY);
	ck_assert_int_eq(perfpersist_perfdata_finish(d), 0);
	ck_assert_int_eq(perfpersist_perfdata_finish(d), -EBUSY);
	ck_assert_int_eq(lseek(f.fd, 0, SEEK_END), (off_t)perfpersist_perfdata_bytes(d));
	file_read(&f);
	ck_assert_uint_eq(f.header.attrs.size, 2 * f.header.attr_size);
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		const struct perf_event_header *h =
			next_of(&f, &at, PERF_RECORD_SAMPLE, PERF_RECORD_COMM);

		ck_assert_ptr_nonnull(h);
		ck_assert_uint_eq(h->type, expected[i].type);
		ck_assert_uint_eq(u64_at(h, h->type == PERF_RECORD_COMM ? 32 : 24),
				  expected[i].time);
		if (h->type != PERF_RECORD_SAMPLE)
			continue;
		ck_assert_uint_eq(u64_at(h, 8), PP_SIDEBAND_ID + 1);
		ck_assert_uint_eq(u64_at(h, 40), 1); /* the attr's period */
	}
	ck_assert_ptr_null(next_of(&f, &at, PERF_RECORD_SAMPLE, PERF_RECORD_COMM));
	perfpersist_perfdata_free(d);
	perfpersist_event_free(e);
	writer_done(&w);
	close(side);
	close(f.fd);
}
END_TEST

START_TEST(a_sample_keeps_its_period)
{
	static const uint64_t periods[] = { 1, 4711, 1ULL << 40 };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.sample_freq = 99,
		.freq = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
	};
	struct file f = { .fd = memfd_create("file", MFD_CLOEXEC) };
	struct perfpersist_perfdata *d = perfdata(f.fd, false);
	struct writer w = writer_new(0, 4096, 1024);
	struct perfpersist_event *e;
	size_t at = 0;

	w.header->sample_type = attr.sample_type;
	w.header->attr_size = PERF_ATTR_SIZE_VER7;
	memcpy(w.header->attr, &attr, PERF_ATTR_SIZE_VER7);
	e = writer_open(&w, 1);
	ck_assert_int_eq(perfpersist_perfdata_event(d, e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(periods); i++) {
		struct perfpersist_sample one = sample_at(1 + i, NULL, 0);

		one.period = periods[i];
		ck_assert_int_eq(perfpersist_perfdata_sample(d, 0, &one), 0);
	}
	ck_assert_int_eq(perfpersist_perfdata_finish(d), 0);
	file_read(&f);
	for (size_t i = 0; i < ARRAY_SIZE(periods); i++) {
		const struct perf_event_header *h =
			next_of(&f, &at, PERF_RECORD_SAMPLE, PERF_RECORD_SAMPLE);

		ck_assert_ptr_nonnull(h);
		/* header, id, ip, tid, time, cpu, period */
		ck_assert_uint_eq(u64_at(h, 48), periods[i]);
	}
	perfpersist_perfdata_free(d);
	perfpersist_event_free(e);
	writer_done(&w);
	close(f.fd);
}
END_TEST

/* Two formats with one number, as from two boots, or from probes. */
START_TEST(formats_have_numbers_of_their_own)
{
	const uint16_t raw[6] = { 77 };
	struct file f = { .fd = memfd_create("file", MFD_CLOEXEC) };
	struct perfpersist_perfdata *d = perfdata(f.fd, false);
	struct perfpersist_sample one = sample_at(1, raw, sizeof(raw));
	struct perf_event_attr attrs[3];
	struct perfpersist_event *e[3];
	struct writer w[3];
	size_t at = 0;

	e[0] = tracepoint(&w[0], format_a);
	e[1] = tracepoint(&w[1], format_b);
	e[2] = tracepoint(&w[2], format_a);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(perfpersist_perfdata_event(d, e[i]), i);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(perfpersist_perfdata_sample(d, i, &one), 0);
	ck_assert_int_eq(perfpersist_perfdata_finish(d), 0);
	file_read(&f);
	for (size_t i = 0; i < 3; i++) {
		off_t offset = (off_t)(f.header.attrs.offset + i * f.header.attr_size);
		const struct perf_event_header *h;
		uint16_t number;

		ck_assert_int_gt(pread(f.fd, &attrs[i], PERFDATA_ATTR_SIZE, offset), 0);
		h = next_of(&f, &at, PERF_RECORD_SAMPLE, PERF_RECORD_SAMPLE);
		ck_assert_ptr_nonnull(h);
		/* header, id, tid, time, cpu, period; the payload follows its size */
		memcpy(&number, (const uint8_t *)h + 48 + 4, sizeof(number));
		ck_assert_uint_eq(number, attrs[i].config);
	}
	ck_assert_uint_eq(attrs[0].config, 77);
	ck_assert_uint_ne(attrs[1].config, 77);
	ck_assert_uint_eq(attrs[2].config, 77);
	perfpersist_perfdata_free(d);
	for (int i = 0; i < 3; i++) {
		perfpersist_event_free(e[i]);
		writer_done(&w[i]);
	}
	close(f.fd);
}
END_TEST

static void check_sideband(const void *s, size_t size, int expected)
{
	int fd = memory_with(s, size);
	int file = memfd_create("file", MFD_CLOEXEC);
	struct perfpersist_perfdata *d = perfdata(file, false);

	ck_assert_int_eq(perfpersist_perfdata_sideband(d, fd), expected);
	perfpersist_perfdata_free(d);
	close(fd);
	close(file);
}

struct mapping {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, length, offset;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t prot, flags;
	char path[32];
	uint32_t id_pid, id_tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t id;
};

/* Counts openings with an inotify descriptor that watches for openings and closings. */
static unsigned openings(int watch)
{
	unsigned n = 0;
	struct inotify_event e;

	while (read(watch, &e, sizeof(e)) == sizeof(e))
		n += (e.mask & IN_OPEN) != 0;
	return n;
}

START_TEST(a_file_is_looked_at_once)
{
	static struct {
		struct pp_sideband_header header;
		struct mapping mappings[1000];
	} s;
	char path[] = "/tmp/pp-mapped-XXXXXX";
	_cleanup_close_ int file = mkstemp(path), watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	const char elf[] = "\177ELF, and nothing more";
	struct stat st;

	ck_assert_int_eq(write(file, elf, sizeof(elf)), sizeof(elf));
	ck_assert_int_eq(fstat(file, &st), 0);
	ck_assert_int_ge(inotify_add_watch(watch, path, IN_OPEN | IN_CLOSE), 0);
	s.header = (struct pp_sideband_header){
		.magic = PP_SIDEBAND_MAGIC,
		.version = PP_SIDEBAND_VERSION,
		.header_size = sizeof(s.header),
		.size = sizeof(s),
		.records = ARRAY_SIZE(s.mappings),
	};
	for (size_t i = 0; i < ARRAY_SIZE(s.mappings); i++) {
		struct mapping *m = &s.mappings[i];

		*m = (struct mapping){
			.header = { .type = PERF_RECORD_MMAP2, .size = sizeof(*m) },
			.pid = 5,
			.tid = 5,
			.address = 0x1000 * i,
			.length = 0x1000,
			.major = major(st.st_dev),
			.minor = minor(st.st_dev),
			.inode = st.st_ino,
			.id = PP_SIDEBAND_ID,
		};
		strcpy(m->path, path);
	}
	check_sideband(&s, sizeof(s), 0);
	ck_assert_uint_eq(openings(watch), 1);
	unlink(path);
}
END_TEST

START_TEST(damaged_sideband_is_refused)
{
	const struct sideband good = sideband_of(1, 2);
	struct sideband s = good;

	check_sideband(&good, sizeof(good), 0);
	check_sideband(&good, sizeof(good) - 8, -EBADMSG);
	check_sideband(&good, 16, -EBADMSG);
	s.header.magic++;
	check_sideband(&s, sizeof(s), -EBADMSG);
	s = good;
	s.header.version++;
	check_sideband(&s, sizeof(s), -EPROTONOSUPPORT);
	s = good;
	s.header.header_size = sizeof(s) + 8;
	check_sideband(&s, sizeof(s), -EBADMSG);
	s = good;
	s.comms[1].header.size += 8;
	check_sideband(&s, sizeof(s), -EBADMSG);
	s = good;
	s.comms[1].header.size = 8;
	check_sideband(&s, sizeof(s), -EBADMSG);
	s = good;
	s.comms[0].header.type = PERF_RECORD_SAMPLE;
	check_sideband(&s, sizeof(s), -EBADMSG);
	s = good;
	s.comms[0].header.type = PERF_RECORD_MMAP2; /* too short for one */
	check_sideband(&s, sizeof(s), -EBADMSG);
}
END_TEST

/* ── Traces of AUX areas ────────────────────────────────────────────────────────────────── */

#define SPE 40 /* number of the PMU */

/* An event that traces, on the PMU of that number. */
static struct perfpersist_event *tracer(struct writer *w, const char *text, uint32_t type)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.sample_type = WRITER_SAMPLE_TYPE,
	};

	*w = writer_new(0, 4096, 1024);
	w->header->attr_size = PERF_ATTR_SIZE_VER7;
	memcpy(w->header->attr, &attr, PERF_ATTR_SIZE_VER7);
	strcpy(w->header->event, text);
	return writer_open(w, 1);
}

struct aux_record {
	struct perf_event_header header;
	uint64_t offset, size, flags;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t id;
};

struct trace {
	struct pp_auxtrace_header header;
	struct aux_record record;
	uint8_t bytes[20]; /* no multiple of 8 */
};
#define TRACE_SIZE (offsetof(struct trace, bytes) + 20)

static struct trace trace_of(uint32_t cpu)
{
	struct trace t = {
		.header = {
			.magic = PP_AUXTRACE_MAGIC,
			.version = PP_AUXTRACE_VERSION,
			.header_size = sizeof(t.header),
			.size = TRACE_SIZE,
			.cpu = cpu,
			.area = 4096,
			.head = cpu ? 12 : 5000, /* an offset in the area, or counting on */
			.trace = sizeof(t.bytes),
			.records = sizeof(t.record),
			.flags = PP_AUXTRACE_TSC,
			.time_zero = 1000,
			.time_mult = 5,
			.time_shift = 6,
			.counter = 77,
		},
		.record = {
			.header = { .type = PERF_RECORD_AUX, .size = sizeof(t.record) },
			.time = 70,
			.cpu = cpu,
			.id = 4711, /* the kernel's */
		},
	};

	memset(t.bytes, 'a' + (int)cpu, sizeof(t.bytes));
	return t;
}

static int add_trace(struct perfpersist_perfdata *d, int event, const struct trace *t)
{
	int fd = memory_with(t, TRACE_SIZE), r = perfpersist_perfdata_auxtrace(d, event, fd);

	close(fd);
	return r;
}

static void check_trace(const struct file *f, size_t *at, uint32_t cpu)
{
	const struct perf_event_header *h = next_of(f, at, PERF_RECORD_AUX, PERF_FILE_AUXTRACE);
	struct perf_file_auxtrace_data data;
	struct trace t = trace_of(cpu);

	ck_assert_ptr_nonnull(h);
	ck_assert_uint_eq(h->type, PERF_RECORD_AUX);
	ck_assert_uint_eq(u64_at(h, h->size - 8U),
			  PP_SIDEBAND_ID + 1); /* the event's in this file */
	ck_assert_int_eq(memcmp(h, &t.record, h->size - 8U), 0);
	h = next_of(f, at, PERF_RECORD_AUX, PERF_FILE_AUXTRACE);
	ck_assert_ptr_nonnull(h);
	ck_assert_uint_eq(h->type, PERF_FILE_AUXTRACE);
	memcpy(&data, h, sizeof(data));
	ck_assert_uint_eq(data.size, 24);
	ck_assert_uint_eq(data.offset, cpu ? 12 : 5000 - 20);
	ck_assert_uint_eq(data.reference, 77);
	ck_assert_uint_eq(data.cpu, cpu);
	ck_assert_uint_eq(data.idx, cpu);
	ck_assert_uint_eq(data.tid, UINT32_MAX);
	ck_assert_int_eq(memcmp((const uint8_t *)h + sizeof(data), t.bytes, sizeof(t.bytes)), 0);
	*at += data.size;
}

START_TEST(traces_come_last)
{
	struct file f = { .fd = memfd_create("file", MFD_CLOEXEC) };
	struct perfpersist_perfdata *d = perfdata(f.fd, false);
	const struct perf_event_header *h;
	struct perf_file_time_conv clock;
	struct trace t[] = { trace_of(0), trace_of(1) };
	struct writer w[2];
	struct perfpersist_event *spe = tracer(&w[0], "arm_spe_0//", SPE);
	struct perfpersist_event *pt = tracer(&w[1], "intel_pt//", SPE + 1);
	size_t at = 0;

	ck_assert_int_eq(perfpersist_perfdata_event(d, spe), 0);
	ck_assert_int_eq(perfpersist_perfdata_event(d, pt), 1);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		ck_assert_int_eq(add_trace(d, 0, &t[i]), 0);
	ck_assert_int_eq(add_trace(d, 1, &t[0]), -EINVAL);
	ck_assert_int_eq(add_trace(d, 2, &t[0]), -EINVAL);
	ck_assert_int_eq(perfpersist_perfdata_finish(d), 0);
	ck_assert_int_eq(add_trace(d, 0, &t[0]), -EBUSY);
	file_read(&f);
	h = next_of(&f, &at, PERF_FILE_TIME_CONV, PERF_FILE_AUXTRACE_INFO);
	ck_assert_ptr_nonnull(h);
	ck_assert_uint_eq(h->type, PERF_FILE_TIME_CONV);
	ck_assert_uint_eq(h->size, sizeof(clock));
	memcpy(&clock, h, sizeof(clock));
	ck_assert_uint_eq(clock.time_zero, 1000);
	ck_assert_uint_eq(clock.time_mult, 5);
	ck_assert_uint_eq(clock.time_shift, 6);
	ck_assert_uint_eq(clock.cap_user_time_zero, 1);
	ck_assert_uint_eq(clock.cap_user_time_short, 0);
	h = next_of(&f, &at, PERF_FILE_AUXTRACE_INFO, PERF_FILE_AUXTRACE_INFO);
	ck_assert_ptr_nonnull(h);
	ck_assert_uint_eq((uint32_t)u64_at(h, 8), PERF_FILE_AUXTRACE_ARM_SPE);
	ck_assert_uint_eq(u64_at(h, 16), SPE);
	ck_assert_uint_eq(h->size, 32);
	for (uint32_t cpu = 0; cpu < ARRAY_SIZE(t); cpu++)
		check_trace(&f, &at, cpu);
	ck_assert_uint_eq(at, f.header.data.size);
	perfpersist_perfdata_free(d);
	perfpersist_event_free(spe);
	perfpersist_event_free(pt);
	writer_done(&w[0]);
	writer_done(&w[1]);
	close(f.fd);
}
END_TEST

/* ── samples beside traces ──────────────────────────────────────────────────────────────── */

#define KERNEL_ID 4712 /* of the event beside */
#define SAMPLE_TYPE                                                              \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_AUX)

struct beside_sample {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t period, aux_size, aux;
};

/* The newest first, the last of an event that is not beside the trace. */
struct beside_trace {
	struct trace trace;
	uint64_t id;
	struct beside_sample samples[3];
	struct {
		struct perf_event_header header;
		uint64_t body[3], sample_id[3], id;
	} throttled;
} __attribute__((packed));

static struct beside_trace beside_trace_of(uint32_t cpu)
{
	struct beside_trace t = { .trace = trace_of(cpu), .id = KERNEL_ID };

	for (uint64_t i = 0; i < 3; i++)
		t.samples[i] = (struct beside_sample){
			.header = { .type = PERF_RECORD_SAMPLE, .size = sizeof(t.samples[i]) },
			.id = KERNEL_ID + (i == 2),
			.time = 100 + 10 * cpu - i,
			.cpu = cpu,
			.aux_size = 8,
			.aux = i,
		};
	t.throttled.header = (struct perf_event_header){ .type = PERF_RECORD_THROTTLE, .size = 64 };
	t.throttled.id = KERNEL_ID;
	t.trace.header.n_beside = 1;
	t.trace.header.samples = sizeof(t) - offsetof(struct beside_trace, id);
	t.trace.header.size = TRACE_SIZE + t.trace.header.samples;
	return t;
}

static int add_beside(struct perfpersist_perfdata *d, const struct beside_trace *t)
{
	_cleanup_free_ uint8_t *bytes = malloc(sizeof(*t));
	size_t n = t->trace.header.samples;
	int fd, r;

	/* Without the padding behind the trace. */
	memcpy(bytes, t, TRACE_SIZE);
	memcpy(bytes + TRACE_SIZE, &t->id, MIN(n, sizeof(*t) - offsetof(struct beside_trace, id)));
	fd = memory_with(bytes, TRACE_SIZE + sizeof(*t) - offsetof(struct beside_trace, id));
	r = perfpersist_perfdata_auxtrace(d, 0, fd);
	close(fd);
	return r;
}

/* An event that traces, and one beside it. */
static struct perfpersist_perfdata *perfdata_beside(int file, bool pipe)
{
	struct perfpersist_perfdata *d = perfdata(file, pipe);
	struct perf_event_attr attr = { .type = SPE, .size = sizeof(attr) };
	struct perfpersist_source source = {
		.sz = sizeof(source),
		.event = "arm_spe_0//",
		.event_size = strlen("arm_spe_0//"),
		.attr = &attr,
		.attr_size = sizeof(attr),
	};

	d->evsels = calloc(4, sizeof(*d->evsels));
	d->events = calloc(1, sizeof(*d->events));
	ck_assert_int_eq(evsel_init(&d->evsels[0], &source, PP_SIDEBAND_ID + 1), 0);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.aux_sample_size = 8;
	source.sample_type = SAMPLE_TYPE;
	ck_assert_int_eq(evsel_init(&d->evsels[1], &source, PP_SIDEBAND_ID + 2), 0);
	ck_assert_uint_eq(d->evsels[1].attr.aux_sample_size, 8);
	d->n_evsels = 2;
	d->events[0].n = 2;
	d->n_events = 1;
	return d;
}

static uint64_t id_in_file(uint64_t trace)
{
	return (PP_SIDEBAND_ID + 2) | (trace + 1) << 32;
}

/* Each CPU's have an id of their own, by which perf finds the CPU and its trace. */
START_TEST(samples_beside_traces)
{
	struct file f = { .fd = memfd_create("file", MFD_CLOEXEC) };
	struct perfpersist_perfdata *d = perfdata_beside(f.fd, false);
	const struct perf_event_header *h;
	struct perf_file_id_entry entry;
	struct {
		uint8_t attr[PERFDATA_ATTR_SIZE];
		struct perf_file_section ids;
	} attrs[3];
	uint64_t ids[3];
	size_t at = 0;

	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		struct beside_trace t = beside_trace_of(cpu);

		ck_assert_int_eq(add_beside(d, &t), 0);
	}
	ck_assert_int_eq(perfpersist_perfdata_finish(d), 0);
	ck_assert_uint_eq(d->first_time, 99);
	ck_assert_uint_eq(d->last_time, 110);
	file_read(&f);
	ck_assert_uint_eq(f.header.attrs.size, sizeof(attrs));
	ck_assert_int_eq(pread(f.fd, attrs, sizeof(attrs), (off_t)f.header.attrs.offset),
			 sizeof(attrs));
	ck_assert_uint_eq(attrs[0].ids.size, 8);
	ck_assert_uint_eq(attrs[1].ids.size, sizeof(ids));
	ck_assert_uint_eq(attrs[2].ids.offset, attrs[1].ids.offset + sizeof(ids));
	ck_assert_int_eq(pread(f.fd, ids, sizeof(ids), (off_t)attrs[1].ids.offset), sizeof(ids));
	ck_assert_uint_eq(ids[0], PP_SIDEBAND_ID + 2);
	h = next_of(&f, &at, PERF_FILE_ID_INDEX, PERF_FILE_ID_INDEX);
	ck_assert_ptr_nonnull(h);
	ck_assert_uint_eq(u64_at(h, 8), 2);
	ck_assert_uint_eq(h->size, 16 + 2 * sizeof(entry));
	for (uint64_t cpu = 0; cpu < 2; cpu++) {
		ck_assert_uint_eq(ids[1 + cpu], id_in_file(cpu));
		memcpy(&entry, (const uint8_t *)h + 16 + cpu * sizeof(entry), sizeof(entry));
		ck_assert_uint_eq(entry.id, id_in_file(cpu));
		ck_assert_uint_eq(entry.idx, cpu);
		ck_assert_uint_eq(entry.cpu, cpu);
		ck_assert_uint_eq(entry.tid, UINT64_MAX);
	}
	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		check_trace(&f, &at, cpu);
		h = next_of(&f, &at, PERF_RECORD_SAMPLE, PERF_RECORD_THROTTLE);
		ck_assert_uint_eq(h->type, PERF_RECORD_THROTTLE);
		ck_assert_uint_eq(u64_at(h, 56), id_in_file(cpu));
		for (uint64_t i = 2; i-- > 0;) {
			h = next_of(&f, &at, PERF_RECORD_SAMPLE, PERF_RECORD_SAMPLE);
			ck_assert_uint_eq(h->size, sizeof(struct beside_sample));
			ck_assert_uint_eq(u64_at(h, 8), id_in_file(cpu));
			ck_assert_uint_eq(u64_at(h, 32), 100 + 10 * cpu - i);
			ck_assert_uint_eq(u64_at(h, h->size - 8U), i);
		}
	}
	ck_assert_ptr_null(next_of(&f, &at, PERF_RECORD_SAMPLE, PERF_RECORD_THROTTLE));
	perfpersist_perfdata_free(d);
	close(f.fd);
}
END_TEST

#define SPOIL_BESIDE(change)                                   \
	do {                                                   \
		t = beside_trace_of(0);                        \
		change;                                        \
		ck_assert_int_eq(add_beside(d, &t), -EBADMSG); \
	} while (0)

START_TEST(damaged_samples_beside_traces)
{
	struct file f = { .fd = memfd_create("file", MFD_CLOEXEC) };
	struct perfpersist_perfdata *d = perfdata_beside(f.fd, false);
	struct beside_trace t;
	size_t at = 0;

	SPOIL_BESIDE(t.trace.header.n_beside = 2);
	SPOIL_BESIDE(t.trace.header.n_beside = 0);
	SPOIL_BESIDE(t.trace.header.samples++);
	SPOIL_BESIDE(t.trace.header.samples = UINT64_MAX);
	SPOIL_BESIDE(t.trace.header.size -= t.trace.header.samples - 4; t.trace.header.samples = 4);
	d->evsels[1].source_type &= ~(uint64_t)PERF_SAMPLE_AUX;
	SPOIL_BESIDE();
	d->evsels[1].source_type = SAMPLE_TYPE;
	perfpersist_perfdata_free(d);
	/* perf reads the file all the same: what it could not read is left out, and what follows if it
	 * cannot be found. */
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(ftruncate(f.fd, 0), 0);
		d = perfdata_beside(f.fd, false);
		t = beside_trace_of(0);
		if (i == 0)
			t.samples[1].header.size = 24;
		else if (i == 1)
			t.samples[1].aux_size = 9;
		else if (i == 2)
			t.samples[1].header.type = PERF_FILE_AUXTRACE;
		else if (i == 3)
			t.samples[1].header.type = PERF_RECORD_THROTTLE; /* ends in no id */
		else
			t.samples[1].header.size = 12;
		ck_assert_int_eq(add_beside(d, &t), 0);
		ck_assert_int_eq(perfpersist_perfdata_finish(d), 0);
		file_read(&f);
		at = 0;
		check_trace(&f, &at, 0);
		ck_assert_ptr_nonnull(next_of(&f, &at, PERF_RECORD_SAMPLE, PERF_RECORD_SAMPLE));
		ck_assert_ptr_null(next_of(&f, &at, PERF_RECORD_SAMPLE, PERF_FILE_AUXTRACE));
		perfpersist_perfdata_free(d);
	}
	/* A file that is shorter than it says. */
	d = perfdata_beside(f.fd, false);
	t = beside_trace_of(0);
	t.trace.header.size += 800;
	t.trace.header.samples += 800;
	ck_assert_int_eq(add_beside(d, &t), 0);
	ck_assert_int_eq(perfpersist_perfdata_finish(d), -EBADMSG);
	perfpersist_perfdata_free(d);
	close(f.fd);
}
END_TEST

#define SPOIL_TRACE(change)                                      \
	do {                                                     \
		t = trace_of(0);                                 \
		change;                                          \
		ck_assert_int_eq(add_trace(d, 0, &t), -EBADMSG); \
	} while (0)

START_TEST(damaged_traces_are_refused)
{
	int file = memfd_create("file", MFD_CLOEXEC);
	struct perfpersist_perfdata *d = perfdata(file, false);
	struct writer w;
	struct perfpersist_event *e = tracer(&w, "arm_spe_0//", SPE);
	struct trace t;

	ck_assert_int_eq(perfpersist_perfdata_event(d, e), 0);
	SPOIL_TRACE(t.header.magic++);
	SPOIL_TRACE(t.header.version++);
	SPOIL_TRACE(t.header.header_size -= 8);
	SPOIL_TRACE(t.header.header_size++);
	SPOIL_TRACE(t.header.size = 100);
	SPOIL_TRACE(t.header.records = UINT64_MAX);
	SPOIL_TRACE(t.header.trace = UINT64_MAX);
	SPOIL_TRACE(t.header.trace++);
	SPOIL_TRACE(t.header.time_mult = 0);
	SPOIL_TRACE(t.header.time_shift = 64);
	/* The file is shorter than its header says: that shows when it is written. */
	t = trace_of(0);
	t.header.trace += 100;
	t.header.size += 100;
	ck_assert_int_eq(add_trace(d, 0, &t), 0);
	ck_assert_int_eq(perfpersist_perfdata_finish(d), -EBADMSG);
	perfpersist_perfdata_free(d);
	perfpersist_event_free(e);
	writer_done(&w);
	close(file);
}
END_TEST

START_TEST(what_cannot_be_written_is_told)
{
	static uint64_t chain[PP_RECORD_SIZE_MAX];
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct perfpersist_perfdata *d = perfdata(full, true);
	struct perfpersist_sample one = sample_at(1, "", 0);
	struct perfpersist_history history = { .sz = sizeof(history) };
	struct writer w;
	struct perfpersist_event *e = tracepoint(&w, format_a);

	ck_assert_int_eq(perfpersist_perfdata_event(d, e), 0);
	ck_assert_int_eq(perfpersist_perfdata_sample(d, 1, &one), -EINVAL);
	ck_assert_int_eq(perfpersist_perfdata_sample(d, -1, &one), -EINVAL);
	ck_assert_int_eq(perfpersist_perfdata_history(d, 1, UINT32_MAX, &history), -EINVAL);
	ck_assert_int_eq(perfpersist_perfdata_history(d, 0, 1, &history), -EINVAL);
	ck_assert_int_eq(perfpersist_perfdata_history(d, 0, 0, &history), 0);
	history.sz--;
	ck_assert_int_eq(perfpersist_perfdata_history(d, 0, 0, &history), -EINVAL);
	one.source = 1;
	ck_assert_int_eq(perfpersist_perfdata_sample(d, 0, &one), -EINVAL);
	one.source = 0;
	one.callchain = chain;
	one.n_callchain = ARRAY_SIZE(chain);
	ck_assert_int_eq(perfpersist_perfdata_sample(d, 0, &one), -EINVAL);
	one.n_callchain = 0;
	ck_assert_int_eq(perfpersist_perfdata_sample(d, 0, &one), 0);
	ck_assert_int_eq(perfpersist_perfdata_finish(d), -ENOSPC);
	perfpersist_perfdata_free(d);
	perfpersist_event_free(e);
	writer_done(&w);
	close(full);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("perfdata-write");
	TCase *tests = tcase_create("perfdata-write");

	tcase_add_test(tests, sideband_comes_before_samples_of_its_time);
	tcase_add_test(tests, a_sample_keeps_its_period);
	tcase_add_test(tests, formats_have_numbers_of_their_own);
	tcase_add_test(tests, a_file_is_looked_at_once);
	tcase_add_test(tests, damaged_sideband_is_refused);
	tcase_add_test(tests, traces_come_last);
	tcase_add_test(tests, damaged_traces_are_refused);
	tcase_add_test(tests, samples_beside_traces);
	tcase_add_test(tests, damaged_samples_beside_traces);
	tcase_add_test(tests, what_cannot_be_written_is_told);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
