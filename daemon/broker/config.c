// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads perfpersistd.conf. Must not know what its values are good for. */
#include "daemon/broker/config.h"

#include <ini.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "daemon/broker/config-value.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

#define DEFAULT_USER "perfpersist"

/* What is being read: inih tells handlers neither the line nor of sections without keys. */
struct reading {
	struct config *config;
	FILE *file, *complaints;
	unsigned line;
	bool line_ended; /* the next piece begins a new line */
	unsigned faults;
	bool in_daemon, in_unknown;  /* which section; else: */
	struct config_namespace *ns; /* the last one, or NULL */
	int error;		     /* of memory */
};

static void complain(struct reading *r, const char *fmt, ...) _printf_(2, 3);
static void complain(struct reading *r, const char *fmt, ...)
{
	va_list ap;

	r->faults++;
	fprintf(r->complaints, "%s:%u: ", r->config->path, r->line);
	va_start(ap, fmt);
	vfprintf(r->complaints, fmt, ap);
	va_end(ap);
	fputc('\n', r->complaints);
}

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

static void take_limit(struct reading *r, const char *key, const char *value, uint64_t max,
		       uint64_t *field)
{
	uint64_t number;

	if (pp_parse_u64(value, &number) < 0 || number < 1 || number > max)
		complain(r, "%s= must be a number from 1 to %" PRIu64 ", and '%s' is not.", key,
			 max, value);
	else
		*field = number;
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

static void take_daemon_key(struct reading *r, const char *key, const char *value)
{
	struct config *c = r->config;

	if (strcmp(key, "User") == 0)
		take_user(r, value);
	else if (strcmp(key, "Group") == 0)
		take_group(r, value);
	else if (strcmp(key, "MaxConnections") == 0)
		take_limit(r, key, value, 65536, &c->max_connections);
	else if (strcmp(key, "MaxConnectionsPerUser") == 0)
		take_limit(r, key, value, 65536, &c->max_connections_per_user);
	else if (strcmp(key, "MaxRequestsPerConnection") == 0)
		take_limit(r, key, value, 1024, &c->max_requests);
	else if (strcmp(key, "MaxEvents") == 0)
		take_limit(r, key, value, 1000000, &c->max_events);
	else if (strcmp(key, "MaxBuffer") == 0)
		take_max_buffer(r, value);
	else if (strcmp(key, "CreateNamespaces") == 0)
		take_makers(r, value);
	else
		complain(r,
			 "[daemon] has no key %s=; see the commented perfpersistd.conf for those "
			 "there are.",
			 key);
}

/* ── [namespace NAME] ───────────────────────────────────────────────────────────────────── */

static void take_namespace_key(struct reading *r, const char *key, const char *value)
{
	struct config_namespace *ns = r->ns;

	if (strcmp(key, "Owner") == 0) {
		if (config_find_user(value, &ns->owner, NULL) < 0)
			complain(r, "Owner=%s: there is no such user.", value);
	} else if (strcmp(key, "Group") == 0) {
		if (config_find_group(value, &ns->group) < 0)
			complain(r, "Group=%s: there is no such group.", value);
		else
			ns->has_group = true;
	} else if (strcmp(key, "Mode") == 0) {
		if (config_parse_mode(value, &ns->mode) < 0)
			complain(r,
				 "Mode= must be octal as for a file, 0640 or the like, and '%s' "
				 "is not.",
				 value);
	} else {
		complain(r, "[namespace %s] has no key %s=; there are Owner=, Group= and Mode=.",
			 ns->name, key);
	}
}

static void begin_namespace(struct reading *r, const char *name)
{
	struct config *c = r->config;
	struct config_namespace *p;

	if (!pp_name_is_valid(name) || strcmp(name, PP_BY_ID) == 0) {
		complain(r,
			 "'%s' cannot be a namespace's name; take letters, digits, '_' and '-', "
			 "beginning with a letter or '_', 63 at most, and not " PP_BY_ID ".",
			 name);
		r->in_unknown = true;
		return;
	}
	for (size_t i = 0; i < c->n_namespaces; i++)
		if (strcmp(c->namespaces[i].name, name) == 0)
			complain(r, "[namespace %s] is there twice; keep one of them.", name);
	p = reallocarray(c->namespaces, c->n_namespaces + 1, sizeof(*p));
	if (!p) {
		r->error = -ENOMEM;
		r->in_unknown = true;
		return;
	}
	c->namespaces = p;
	r->ns = &p[c->n_namespaces++];
	*r->ns = (struct config_namespace){ .mode = NAMESPACE_MODE };
	if (pp_copy_text(r->ns->name, sizeof(r->ns->name), name) < 0)
		r->error = -EINVAL;
}

static void begin_section(struct reading *r, const char *section)
{
	r->in_daemon = r->in_unknown = false;
	r->ns = NULL;
	if (strcmp(section, "daemon") == 0) {
		r->in_daemon = true;
	} else if (strncmp(section, "namespace ", 10) == 0) {
		begin_namespace(r, section + 10 + strspn(section + 10, " \t"));
	} else {
		complain(r, "There is no section [%s]; there are [daemon] and [namespace NAME].",
			 section);
		r->in_unknown = true;
	}
}

/* ── the file ───────────────────────────────────────────────────────────────────────────── */

static int on_key(void *userdata, const char *section _unused_, const char *key, const char *value)
{
	struct reading *r = userdata;

	if (r->in_daemon)
		take_daemon_key(r, key, value);
	else if (r->ns)
		take_namespace_key(r, key, value);
	else if (!r->in_unknown)
		complain(r,
			 "%s= stands before any section; put it under [daemon] or [namespace "
			 "NAME].",
			 key);
	return 1;
}

/* Looks at a whole line before inih does: counts it, sees sections, and what is no setting. */
static void preview(struct reading *r, const char *line)
{
	char section[256];
	const char *p = line + strspn(line, " \t\r\n");
	const char *end;

	if (*p == '\0' || *p == ';' || *p == '#')
		return;
	if (*p != '[') {
		if (!strpbrk(p, "=:"))
			complain(r, "This is no setting; write KEY=VALUE.");
		return;
	}
	end = strchr(p, ']');
	if (!end || (size_t)(end - p) > sizeof(section)) {
		complain(r, "This section's name has no end; write [daemon] or [namespace NAME].");
		return;
	}
	snprintf(section, sizeof(section), "%.*s", (int)(end - p - 1), p + 1);
	begin_section(r, section);
}

static char *read_piece(char *buf, int size, void *userdata)
{
	struct reading *r = userdata;
	size_t n;

	if (!fgets(buf, size, r->file))
		return NULL;
	n = strlen(buf);
	if (r->line_ended)
		r->line++;
	else
		complain(r, "This line is too long; %d characters are the most.", size - 2);
	if (r->line_ended)
		preview(r, buf);
	r->line_ended = n > 0 && buf[n - 1] == '\n';
	return buf;
}

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
	c->max_events = 4096;
	c->max_buffer = 256ULL << 20;
	c->makers = POLICY_MAKERS_ROOT;
	if (!c->path || !c->user || !c->group) {
		config_free(c);
		return NULL;
	}
	return c;
}

int config_load(const char *path, bool required, FILE *complaints, struct config **ret)
{
	_cleanup_(cleanup_config) struct config *c = config_new(path);
	_cleanup_fclose_ FILE *file = NULL;
	struct reading r = { .config = c, .complaints = complaints, .line_ended = true };

	if (!c)
		return -ENOMEM;
	file = fopen(path, "re");
	if (file) {
		r.file = file;
		errno = 0;
		ini_parse_stream(read_piece, &r, on_key, &r);
	}
	if (file ? ferror(file) : required || errno != ENOENT) {
		int err = errno ? -errno : -EIO;

		fprintf(complaints, "%s: cannot read the configuration: %s.\n", path,
			strerror(-err));
		return err;
	}
	if (r.error < 0)
		return r.error;
	if (r.faults > 0)
		return -EINVAL;
	*ret = TAKE_PTR(c);
	return 0;
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
	for (size_t i = 0; i < c->n_namespaces; i++)
		if (!c->namespaces[i].has_group)
			c->namespaces[i].group = c->ns_group;
	return 0;
}

int config_path(const char *instance, char *buf, size_t size)
{
	char run[256];
	int n, err = pp_place(instance, "", run, sizeof(run));

	if (err < 0)
		return err;
	/* What stands behind the last slash of the run directory is the instance's name. */
	n = snprintf(buf, size, "%s%s/perfpersistd.conf", PP_SYSCONFDIR, strrchr(run, '/'));
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
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
