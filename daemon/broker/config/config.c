// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads perfpersistd.conf. Must not know what its values are used for. */
#include "daemon/broker/config/config.h"

#include <fcntl.h>
#include <string.h>

#include "daemon/broker/config/config-value.h"
#include "daemon/broker/config/keys.h"
#include "daemon/broker/config/settings.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

#define DEFAULT_USER "perfpersist"

struct reading {
	struct config *config;
	struct settings settings;
	bool in_daemon, in_unknown;  /* which section; if neither: */
	struct config_namespace *ns; /* the last one, or NULL */
};

#define complain(r, ...) settings_complain(&(r)->settings, __VA_ARGS__)

/* ── namespaces ─────────────────────────────────────────────────────────────────────────── */

struct config_namespace *config_namespace(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_namespaces; i++)
		if (strcmp(c->namespaces[i].name, name) == 0)
			return &c->namespaces[i];
	return NULL;
}

struct config_namespace *config_add_namespace(struct config *c, const char *name)
{
	struct config_namespace *p, ns = { 0 };

	keys_default(&namespace_keys, &ns);
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
		if (c->namespaces[i].group == CONFIG_GROUP_OF_DAEMON)
			c->namespaces[i].group = c->ns_group;
}

const char *config_section_namespace(const char *section)
{
	static const char word[] = "namespace ";
	size_t n = sizeof(word) - 1;

	return strncmp(section, word, n) == 0 ? section + n + strspn(section + n, " \t") : NULL;
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

/* ── sections ───────────────────────────────────────────────────────────────────────────── */

static void begin_namespace(struct reading *r, const char *name)
{
	struct config *c = r->config;

	if (!config_take_name(&r->settings, name)) {
		r->in_unknown = true;
		return;
	}
	if (config_namespace(c, name))
		complain(r, "[namespace %s] is there twice; keep one of them.", name);
	r->ns = config_add_namespace(c, name);
	if (!r->ns)
		r->settings.error = -ENOMEM;
	r->in_unknown = !r->ns;
}

static void on_section(struct settings *s, const char *section)
{
	struct reading *r = s->userdata;
	const char *ns = section ? config_section_namespace(section) : NULL;

	r->in_daemon = r->in_unknown = false;
	r->ns = NULL;
	if (!section) {
		r->in_unknown = true;
	} else if (strcmp(section, "daemon") == 0) {
		r->in_daemon = true;
	} else if (ns) {
		begin_namespace(r, ns);
	} else {
		complain(r, "There is no section [%s]; there are [daemon] and [namespace NAME].",
			 section);
		r->in_unknown = true;
	}
}

static void on_key(struct settings *s, const char *key, const char *value)
{
	struct reading *r = s->userdata;

	if (r->in_daemon)
		keys_take(s, &daemon_keys, key, value, r->config);
	else if (r->ns)
		keys_take(s, &namespace_keys, key, value, r->ns);
	else if (!r->in_unknown)
		complain(r,
			 "%s= stands before any section; put it under [daemon] or [namespace "
			 "NAME].",
			 key);
}

/* ── the file ───────────────────────────────────────────────────────────────────────────── */

static struct config *config_new(const char *path)
{
	struct config *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->path = strdup(path);
	c->user = strdup(DEFAULT_USER);
	c->group = strdup(DEFAULT_USER);
	keys_default(&daemon_keys, c);
	if (!c->path || !c->user || !c->group) {
		config_free(c);
		return NULL;
	}
	return c;
}

#define MIB (1ULL << 20)

/* Fills in the values that were left open and depend on others. perfpersistd.conf gives the
 * reasons. */
static void fill_in(struct config *c)
{
	if (!c->max_memory)
		c->max_memory = MAX(config_machine_memory() / 10 & ~(MIB - 1), 64 * MIB);
	if (!c->max_memory_per_namespace)
		c->max_memory_per_namespace = c->max_memory;
	if (!c->max_memory_per_user)
		c->max_memory_per_user = MAX(c->max_memory / 4, 1ULL);
	if (!c->max_copies)
		c->max_copies = MAX(c->max_memory / 4, 1ULL);
	if (!c->max_events_per_namespace)
		c->max_events_per_namespace = c->max_events;
	if (!c->max_events_per_user)
		c->max_events_per_user = MAX(c->max_events / 4, 1ULL);
	if (!c->max_programs_per_user)
		c->max_programs_per_user = MAX(1024ULL, c->max_events_per_user);
}

int config_parse(const char *path, const char *text, size_t size, FILE *complaints,
		 struct config **ret)
{
	_cleanup_(cleanup_config) struct config *c = config_new(path);
	struct reading r = {
		.config = c,
		.settings = { .path = path,
			      .complaints = complaints,
			      .section = on_section,
			      .key = on_key,
			      .userdata = &r },
	};

	if (!c)
		return -ENOMEM;
	settings_parse(&r.settings, text, size);
	if (r.settings.error < 0)
		return r.settings.error;
	if (r.settings.faults > 0)
		return -EINVAL;
	fill_in(c);
	*ret = TAKE_PTR(c);
	return 0;
}

int config_load(const char *path, bool required, FILE *complaints, struct config **ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int r = fd < 0 ? -errno : settings_read(fd, &text, &size);

	if (r < 0 && (required || r != -ENOENT)) {
		fprintf(complaints, "%s: cannot read the configuration: %s.\n", path,
			r == -EINVAL ? "it is no regular file" : strerror(-r));
		return r;
	}
	return config_parse(path, text ? text : "", size, complaints, ret);
}

int config_resolve(struct config *c, FILE *complaints)
{
	if (config_find_group(c->group, &c->ns_group) < 0) {
		fprintf(complaints,
			"There is no group '%s'; run systemd-sysusers, or set Group= in %s.\n",
			c->group, c->path);
		return -EINVAL;
	}
	c->gid = c->ns_group;
	if (config_find_user(c->user, &c->uid, &c->gid) < 0) {
		fprintf(complaints,
			"There is no user '%s' to run as; run systemd-sysusers, or set User= in "
			"%s.\n",
			c->user, c->path);
		return -EINVAL;
	}
	if (c->uid == 0) {
		fprintf(complaints, "The broker must not run as root; set User= in %s.\n", c->path);
		return -EINVAL;
	}
	return 0;
}

int config_path(const char *instance, char *buf, size_t size)
{
	char run[256];
	int n, r = pp_place(instance, "", run, sizeof(run));

	if (r < 0)
		return r;
	/* The part after the last slash of the run directory is the instance's name. */
	n = snprintf(buf, size, "%s%s/perfpersistd.conf", PP_SYSCONFDIR, strrchr(run, '/'));
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int config_copy(const struct config *from, struct config **ret)
{
	size_t size = from->n_namespaces * sizeof(*from->namespaces);
	_cleanup_(cleanup_config) struct config *c = malloc(sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = *from;
	c->path = strdup(from->path);
	c->user = strdup(from->user);
	c->group = strdup(from->group);
	c->namespaces = malloc(size + 1);
	if (!c->path || !c->user || !c->group || !c->namespaces)
		return -ENOMEM;
	if (size > 0)
		memcpy(c->namespaces, from->namespaces, size);
	*ret = TAKE_PTR(c);
	return 0;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	free(c->path);
	free(c->user);
	free(c->group);
	free(c->namespaces);
	free(c);
}

void cleanup_config(struct config **c)
{
	config_free(*c);
}
