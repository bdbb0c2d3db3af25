// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Traces of AUX areas in files of ours, made by hand, one of each kind that perf decodes: perf
 * shows what is in them, at its time.
 */
#include <inttypes.h>
#include <string.h>

#include "client/perfpersist.h"
#include "daemon/engine/recorders/recorder.h"
#include "proto/auxtrace.h"
#include "proto/perf-record.h"
#include "proto/sideband.h"
#include "tests/unit/ring-writer.h"

#define PMU 40		    /* its number */
#define PT_TSC (1ULL << 10) /* of its config */

/* Two of its counts are one nanosecond. */
#define ZERO 3000000000000ULL
#define MULT 8
#define SHIFT 4
#define COUNT 7000 /* of the copies */

static char dir[] = "/tmp/perfpersist-decode-XXXXXX";

/* Each trace is decoded in both formats, and with the clock that is not known, too. */
#define CASES 4
static bool has_clock, is_pipe;

static void choose(int i)
{
	has_clock = i & 1;
	is_pipe = i & 2;
}

/* ── traces ─────────────────────────────────────────────────────────────────────────────── */

struct trace {
	uint8_t bytes[4096];
	size_t n;
};

static void put(struct trace *t, const void *bytes, size_t n)
{
	ck_assert_uint_le(t->n + n, sizeof(t->bytes));
	memcpy(t->bytes + t->n, bytes, n);
	t->n += n;
}

#define PUT(t, ...) put(t, (uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }))

static void put_u64(struct trace *t, uint64_t v)
{
	put(t, &v, sizeof(v));
}

/* From, to, flags. */
static void put_branch(struct trace *t, uint64_t from, uint64_t to)
{
	put_u64(t, from);
	put_u64(t, to);
	put_u64(t, 0);
}

/* PSB, TSC, CBR, PSBEND, PAD. */
static void put_psb(struct trace *t, uint64_t count)
{
	for (int i = 0; i < 8; i++)
		PUT(t, 0x02, 0x82);
	PUT(t, 0x19);
	put(t, &count, 7);
	PUT(t, 0x02, 0x03, 20, 0);
	PUT(t, 0x02, 0x23);
	PUT(t, 0, 0, 0, 0);
}

/* A load that has missed the first level: PC, operation, events, address of the data, time. */
static void put_load(struct trace *t, uint64_t pc, uint64_t address, uint64_t count)
{
	PUT(t, 0xb0);
	put_u64(t, pc);
	PUT(t, 0x49, 0x00);
	PUT(t, 0x52, 0x0e, 0x00);
	PUT(t, 0xb2);
	put_u64(t, address);
	PUT(t, 0x71);
	put_u64(t, count);
}

/* ── files ──────────────────────────────────────────────────────────────────────────────── */

struct aux_record {
	struct perf_event_header header;
	uint64_t offset, size, flags;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t id;
};

static int auxtrace_of(const struct trace *t)
{
	struct aux_record record = {
		.header = { .type = PERF_RECORD_AUX, .size = sizeof(record) },
		.size = t->n,
		.time = ZERO + COUNT / 2,
	};
	struct pp_auxtrace_header h = {
		.magic = PP_AUXTRACE_MAGIC,
		.version = PP_AUXTRACE_VERSION,
		.header_size = sizeof(h),
		.size = sizeof(h) + sizeof(record) + t->n,
		.area = 4096,
		.head = t->n,
		.trace = t->n,
		.records = sizeof(record),
		.stopped = ZERO + COUNT / 2,
		.resumed = ZERO + COUNT,
		.flags = has_clock ? PP_AUXTRACE_TSC : 0,
		.time_zero = has_clock ? ZERO : 0,
		.time_mult = has_clock ? MULT : 1,
		.time_shift = has_clock ? SHIFT : 0,
		.counter = has_clock ? COUNT : ZERO + COUNT / 2,
	};
	int fd = memfd_create("trace", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, &h, sizeof(h)), sizeof(h));
	ck_assert_int_eq(write(fd, &record, sizeof(record)), sizeof(record));
	ck_assert_int_eq(write(fd, t->bytes, t->n), (ssize_t)t->n);
	return fd;
}

static const char *path(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "%s/data", dir);
	return text;
}

static struct perfpersist_event *event_of(struct writer *w, const char *name,
					  const struct perf_event_attr *attr, const char *format)
{
	*w = writer_new(0, 4096, 1024);
	w->header->sample_type = attr->sample_type;
	w->header->attr_size = PERF_ATTR_SIZE_VER7;
	memcpy(w->header->attr, attr, PERF_ATTR_SIZE_VER7);
	w->header->format_size = (uint32_t)strlen(format);
	memcpy(w->ring + PP_RING_FORMAT_OFFSET, format, strlen(format));
	strcpy(w->header->event, name);
	return writer_open(w, 1);
}

static const char switch_format[] =
	"name: sched_switch\nID: 77\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
	"\tfield:pid_t next_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"print fmt: \"next_pid=%d\", REC->next_pid\n";

/* The CPU has switched to this task. */
static void add_switch(struct perfpersist_perfdata *d, uint32_t next, uint64_t time)
{
	const uint32_t raw[3] = { 77, next };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = 77,
		.sample_period = 1,
		.sample_type = WRITER_SAMPLE_TYPE,
	};
	struct perfpersist_sample sample = {
		.time = time, .raw = raw, .raw_size = sizeof(raw), .pid = 1, .tid = 1
	};
	struct perfpersist_event *e;
	struct writer w;
	int i;

	e = event_of(&w, "sched:sched_switch", &attr, switch_format);
	i = perfpersist_perfdata_event(d, e);
	ck_assert_int_ge(i, 0);
	ck_assert_int_eq(perfpersist_perfdata_sample(d, i, &sample), 0);
	perfpersist_event_free(e);
	writer_done(&w);
}

/* switches: there is an event of them, and this task came in the middle of the trace. */
static void write_file(const char *event, uint64_t config, const struct trace *t, uint32_t switches)
{
	const struct perfpersist_perfdata_options o = { .sz = sizeof(o), .pipe = is_pipe };
	const struct pp_source source = { .kind = PP_SOURCE_AUX, .type = PMU, .config = config };
	const struct pp_spec spec = { .period = 4096 };
	struct perf_event_attr attr;
	struct perfpersist_perfdata *d = NULL;
	struct perfpersist_event *e;
	struct writer w;
	int fd = open(path(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int trace = auxtrace_of(t);

	recorder_aux_attr(&spec, &source, NULL, &attr);
	e = event_of(&w, event, &attr, "");
	ck_assert_int_eq(perfpersist_perfdata_new(fd, &o, &d), 0);
	ck_assert_int_eq(perfpersist_perfdata_event(d, e), 0);
	ck_assert_int_eq(perfpersist_perfdata_auxtrace(d, 0, trace), 0);
	if (switches)
		add_switch(d, switches, ZERO + 1500);
	ck_assert_int_eq(perfpersist_perfdata_finish(d), 0);
	perfpersist_perfdata_free(d);
	perfpersist_event_free(e);
	writer_done(&w);
	close(trace);
	close(fd);
}

/* What perf prints of the file. perf reads a pipe's format only from one. */
static const char *perf(const char *command)
{
	static char text[65536];
	char line[512];
	FILE *f;
	size_t n;

	snprintf(line, sizeof(line), "cat %s | perf %s -f -i %s 2>&1", path(), command,
		 is_pipe ? "-" : path());
	f = popen(line, "re");
	ck_assert_ptr_nonnull(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	ck_assert_msg(pclose(f) == 0, "perf %s: %s", command, text);
	return text;
}

/* Where a line of perf's has all of these words. */
static void check_line(const char *text, const char *time, const char *event, const char *more)
{
	_cleanup_free_ char *lines = strdup(text);
	char *rest = lines, *line;

	while ((line = strsep(&rest, "\n")))
		if (strstr(line, time) && strstr(line, event) && strstr(line, more))
			return;
	ck_abort_msg("no line with '%s', '%s' and '%s' in: %s", time, event, more, text);
}

static void check_report(const char *event)
{
	if (!is_pipe)
		check_line(perf("report --stdio"), "# Samples: ", event, "");
}

/* ── tests ──────────────────────────────────────────────────────────────────────────────── */

/* perf leaves out the last branch of a trace. */
START_TEST(intel_bts)
{
	struct trace t = { .n = 0 };
	const char *script;

	choose(_i);
	put_branch(&t, 0x401000, 0x402000);
	put_branch(&t, 0x402040, 0x401005);
	put_branch(&t, 0x403000, 0x404000);
	write_file("intel_bts//", 0, &t, 0);
	script = perf("script --itrace=b");
	check_line(script, "branches", " 401000 ", "=>           402000 ");
	check_line(script, "branches", " 402040 ", "=>           401005 ");
	check_report("branches");
}
END_TEST

START_TEST(intel_pt)
{
	struct trace t = { .n = 0 };
	const char *script;

	choose(_i);
	put_psb(&t, 1000);
	put_psb(&t, 5000);
	write_file("intel_pt//", PT_TSC, &t, 4711);
	script = perf("script --ns --itrace=pe");
	check_line(script, has_clock ? " 3000.000000500:" : "", " psb: ", "offs: 0 ");
	check_line(script, has_clock ? " 3000.000002500:" : "", " psb: ", "offs: 0x22 ");
	check_line(script, has_clock ? ":-1" : "", " psb: ", "offs: 0 ");
	check_line(script, ":4711", " psb: ", "offs: 0x22 ");
	check_line(script, "", " cbr: ", "cbr: 20 ");
	ck_assert_ptr_null(strstr(script, "error"));
	check_report("psb");
}
END_TEST

/* perf takes the upper byte of each address for a tag. */
START_TEST(arm_spe)
{
	struct trace t = { .n = 0 };
	const char *script;

	choose(_i);
	put_load(&t, 0xffff800010001000, 0xffff000012345678, 2000);
	put_load(&t, 0xffff800010001010, 0xffff000012345680, 4000);
	write_file("arm_spe_0//", 0, &t, 0);
	script = perf("script --ns");
	check_line(script, has_clock ? " 3000.000001000:" : "", "l1d-miss:", "ff800010001000 ");
	check_line(script, has_clock ? " 3000.000002000:" : "", "l1d-miss:", "ff800010001010 ");
	check_line(script, "", " memory:", "ff800010001010 ");
	check_report("l1d-miss");
}
END_TEST

static const char *no_perf(void)
{
	return system("perf version >/dev/null 2>&1") == 0 ? NULL : "needs perf";
}

int main(void)
{
	Suite *s = suite_create("perfdata-decode");
	TCase *t = tcase_create("all");
	int r;

	need(no_perf());
	if (!mkdtemp(dir))
		return EXIT_FAILURE;
	tcase_add_loop_test(t, intel_bts, 0, CASES);
	tcase_add_loop_test(t, intel_pt, 0, CASES);
	tcase_add_loop_test(t, arm_spe, 0, CASES);
	suite_add_tcase(s, t);
	r = run_suite(s);
	unlink(path());
	rmdir(dir);
	return r;
}
