// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl list: lists events, one a line. */
#include <inttypes.h>

#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"
#include "proto/clock.h"

static const struct column columns[] = {
	{ "NAMESPACE", false }, { "NAME", false },  { "ID", true },
	{ "EVENT", false },	{ "BUFFER", true }, { "CPUS", false },
	{ "RECORDS", true },	{ "MISSED", true }, { "STATE", false },
};

static int print_table(const struct perfpersist_info *infos, size_t n)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_SIZE(columns) };

	for (size_t i = 0; i < n; i++) {
		const struct perfpersist_info *info = &infos[i];

		table_cell(&t, "%s", info->ns);
		table_cell(&t, "%s", info->name);
		table_cell(&t, "%" PRIu64, info->id);
		table_cell(&t, "%s%s", info->event,
			   info->flags & PERFPERSIST_PROGRAM ? " (bpf)" : "");
		table_cell(&t, "%s", format_size(info->buffer).s);
		if (info->away[0])
			table_cell(&t, "%s (away: %s)", info->cpus, info->away);
		else
			table_cell(&t, "%s", info->cpus);
		table_cell(&t, "%" PRIu64, info->records);
		table_cell(&t, "%s", format_missed(info).s);
		table_cell(&t, "%s%s", info_state(info),
			   info->flags & PERFPERSIST_STOPPED ? " (trigger)" : "");
	}
	if (table_print(&t, stdout) < 0) {
		complain("cannot print the list: out of memory");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* Warns if process names are incomplete, for example because the keeper was restarted. */
static void tell_names(struct perfpersist *p)
{
	struct perfpersist_sideband_info s = { .sz = sizeof(s) };

	if (perfpersist_sideband(p, 0, 0, &s, NULL) < 0)
		return;
	switch (s.why) {
	case PERFPERSIST_SIDEBAND_REFUSED:
	case PERFPERSIST_SIDEBAND_AWAY:
	case PERFPERSIST_SIDEBAND_GONE:
	case PERFPERSIST_SIDEBAND_STUCK:
		break;
	default:
		return;
	}
	if (s.keeping)
		complain("process names are complete only for the last %s: %s",
			 format_age(pp_clock_real(s.complete)).s, sideband_reason(&s));
	else
		complain("sideband is not being recorded, exited processes will be unnamed: %s",
			 sideband_reason(&s));
}

static void print_json(const struct perfpersist_info *infos, size_t n)
{
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '[');
	for (size_t i = 0; i < n; i++)
		info_json(&j, NULL, &infos[i]);
	json_end(&j, ']');
	putchar('\n');
}

static int run(struct call *call)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	size_t n = 0;
	int r;

	if (!options_read(call, NULL))
		return call->code;
	r = call_connect(call, &p);
	if (r)
		return r;
	r = perfpersist_list(p, call->operands[0], &infos, &n);
	if (r < 0)
		return call_failed(p, r);
	if (call->json) {
		print_json(infos, n);
		return EXIT_OK;
	}
	r = print_table(infos, n);
	if (r == EXIT_OK && n) {
		fflush(stdout); /* the keeper may be slow to answer */
		tell_names(p);
	}
	return r;
}

const struct verb verb_list = {
	.name = "list",
	.letter = "-l",
	.synopsis = "[NAMESPACE]",
	.summary = "list the events that you may read",
	.run = run,
	.operands = COMPLETE_NAMESPACE,
	.one_operand = true,
	.reads_saves = true,
	.help = "Without NAMESPACE, lists all namespaces. MISSED counts records that could not be written\n"
		"(12+ means at least 12), or is `unknown` (JSON: null) where this kernel cannot tell.\n"
		"CPUs marked as away are offline: their records stay readable, and they record again\n"
		"when they come online.\n"
		"\n"
		"Examples:\n"
		"  perfctl list\n"
		"  perfctl list --json | jq -r '.[].name'\n",
};
