// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files that perf itself recorded, compared line by line with `perf script`. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/trace/trace.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

#define FINISHED_INIT \
	82 /* PERF_RECORD_FINISHED_INIT: perf's own, of 6.1 and later; nothing is in it */
#define TRACING_DATA \
	66 /* PERF_RECORD_HEADER_TRACING_DATA, of a pipe: followed by as many bytes as it says */
#define DATA_SECTION 40 /* where its offset and size are, in a file */
#define NSEC ((uint64_t)1000000000)
#define WORK "sh -c 'for i in 1 2 3 4 5 6 7 8; do ls / >/dev/null; done'"

static char dir[] = "/tmp/perfpersist-perf-XXXXXX";

static const struct {
	const char *what, *options;
	bool pipe, tracepoints;
} files[] = {
	{ "tracepoints", "-e sched:sched_switch,sched:sched_wakeup -a", false, true },
	{ "call chains", "-e cpu-clock -F 5000 -g -a", false, false },
	/* Without -a: the kernel leaves the bit for a build id in mappings that it reports to
	 * others, and their perf, also that of our other tests, crashes on it. */
	{ "build ids", "-e cpu-clock -c 100000 --buildid-mmap --sample-cpu", false, false },
	{ "all together", "-e sched:sched_switch -e cpu-clock -e page-faults -g -a", false, true },
	{ "a pipe", "-e sched:sched_switch -e cpu-clock -a", true, true },
};

static const char *path_of(int i)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%d.data", dir, i);
	return path;
}

static const char *text_of(int i)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%d.txt", dir, i);
	return path;
}

static const char *complaints_of(int i)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%d.err", dir, i);
	return path;
}

__attribute__((format(printf, 1, 2))) static FILE *start(const char *fmt, ...)
{
	char command[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	return popen(command, "we");
}

static FILE *start_recording(int i, const char *more)
{
	return start("exec 2>%s; perf record -q %s %s -o %s -- %s%s%s", complaints_of(i), more,
		     files[i].options, files[i].pipe ? "-" : path_of(i), WORK,
		     files[i].pipe ? " >" : "", files[i].pipe ? path_of(i) : "");
}

static FILE *start_printing(int i)
{
	return start("exec 2>>%s; perf script -i %s --ns -G -F "
		     "comm,pid,tid,cpu,time,event,ip,dso >%s",
		     complaints_of(i), path_of(i), text_of(i));
}

/*
 * Makes records of a kind that both readers pass over out of those about others' BPF programs: perf 6.1 ends with
 * "failed to process type: 17" where programs come and go by the hundred, as beside our other tests.
 */
static bool forget_programs(int i)
{
	_cleanup_close_ int fd = open(path_of(i), O_RDWR | O_CLOEXEC);
	struct perf_event_header header;
	uint32_t more;
	uint64_t section[2] = { 16, UINT64_MAX - 16 }; /* of a pipe: all after its header */

	if (fd < 0 || (!files[i].pipe &&
		       pread(fd, section, sizeof(section), DATA_SECTION) != sizeof(section)))
		return false;
	for (uint64_t at = section[0];
	     at < section[0] + section[1] &&
	     pread(fd, &header, sizeof(header), (off_t)at) == sizeof(header);
	     at += header.size) {
		if (header.size < sizeof(header))
			return false;
		if (header.type == TRACING_DATA &&
		    pread(fd, &more, sizeof(more), (off_t)at + 8) == sizeof(more))
			at += (more + 7) & ~7U;
		if (header.type != PERF_RECORD_KSYMBOL && header.type != PERF_RECORD_BPF_EVENT)
			continue;
		header.type = FINISHED_INIT;
		if (pwrite(fd, &header, sizeof(header), (off_t)at) != sizeof(header))
			return false;
	}
	return true;
}

/* All at once, because perf mostly waits for the kernel. more: options of perf record. */
static void record_those(const bool wanted[ARRAY_SIZE(files)], const char *more,
			 bool is_made[ARRAY_SIZE(files)])
{
	FILE *running[ARRAY_SIZE(files)] = {};
	bool is_there;

	for (int i = 0; i < (int)ARRAY_SIZE(files); i++)
		if (wanted[i] && !is_made[i])
			running[i] = start_recording(i, more);
	for (int i = 0; i < (int)ARRAY_SIZE(files); i++) {
		if (!running[i])
			continue;
		is_there = pclose(running[i]) == 0 && forget_programs(i);
		running[i] = is_there ? start_printing(i) : NULL;
	}
	for (int i = 0; i < (int)ARRAY_SIZE(files); i++)
		if (running[i])
			is_made[i] = pclose(running[i]) == 0;
}

/*
 * Without perf's cache of build ids, where several perfs block each other. perf 6.1 crashes on a build id of more
 * than 20 bytes, which any process may have: then without any.
 */
static void record_all(bool is_made[ARRAY_SIZE(files)], bool tracepoints)
{
	bool wanted[ARRAY_SIZE(files)];

	for (int i = 0; i < (int)ARRAY_SIZE(files); i++)
		wanted[i] = tracepoints || !files[i].tracepoints;
	record_those(wanted, "-N", is_made);
	record_those(wanted, "-B", is_made);
}

/* Why perf could not record a file, in its own words. */
static const char *why_not(int i)
{
	static char why[512];
	FILE *f = fopen(complaints_of(i), "re");
	size_t n = (size_t)snprintf(why, sizeof(why), "perf cannot record it here: ");

	if (f)
		n += fread(why + n, 1, sizeof(why) - n - 1, f);
	why[n] = 0;
	if (f)
		fclose(f);
	for (char *c = why; *c; c++)
		if (*c == '\n')
			*c = c[1] ? ';' : 0;
	return why;
}

static void collapse(char *line)
{
	char *to = line;

	for (const char *c = line; *c; c++)
		if (!isspace((unsigned char)*c) || (to > line && to[-1] != ' '))
			*to++ = isspace((unsigned char)*c) ? ' ' : *c;
	while (to > line && to[-1] == ' ')
		to--;
	*to = 0;
}

/* perf's lines about the samples, one each. */
struct lines {
	struct line {
		char *text;
		uint64_t time;
		size_t number; /* in the file */
	} * v;
	size_t n, cap;
};

/* "COMM PID/TID [CPU] SECONDS.NANOSECONDS: …" */
static uint64_t time_of(const char *text)
{
	const char *at = strstr(text, "] ");
	unsigned long sec = 0, nsec = 0;

	while (at && sscanf(at, "] %lu.%9lu:", &sec, &nsec) != 2)
		at = strstr(at + 1, "] "); /* it was in the command's name */
	ck_assert_msg(at, "perf says no time: %s", text);
	return sec * NSEC + nsec;
}

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/*
 * In order of time: perf sorts within its recording rounds, prints "1 out of order events recorded"
 * for a record that came a round too late, and prints that where it found it.
 */
static void read_lines(const char *path, struct lines *ret)
{
	FILE *f = fopen(path, "re");
	char text[4096];

	ck_assert_ptr_nonnull(f);
	while (fgets(text, sizeof(text), f)) {
		collapse(text);
		if (!*text)
			continue;
		if (ret->n == ret->cap) {
			ret->cap = ret->cap ? 2 * ret->cap : 1024;
			ret->v = reallocarray(ret->v, ret->cap, sizeof(*ret->v));
			ck_assert_ptr_nonnull(ret->v);
		}
		ret->v[ret->n] = (struct line){ strdup(text), time_of(text), ret->n };
		ret->n++;
	}
	fclose(f);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), compare_lines);
}

static void lines_done(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].text);
	free(l->v);
}

#define PIDS_MAX (4 << 20) /* the kernel's own limit */

static bool did_exec[PIDS_MAX]; /* by process, in the file that is read */

static const char *their_file(const char *line)
{
	static char file[1024];

	snprintf(file, sizeof(file), "%s", strrchr(line, '(') + 1);
	file[strcspn(file, ")")] = 0;
	return file;
}

static void our_line(struct trace *t, const struct trace_record *r, const char *theirs, char *line,
		     size_t size)
{
	const struct perfpersist_sample *s = &r->sample;
	bool kernel = s->ip >> 63;
	const struct map *m = processes_find(trace_processes(t), r->pid, s->ip, kernel);
	const char *file = m ? m->dso->path : "[unknown]";
	char jit[32], number[16];

	/* perf has its own name for anonymous memory: where run-time compilers put their
	 * symbols. */
	if (!strncmp(file, "//anon", 6)) {
		snprintf(jit, sizeof(jit), "/tmp/perf-%u.map", r->pid);
		file = jit;
	}
	/* perf forgets a BPF program that still runs as soon as it is unloaded, and may confuse it
	 * with another at its address. And with another listener Linux damages the records of
	 * loading and unloading, which perf believes and we ignore. */
	if ((!strncmp(file, "bpf_prog_", 9) || (kernel && !m)) &&
	    (strstr(theirs, "([unknown])") || strstr(theirs, "(bpf_prog_")))
		file = their_file(theirs);
	/* perf forgets no mapping at an exec, we do. And Linux gives all listeners of page faults
	 * the time of the first one's clock (do_perf_sw_event(), 6.18): if another listener uses
	 * another clock, a sample from before an exec may have a later time. */
	if (!kernel && !m && r->pid < PIDS_MAX && did_exec[r->pid])
		file = their_file(theirs);
	/* perf knows threads only by their own names; a thread that has just exited has the number
	 * -1. */
	if (theirs[0] == ':')
		snprintf(number, sizeof(number), ":%d", (int)r->tid);
	snprintf(line, size, "%s %d/%d [%03u] %" PRIu64 ".%09" PRIu64 ": %s: %" PRIx64 " (%s)",
		 theirs[0] == ':' ? number : r->comm, (int)r->pid, (int)r->tid, r->cpu,
		 r->time / NSEC, r->time % NSEC, r->event->name, s->ip, file);
	collapse(line);
}

START_TEST(as_perf_script)
{
	_cleanup_close_ int fd = -EBADF;
	struct lines perf = {};
	struct trace_record r;
	char ours[4096];
	size_t n = 0;
	struct trace *t;
	int more;

	read_lines(text_of(_i), &perf);
	fd = open(path_of(_i), O_RDONLY | O_CLOEXEC);
	ck_assert_msg(trace_open(fd, &t) == 0, "%s: %s", files[_i].what, trace_error());
	ck_assert_int_eq(trace_info(t)->pipe, files[_i].pipe);
	ck_assert_uint_gt(trace_info(t)->nr_cpus_online, 0);
	while ((more = trace_next(t, &r)) > 0) {
		if (r.kind == TRACE_COMM && r.exec && r.pid < PIDS_MAX)
			did_exec[r.pid] = true;
		if (r.kind != TRACE_SAMPLE)
			continue;
		ck_assert_msg(n < perf.n, "more samples than perf's %zu", n);
		our_line(t, &r, perf.v[n].text, ours, sizeof(ours));
		ck_assert_str_eq(ours, perf.v[n].text);
		if (r.event->type == PERF_TYPE_TRACEPOINT) {
			ck_assert_uint_gt(r.sample.raw_size, 8);
			ck_assert_ptr_nonnull(r.event->format);
		}
		n++;
	}
	ck_assert_int_eq(more, 0);
	ck_assert_uint_eq(n, perf.n);
	ck_assert_uint_gt(n, 0);
	lines_done(&perf);
	trace_free(t);
}
END_TEST

static void add_files(TCase *t)
{
	const char *tracefs = no_tracefs();
	bool is_made[ARRAY_SIZE(files)] = {};

	record_all(is_made, !tracefs);
	for (int i = 0; i < (int)ARRAY_SIZE(files); i++) {
		const char *why = files[i].tracepoints && tracefs ? tracefs : why_not(i);

		if (!is_left_out(files[i].what, is_made[i] ? NULL : why))
			tcase_add_loop_test(t, as_perf_script, i, i + 1);
	}
}

int main(void)
{
	Suite *s = suite_create("trace-perf");
	TCase *t = tcase_create("trace-perf");
	char old[80];
	int r;

	need(no_program("perf"));
	need(no_dir(dir));
	add_files(t);
	suite_add_tcase(s, t);
	r = run_suite(s);
	for (int i = 0; i < (int)ARRAY_SIZE(files); i++) {
		unlink(path_of(i));
		unlink(text_of(i));
		unlink(complaints_of(i));
		snprintf(old, sizeof(old), "%s.old", path_of(i));
		unlink(old); /* perf's, of the first of two attempts */
	}
	rmdir(dir);
	return r;
}
