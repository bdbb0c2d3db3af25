// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl limits: shows usage and limits, in total, by namespace and by user. */
#include <inttypes.h>
#include <pwd.h>

#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"

static const struct column columns[] = {
	{ "WHOSE", false },   { "MEMORY", true }, { "OF", true },      { "HELD", true },
	{ "EVENTS", true },   { "OF", true },	  { "CLIENTS", true }, { "OF", true },
	{ "REQUESTS", true }, { "OF", true },	  { "COPIES", true },  { "OF", true },
	{ "PROGRAMS", true }, { "OF", true },	  { "ON ONE", true },  { "SAMPLES", true },
	{ "OF", true },
};

static void number_cell(struct table *t, uint64_t v)
{
	if (v == UINT64_MAX)
		table_cell(t, "-");
	else
		table_cell(t, "%" PRIu64, v);
}

static void size_cell(struct table *t, uint64_t v)
{
	if (v == UINT64_MAX)
		table_cell(t, "-");
	else
		table_cell(t, "%s", format_size(v).s);
}

static void whose_cell(struct table *t, const struct perfpersist_limit *l)
{
	const struct passwd *pw;

	switch (l->scope) {
	case PERFPERSIST_LIMIT_NAMESPACE:
		table_cell(t, "namespace %s", l->ns);
		break;
	case PERFPERSIST_LIMIT_USER:
		pw = getpwuid(l->uid);
		if (pw)
			table_cell(t, "user %s", pw->pw_name);
		else
			table_cell(t, "user %u", l->uid);
		break;
	default:
		table_cell(t, "all");
	}
}

static int print_table(const struct perfpersist_limit *limits, size_t n)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_SIZE(columns) };

	for (size_t i = 0; i < n; i++) {
		const struct perfpersist_limit *l = &limits[i];

		whose_cell(&t, l);
		size_cell(&t, l->memory);
		size_cell(&t, l->max_memory);
		size_cell(&t, l->held);
		number_cell(&t, l->events);
		number_cell(&t, l->max_events);
		number_cell(&t, l->connections);
		number_cell(&t, l->max_connections);
		number_cell(&t, l->requests);
		number_cell(&t, l->max_requests);
		size_cell(&t, l->copies);
		size_cell(&t, l->max_copies);
		number_cell(&t, l->programs);
		number_cell(&t, l->max_programs);
		number_cell(&t, l->max_on_tracepoint);
		number_cell(&t, l->sample_rate);
		number_cell(&t, l->max_sample_rate);
	}
	if (table_print(&t, stdout) < 0) {
		complain("cannot print the limits: out of memory");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

static void json_maximum(struct json *j, const char *key, uint64_t v)
{
	if (v == UINT64_MAX)
		json_null(j, key);
	else
		json_unsigned(j, key, v);
}

static void print_json(const struct perfpersist_limit *limits, size_t n)
{
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '[');
	for (size_t i = 0; i < n; i++) {
		const struct perfpersist_limit *l = &limits[i];

		json_begin(&j, NULL, '{');
		json_string(&j, "scope",
			    l->scope == PERFPERSIST_LIMIT_NAMESPACE ? "namespace"
			    : l->scope == PERFPERSIST_LIMIT_USER    ? "user"
								    : "total");
		if (l->scope == PERFPERSIST_LIMIT_NAMESPACE)
			json_string(&j, "namespace", l->ns);
		if (l->scope == PERFPERSIST_LIMIT_USER)
			json_unsigned(&j, "uid", l->uid);
		json_unsigned(&j, "memory", l->memory);
		json_maximum(&j, "max_memory", l->max_memory);
		json_unsigned(&j, "held", l->held);
		json_unsigned(&j, "events", l->events);
		json_maximum(&j, "max_events", l->max_events);
		json_unsigned(&j, "connections", l->connections);
		json_maximum(&j, "max_connections", l->max_connections);
		json_unsigned(&j, "requests", l->requests);
		json_maximum(&j, "max_requests", l->max_requests);
		json_unsigned(&j, "copies", l->copies);
		json_maximum(&j, "max_copies", l->max_copies);
		json_unsigned(&j, "programs", l->programs);
		json_maximum(&j, "max_programs", l->max_programs);
		json_maximum(&j, "max_on_tracepoint", l->max_on_tracepoint);
		json_unsigned(&j, "sample_rate", l->sample_rate);
		json_maximum(&j, "max_sample_rate", l->max_sample_rate);
		json_end(&j, '}');
	}
	json_end(&j, ']');
	putchar('\n');
}

static int run(struct call *call)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_free_ struct perfpersist_limit *limits = NULL;
	size_t n = 0;
	int r;

	if (!options_read(call, NULL))
		return call->code;
	r = call_connect(call, &p);
	if (r)
		return r;
	r = perfpersist_limits(p, &limits, &n);
	if (r < 0)
		return call_failed(p, r);
	if (!call->json)
		return print_table(limits, n);
	print_json(limits, n);
	return EXIT_OK;
}

const struct verb verb_limits = {
	.name = "limits",
	.synopsis = "",
	.summary = "show usage and limits, in total, by namespace and by user",
	.run = run,
	.help = "Prints a line for the total, one for each namespace that you may read, and your own;\n"
		"root sees every user's. OF is the limit of the column before it; `-` means no limit.\n"
		"MEMORY counts buffers; HELD is the part of it whose events are deleted while somebody\n"
		"still maps the buffers. PROGRAMS has one for each event under a name. ON ONE limits the\n"
		"programs on one tracepoint: those of a user, or those of all, beyond which users are\n"
		"refused. Each program makes its tracepoint up to 0.3 us slower, even if its filter\n"
		"drops every record. SAMPLES is how many samples a second the sampling events can reach\n"
		"on a CPU. perfpersistd.conf sets the limits.\n"
		"\n"
		"Examples:\n"
		"  perfctl limits\n"
		"  perfctl limits --json | jq '.[0].memory'\n",
};
