// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl delete: deletes events. Tries all; the first failure decides the exit code. */
#include <inttypes.h>

#include "client/perfctl/events/suggest.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"

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

/* An adoption that was not complete has no id. */
static void print_deleted(const struct perfpersist_info *info)
{
	if (info->id)
		printf("%s/%s (id %" PRIu64 ") is deleted\n", info->ns, info->name, info->id);
	else
		printf("%s/%s was being adopted, and is not any more\n", info->ns, info->name);
}

/* name NULL: it has none that could be mistyped. */
static void finish(struct deletion *d, int r, const struct event_name *name,
		   const struct perfpersist_info *info)
{
	if (r < 0) {
		r = name ? suggest_name(d->p, r, name->ns, name->name) : call_failed(d->p, r);
		d->code = d->code ?: r;
	} else if (d->call->json) {
		info_json(&d->json, NULL, info);
	} else {
		print_deleted(info);
	}
}

static void delete_named(struct deletion *d)
{
	struct perfpersist_info info = { .sz = sizeof(info) };

	for (size_t i = 0; i < d->call->n_operands; i++)
		finish(d, perfpersist_delete(d->p, d->names[i].ns, d->names[i].name, &info),
		       &d->names[i], &info);
	for (size_t i = 0; i < d->n_ids; i++)
		finish(d, perfpersist_delete_by_id(d->p, d->ids[i], &info), NULL, &info);
}

/* Deletes the newest first, so that second names go before the event whose buffers they share.
 * Ignores events that somebody else has deleted meanwhile. ns NULL: all that the caller may
 * read. */
static void delete_all(struct deletion *d, const char *ns)
{
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct event_name name = {};
	size_t n = 0;
	int r = perfpersist_list(d->p, ns, &infos, &n);

	snprintf(name.ns, sizeof(name.ns), "%s", ns ?: "");

	if (r < 0)
		finish(d, r, &name, NULL);
	while (n > 0) {
		r = perfpersist_delete_by_id(d->p, infos[--n].id, &info);
		if (r != -ENOENT)
			finish(d, r, NULL, &info);
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
		return bad_usage(call,
				 "--all and --id are mutually exclusive; --all takes namespaces");
	for (size_t i = 0; i < call->n_operands; i++)
		if (!name_is_valid(call->operands[i]))
			return bad_usage(call, "%s: not a valid namespace name", call->operands[i]);
	return EXIT_OK;
}

static int take_operands(struct call *call, struct deletion *d)
{
	if (d->all)
		return take_namespaces(call, d->n_ids);
	if (!call->n_operands && !d->n_ids)
		return bad_usage(call, "no event given: NAME, --id or --all is missing");
	for (size_t i = 0; i < call->n_operands; i++)
		if (parse_event_name(call->operands[i], NULL, &d->names[i]) < 0)
			return bad_usage(call, "%s: not a valid event name", call->operands[i]);
	return EXIT_OK;
}

static int take_id(const struct given *g)
{
	struct deletion *d = g->to;

	return parse_number(g->value, &d->ids[d->n_ids++]) < 0 ? refuse(g, "not an event's id")
							       : EXIT_OK;
}

static const struct verb_option options[] = {
	{ 0, "id", "ID", "the event with this id", .take = take_id, .completes = COMPLETE_ID },
	{ 0, "all", NULL, "delete all events that you may read, or all of these namespaces",
	  TAKE_FLAG(struct deletion, all), .operands = COMPLETE_NAMESPACE },
	{},
};

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

static int run(struct call *call)
{
	_cleanup_free_ struct event_name *names = calloc((size_t)call->argc, sizeof(*names));
	_cleanup_free_ uint64_t *ids = calloc((size_t)call->argc, sizeof(*ids));
	struct deletion d = { .call = call, .json.f = stdout, .names = names, .ids = ids };
	int r;

	if (!names || !ids)
		return EXIT_FAILED;
	if (!options_read(call, &d))
		return call->code;
	r = take_operands(call, &d);
	return r ? r : delete_over(call, &d);
}

const struct verb verb_delete = {
	.name = "delete",
	.letter = "-d",
	.synopsis = "NAME... | --id ID | --all [NAMESPACE...]",
	.summary = "delete events",
	.run = run,
	.options = { { .rows = options } },
	.operands = COMPLETE_NAME,
	.help = "Open readers keep the records of a deleted event. Several events are deleted one\n"
		"after the other; if some fail, the exit code is that of the first failure.\n"
		"\n"
		"Examples:\n"
		"  perfctl delete switches web/profile\n"
		"  perfctl -d switches\n"
		"  perfctl delete --all web\n",
};
