// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl delete: ends events. All that are named are tried, the first failure is the code. */
#include <inttypes.h>

#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"

enum {
	OPT_ALL = 512,
};

static const struct option longs[] = {
	{ "id", required_argument, NULL, 'i' },
	{ "all", no_argument, NULL, OPT_ALL },
	{},
};

struct deletion {
	struct call *call;
	struct perfpersist *p;
	struct json json;
	bool all;
	struct event_name *names;
	uint64_t *ids;
	size_t n_ids;
	int code; /* of the first failure */
};

static void finish(struct deletion *d, int r, const struct perfpersist_info *info)
{
	if (r < 0) {
		r = call_failed(d->p, r);
		d->code = d->code ?: r;
	} else if (d->call->json) {
		info_json(&d->json, NULL, info);
	} else {
		printf("%s/%s (id %" PRIu64 ") is deleted\n", info->ns, info->name, info->id);
	}
}

static void delete_named(struct deletion *d)
{
	struct perfpersist_info info = { .sz = sizeof(info) };

	for (size_t i = 0; i < d->call->n_operands; i++)
		finish(d, perfpersist_delete(d->p, d->names[i].ns, d->names[i].name, &info), &info);
	for (size_t i = 0; i < d->n_ids; i++)
		finish(d, perfpersist_delete_by_id(d->p, d->ids[i], &info), &info);
}

/* The newest first, so that second names go before the event whose buffers they share. What is gone
 * by then somebody else has deleted. ns NULL: of all that the caller may read. */
static void delete_all(struct deletion *d, const char *ns)
{
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	struct perfpersist_info info = { .sz = sizeof(info) };
	size_t n = 0;
	int r = perfpersist_list(d->p, ns, &infos, &n);

	if (r < 0)
		finish(d, r, NULL);
	while (n > 0) {
		r = perfpersist_delete_by_id(d->p, infos[--n].id, &info);
		if (r != -ENOENT)
			finish(d, r, &info);
	}
}

static void delete_them(struct deletion *d)
{
	if (!d->all)
		delete_named(d);
	else if (!d->call->n_operands)
		delete_all(d, NULL);
	for (size_t i = 0; d->all && i < d->call->n_operands; i++)
		delete_all(d, d->call->operands[i]);
}

static int take_namespaces(struct call *call, size_t n_ids)
{
	if (n_ids)
		return bad_usage(call, "--all takes namespaces, and no --id");
	for (size_t i = 0; i < call->n_operands; i++)
		if (!name_is_valid(call->operands[i]))
			return bad_usage(call, "%s: not a name of a namespace", call->operands[i]);
	return EXIT_OK;
}

static int take_operands(struct call *call, struct deletion *d)
{
	if (d->all)
		return take_namespaces(call, d->n_ids);
	if (!call->n_operands && !d->n_ids)
		return bad_usage(call, "which event? NAME, --id or --all is missing");
	for (size_t i = 0; i < call->n_operands; i++)
		if (parse_event_name(call->operands[i], NULL, &d->names[i]) < 0)
			return bad_usage(call, "%s: not a name of an event", call->operands[i]);
	return EXIT_OK;
}

/* An exit code; -1: leave with call->code, which is EXIT_OK behind --help. */
static int take_options(struct call *call, struct deletion *d)
{
	int opt;

	while ((opt = options_next(call)) > 0)
		if (opt == OPT_ALL)
			d->all = true;
		else if (parse_number(optarg, &d->ids[d->n_ids++]) < 0)
			return bad_usage(call, "--id %s: not an event's id", optarg);
	return opt < 0 ? -1 : take_operands(call, d);
}

static int delete_over(struct call *call, struct deletion *d)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	int r = call_connect(call, &p);

	if (r)
		return r;
	d->p = p;
	if (call->json)
		json_begin(&d->json, NULL, '[');
	delete_them(d);
	if (call->json) {
		json_end(&d->json, ']');
		putchar('\n');
	}
	return d->code;
}

static int run(struct call *call, int argc, char **argv)
{
	_cleanup_free_ struct event_name *names = calloc((size_t)argc, sizeof(*names));
	_cleanup_free_ uint64_t *ids = calloc((size_t)argc, sizeof(*ids));
	struct deletion d = { .call = call, .json.f = stdout, .names = names, .ids = ids };
	int r;

	r = names && ids ? options_start(call, argc, argv, "", longs) : -ENOMEM;
	if (r < 0)
		return EXIT_FAILED;
	r = take_options(call, &d);
	if (r)
		return r < 0 ? call->code : r;
	return delete_over(call, &d);
}

const struct verb verb_delete = {
	.name = "delete",
	.letter = "-d",
	.synopsis = "NAME... | --id ID | --all [NAMESPACE...]",
	.summary = "delete events",
	.run = run,
	.help = "  --id ID  the event with this id\n"
		"  --all    all events, or all of these namespaces, that you may read\n"
		"\n"
		"Who has an event open keeps what it recorded. Several are deleted one after the\n"
		"other; when some fail, the exit code is the first failure's.\n"
		"\n"
		"Examples:\n"
		"  perfctl delete switches web/profile\n"
		"  perfctl -d switches\n"
		"  perfctl delete --all web\n",
};
