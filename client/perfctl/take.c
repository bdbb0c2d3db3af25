// SPDX-License-Identifier: LGPL-2.1-or-later
/* The functions that take option values, for most tables. */
#include <string.h>

#include "client/perfctl/perfctl.h"

int refuse(const struct given *g, const char *why)
{
	const struct verb_option *o = g->option;
	char name[64];

	if (o->letter)
		snprintf(name, sizeof(name), "-%c ", o->letter);
	else
		snprintf(name, sizeof(name), "--%s%c", o->name, *o->argument == '[' ? '=' : ' ');
	return bad_usage(g->call, "%s%s: %s", name, g->value, why ?: o->refusal);
}

int take_flag(const struct given *g)
{
	*(bool *)g->to = true;
	return EXIT_OK;
}

int take_bits(const struct given *g)
{
	*(uint32_t *)g->to |= g->option->bits;
	return EXIT_OK;
}

int take_text(const struct given *g)
{
	*(const char **)g->to = g->value ?: g->option->if_none;
	return EXIT_OK;
}

int take_value(const struct given *g)
{
	const struct verb_option *o = g->option;
	uint64_t v;

	if (o->parse(g->value, &v) < 0 || v < o->min || (o->max && v > o->max))
		return refuse(g, NULL);
	*(uint64_t *)g->to = v;
	return EXIT_OK;
}

int take_choice(const struct given *g)
{
	const char *value = g->value ?: g->option->if_none;
	unsigned i = (unsigned)g->option->min;
	size_t n;

	for (const char *word = g->option->words; *word; word += n + !!word[n], i++) {
		n = strcspn(word, " ");
		if (strlen(value) == n && !memcmp(word, value, n)) {
			*(unsigned *)g->to = i;
			return EXIT_OK;
		}
	}
	return refuse(g, NULL);
}

int take_namespace(const struct given *g)
{
	if (!name_is_valid(g->value))
		return refuse(g, "not a valid namespace name");
	return take_text(g);
}

static int take_id(const struct given *g)
{
	struct event_id *id = g->to;

	id->given = true;
	return parse_number(g->value, &id->id) < 0 ? refuse(g, NULL) : EXIT_OK;
}

const struct verb_option event_id_options[] = {
	{ 0, "id", "ID", "the event with this id", .take = take_id, .refusal = "not an event's id",
	  .completes = COMPLETE_ID },
	{},
};
