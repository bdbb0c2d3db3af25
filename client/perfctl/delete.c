// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl delete: ends events. All that are named are tried, the first failure is the code. */
#include <inttypes.h>

#include "client/perfctl/info.h"
#include "client/perfctl/perfctl.h"

static const struct option longs[] = {
	{ "id", required_argument, NULL, 'i' },
	{},
};

struct deletion {
	struct call *call;
	struct perfpersist *p;
	struct json json;
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

static void delete_all(struct deletion *d, const struct event_name *names, const uint64_t *ids,
		       size_t n_ids)
{
	struct perfpersist_info info = { .sz = sizeof(info) };

	for (size_t i = 0; i < d->call->n_operands; i++)
		finish(d, perfpersist_delete(d->p, names[i].ns, names[i].name, &info), &info);
	for (size_t i = 0; i < n_ids; i++)
		finish(d, perfpersist_delete_by_id(d->p, ids[i], &info), &info);
}

static int take_operands(struct call *call, struct event_name *names, size_t n_ids)
{
	if (!call->n_operands && !n_ids)
		return bad_usage(call, "which event? NAME or --id is missing");
	for (size_t i = 0; i < call->n_operands; i++)
		if (parse_event_name(call->operands[i], NULL, &names[i]) < 0)
			return bad_usage(call, "%s: not a name of an event", call->operands[i]);
	return EXIT_OK;
}

static int run(struct call *call, int argc, char **argv)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_free_ struct event_name *names = calloc((size_t)argc, sizeof(*names));
	_cleanup_free_ uint64_t *ids = calloc((size_t)argc, sizeof(*ids));
	struct deletion d = { .call = call, .json.f = stdout };
	size_t n_ids = 0;
	int opt, r;

	r = names && ids ? options_start(call, argc, argv, "", longs) : -ENOMEM;
	if (r < 0)
		return EXIT_FAILED;
	while ((opt = options_next(call)) > 0)
		if (parse_number(optarg, &ids[n_ids++]) < 0)
			return bad_usage(call, "--id %s: not an event's id", optarg);
	if (opt < 0)
		return call->code;
	r = take_operands(call, names, n_ids);
	if (r)
		return r;
	r = call_connect(call, &p);
	if (r)
		return r;
	d.p = p;
	if (call->json)
		json_begin(&d.json, NULL, '[');
	delete_all(&d, names, ids, n_ids);
	if (call->json) {
		json_end(&d.json, ']');
		putchar('\n');
	}
	return d.code;
}

const struct verb verb_delete = {
	.name = "delete",
	.letter = "-d",
	.synopsis = "NAME... [--id ID]",
	.summary = "delete events",
	.run = run,
	.help = "  --id ID  the event with this id\n"
		"\n"
		"Who has an event open keeps what it recorded. Several are deleted one after the\n"
		"other; when some fail, the exit code is the first failure's.\n"
		"\n"
		"Examples:\n"
		"  perfctl delete switches web/profile\n"
		"  perfctl -d switches\n",
};
