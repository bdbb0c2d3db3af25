// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl ping: is the daemon there, and who is it? */
#include <string.h>

#include "client/perfctl/info.h"
#include "client/perfctl/perfctl.h"

static void print_json(const struct perfpersist_daemon_info *d)
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
	json_end(&j, '}');
	putchar('\n');
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

static int run(struct call *call, int argc, char **argv)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	struct perfpersist_daemon_info d = { .sz = sizeof(d) };
	int opt, r;

	r = options_start(call, argc, argv, "", NULL);
	if (r < 0)
		return EXIT_FAILED;
	while ((opt = options_next(call)) > 0)
		;
	if (opt < 0)
		return call->code;
	if (call->n_operands)
		return bad_usage(call, "ping takes no names");
	r = call_connect(call, &p);
	if (r)
		return r;
	r = perfpersist_ping(p, &d);
	if (r < 0)
		return call_failed(p, r);
	if (call->json)
		print_json(&d);
	else
		print_human(&d);
	return EXIT_OK;
}

const struct verb verb_ping = {
	.name = "ping",
	.synopsis = "",
	.summary = "ask whether the daemon is there",
	.run = run,
	.help = "Says who it is and what runs; exit code 5 if it does not.\n"
		"\n"
		"Examples:\n"
		"  perfctl ping\n"
		"  perfctl --instance test ping --json\n",
};
