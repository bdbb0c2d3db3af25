// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl watch: prints a line for each change of an event or a CPU. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/perfctl/events/suggest.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"

struct watch {
	const struct call *call;
	uint64_t left; /* notices to print; UINT64_MAX: no end */
};

static const char *kind_name(uint32_t kind)
{
	static const char *const names[] = {
		[PERFPERSIST_NOTICE_STARTED] = "started",
		[PERFPERSIST_NOTICE_CREATED] = "created",
		[PERFPERSIST_NOTICE_CHANGED] = "changed",
		[PERFPERSIST_NOTICE_PAUSED] = "paused",
		[PERFPERSIST_NOTICE_RESUMED] = "resumed",
		[PERFPERSIST_NOTICE_DELETED] = "deleted",
		[PERFPERSIST_NOTICE_CPU_ONLINE] = "cpu-online",
		[PERFPERSIST_NOTICE_CPU_OFFLINE] = "cpu-offline",
		[PERFPERSIST_NOTICE_LOST] = "lost",
		[PERFPERSIST_NOTICE_TAPE] = "frozen",
		[PERFPERSIST_NOTICE_FIRED] = "fired",
	};

	return kind < ARRAY_SIZE(names) && names[kind] ? names[kind] : "unknown";
}

static bool is_about_cpu(const struct perfpersist_notice *n)
{
	return n->kind == PERFPERSIST_NOTICE_CPU_ONLINE ||
	       n->kind == PERFPERSIST_NOTICE_CPU_OFFLINE;
}

static void print_json(const struct perfpersist_notice *n)
{
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '{');
	json_string(&j, "notice", kind_name(n->kind));
	if (n->info)
		info_json(&j, "event", n->info);
	if (is_about_cpu(n))
		json_unsigned(&j, "cpu", n->cpu);
	if (n->kind == PERFPERSIST_NOTICE_LOST)
		json_unsigned(&j, "lost", n->lost);
	json_end(&j, '}');
	putchar('\n');
}

static void print_line(const struct perfpersist_notice *n)
{
	time_t now = time(NULL);
	char when[16] = "";
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(when, sizeof(when), "%T", &tm);
	printf("%s %-11s", when, kind_name(n->kind));
	if (n->info) {
		printf(" %s/%s (id %" PRIu64 ") ", n->info->ns, n->info->name, n->info->id);
		print_text(stdout, n->info->event, strlen(n->info->event));
		printf(", %s per CPU", format_size(n->info->buffer).s);
		if (n->info->filter[0]) {
			fputs(", filter ", stdout);
			print_text(stdout, n->info->filter, strlen(n->info->filter));
		}
		printf(", CPUs %s", n->info->cpus);
	} else if (is_about_cpu(n)) {
		printf(" CPU %u", n->cpu);
	} else if (n->kind == PERFPERSIST_NOTICE_LOST) {
		printf(" %" PRIu64 " notices came faster than they were read; `perfctl list` shows "
		       "the current events",
		       n->lost);
	}
	putchar('\n');
}

static void on_notice(struct perfpersist *p _unused_, const struct perfpersist_notice *n,
		      void *userdata)
{
	struct watch *w = userdata;

	if (w->left == 0)
		return;
	if (w->call->json)
		print_json(n);
	else
		print_line(n);
	if (w->left != UINT64_MAX && n->kind != PERFPERSIST_NOTICE_STARTED)
		w->left--;
	fflush(stdout);
}

static int watch(struct perfpersist *p, struct watch *w)
{
	int r = 0;

	signals_catch();
	while (!signals_caught() && !ferror(stdout) && w->left != 0) {
		signals_wait(UINT64_MAX / 4, perfpersist_fd(p));
		r = perfpersist_dispatch(p);
		if (r < 0)
			return call_failed(p, r);
	}
	return EXIT_OK;
}

static const struct verb_option options[] = {
	{ 'n', NULL, "N", "end after N notices",
	  TAKE_NUMBER(struct watch, left, "not a number above 0"), .min = 1 },
	{},
};

static int run(struct call *call)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	struct watch w = { .call = call, .left = UINT64_MAX };
	int r;

	if (!options_read(call, &w))
		return call->code;
	if (call->connect.direct)
		return bad_usage(
			call,
			"watch needs the daemon, which sends the notices; leave --direct out");
	r = call_connect(call, &p);
	if (r)
		return r;
	r = perfpersist_watch(p, call->operands[0], on_notice, &w);
	return r < 0 ? suggest_name(p, r, call->operands[0] ?: "", NULL) : watch(p, &w);
}

const struct verb verb_watch = {
	.name = "watch",
	.synopsis = "[NAMESPACE] [-n N]",
	.summary = "report events and CPUs as they come, change and go",
	.run = run,
	.options = { { .rows = options } },
	.operands = COMPLETE_NAMESPACE,
	.one_operand = true,
	.help = "The first line, `started`, says that every later change is reported. --json prints an\n"
		"object a line.\n"
		"\n"
		"Examples:\n"
		"  perfctl watch\n"
		"  perfctl watch web --json\n",
};
