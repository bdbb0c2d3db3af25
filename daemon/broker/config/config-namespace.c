// SPDX-License-Identifier: LGPL-2.1-or-later
/* The keys of [namespace NAME], and the namespaces of a configuration. Must not know files. */
#include "daemon/broker/config/config-namespace.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/broker/config/config-value.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

/* ── values that others have, too ───────────────────────────────────────────────────────── */

void config_take_limit(struct settings *s, const char *key, const char *value, uint64_t max,
		       uint64_t *field)
{
	uint64_t number;

	if (pp_parse_u64(value, &number) < 0 || number < 1 || number > max)
		settings_complain(s, "%s= must be a number from 1 to %" PRIu64 ", and '%s' is not.",
				  key, max, value);
	else
		*field = number;
}

void config_take_memory(struct settings *s, const char *key, const char *value, uint64_t *field)
{
	uint64_t size;

	if (config_parse_share(value, config_machine_memory(), &size) < 0 || size < 1)
		settings_complain(s,
				  "%s= must be a size such as 512M, or a part of this machine's "
				  "memory such as 10%%, and '%s' is neither.",
				  key, value);
	else
		*field = size;
}

bool config_take_name(struct settings *s, const char *name)
{
	if (pp_name_is_valid(name) && strcmp(name, PP_BY_ID) != 0)
		return true;
	settings_complain(s,
			  "'%s' cannot be a namespace's name; take letters, digits, '_' and '-', "
			  "beginning with a letter or '_', 63 at most, and not " PP_BY_ID ".",
			  name);
	return false;
}

/* ── keys ───────────────────────────────────────────────────────────────────────────────── */

static void take_live(struct settings *s, struct config_namespace *ns, const char *value)
{
	enum namespace_live live;

	if (config_parse_live(value, &live) < 0)
		settings_complain(s,
				  "Live= must be owner, group, readers or nobody, and '%s' is none "
				  "of them.",
				  value);
	else
		ns->live = live;
}

static void take_owner(struct settings *s, struct config_namespace *ns, const char *value)
{
	if (config_find_user(value, &ns->owner, NULL) < 0)
		settings_complain(s, "Owner=%s: there is no such user.", value);
}

static void take_group(struct settings *s, struct config_namespace *ns, const char *value)
{
	if (config_find_group(value, &ns->group) < 0)
		settings_complain(s, "Group=%s: there is no such group.", value);
	else
		ns->has_group = true;
}

static void take_mode(struct settings *s, struct config_namespace *ns, const char *value)
{
	if (config_parse_mode(value, &ns->mode) < 0)
		settings_complain(
			s,
			"Mode= must be octal as for a file, 0640 or the like, and '%s' is "
			"not.",
			value);
}

void config_take_namespace_key(struct settings *s, struct config_namespace *ns, const char *key,
			       const char *value)
{
	if (strcmp(key, "Owner") == 0)
		take_owner(s, ns, value);
	else if (strcmp(key, "Group") == 0)
		take_group(s, ns, value);
	else if (strcmp(key, "Mode") == 0)
		take_mode(s, ns, value);
	else if (strcmp(key, "Live") == 0)
		take_live(s, ns, value);
	else if (strcmp(key, "MaxMemory") == 0)
		config_take_memory(s, key, value, &ns->max_memory);
	else if (strcmp(key, "MaxEvents") == 0)
		config_take_limit(s, key, value, 1000000, &ns->max_events);
	else
		settings_complain(s,
				  "[namespace %s] has no key %s=; there are Owner=, Group=, Mode=, "
				  "Live=, MaxMemory= and MaxEvents=.",
				  ns->name, key);
}

/* ── sections ───────────────────────────────────────────────────────────────────────────── */

const char *config_section_namespace(const char *section)
{
	static const char word[] = "namespace ";
	size_t n = sizeof(word) - 1;

	return strncmp(section, word, n) == 0 ? section + n + strspn(section + n, " \t") : NULL;
}

struct config_namespace *config_namespace(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_namespaces; i++)
		if (strcmp(c->namespaces[i].name, name) == 0)
			return &c->namespaces[i];
	return NULL;
}

struct config_namespace *config_add_namespace(struct config *c, const char *name)
{
	struct config_namespace *p, ns = {
		.mode = NAMESPACE_MODE,
		.max_memory = UINT64_MAX,
		.max_events = UINT64_MAX,
	};

	if (pp_copy_text(ns.name, sizeof(ns.name), name) < 0)
		return NULL;
	p = reallocarray(c->namespaces, c->n_namespaces + 1, sizeof(*p));
	if (!p)
		return NULL;
	c->namespaces = p;
	p += c->n_namespaces++;
	*p = ns;
	return p;
}

void config_resolve_namespaces(struct config *c)
{
	for (size_t i = 0; i < c->n_namespaces; i++)
		if (!c->namespaces[i].has_group)
			c->namespaces[i].group = c->ns_group;
}
