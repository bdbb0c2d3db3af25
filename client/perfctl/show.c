// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl show: prints everything about events. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/find.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/away.h"
#include "client/perfctl/print/descriptors.h"
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
static int find_by_id(struct perfpersist *p, uint64_t id, struct perfpersist_info **ret,
		      size_t *ret_n)
{
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	size_t n = 0;
	int r;

	r = perfpersist_list(p, NULL, &infos, &n);
	if (r < 0)
		return call_failed(p, r);
	for (size_t i = 0; i < n; i++)
		if (infos[i].id == id) {
			infos[0] = infos[i];
			*ret = TAKE_PTR(infos);
			*ret_n = 1;
			return EXIT_OK;
		}
	complain("cannot show the event with id %" PRIu64
		 ": there is none that you may read; `perfctl list` shows the events",
		 id);
	return EXIT_NOT_FOUND;
}

/* What is printed of an event. */
struct shown {
	const struct perfpersist_info *info;
	struct perfpersist_descriptor *fds; /* NULL: not asked for */
	size_t n_fds;
};

static void print_one(const struct call *call, const struct shown *s,
		      const struct perfpersist_cpu_away *away, size_t n, struct json *j)
{
	if (!call->json) {
		info_print(stdout, s->info);
		away_print(stdout, s->info, away, n);
		print_reopen(call, s->info);
		if (s->fds)
			descriptors_print(stdout, s->fds, s->n_fds);
		return;
	}
	info_json_begin(j, NULL, s->info);
	away_json(j, s->info, away, n);
	if (s->fds)
		descriptors_json(j, s->fds, s->n_fds);
	json_end(j, '}');
}

/* is_one: JSON is an object, else an array. */
static void print(const struct call *call, struct perfpersist *p, const struct shown *shown,
		  size_t n, bool is_one)
{
	_cleanup_free_ struct perfpersist_cpu_away *away = NULL;
	struct json j = { .f = stdout };
	size_t n_away = 0;
	bool is_away = false;

	for (size_t i = 0; i < n; i++)
		is_away |= shown[i].info->away[0];
	/* Print the rest even if it is not known since when CPUs are away. */
	if (is_away && perfpersist_cpus_away(p, &away, &n_away) < 0)
		n_away = 0;
	if (call->json && !is_one)
		json_begin(&j, NULL, '[');
	for (size_t i = 0; i < n; i++) {
		if (i && !call->json)
			putchar('\n');
		print_one(call, &shown[i], away, n_away, &j);
	}
	if (call->json && !is_one)
		json_end(&j, ']');
	if (call->json)
		putchar('\n');
}

struct show {
	struct event_id id;
	bool fds;
};

static const struct verb_option options[] = {
	{ 0, "fds", NULL,
	  "also list what the name stands for: each CPU's ring, links and perf events, and whether "
	  "they are alive",
	  TAKE_FLAG(struct show, fds) },
	{},
};

/* *ret has n elements, for free(3), as their `fds`. Returns an exit code. */
static int look_at(struct perfpersist *p, const struct perfpersist_info *infos, size_t n, bool fds,
		   struct shown **ret)
{
	struct shown *shown = *ret = calloc(n + 1, sizeof(*shown));
	int r = 0;

	if (!shown)
		return call_failed_as(-ENOMEM, "cannot show events: out of memory");
	for (size_t i = 0; r >= 0 && i < n; i++) {
		shown[i].info = &infos[i];
		if (fds)
			r = perfpersist_descriptors(p, infos[i].ns, infos[i].name, &shown[i].fds,
						    &shown[i].n_fds);
	}
	return r < 0 ? call_failed(p, r) : EXIT_OK;
}

static int show(struct call *call, const struct show *what)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	_cleanup_free_ struct shown *shown = NULL;
	struct event_name name;
	size_t n = 0;
	int r;

	r = call_connect(call, &p);
	if (!r)
		r = what->id.given
			    ? find_by_id(p, what->id.id, &infos, &n)
			    : find_events(call, p, call->operands, call->n_operands, &infos, &n);
	if (!r)
		r = look_at(p, infos, n, what->fds, &shown);
	if (!r)
		print(call, p, shown, n,
		      what->id.given || (call->n_operands == 1 &&
					 parse_event_name(call->operands[0], NULL, &name) >= 0));
	for (size_t i = 0; shown && i < n; i++)
		free(shown[i].fds);
	return r;
}

static int run(struct call *call)
{
	struct show what = {};

	if (!options_read(call, &what))
		return call->code;
	if (!call->n_operands != what.id.given)
		return bad_usage(call, "show takes NAMEs, or one --id");
	return show(call, &what);
}

const struct verb verb_show = {
	.name = "show",
	.synopsis = "[--fds] NAME... | --id ID",
	.summary = "show all about events",
	.run = run,
	.options = { { .rows = options },
		     { .rows = event_id_options, .at = offsetof(struct show, id) } },
	.operands = COMPLETE_NAMES,
	.reads_saves = true,
	.help = "NAME is an event, NAMESPACE/ or a glob of these; --json then prints an array.\n"
		"\n"
		"`away` lists CPUs that are offline, and since when; their records stay readable, and\n"
		"they record again when they come online. `lacking` lists CPUs that are online and do\n"
		"not record yet, and why.\n"
		"\n"
		"Examples:\n"
		"  perfctl show switches\n"
		"  perfctl show switches --json | jq .records\n"
		"  perfctl show --fds profile\n",
};
