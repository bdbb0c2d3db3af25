// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl events: lists what this machine can record. Asks the kernel, and no daemon. */
#include <fnmatch.h>
#include <string.h>

#include "client/perfctl/events/recordable.h"
#include "client/perfctl/output/output.h"
#include "client/perfctl/perfctl.h"

static const struct column columns[] = { { "EVENT", false }, { "KIND", false } };

/* glob NULL: all. */
static bool is_listed(const struct recordable *one, const char *glob)
{
	return !one->is_unsure && (!glob || fnmatch(glob, one->name, 0) == 0);
}

static int compare(const void *a, const void *b)
{
	const struct recordable *x = a, *y = b;

	return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->name, y->name);
}

static int print_table(const struct recordables *r, const char *glob)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_SIZE(columns) };

	for (size_t i = 0; i < r->n; i++) {
		const struct recordable *one = &r->all[i];

		if (!is_listed(one, glob))
			continue;
		table_cell(&t, "%s", one->name);
		table_cell(&t, "%s", one->about ?: recordable_kinds[one->kind]);
	}
	if (table_print(&t, stdout) < 0) {
		complain("cannot print the list: out of memory");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

static int print_json(const struct recordables *r, const char *glob)
{
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '[');
	for (size_t i = 0; i < r->n; i++) {
		const struct recordable *one = &r->all[i];

		if (!is_listed(one, glob))
			continue;
		json_begin(&j, NULL, '{');
		json_string(&j, "event", one->name);
		json_string(&j, "kind", recordable_kinds[one->kind]);
		if (one->about)
			json_string(&j, "about", one->about);
		json_end(&j, '}');
	}
	json_end(&j, ']');
	putchar('\n');
	return EXIT_OK;
}

static void tell_unseen(const struct recordables *r)
{
	const char *counters = r->some_unsure ? "the processor's counters" : "";

	if (r->no_tracepoints == -ENOENT)
		complain("tracepoints are not listed, because tracefs is not mounted here: "
			 "mount -t tracefs tracefs /sys/kernel/tracing");
	else if (r->no_tracepoints || *counters)
		complain("%s%s%s are not listed, because the kernel shows them to root only; "
			 "`perfctl create` takes their names all the same",
			 r->no_tracepoints ? "tracepoints" : "",
			 r->no_tracepoints && *counters ? " and " : "", counters);
}

/* What fits may be among what is not seen. */
static int none_fits(const struct recordables *r, const char *glob)
{
	const char *nearest = recordables_nearest(r, glob);

	if (nearest && strcmp(nearest, glob) != 0)
		complain("this machine records no %s; did you mean %s?", glob, nearest);
	else
		complain("no event that is listed fits %s; `perfctl events` lists them all", glob);
	tell_unseen(r);
	return EXIT_NOT_FOUND;
}

static int list(const struct call *call, const struct recordables *r)
{
	const char *glob = call->n_operands ? call->operands[0] : NULL;
	bool any = false;
	int code;

	for (size_t i = 0; i < r->n; i++)
		any |= is_listed(&r->all[i], glob);
	if (!any)
		return none_fits(r, glob);
	code = (call->json ? print_json : print_table)(r, glob);
	fflush(stdout);
	if (code == EXIT_OK)
		tell_unseen(r);
	return code;
}

static int run(struct call *call)
{
	struct recordables r = {};
	int code;

	if (!options_read(call, NULL))
		return call->code;
	if (call->n_operands > 1)
		return bad_usage(call, "%s: a second GLOB; events takes one, in quotes",
				 call->operands[1]);
	if (recordables_find(NULL, &r) < 0) {
		complain("cannot list the events: out of memory");
		return EXIT_FAILED;
	}
	qsort(r.all, r.n, sizeof(*r.all), compare);
	code = list(call, &r);
	recordables_done(&r);
	return code;
}

const struct verb verb_events = {
	.name = "events",
	.synopsis = "[GLOB]",
	.summary = "list what this machine can record, for `perfctl create -e`",
	.run = run,
	.operands = COMPLETE_EVENT,
	.one_operand = true,
	.help = "Lists tracepoints, software events, and the counters of the processor and of other PMUs\n"
		"that the kernel can sample here; last, one line for each kind of event of which you\n"
		"name a part (here in capitals): probes, breakpoints and globs. Without GLOB, lists all.\n"
		"Tracepoints, and sometimes counters, are visible to root only.\n"
		"\n"
		"Examples:\n"
		"  perfctl events\n"
		"  perfctl events 'block:*'\n"
		"  perfctl events '*fault*' --json | jq -r '.[].event'\n",
};
