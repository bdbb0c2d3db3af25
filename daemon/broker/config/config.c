// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads perfpersistd.conf. Must not know what its values are good for. */
#include "daemon/broker/config/config.h"

#include <fcntl.h>
#include <string.h>

#include "daemon/broker/config/config-namespace.h"
#include "daemon/broker/config/config-value.h"
#include "daemon/broker/edge/peer.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

#define DEFAULT_USER "perfpersist"
#define SIDEBAND_MIN (1ULL << 20)
#define SIDEBAND_MAX (16ULL << 30)

struct reading {
	struct config *config;
	struct settings settings;
	bool in_daemon, in_unknown;  /* which section; else: */
	struct config_namespace *ns; /* the last one, or NULL */
	int error;		     /* of memory */
};

#define complain(r, ...) settings_complain(&(r)->settings, __VA_ARGS__)

/* ── values ─────────────────────────────────────────────────────────────────────────────── */

static void take_text(struct reading *r, const char *value, char **field)
{
	char *copy = strdup(value);

	if (!copy) {
		r->error = -ENOMEM;
		return;
	}
	free(*field);
	*field = copy;
}

/* ── [daemon] ───────────────────────────────────────────────────────────────────────────── */

static void take_user(struct reading *r, const char *value)
{
	uid_t uid;

	if (config_find_user(value, &uid, NULL) < 0)
		complain(r,
			 "User=%s: there is no such user; name one that is there, or give a "
			 "numeric uid.",
			 value);
	else if (uid == 0)
		complain(r,
			 "User=%s: the broker must not be root; name an ordinary user of its "
			 "own.",
			 value);
	else
		take_text(r, value, &r->config->user);
}

static void take_group(struct reading *r, const char *value)
{
	gid_t gid;

	if (config_find_group(value, &gid) < 0)
		complain(r,
			 "Group=%s: there is no such group; name one that is there, or give a "
			 "numeric gid.",
			 value);
	else
		take_text(r, value, &r->config->group);
}

static void take_max_buffer(struct reading *r, const char *value)
{
	uint64_t size;

	if (config_parse_size(value, &size) < 0 || size < PP_DATA_SIZE_MIN ||
	    size > PP_DATA_SIZE_MAX)
		complain(r, "MaxBuffer= must be a size from 4K to 256M, and '%s' is not.", value);
	else
		r->config->max_buffer = size;
}

static void take_max_sideband(struct reading *r, const char *value)
{
	uint64_t size;

	if (config_parse_size(value, &size) < 0 || size < SIDEBAND_MIN || size > SIDEBAND_MAX)
		complain(r, "MaxSideband= must be a size from 1M to 16G, and '%s' is not.", value);
	else
		r->config->max_sideband = size;
}

static void take_bool(struct reading *r, const char *key, const char *value, bool *field)
{
	if (config_parse_bool(value, field) < 0)
		complain(r, "%s= must be yes or no, and '%s' is neither.", key, value);
}

static void take_makers(struct reading *r, const char *value)
{
	if (strcmp(value, "root") == 0)
		r->config->makers = POLICY_MAKERS_ROOT;
	else if (strcmp(value, "group") == 0)
		r->config->makers = POLICY_MAKERS_GROUP;
	else if (strcmp(value, "all") == 0)
		r->config->makers = POLICY_MAKERS_ALL;
	else
		complain(r,
			 "CreateNamespaces= must be root, group or all, and '%s' is none of "
			 "them.",
			 value);
}

static void take_probers(struct reading *r, const char *value)
{
	if (strcmp(value, "root") == 0)
		r->config->probers = POLICY_PROBERS_ROOT;
	else if (strcmp(value, "group") == 0)
		r->config->probers = POLICY_PROBERS_GROUP;
	else if (strcmp(value, "all") == 0)
		r->config->probers = POLICY_PROBERS_ALL;
	else
		complain(r, "Probes= must be root, group or all, and '%s' is none of them.", value);
}

/* Those that are numbers: false if it is none of them. */
static bool take_number_key(struct reading *r, const char *key, const char *value)
{
	struct config *c = r->config;
	const struct {
		const char *key;
		uint64_t max;
		uint64_t *field;
	} numbers[] = {
		{ "MaxConnections", 65536, &c->max_connections },
		{ "MaxConnectionsPerUser", 65536, &c->max_connections_per_user },
		{ "MaxRequestsPerConnection", PEER_REQUESTS_MAX, &c->max_requests },
		{ "MaxRequestsPerUser", 65536, &c->max_requests_per_user },
		{ "MaxEvents", 1000000, &c->max_events },
		{ "MaxEventsPerNamespace", 1000000, &c->max_events_per_namespace },
		{ "MaxEventsPerUser", 1000000, &c->max_events_per_user },
		{ "MaxPrograms", 100000000, &c->max_programs },
		{ "MaxProgramsPerUser", 100000000, &c->max_programs_per_user },
		{ "MaxOnTracepoint", 1000000, &c->max_on_tracepoint },
		{ "MaxOnTracepointPerUser", 1000000, &c->max_on_tracepoint_per_user },
		{ "MaxSampleRatePerUser", 1000000000, &c->max_sample_rate_per_user },
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (strcmp(key, numbers[i].key) == 0) {
			config_take_limit(&r->settings, key, value, numbers[i].max,
					  numbers[i].field);
			return true;
		}
	return false;
}

static bool take_memory_key(struct reading *r, const char *key, const char *value)
{
	struct config *c = r->config;
	const struct {
		const char *key;
		uint64_t *field;
	} sizes[] = {
		{ "MaxMemory", &c->max_memory },
		{ "MaxMemoryPerNamespace", &c->max_memory_per_namespace },
		{ "MaxMemoryPerUser", &c->max_memory_per_user },
		{ "MaxCopies", &c->max_copies },
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (strcmp(key, sizes[i].key) == 0) {
			config_take_memory(&r->settings, key, value, sizes[i].field);
			return true;
		}
	return false;
}

static void take_daemon_key(struct reading *r, const char *key, const char *value)
{
	if (strcmp(key, "User") == 0)
		take_user(r, value);
	else if (strcmp(key, "Group") == 0)
		take_group(r, value);
	else if (strcmp(key, "MaxBuffer") == 0)
		take_max_buffer(r, value);
	else if (strcmp(key, "Share") == 0)
		take_bool(r, key, value, &r->config->share);
	else if (strcmp(key, "KeepEvents") == 0)
		take_bool(r, key, value, &r->config->keep_events);
	else if (strcmp(key, "Sideband") == 0)
		take_bool(r, key, value, &r->config->sideband);
	else if (strcmp(key, "MaxSideband") == 0)
		take_max_sideband(r, value);
	else if (strcmp(key, "CreateNamespaces") == 0)
		take_makers(r, value);
	else if (strcmp(key, "Probes") == 0)
		take_probers(r, value);
	else if (!take_number_key(r, key, value) && !take_memory_key(r, key, value))
		complain(r,
			 "[daemon] has no key %s=; see the commented perfpersistd.conf for those "
			 "there are.",
			 key);
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
		r->error = -ENOMEM;
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
		take_daemon_key(r, key, value);
	else if (r->ns)
		config_take_namespace_key(s, r->ns, key, value);
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
	c->max_connections = 1024;
	c->max_connections_per_user = 256;
	c->max_requests = 16;
	c->max_requests_per_user = 256;
	c->max_events = 4096;
	c->max_programs = 65536;
	c->max_on_tracepoint = 48;
	c->max_on_tracepoint_per_user = 8;
	c->max_sample_rate_per_user = 5000;
	c->max_buffer = 256ULL << 20;
	c->keep_events = true;
	c->sideband = true;
	c->max_sideband = 64ULL << 20;
	c->makers = POLICY_MAKERS_ROOT;
	c->probers = POLICY_PROBERS_ROOT;
	if (!c->path || !c->user || !c->group) {
		config_free(c);
		return NULL;
	}
	return c;
}

#define MIB (1ULL << 20)

/* What was left open and depends on something else. perfpersistd.conf gives the reasons. */
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
	if (r.error < 0)
		return r.error;
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
	config_resolve_namespaces(c);
	return 0;
}

int config_path(const char *instance, char *buf, size_t size)
{
	char run[256];
	int n, r = pp_place(instance, "", run, sizeof(run));

	if (r < 0)
		return r;
	/* What stands behind the last slash of the run directory is the instance's name. */
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
