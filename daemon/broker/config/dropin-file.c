// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes sections into requests and namespaces. Must not know folders, nor what runs. */
#include "daemon/broker/config/dropin-file.h"

#include <string.h>

#include "daemon/broker/config/keys.h"
#include "daemon/broker/config/settings.h"
#include "daemon/text.h"
#include "proto/fired.h"
#include "proto/macro.h"
#include "proto/specifier.h"

#define EVENTS_MAX 65536 /* that files can name; MaxEvents= limits how many run */

struct reading {
	struct settings settings;
	struct dropins *dropins;
	struct config *config;
	const char *path; /* the set's */
	bool written;
	char instance[PP_INSTANCE_SIZE]; /* of a template; "": the file is none */

	enum { NO_SECTION, LEFT_OUT, NAMESPACE, EVENT } in;
	unsigned faults; /* when the section began */
	struct config_namespace ns;
	struct dropin_draft draft; /* of an event */
};

#define complain(r, ...) settings_complain(&(r)->settings, __VA_ARGS__)

/* ── requests, as short as they are ─────────────────────────────────────────────────────── */

struct packed_request {
	size_t size;
	uint8_t bytes[];
};

static size_t packed_size(const struct pp_msg_create_request *request)
{
	return offsetof(struct pp_msg_create_request, selections) +
	       request->count * sizeof(request->selections[0]);
}

static struct packed_request *pack(const struct pp_msg_create_request *request)
{
	size_t size = packed_size(request);
	struct packed_request *p = malloc(sizeof(*p) + size);

	if (!p)
		return NULL;
	p->size = size;
	memcpy(p->bytes, request, size);
	return p;
}

void dropin_request(const struct dropin_event *e, struct pp_msg_create_request *ret)
{
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, e->request->bytes, e->request->size);
}

bool dropin_is_request(const struct dropin_event *e, const struct pp_msg_create_request *request)
{
	return e->request->size == packed_size(request) &&
	       memcmp(e->request->bytes, request, e->request->size) == 0;
}

/* ── the set ────────────────────────────────────────────────────────────────────────────── */

static size_t place_of(const struct dropins *d, const char *ns, const char *name)
{
	size_t low = 0, high = d->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int c = strcmp(d->events[middle]->ns, ns);

		if (c == 0)
			c = strcmp(d->events[middle]->name, name);
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct dropin_event *find(const struct dropins *d, const char *ns, const char *name)
{
	size_t i = place_of(d, ns, name);
	struct dropin_event *e = i < d->n ? d->events[i] : NULL;

	return e && strcmp(e->ns, ns) == 0 && strcmp(e->name, name) == 0 ? e : NULL;
}

const struct dropin_event *dropins_event(const struct dropins *d, const char *ns, const char *name)
{
	return find(d, ns, name);
}

static struct dropin_event *add(struct dropins *d, const struct dropin_event *new)
{
	size_t i = place_of(d, new->ns, new->name);
	struct dropin_event *e;

	if (d->n == d->room) {
		size_t room = d->room ? d->room * 2 : 16;
		struct dropin_event **p = reallocarray(d->events, room, sizeof(*p));

		if (!p)
			return NULL;
		d->events = p;
		d->room = room;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	*e = *new;
	e->request = NULL;
	memmove(&d->events[i + 1], &d->events[i], (d->n - i) * sizeof(*d->events));
	d->events[i] = e;
	d->n++;
	return e;
}

void dropins_done(struct dropins *d)
{
	for (size_t i = 0; i < d->n; i++) {
		free(d->events[i]->request);
		free(d->events[i]);
	}
	for (size_t i = 0; i < d->n_paths; i++)
		free(d->paths[i]);
	free(d->events);
	free(d->paths);
	*d = (struct dropins){ 0 };
}

void dropins_free(struct dropins *d)
{
	if (!d)
		return;
	dropins_done(d);
	free(d);
}

void cleanup_dropins(struct dropins **d)
{
	dropins_free(*d);
}

/* ── sections ───────────────────────────────────────────────────────────────────────────── */

/* A faulty section that people wrote is remembered: no wider rights may apply in its place. */
static void end_namespace(struct reading *r, bool faulty)
{
	struct config_namespace *ns = config_namespace(r->config, r->ns.name);

	r->dropins->incomplete |= faulty;
	if (faulty && r->written)
		return;
	if (!ns)
		ns = config_add_namespace(r->config, r->ns.name);
	if (!ns)
		r->settings.error = -ENOMEM;
	else if (faulty)
		ns->faulty = true;
	else
		*ns = r->ns;
}

static void end_event(struct reading *r, bool faulty)
{
	struct dropin_event *e = find(r->dropins, r->draft.event.ns, r->draft.event.name);
	struct packed_request *request = faulty ? NULL : pack(&r->draft.request);

	if (!e && r->dropins->n == EVENTS_MAX) {
		complain(r,
			 "There are more than %d events in all of these files; this one is left "
			 "out.",
			 EVENTS_MAX);
		r->dropins->incomplete = true;
		free(request);
		return;
	}
	if (!e)
		e = add(r->dropins, &r->draft.event);
	if (!e || (!faulty && !request)) {
		r->settings.error = -ENOMEM;
		free(request);
		return;
	}
	if (faulty) {
		e->faulty = true;
		if (e->written && !r->written) { /* people's section counts, though faulty */
			free(e->request);
			e->request = NULL;
			e->written = false;
		}
		return;
	}
	free(e->request);
	*e = r->draft.event;
	e->request = request;
}

/* Accepts the section as a whole, or nothing of it. */
static void end_section(struct reading *r)
{
	bool faulty = r->settings.faults != r->faults;

	if (r->in == EVENT)
		end_event(r, faulty);
	else if (r->in == NAMESPACE)
		end_namespace(r, faulty);
	else if (faulty)
		r->dropins->incomplete = true;
	r->faults = r->settings.faults;
}

/* A section that the daemon wrote only counts where people wrote none. */
static void begin_namespace(struct reading *r, const char *name)
{
	const struct config_namespace *ns = config_namespace(r->config, name);

	if (!config_take_name(&r->settings, name) || (ns && r->written && !ns->written))
		return;
	r->in = NAMESPACE;
	if (ns && ns->written == r->written) {
		r->ns = *ns;
		return;
	}
	r->ns = (struct config_namespace){ .written = r->written };
	keys_default(&namespace_keys, &r->ns);
	memcpy(r->ns.name, name, strlen(name) + 1);
}

static bool take_names(struct reading *r, const char *names, bool is_trigger)
{
	const char *slash = strchr(names, '/');
	char ns[PP_NAME_SIZE] = "";

	if (!slash || (size_t)(slash - names) >= sizeof(ns)) {
		complain(r, "'%s' is no event's name; write [%s NAMESPACE/NAME].", names,
			 is_trigger ? "trigger" : "event");
		return false;
	}
	memcpy(ns, names, slash - names);
	ns[slash - names] = '\0';
	if (!config_take_name(&r->settings, ns))
		return false;
	if (!pp_name_is_valid(slash + 1)) {
		complain(r,
			 "'%s' cannot be an event's name; take letters, digits, '_' and '-', "
			 "beginning with a letter or '_', 63 at most.",
			 slash + 1);
		return false;
	}
	if (is_trigger && !strcmp(slash + 1, PP_TRIGGER_REMOVED)) {
		complain(r, "A trigger cannot have the name " PP_TRIGGER_REMOVED
			    ": that stands for those that are removed; take another one.");
		return false;
	}
	memset(&r->draft, 0, sizeof(r->draft));
	r->draft.event.written = r->written;
	r->draft.event.is_trigger = is_trigger;
	keys_default(is_trigger ? &trigger_keys : &event_keys, &r->draft);
	memcpy(r->draft.event.ns, ns, sizeof(ns));
	memcpy(r->draft.event.name, slash + 1, strlen(slash + 1) + 1);
	return true;
}

/* As for namespaces: a section that the daemon wrote is a client's request. It neither overrides a
 * section that people wrote nor merges with one. */
static void begin_event(struct reading *r, const char *names, bool is_trigger)
{
	const struct dropin_event *e;

	if (!take_names(r, names, is_trigger))
		return;
	e = find(r->dropins, r->draft.event.ns, r->draft.event.name);
	if (e && e->is_trigger != is_trigger) {
		complain(r, "'%s' is %s in another section; take another name.", names,
			 e->is_trigger ? "a trigger" : "an event");
		return;
	}
	if (e && r->written && !e->written)
		return;
	if (e && !r->written && e->written)
		e = NULL;
	r->in = EVENT;
	if (e && e->request) {
		dropin_request(e, &r->draft.request);
		r->draft.event = *e;
		memset(r->draft.event.event_lines, 0, sizeof(r->draft.event.event_lines));
		memset(r->draft.event.filter_lines, 0, sizeof(r->draft.event.filter_lines));
	}
	if (e)
		r->draft.event.faulty = e->faulty;
	memcpy(r->draft.request.ns, r->draft.event.ns, sizeof(r->draft.request.ns));
	memcpy(r->draft.request.name, r->draft.event.name, sizeof(r->draft.request.name));
	r->draft.event.path = r->path;
	r->draft.event.line = r->settings.line;
}

/* Expands a template's text; other texts stay as they are. False: the error is reported. */
static bool expand(struct reading *r, const char *text, bool as_name, char *buf, size_t size)
{
	int e = 0;

	if (*r->instance)
		e = pp_expand(text, r->instance, as_name, buf, size);
	else
		snprintf(buf, size, "%s", text);
	if (e == -EINVAL)
		complain(
			r,
			"'%s' has a %% with something else than i or %% behind it; there are %%i for "
			"the instance, and %%%%.",
			text);
	else if (e < 0)
		complain(r,
			 "'%s' is too long with the instance in place of %%i; take a shorter one.",
			 text);
	return e >= 0;
}

static void on_section(struct settings *s, const char *text)
{
	char section[sizeof(s->in) + PP_INSTANCE_SIZE];
	struct reading *r = s->userdata;
	const char *ns;

	end_section(r);
	r->in = LEFT_OUT;
	if (!text || !expand(r, text, true, section, sizeof(section)))
		return;
	ns = config_section_namespace(section);
	if (ns)
		begin_namespace(r, ns);
	else if (strncmp(section, "event ", 6) == 0)
		begin_event(r, section + 6 + strspn(section + 6, " \t"), false);
	else if (strncmp(section, "trigger ", 8) == 0)
		begin_event(r, section + 8 + strspn(section + 8, " \t"), true);
	else
		complain(r,
			 "There is no section [%.64s]; there are [namespace NAME], [event "
			 "NAMESPACE/NAME] and [trigger NAMESPACE/NAME].",
			 section);
}

static void on_key(struct settings *s, const char *key, const char *text)
{
	char value[SETTINGS_LINE_MAX + PP_INSTANCE_SIZE];
	struct reading *r = s->userdata;

	if (!expand(r, text, false, value, sizeof(value)))
		return;
	if (r->in == EVENT)
		keys_take(s, r->draft.event.is_trigger ? &trigger_keys : &event_keys, key, value,
			  &r->draft);
	else if (r->in == NAMESPACE)
		keys_take(s, &namespace_keys, key, value, &r->ns);
	else if (r->in == NO_SECTION)
		complain(r,
			 "%s= stands before any section; put it under [namespace NAME], [event "
			 "NAMESPACE/NAME] or [trigger NAMESPACE/NAME].",
			 key);
}

/* ── the file ───────────────────────────────────────────────────────────────────────────── */

static const char *keep_path(struct dropins *d, const char *path)
{
	char **p = reallocarray(d->paths, d->n_paths + 1, sizeof(*p));

	if (!p)
		return NULL;
	d->paths = p;
	p[d->n_paths] = strdup(path);
	return p[d->n_paths] ? p[d->n_paths++] : NULL;
}

int dropin_parse(struct dropins *d, struct config *config, const char *path, bool written,
		 const char *text, size_t size, FILE *complaints)
{
	_cleanup_free_ struct reading *r = malloc(sizeof(*r));

	if (!r)
		return -ENOMEM;
	*r = (struct reading){
		.settings = { .complaints = complaints,
			      .section = on_section,
			      .key = on_key,
			      .userdata = r },
		.dropins = d,
		.config = config,
		.path = keep_path(d, path),
		.written = written,
	};
	if (!r->path)
		return -ENOMEM;
	r->settings.path = r->path;
	pp_file_instance(path, r->instance, sizeof(r->instance));
	settings_parse(&r->settings, text, size);
	end_section(r);
	d->faults += r->settings.faults;
	return r->settings.error;
}
