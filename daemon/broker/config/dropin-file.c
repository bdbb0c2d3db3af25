// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes sections into requests and namespaces. Must not know folders, nor what runs. */
#include "daemon/broker/config/dropin-file.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/broker/config/config-namespace.h"
#include "daemon/broker/config/config-value.h"
#include "daemon/broker/config/settings.h"
#include "daemon/text.h"
#include "proto/macro.h"

#define EVENTS_MAX 65536 /* that files can name; of those that run MaxEvents= decides */

static const char keys[] =
	"Event=, Filter=, CPUs=, Buffer=, Period=, Frequency=, MaxRate=, "
	"CallGraph=, Wakeup=, Generic=, Share=, Optional=, Enabled= and Creator=";

struct reading {
	struct settings settings;
	struct dropins *dropins;
	struct config *config;
	const char *path; /* the set's */
	bool written;
	int error; /* of memory */

	enum { NO_SECTION, LEFT_OUT, NAMESPACE, EVENT } in;
	unsigned faults; /* when the section began */
	struct config_namespace ns;
	struct dropin_event event;
	struct pp_msg_create_request request; /* the event's */
	bool has_texts;			      /* Event= was in this section */
};

#define complain(r, ...) settings_complain(&(r)->settings, __VA_ARGS__)

/* ── values ─────────────────────────────────────────────────────────────────────────────── */

/* Of that size with its NUL. */
static bool take_text(struct reading *r, const char *key, const char *value, char *field,
		      size_t size)
{
	if (pp_copy_text(field, size, value) == 0)
		return true;
	complain(r, "%s= is too long; it can have %zu bytes.", key, size - 1);
	return false;
}

static void take_event(struct reading *r, const char *value)
{
	struct pp_msg_create_request *q = &r->request;
	struct pp_msg_selection *s;

	if (!*value) {
		complain(r, "Event= names no event; write one such as sched:sched_switch, or leave "
			    "the line out.");
		return;
	}
	if (!r->has_texts) {
		memset(q->selections, 0, sizeof(q->selections));
		memset(r->event.filter_lines, 0, sizeof(r->event.filter_lines));
		q->count = 0;
		r->has_texts = true;
	}
	if (q->count == PP_SELECTIONS_MAX) {
		complain(r,
			 "Event= is there too often; %d are the most, and each can list several "
			 "with commas between.",
			 PP_SELECTIONS_MAX);
		return;
	}
	s = &q->selections[q->count];
	if (!take_text(r, "Event", value, s->event, sizeof(s->event)))
		return;
	r->event.event_lines[q->count++] = r->settings.line;
}

static void take_filter(struct reading *r, const char *value)
{
	struct pp_msg_create_request *q = &r->request;

	if (q->count == 0) {
		complain(r, "Filter= stands before the Event= that it is for; put it behind.");
		return;
	}
	for (uint32_t i = r->has_texts ? q->count - 1 : 0; i < q->count; i++) {
		struct pp_msg_selection *s = &q->selections[i];

		if (!take_text(r, "Filter", value, s->filter, sizeof(s->filter)))
			return;
		r->event.filter_lines[i] = r->settings.line;
	}
}

static void take_cpus(struct reading *r, const char *value)
{
	struct pp_cpumask cpus;

	if (*value && pp_parse_cpus(value, &cpus) < 0)
		complain(r,
			 "CPUs= must be a list such as 0-3,8, or nothing for all, and '%.64s' is "
			 "neither.",
			 value);
	else
		take_text(r, "CPUs", value, r->request.cpus, sizeof(r->request.cpus));
}

static void take_buffer(struct reading *r, const char *value)
{
	uint64_t size;

	if (config_parse_size(value, &size) < 0 || size < PP_DATA_SIZE_MIN ||
	    size > PP_DATA_SIZE_MAX)
		complain(r, "Buffer= must be a size from 4K to 256M, and '%s' is not.", value);
	else
		r->request.data_size = size;
}

static void take_period(struct reading *r, const char *key, const char *value, uint32_t flag)
{
	uint64_t number;

	if (pp_parse_u64(value, &number) < 0 || number < 1 || number >> 63) {
		complain(r, "%s= must be a number above 0, and '%s' is not.", key, value);
		return;
	}
	r->request.period = number;
	r->request.flags = (r->request.flags & ~PP_EVENT_FREQ) | flag;
}

static void take_max_rate(struct reading *r, const char *value)
{
	size_t n = strlen(value);
	char number[32];
	uint64_t rate;

	if (n > 2 && strcmp(value + n - 2, "/s") == 0)
		n -= 2;
	if (n < sizeof(number)) {
		memcpy(number, value, n);
		number[n] = '\0';
	}
	if (n >= sizeof(number) || pp_parse_u64(number, &rate) < 0)
		complain(r,
			 "MaxRate= must be records a second, such as 1000/s, or 0 for no limit, "
			 "and '%s' is neither.",
			 value);
	else
		r->request.max_rate = rate;
}

static bool take_bool(struct reading *r, const char *key, const char *value, bool *field)
{
	if (config_parse_bool(value, field) == 0)
		return true;
	complain(r, "%s= must be yes or no, and '%s' is neither.", key, value);
	return false;
}

/* A flag that is set by yes, and perhaps another that is set by no. */
static void take_flag(struct reading *r, const char *key, const char *value, uint32_t yes,
		      uint32_t no)
{
	bool set;

	if (take_bool(r, key, value, &set))
		r->request.flags = (r->request.flags & ~(yes | no)) | (set ? yes : no);
}

static void take_creator(struct reading *r, const char *value)
{
	if (config_find_user(value, &r->event.creator, NULL) < 0)
		complain(r, "Creator=%s: there is no such user.", value);
}

/* Those with yes and no: false if it is none of them. */
static bool take_switch(struct reading *r, const char *key, const char *value)
{
	if (strcmp(key, "CallGraph") == 0)
		take_flag(r, key, value, PP_EVENT_CALLCHAIN, 0);
	else if (strcmp(key, "Wakeup") == 0)
		take_flag(r, key, value, PP_EVENT_WAKEUP, 0);
	else if (strcmp(key, "Generic") == 0)
		take_flag(r, key, value, PP_EVENT_GENERIC, 0);
	else if (strcmp(key, "Share") == 0)
		take_flag(r, key, value, PP_EVENT_SHARE, PP_EVENT_NO_SHARE);
	else if (strcmp(key, "Optional") == 0)
		take_bool(r, key, value, &r->event.optional);
	else if (strcmp(key, "Enabled") == 0)
		take_bool(r, key, value, &r->event.enabled);
	else
		return false;
	return true;
}

static void take_event_key(struct reading *r, const char *key, const char *value)
{
	if (strcmp(key, "Event") == 0)
		take_event(r, value);
	else if (strcmp(key, "Filter") == 0)
		take_filter(r, value);
	else if (strcmp(key, "CPUs") == 0)
		take_cpus(r, value);
	else if (strcmp(key, "Buffer") == 0)
		take_buffer(r, value);
	else if (strcmp(key, "Period") == 0)
		take_period(r, key, value, 0);
	else if (strcmp(key, "Frequency") == 0)
		take_period(r, key, value, PP_EVENT_FREQ);
	else if (strcmp(key, "MaxRate") == 0)
		take_max_rate(r, value);
	else if (strcmp(key, "Creator") == 0)
		take_creator(r, value);
	else if (!take_switch(r, key, value))
		complain(r, "[event %s/%s] has no key %s=; there are %s.", r->event.ns,
			 r->event.name, key, keys);
}

/* ── sections ───────────────────────────────────────────────────────────────────────────── */

static void end_namespace(struct reading *r)
{
	struct config_namespace *ns = config_namespace(r->config, r->ns.name);

	if (!ns)
		ns = config_add_namespace(r->config, r->ns.name);
	if (ns)
		*ns = r->ns;
	else
		r->error = -ENOMEM;
}

static void end_event(struct reading *r, bool faulty)
{
	struct dropin_event *e = dropins_find(r->dropins, r->event.ns, r->event.name);
	struct packed_request *request = faulty ? NULL : dropin_pack(&r->request);

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
		e = dropins_add(r->dropins, &r->event);
	if (!e || (!faulty && !request)) {
		r->error = -ENOMEM;
		free(request);
		return;
	}
	if (faulty) {
		e->faulty = true;
		if (e->written && !r->written) { /* nor does that count any more: begin_event */
			free(e->request);
			e->request = NULL;
			e->written = false;
		}
		return;
	}
	free(e->request);
	*e = r->event;
	e->request = request;
}

/* What was said is taken over, all of it or nothing. */
static void end_section(struct reading *r)
{
	bool faulty = r->settings.faults != r->faults;

	if (r->in == EVENT)
		end_event(r, faulty);
	else if (r->in == NAMESPACE && !faulty)
		end_namespace(r);
	else if (faulty)
		r->dropins->incomplete = true;
	r->faults = r->settings.faults;
}

/* What the daemon wrote counts where people have written nothing, and not beside it. */
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
	r->ns = (struct config_namespace){
		.mode = NAMESPACE_MODE,
		.max_memory = UINT64_MAX,
		.max_events = UINT64_MAX,
		.written = r->written,
	};
	memcpy(r->ns.name, name, strlen(name) + 1);
}

static bool take_names(struct reading *r, const char *names)
{
	const char *slash = strchr(names, '/');
	char ns[PP_NAME_SIZE] = "";

	if (!slash || (size_t)(slash - names) >= sizeof(ns)) {
		complain(r, "'%s' is no event's name; write [event NAMESPACE/NAME].", names);
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
	r->event = (struct dropin_event){ .enabled = true, .written = r->written };
	memcpy(r->event.ns, ns, sizeof(ns));
	memcpy(r->event.name, slash + 1, strlen(slash + 1) + 1);
	return true;
}

/* As of namespaces: what the daemon wrote is what a client asked for. It neither overrides what
 * people have written nor is a part of it. */
static void begin_event(struct reading *r, const char *names)
{
	const struct dropin_event *e;

	if (!take_names(r, names))
		return;
	e = dropins_find(r->dropins, r->event.ns, r->event.name);
	if (e && r->written && !e->written)
		return;
	if (e && !r->written && e->written)
		e = NULL;
	r->in = EVENT;
	r->has_texts = false;
	memset(&r->request, 0, sizeof(r->request));
	if (e && e->request) {
		dropin_request(e, &r->request);
		r->event = *e;
		memset(r->event.event_lines, 0, sizeof(r->event.event_lines));
		memset(r->event.filter_lines, 0, sizeof(r->event.filter_lines));
	}
	if (e)
		r->event.faulty = e->faulty;
	memcpy(r->request.ns, r->event.ns, sizeof(r->request.ns));
	memcpy(r->request.name, r->event.name, sizeof(r->request.name));
	r->event.path = r->path;
	r->event.line = r->settings.line;
}

static void on_section(struct settings *s, const char *section)
{
	struct reading *r = s->userdata;
	const char *ns = section ? config_section_namespace(section) : NULL;

	end_section(r);
	r->in = LEFT_OUT;
	if (!section)
		return;
	if (ns)
		begin_namespace(r, ns);
	else if (strncmp(section, "event ", 6) == 0)
		begin_event(r, section + 6 + strspn(section + 6, " \t"));
	else
		complain(r,
			 "There is no section [%.64s]; there are [namespace NAME] and [event "
			 "NAMESPACE/NAME].",
			 section);
}

static void on_key(struct settings *s, const char *key, const char *value)
{
	struct reading *r = s->userdata;

	if (r->in == EVENT)
		take_event_key(r, key, value);
	else if (r->in == NAMESPACE)
		config_take_namespace_key(s, &r->ns, key, value);
	else if (r->in == NO_SECTION)
		complain(r,
			 "%s= stands before any section; put it under [namespace NAME] or [event "
			 "NAMESPACE/NAME].",
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
	settings_parse(&r->settings, text, size);
	end_section(r);
	d->faults += r->settings.faults;
	return r->error;
}
