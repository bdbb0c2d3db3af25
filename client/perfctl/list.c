// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl list: lists events, one a line. */
#include <inttypes.h>

#include "client/perfctl/events/find.h"
#include "client/perfctl/events/suggest.h"
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
		table_cell(&t, "%s%s", info_state_shown(info),
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

struct space {
	char s[66]; /* "NAMESPACE/" */
};

/* A bare NAME is a namespace here, and all else is as everywhere. */
static int find_several(struct call *call, struct perfpersist *p, struct perfpersist_info **ret,
			size_t *ret_n)
{
	_cleanup_free_ char **names = calloc(call->n_operands, sizeof(*names));
	_cleanup_free_ struct space *spaces = calloc(call->n_operands, sizeof(*spaces));

	if (!names || !spaces) {
		complain("cannot list the events: out of memory");
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < call->n_operands; i++) {
		names[i] = call->operands[i];
		if (!name_is_valid(names[i]))
			continue;
		snprintf(spaces[i].s, sizeof(spaces[i].s), "%s/", names[i]);
		names[i] = spaces[i].s;
	}
	return find_events(call, p, names, call->n_operands, ret, ret_n);
}

static int find(struct call *call, struct perfpersist *p, struct perfpersist_info **ret,
		size_t *ret_n)
{
	const char *ns = call->n_operands ? call->operands[0] : NULL;
	int r;

	if (call->n_operands > 1 || (ns && !name_is_valid(ns)))
		return find_several(call, p, ret, ret_n);
	r = perfpersist_list(p, ns, ret, ret_n);
	return r < 0 ? suggest_name(p, r, ns ?: "", NULL) : EXIT_OK;
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
	r = find(call, p, &infos, &n);
	if (r)
		return r;
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
	.synopsis = "[NAMESPACE | NAMESPACE/ | NAMESPACE/NAME | GLOB ...]",
	.summary = "list the events that you may read",
	.run = run,
	.operands = COMPLETE_NAMES,
	.reads_saves = true,
	.help = "Without operands, lists all events. MISSED counts records that could not be written\n"
		"(12+ means at least 12), or is `unknown` (JSON: null) where this kernel cannot tell.\n"
		"CPUs marked as away are offline: their records stay readable, and they record again\n"
		"when they come online.\n"
		"\n"
		"Examples:\n"
		"  perfctl list\n"
		"  perfctl list 'web/*'\n"
		"  perfctl list --json | jq -r '.[].name'\n",
};
