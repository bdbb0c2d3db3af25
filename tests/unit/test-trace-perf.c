// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files that perf itself recorded, line by line as `perf script` reads them. */
#include <check.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/trace/trace.h"
#include "proto/macro.h"

#define NSEC ((uint64_t)1000000000)
#define WORK "sh -c 'for i in 1 2 3 4 5 6 7 8; do ls / >&2; done' 2>/dev/null"

static char dir[] = "/tmp/perfpersist-perf-XXXXXX";
static char path[64];

static const struct {
	const char *what, *options;
	bool pipe;
} files[] = {
	{ "tracepoints", "-e sched:sched_switch,sched:sched_wakeup -a", false },
	{ "call chains", "-e cpu-clock -F 5000 -g -a", false },
	/* Without -a: the kernel leaves the bit for a build id in mappings that it tells to others,
	 * and their perf, ours in other tests too, dies of that. */
	{ "build ids", "-e cpu-clock -c 100000 --buildid-mmap --sample-cpu", false },
	{ "all together", "-e sched:sched_switch -e cpu-clock -e page-faults -g -a", false },
	{ "a pipe", "-e sched:sched_switch -e cpu-clock -a", true },
};

static bool record(unsigned i)
{
	_cleanup_free_ char *command = NULL;

	if (files[i].pipe)
		ck_assert_int_gt(asprintf(&command, "perf record -q %s -o - -- %s >%s",
					  files[i].options, WORK, path),
				 0);
	else
		ck_assert_int_gt(asprintf(&command, "perf record -q %s -o %s -- %s",
					  files[i].options, path, WORK),
				 0);
	return system(command) == 0;
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

/* What perf says of the next sample; false: no more. */
static bool perf_line(FILE *f, char *line, int size)
{
	do {
		if (!fgets(line, size, f))
			return false;
		collapse(line);
	} while (!*line);
	return true;
}

static void our_line(struct trace *t, const struct trace_record *r, const char *theirs, char *line,
		     size_t size)
{
	const struct perfpersist_sample *s = &r->sample;
	bool kernel = s->ip >> 63;
	const struct map *m = processes_find(trace_processes(t), r->pid, s->ip, kernel);
	const char *file = m ? m->dso->path : "[unknown]";
	char jit[32], number[16];

	/* perf has its own name for what has none: where compilers at run time leave their symbols.
	 */
	if (!strncmp(file, "//anon", 6)) {
		snprintf(jit, sizeof(jit), "/tmp/perf-%u.map", r->pid);
		file = jit;
	}
	/* perf knows threads only by their own names; one that has just ended has the number -1. */
	if (theirs[0] == ':')
		snprintf(number, sizeof(number), ":%d", (int)r->tid);
	snprintf(line, size, "%s %d/%d [%03u] %" PRIu64 ".%06" PRIu64 ": %s: %" PRIx64 " (%s)",
		 theirs[0] == ':' ? number : r->comm, (int)r->pid, (int)r->tid, r->cpu,
		 r->time / NSEC, r->time % NSEC / 1000, r->event->name, s->ip, file);
	collapse(line);
}

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/perf.data", dir);
}

static void teardown(void)
{
	unlink(path);
	rmdir(dir);
}

START_TEST(as_perf_script)
{
	char theirs[4096], ours[4096];
	_cleanup_close_ int fd = -EBADF;
	struct trace_record r;
	unsigned n = 0;
	struct trace *t;
	int more;
	FILE *f;

	if (!record((unsigned)_i)) {
		printf("SKIP: %s: perf cannot record it here\n", files[_i].what);
		return;
	}
	snprintf(theirs, sizeof(theirs),
		 "perf script -i %s -G -F comm,pid,tid,cpu,time,event,ip,dso 2>/dev/null", path);
	f = popen(theirs, "re");
	ck_assert_ptr_nonnull(f);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_msg(trace_open(fd, &t) == 0, "%s: %s", files[_i].what, trace_error());
	ck_assert_int_eq(trace_info(t)->pipe, files[_i].pipe);
	ck_assert_uint_gt(trace_info(t)->nr_cpus_online, 0);
	while ((more = trace_next(t, &r)) > 0) {
		if (r.kind != TRACE_SAMPLE)
			continue;
		ck_assert_msg(perf_line(f, theirs, sizeof(theirs)), "more samples than perf's %u",
			      n);
		our_line(t, &r, theirs, ours, sizeof(ours));
		ck_assert_str_eq(ours, theirs);
		if (r.event->type == PERF_TYPE_TRACEPOINT) {
			ck_assert_uint_gt(r.sample.raw_size, 8);
			ck_assert_ptr_nonnull(r.event->format);
		}
		n++;
	}
	ck_assert_int_eq(more, 0);
	ck_assert(!perf_line(f, theirs, sizeof(theirs)));
	ck_assert_uint_gt(n, 0);
	pclose(f);
	trace_free(t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("trace-perf");
	TCase *t = tcase_create("trace-perf");
	SRunner *r = srunner_create(s);
	int failed;

	if (system("perf --version >/dev/null 2>&1") != 0) {
		puts("SKIP: there is no perf");
		return 0;
	}
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, as_perf_script, 0, ARRAY_SIZE(files));
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
