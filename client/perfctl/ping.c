// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl ping: checks whether the daemon runs, and prints what it is. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"
#include "proto/clock.h"

/* s NULL: the caller may not read it, or the daemon is older. */
static void print_sideband_json(struct json *j, const struct perfpersist_sideband_info *s)
{
	if (!s) {
		json_null(j, "sideband");
		return;
	}
	json_begin(j, "sideband", '{');
	json_bool(j, "keeping", s->keeping);
	if (s->pid)
		json_unsigned(j, "pid", s->pid);
	else
		json_null(j, "pid");
	json_unsigned(j, "processes", s->processes);
	json_unsigned(j, "ended", s->ended);
	json_unsigned(j, "memory", s->memory);
	json_unsigned(j, "max_memory", s->max_memory);
	json_unsigned(j, "began", s->began);
	json_unsigned(j, "complete", s->complete);
	json_unsigned(j, "lost", s->lost);
	json_unsigned(j, "forgotten", s->forgotten);
	json_unsigned(j, "unseen", s->unseen);
	json_unsigned(j, "cpu_time", s->cpu_time);
	json_string(j, "why", sideband_reason(s));
	json_end(j, '}');
}

static void print_json(const struct perfpersist_daemon_info *d,
		       const struct perfpersist_sideband_info *s)
{
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '{');
	json_string(&j, "release", d->release);
	json_string(&j, "instance", d->instance);
	json_unsigned(&j, "version", d->version);
	json_unsigned(&j, "pid", d->pid);
	if (d->engine_pid)
		json_unsigned(&j, "engine_pid", d->engine_pid);
	else
		json_null(&j, "engine_pid");
	json_unsigned(&j, "events", d->events);
	json_unsigned(&j, "started", d->started);
	print_sideband_json(&j, s);
	json_end(&j, '}');
	putchar('\n');
}

/* 4.1M: one digit is enough for a measure. */
static void print_mebibytes(uint64_t bytes)
{
	printf("%.1fM", (double)bytes / (1 << 20));
}

static void print_sideband(const struct perfpersist_sideband_info *s)
{
	if (!s->keeping) {
		printf("sideband: none is kept: %s\n", sideband_reason(s));
		return;
	}
	printf("sideband: %" PRIu64 " process%s (%" PRIu64 " ended) in ", s->processes,
	       s->processes == 1 ? "" : "es", s->ended);
	print_mebibytes(s->memory);
	printf(" of %s, for %s, lost %" PRIu64 ", forgotten %" PRIu64 "\n",
	       format_size(s->max_memory).s, format_age(pp_clock_real(s->began)).s, s->lost,
	       s->forgotten);
	if (s->unseen)
		printf("sideband: %u BPF programs were loaded and unloaded unseen, and have no names\n",
		       s->unseen);
	printf("sideband: names are complete for %s: %s\n",
	       format_age(pp_clock_real(s->complete)).s, sideband_reason(s));
}

static void print_human(const struct perfpersist_daemon_info *d)
{
	fputs("perfpersistd ", stdout);
	print_text(stdout, d->release, strlen(d->release));
	if (*d->instance) {
		fputs(" of instance ", stdout);
		print_text(stdout, d->instance, strlen(d->instance));
	}
	printf(" is running: pid %u, ", d->pid);
	if (d->engine_pid)
		printf("engine pid %u, ", d->engine_pid);
	else
		fputs("no engine just now, ", stdout);
	printf("%u event%s, up %s\n", d->events, d->events == 1 ? "" : "s",
	       format_age(d->started).s);
}

static int run(struct call *call)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	struct perfpersist_daemon_info d = { .sz = sizeof(d) };
	struct perfpersist_sideband_info s = { .sz = sizeof(s) };
	int r;

	if (!options_read(call, NULL))
		return call->code;
	r = call_connect(call, &p);
	if (r)
		return r;
	r = perfpersist_ping(p, &d);
	if (r < 0)
		return call_failed(p, r);
	/* The keeper may be slow or not answer; the daemon runs all the same. */
	if (!call->json) {
		print_human(&d);
		fflush(stdout);
	}
	r = perfpersist_sideband(p, 0, 0, &s, NULL);
	if (call->json)
		print_json(&d, r >= 0 ? &s : NULL);
	else if (r >= 0)
		print_sideband(&s);
	else if (r != -EACCES && r != -EOPNOTSUPP) /* no right to read it; an older daemon */
		printf("sideband: not known: %s\n", perfpersist_error(p));
	return EXIT_OK;
}

const struct verb verb_ping = {
	.name = "ping",
	.synopsis = "",
	.summary = "check whether the daemon runs",
	.run = run,
	.help = "Prints the daemon's version, processes and number of events; the exit code is 5 if it\n"
		"does not run. If you may read an event, ping also prints the recorded sideband: how\n"
		"many processes it knows, since when it names all exited processes and why since then,\n"
		"or why none is recorded.\n"
		"\n"
		"Examples:\n"
		"  perfctl ping\n"
		"  perfctl --instance test ping --json\n",
};
