// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl claim: takes an event from the daemon; a command owns it. */
#include "client/perfctl/events/choose.h"
#include "client/perfctl/events/suggest.h"
#include "client/perfctl/perfctl.h"

static const struct verb_option options[] = {
	{},
};

static int claim(struct call *call, struct perfpersist *p, const struct event_name *name)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	_cleanup_free_ int *fds = NULL;
	size_t n, rings;
	int r;

	allow_descriptors();
	r = perfpersist_claim(p, name->ns, name->name, &fds, &n, &rings, &info);
	if (r < 0)
		return suggest_name(p, r, name->ns, name->name);
	return run_with_claimed(p, fds, n, rings, &info, call->command);
}

static int run(struct call *call)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	struct event_name name;
	char nothing;
	int r;

	if (!options_read(call, &nothing))
		return call->code;
	if (call->n_operands != 1)
		return bad_usage(call, "claim takes one NAME");
	if (!call->command || !call->command[0])
		return bad_usage(call, "claim needs a command that owns the event: -- CMD");
	if (parse_event_name(call->operands[0], NULL, &name) < 0)
		return bad_usage(call, "%s: not a valid event name", call->operands[0]);
	r = check_command(call->command); /* without it the event would end at once */
	if (!r)
		r = call_connect(call, &p);
	return r ? r : claim(call, p, &name);
}

const struct verb verb_claim = {
	.name = "claim",
	.synopsis = "NAME -- CMD [ARGS]",
	.summary = "give an event back to a command, with which it ends",
	.run = run,
	.options = { { .rows = options } },
	.operands = COMPLETE_NAME,
	.one_operand = true,
	.runs_command = true,
	.help = "The daemon forgets the event. CMD inherits what keeps it alive: the rings, named cpuN in\n"
		"LISTEN_FDNAMES, of several events the `catalog` that tells them apart, and descriptors\n"
		"named `kept`. It records until all processes that have these have closed one or ended.\n"
		"Until the daemon has confirmed, the event is its own.\n"
		"Users claim the sampling events that were adopted from them; root claims any.\n"
		"\n"
		"Examples:\n"
		"  perfctl claim profile -- sleep 60\n",
};
