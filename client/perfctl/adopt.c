// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl adopt: makes an event of perf events that a running process has opened. It takes its descriptors as
 * a debugger could, by the caller's own right, and hands none to the daemon.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

#include "client/perfctl/events/choose.h"
#include "client/perfctl/events/make-events.h"
#include "client/perfctl/events/suggest.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"

#define FDS_MAX 4096

struct adopt {
	struct make_events make;
	uint64_t pid;
	unsigned numbers[FDS_MAX]; /* of descriptors, in the process */
	int fds[FDS_MAX];	   /* ours */
	size_t n, n_fds;
};

static void adopt_done(struct adopt *a)
{
	for (size_t i = 0; i < a->n_fds; i++)
		close_fd(a->fds[i]);
}

static int take_event(const struct given *g)
{
	return make_events_event(g->call, g->to, g->value);
}

/* One number, or several with commas between. */
static int take_fds(const struct given *g)
{
	struct adopt *a = g->to;
	char number[16];
	uint64_t fd;
	size_t n;

	for (const char *text = g->value;; text += n + 1) {
		n = strcspn(text, ",");
		if (n >= sizeof(number) || a->n == FDS_MAX)
			return refuse(g, NULL);
		memcpy(number, text, n);
		number[n] = '\0';
		if (parse_number(number, &fd) < 0 || fd > INT32_MAX)
			return refuse(g, NULL);
		a->numbers[a->n++] = (unsigned)fd;
		if (!text[n])
			return EXIT_OK;
	}
}

static const struct verb_option options[] = {
	{ 'e', "event", "EVENT",
	  "what the perf events count, in perf's syntax: cpu-clock, "
	  "sched:sched_switch",
	  .take = take_event, .to = offsetof(struct adopt, make), .completes = COMPLETE_EVENT },
	{ 'p', "pid", "PID", "the process that has opened them",
	  TAKE_NUMBER(struct adopt, pid, "not a process id"), .min = 1, .max = INT32_MAX,
	  .completes = COMPLETE_PIDS },
	{ 0, "fd", "N[,N...]", "their descriptors there: one for each CPU or task",
	  .take = take_fds, .refusal = "not a list of descriptors such as 3,4" },
	{ 'n', "namespace", "NS", "the namespace of a NAME that has none; default: `default`",
	  .take = take_namespace, .to = MEMBER(struct adopt, make.ns, const char *),
	  .completes = COMPLETE_NAMESPACE },
	{ 'C', "cpu", "LIST", "make buffers for these CPUs only: 0-3,8",
	  TAKE_TEXT(struct adopt, make.opts.cpus), .completes = COMPLETE_CPUS },
	{ 0, "max-rate", "N/s", "record at most N a second on each CPU, and count the rest",
	  TAKE_VALUE(struct adopt, make.opts.max_rate, parse_max_rate, NOT_A_RATE), .min = 1,
	  .completes = COMPLETE_WORDS, .words = RATES },
	{},
};

/* ── taking descriptors ─────────────────────────────────────────────────────────────────── */

static int no_process(const struct adopt *a, int error)
{
	return call_failed_as(-error, "cannot take descriptors from process %" PRIu64 ": %s",
			      a->pid, error == EPERM ? "you may not trace it" : strerror(error));
}

/* The kernel checks that the caller may trace the process. */
static int take_from(struct adopt *a)
{
	_cleanup_close_ int process = (int)syscall(SYS_pidfd_open, (pid_t)a->pid, 0);

	if (process < 0)
		return no_process(a, errno);
	for (size_t i = 0; i < a->n; i++) {
		int fd = (int)syscall(SYS_pidfd_getfd, process, a->numbers[i], 0);

		if (fd < 0 && errno == EBADF)
			return call_failed_as(-EBADF,
					      "process %" PRIu64 " has no descriptor %u; see "
					      "/proc/%" PRIu64 "/fd",
					      a->pid, a->numbers[i], a->pid);
		if (fd < 0)
			return no_process(a, errno);
		a->fds[a->n_fds++] = fd;
	}
	return EXIT_OK;
}

/* ── adopting ───────────────────────────────────────────────────────────────────────────── */

static int take_operands(struct call *call, const struct adopt *a, struct event_name *ret)
{
	if (call->n_operands != 1)
		return bad_usage(call, "adopt takes one NAME for the event");
	if (a->make.n != 1)
		return bad_usage(call, "adopt takes one -e EVENT, which the perf events count");
	if (!a->pid || !a->n)
		return bad_usage(call, "--pid PID and --fd N of the perf events are missing");
	return make_events_name(call, &a->make, call->operands[0], ret);
}

static void report(const struct call *call, const struct adopt *a,
		   const struct perfpersist_info *info)
{
	struct json j = { .f = stdout };

	if (call->json) {
		info_json(&j, NULL, info);
		putchar('\n');
		return;
	}
	printf("%s/%s (id %" PRIu64 ") records ", info->ns, info->name, info->id);
	print_text(stdout, info->event, strlen(info->event));
	printf(" on CPUs %s, %s each, with %zu perf event%s of process %" PRIu64 "\n", info->cpus,
	       format_size(info->buffer).s, a->n, a->n == 1 ? "" : "s", a->pid);
}

static int adopt(struct call *call, struct adopt *a, const struct event_name *name)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	struct perfpersist_info info = { .sz = sizeof(info) };
	int r;

	allow_descriptors();
	r = take_from(a);
	if (!r)
		r = call_connect(call, &p);
	if (r)
		return r;
	a->make.opts.selections = a->make.events;
	a->make.opts.n_selections = a->make.n;
	r = perfpersist_adopt(p, name->ns, name->name, &a->make.opts, a->fds, a->n_fds, &info);
	if (r < 0)
		return call_failed(p, r);
	report(call, a, &info);
	return EXIT_OK;
}

static int run(struct call *call)
{
	_cleanup_(adopt_done) struct adopt a = { .make.opts.sz = sizeof(a.make.opts) };
	struct event_name name;
	int r;

	if (!options_read(call, &a))
		return call->code;
	r = take_operands(call, &a, &name);
	return r ? r : adopt(call, &a, &name);
}

const struct verb verb_adopt = {
	.name = "adopt",
	.synopsis = "[OPTIONS] NAME -e EVENT --pid PID --fd N[,N...]",
	.summary = "make an event of perf events that a process has opened",
	.run = run,
	.options = { { .rows = options },
		     { .rows = make_events_options, .at = offsetof(struct adopt, make) } },
	.operands = COMPLETE_NEW_NAME,
	.one_operand = true,
	.help = "They record from then on, whatever becomes of the process. You need the right to trace\n"
		"it. The daemon checks that they count EVENT where the kernel tells (6.6); all else,\n"
		"such as -F, describes them. A tracepoint's records are of all CPUs and tasks.\n"
		"\n"
		"Examples:\n"
		"  perfctl adopt profile -e cpu-clock -F 99 --pid 4711 --fd 5,6\n",
};
