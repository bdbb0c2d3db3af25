// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl pause and perfctl resume: pause and resume an event, or all of a namespace. */
#include "client/perfctl/events/suggest.h"
#include "client/perfctl/output/output.h"
#include "client/perfctl/perfctl.h"

static void report(const struct call *call, struct json *j, const struct event_name *name,
		   bool pause, size_t n)
{
	if (call->json) {
		json_begin(j, NULL, '{');
		json_string(j, "namespace", name->ns);
		json_string(j, "name", name->name);
		json_unsigned(j, "count", n);
		json_end(j, '}');
	} else if (!name->name[0]) {
		printf("%zu event%s of %s %s\n", n, n == 1 ? "" : "s", name->ns,
		       pause ? "paused" : "resumed");
	} else {
		printf("%s/%s %s\n", name->ns, name->name,
		       n == 0 ? (pause ? "was paused already" : "was not paused")
			      : (pause ? "is paused" : "records again"));
	}
}

static int pause_all(struct call *call, struct perfpersist *p, const struct event_name *names,
		     bool pause)
{
	struct json j = { .f = stdout };
	int code = EXIT_OK;

	if (call->json)
		json_begin(&j, NULL, '[');
	for (size_t i = 0; i < call->n_operands; i++) {
		const struct event_name *name = &names[i];
		size_t n = 0;
		int r = perfpersist_pause(p, name->ns, name->name[0] ? name->name : NULL, pause,
					  &n);

		if (r < 0) {
			r = suggest_name(p, r, name->ns, name->name);
			code = code ?: r;
		} else {
			report(call, &j, name, pause, n);
		}
	}
	if (call->json) {
		json_end(&j, ']');
		putchar('\n');
	}
	return code;
}

static int run(struct call *call)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_free_ struct event_name *names = calloc((size_t)call->argc, sizeof(*names));
	int r;

	if (!names)
		return EXIT_FAILED;
	if (!options_read(call, NULL))
		return call->code;
	if (!call->n_operands)
		return bad_usage(call,
				 "no event given: NAME, or NAMESPACE/ for all of one, is missing");
	for (size_t i = 0; i < call->n_operands; i++)
		if (parse_events_name(call->operands[i], &names[i]) < 0)
			return bad_usage(call, "%s: neither an event name nor NAMESPACE/",
					 call->operands[i]);
	r = call_connect(call, &p);
	if (r)
		return r;
	return pause_all(call, p, names, call->verb == &verb_pause);
}

const struct verb verb_pause = {
	.name = "pause",
	.synopsis = "NAME | NAMESPACE/ ...",
	.summary = "pause events; their records stay readable",
	.run = run,
	.operands = COMPLETE_NAMES,
	.help = "A paused event records nothing and costs next to nothing; it stays paused when the\n"
		"daemon restarts. NAMESPACE/ means all events of that namespace.\n"
		"\n"
		"Examples:\n"
		"  perfctl pause switches\n"
		"  perfctl pause web/\n",
};

const struct verb verb_resume = {
	.name = "resume",
	.synopsis = "NAME | NAMESPACE/ ...",
	.summary = "resume paused events",
	.run = run,
	.operands = COMPLETE_NAMES,
	.help = "Examples:\n"
		"  perfctl resume switches\n"
		"  perfctl resume web/\n",
};
