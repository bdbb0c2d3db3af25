// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl show: prints everything about one event. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/away.h"
#include "client/perfctl/print/info.h"

/* Prints an option as it was given, quoted if necessary, so that the command can be copied. */
static void print_option(const char *option, const char *value)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-./";

	if (!value)
		return;
	printf(" %s%s", option, option[strlen(option) - 1] == '=' ? "" : " ");
	if (*value && !value[strspn(value, plain)]) {
		fputs(value, stdout);
		return;
	}
	putchar('\'');
	for (size_t n; *value; value += n) {
		n = strcspn(value, "'");
		print_text(stdout, value, n);
		if (value[n] == '\'') {
			fputs("'\\''", stdout);
			n++;
		}
	}
	putchar('\'');
}

static void print_reopen(const struct call *call, const struct perfpersist_info *info)
{
	fputs("reopen with  perfctl", stdout);
	print_option("--instance", call->connect.instance);
	print_option("--socket", call->connect.socket);
	print_option("--registry", call->connect.registry);
	if (call->connect.saved && *call->connect.saved)
		print_option("--saved=", call->connect.saved);
	else if (call->connect.saved)
		fputs(" --saved", stdout);
	printf("%s reopen %s/%s\n", call->connect.direct ? " --direct" : "", info->ns, info->name);
}

/* Looks for the id among all events that the caller may read. */
static int show_by_id(struct perfpersist *p, uint64_t id, struct perfpersist_info *ret)
{
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	size_t n = 0;
	int r;

	r = perfpersist_list(p, NULL, &infos, &n);
	if (r < 0)
		return call_failed(p, r);
	for (size_t i = 0; i < n; i++)
		if (infos[i].id == id) {
			*ret = infos[i];
			return EXIT_OK;
		}
	complain("cannot show the event with id %" PRIu64
		 ": there is none that you may read; `perfctl list` shows the events",
		 id);
	return EXIT_NOT_FOUND;
}

static int find(struct perfpersist *p, const struct event_name *name, const struct event_id *id,
		struct perfpersist_info *ret)
{
	int r;

	if (id->given)
		return show_by_id(p, id->id, ret);
	r = perfpersist_show(p, name->ns, name->name, ret);
	return r < 0 ? call_failed(p, r) : EXIT_OK;
}

static void print(const struct call *call, const struct perfpersist_info *info,
		  const struct perfpersist_cpu_away *away, size_t n)
{
	struct json j = { .f = stdout };

	if (!call->json) {
		info_print(stdout, info);
		away_print(stdout, info, away, n);
		print_reopen(call, info);
		return;
	}
	info_json_begin(&j, NULL, info);
	away_json(&j, info, away, n);
	json_end(&j, '}');
	putchar('\n');
}

static int show(struct call *call, const struct event_name *name, const struct event_id *id)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_free_ struct perfpersist_cpu_away *away = NULL;
	struct perfpersist_info info = { .sz = sizeof(info) };
	size_t n = 0;
	int r;

	r = call_connect(call, &p);
	if (!r)
		r = find(p, name, id, &info);
	if (r)
		return r;
	/* Print the rest even if it is not known since when CPUs are away. */
	if (info.away[0] && perfpersist_cpus_away(p, &away, &n) < 0)
		n = 0;
	print(call, &info, away, n);
	return EXIT_OK;
}

static int run(struct call *call)
{
	struct event_name name = {};
	struct event_id id = {};

	if (!options_read(call, &id))
		return call->code;
	if (call->n_operands + id.given != 1)
		return bad_usage(call, "show takes one NAME, or one --id");
	if (!id.given && parse_event_name(call->operands[0], NULL, &name) < 0)
		return bad_usage(call, "%s: not a valid event name", call->operands[0]);
	return show(call, &name, &id);
}

const struct verb verb_show = {
	.name = "show",
	.synopsis = "NAME | --id ID",
	.summary = "show one event",
	.run = run,
	.options = { { .rows = event_id_options } },
	.operands = COMPLETE_NAME,
	.one_operand = true,
	.reads_saves = true,
	.help = "`away` lists CPUs that are offline, and since when; their records stay readable, and\n"
		"they record again when they come online. `lacking` lists CPUs that are online and do\n"
		"not record yet, and why.\n"
		"\n"
		"Examples:\n"
		"  perfctl show switches\n"
		"  perfctl show switches --json | jq .records\n",
};
