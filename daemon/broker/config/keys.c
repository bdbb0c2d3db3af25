// SPDX-License-Identifier: LGPL-2.1-or-later
/* The types of values, and the table of keys. See keys.h. */
#include "daemon/broker/config/keys.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/broker/config/config-value.h"
#include "daemon/broker/config/dropin-file.h"
#include "daemon/broker/config/settings.h"
#include "daemon/broker/edge/peer.h"
#include "daemon/broker/syntax/condition.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/window.h"

#define SECOND 1000000000ULL

struct word {
	const char *text;
	uint64_t value;
};

struct key {
	const char *name;
	const struct type *type;
	size_t offset, size;	  /* of the value's member */
	uint64_t fallback;	  /* the default */
	uint64_t min, max;	  /* for numbers and sizes */
	const struct word *words; /* the possible values; an entry without text ends them */
	uint32_t yes, no;	  /* flags that a yes and a no set */
};

struct type {
	void (*take)(struct settings *s, const struct key *k, const char *value, void *into);
	void (*print)(FILE *f, const struct key *k, const void *from); /* NULL: never written */
	bool is_text;						       /* not a number */
};

struct keys {
	const struct key *all;
	size_t n;
	const char *others; /* the message for an unknown key; NULL: the list of keys */
};

static uint64_t get(const struct key *k, const void *from)
{
	const void *field = (const char *)from + k->offset;

	if (k->size == sizeof(bool))
		return *(const bool *)field;
	return k->size == sizeof(uint32_t) ? *(const uint32_t *)field : *(const uint64_t *)field;
}

static void put(const struct key *k, void *into, uint64_t value)
{
	void *field = (char *)into + k->offset;

	if (k->size == sizeof(bool))
		*(bool *)field = value;
	else if (k->size == sizeof(uint32_t))
		*(uint32_t *)field = value;
	else
		*(uint64_t *)field = value;
}

/* ── numbers and sizes ──────────────────────────────────────────────────────────────────── */

static void take_number(struct settings *s, const struct key *k, const char *value, void *into)
{
	uint64_t number;

	if (pp_parse_u64(value, &number) < 0 || number < 1 || number > k->max)
		settings_complain(s, "%s= must be a number from 1 to %" PRIu64 ", and '%s' is not.",
				  k->name, k->max, value);
	else
		put(k, into, number);
}

static void print_number(FILE *f, const struct key *k, const void *from)
{
	fprintf(f, "%s=%" PRIu64 "\n", k->name, get(k, from));
}

static const struct type number = { .take = take_number, .print = print_number };

/* As people write sizes: 256M. */
static void format_size(uint64_t size, char buf[32])
{
	static const char *const units[] = { "", "K", "M", "G" };
	size_t unit = 0;

	for (; unit < ARRAY_SIZE(units) - 1 && size && size % 1024 == 0; unit++)
		size /= 1024;
	snprintf(buf, 32, "%" PRIu64 "%s", size, units[unit]);
}

static void take_size(struct settings *s, const struct key *k, const char *value, void *into)
{
	char min[32], max[32];
	uint64_t size;

	if (config_parse_size(value, &size) == 0 && size >= k->min && size <= k->max) {
		put(k, into, size);
		return;
	}
	format_size(k->min, min);
	format_size(k->max, max);
	settings_complain(s, "%s= must be a size from %s to %s, and '%s' is not.", k->name, min,
			  max, value);
}

static const struct type size = { .take = take_size, .print = print_number };

static void take_memory(struct settings *s, const struct key *k, const char *value, void *into)
{
	uint64_t bytes;

	if (config_parse_share(value, config_machine_memory(), &bytes) < 0 || bytes < 1)
		settings_complain(s,
				  "%s= must be a size such as 512M, or a part of this machine's "
				  "memory such as 10%%, and '%s' is neither.",
				  k->name, value);
	else
		put(k, into, bytes);
}

static const struct type memory = { .take = take_memory, .print = print_number };

static void take_rate(struct settings *s, const struct key *k, const char *value, void *into)
{
	size_t n = strlen(value);
	char digits[32];
	uint64_t rate;

	if (n > 2 && strcmp(value + n - 2, "/s") == 0)
		n -= 2;
	snprintf(digits, sizeof(digits), "%.*s", (int)n, value);
	if (n >= sizeof(digits) || pp_parse_u64(digits, &rate) < 0)
		settings_complain(s,
				  "%s= must be records a second, such as 1000/s, or 0 for no "
				  "limit, and '%s' is neither.",
				  k->name, value);
	else
		put(k, into, rate);
}

static void print_rate(FILE *f, const struct key *k, const void *from)
{
	fprintf(f, "%s=%" PRIu64 "/s\n", k->name, get(k, from));
}

static const struct type rate = { .take = take_rate, .print = print_rate };

/* The last setting counts: a period, or with PP_EVENT_FREQ a frequency. */
static void take_period(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct dropin_draft *d = into;

	take_number(s, k, value, into);
	d->request.flags = (d->request.flags & ~PP_EVENT_FREQ) | k->yes;
}

static void print_period(FILE *f, const struct key *k, const void *from)
{
	const struct dropin_draft *d = from;

	if ((d->request.flags & PP_EVENT_FREQ) == k->yes)
		print_number(f, k, from);
}

static const struct type period = { .take = take_period, .print = print_period };

static void take_duration(struct settings *s, const struct key *k, const char *value, void *into)
{
	uint64_t nsec;

	if (config_parse_duration(value, &nsec) < 0 || nsec < k->min)
		settings_complain(s,
				  "%s= must be a time such as 10s or 500ms, of %g ms at least, and "
				  "'%s' is not.",
				  k->name, (double)k->min / 1e6, value);
	else
		put(k, into, nsec);
}

static void print_duration(FILE *f, const struct key *k, const void *from)
{
	fprintf(f, "%s=%" PRIu64 "us\n", k->name, get(k, from) / 1000);
}

static const struct type duration = { .take = take_duration, .print = print_duration };

static void take_mode(struct settings *s, const struct key *k, const char *value, void *into)
{
	uint32_t mode;

	if (config_parse_mode(value, &mode) < 0)
		settings_complain(s,
				  "%s= must be octal as for a file, 0640 or the like, and '%s' is "
				  "not.",
				  k->name, value);
	else
		put(k, into, mode);
}

static void print_mode(FILE *f, const struct key *k, const void *from)
{
	fprintf(f, "%s=%04o\n", k->name, (unsigned)get(k, from));
}

static const struct type mode = { .take = take_mode, .print = print_mode };

/* ── words ──────────────────────────────────────────────────────────────────────────────── */

static const struct word yes_no[] = { { "yes", true }, { "no", false }, { 0 } };
static const struct word who[] = {
	{ "root", POLICY_ROOT }, { "group", POLICY_GROUP }, { "all", POLICY_ALL }, { 0 }
};
static const struct word live[] = { { "owner", NAMESPACE_LIVE_OWNER },
				    { "group", NAMESPACE_LIVE_GROUP },
				    { "readers", NAMESPACE_LIVE_READERS },
				    { "nobody", NAMESPACE_LIVE_NOBODY },
				    { 0 } };

static const struct word fire[] = { { "writers", NAMESPACE_FIRE_WRITERS },
				    { "group", NAMESPACE_FIRE_GROUP },
				    { "readers", NAMESPACE_FIRE_READERS },
				    { "all", NAMESPACE_FIRE_ALL },
				    { 0 } };

static const struct word actions[] = { { "snapshot", PP_ACTION_SNAPSHOT },
				       { "freeze", PP_ACTION_FREEZE },
				       { "pause", PP_ACTION_PAUSE },
				       { "notify", PP_ACTION_NOTIFY },
				       { 0 } };

/* The word, or NULL (reported). */
static const struct word *find_word(struct settings *s, const struct key *k,
				    const struct word *words, const char *value)
{
	char list[128] = "";
	const struct word *w;

	for (w = words; w->text; w++) {
		if (strcmp(w->text, value) == 0)
			return w;
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			 w == words ? "" : (w[1].text ? ", " : " or "), w->text);
	}
	settings_complain(s, "%s= must be %s, and '%s' is %s.", k->name, list, value,
			  w - words == 2 ? "neither" : "none of them");
	return NULL;
}

static void take_word(struct settings *s, const struct key *k, const char *value, void *into)
{
	const struct word *w = find_word(s, k, k->words, value);

	if (w)
		put(k, into, w->value);
}

static void print_word(FILE *f, const struct key *k, const void *from)
{
	for (const struct word *w = k->words; w->text; w++)
		if (w->value == get(k, from))
			fprintf(f, "%s=%s\n", k->name, w->text);
}

static const struct type word = { .take = take_word, .print = print_word };

static void take_flag(struct settings *s, const struct key *k, const char *value, void *into)
{
	const struct word *w = find_word(s, k, yes_no, value);

	if (w)
		put(k, into, (get(k, into) & ~(k->yes | k->no)) | (w->value ? k->yes : k->no));
}

static void print_flag(FILE *f, const struct key *k, const void *from)
{
	if (get(k, from) & (k->yes | k->no))
		fprintf(f, "%s=%s\n", k->name, get(k, from) & k->yes ? "yes" : "no");
}

static const struct type flag = { .take = take_flag, .print = print_flag };

static void take_checkpoint(struct settings *s, const struct key *k, const char *value, void *into)
{
	uint64_t nsec;

	if (config_parse_duration(value, &nsec) < 0 || nsec % SECOND != 0 ||
	    nsec / SECOND > PP_CHECKPOINT_MAX)
		settings_complain(s,
				  "%s= must be a time in whole seconds such as 5s, of one hour at "
				  "most, or 0 for none, and '%s' is not.",
				  k->name, value);
	else
		put(k, into, (get(k, into) & ~k->yes) | pp_checkpoint_flags(nsec / SECOND));
}

static void print_checkpoint(FILE *f, const struct key *k, const void *from)
{
	if (get(k, from) & k->yes)
		fprintf(f, "%s=%us\n", k->name, pp_event_checkpoint((uint32_t)get(k, from)));
}

static const struct type checkpoint = { .take = take_checkpoint, .print = print_checkpoint };

/* ── users and groups ───────────────────────────────────────────────────────────────────── */

static bool find_user(struct settings *s, const struct key *k, const char *value, uid_t *ret)
{
	if (config_find_user(value, ret, NULL) == 0)
		return true;
	settings_complain(s,
			  "%s=%s: there is no such user; name one that is there, or give a "
			  "numeric uid.",
			  k->name, value);
	return false;
}

static bool find_group(struct settings *s, const struct key *k, const char *value, gid_t *ret)
{
	if (config_find_group(value, ret) == 0)
		return true;
	settings_complain(s,
			  "%s=%s: there is no such group; name one that is there, or give a "
			  "numeric gid.",
			  k->name, value);
	return false;
}

static void take_uid(struct settings *s, const struct key *k, const char *value, void *into)
{
	uid_t uid;

	if (find_user(s, k, value, &uid))
		put(k, into, uid);
}

static void take_gid(struct settings *s, const struct key *k, const char *value, void *into)
{
	gid_t gid;

	if (find_group(s, k, value, &gid))
		put(k, into, gid);
}

static const struct type user = { .take = take_uid, .print = print_number };
static const struct type group = { .take = take_gid, .print = print_number };

/* A name that is resolved at the start. */
static void take_name(struct settings *s, const struct key *k, const char *value, void *into)
{
	char **field = (char **)((char *)into + k->offset), *copy = strdup(value);

	if (!copy) {
		s->error = -ENOMEM;
		return;
	}
	free(*field);
	*field = copy;
}

static void take_user_name(struct settings *s, const struct key *k, const char *value, void *into)
{
	uid_t uid;

	if (!find_user(s, k, value, &uid))
		return;
	if (uid == 0)
		settings_complain(s,
				  "%s=%s: the broker must not be root; name an ordinary user of "
				  "its own.",
				  k->name, value);
	else
		take_name(s, k, value, into);
}

static void take_group_name(struct settings *s, const struct key *k, const char *value, void *into)
{
	gid_t gid;

	if (find_group(s, k, value, &gid))
		take_name(s, k, value, into);
}

static const struct type user_name = { .take = take_user_name, .is_text = true };
static const struct type group_name = { .take = take_group_name, .is_text = true };

/* ── what is recorded ───────────────────────────────────────────────────────────────────── */

static bool take_text(struct settings *s, const struct key *k, const char *value, char *field,
		      size_t room)
{
	if (pp_copy_text(field, room, value) == 0)
		return true;
	settings_complain(s, "%s= is too long; it can have %zu bytes.", k->name, room - 1);
	return false;
}

static void take_event(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct dropin_draft *d = into;
	struct pp_msg_create_request *q = &d->request;
	struct pp_msg_selection *selection;

	if (!*value) {
		settings_complain(s,
				  "%s= names no event; write one such as sched:sched_switch, or "
				  "leave the line out.",
				  k->name);
		return;
	}
	if (d->has_texts && d->event.until) {
		settings_complain(s, "%s= stands behind Until=; move it in front.", k->name);
		return;
	}
	if (!d->has_texts) {
		d->event.until = false;
		memset(q->selections, 0, sizeof(q->selections));
		memset(d->event.filter_lines, 0, sizeof(d->event.filter_lines));
		q->count = 0;
		d->has_texts = true;
	}
	if (q->count == PP_SELECTIONS_MAX) {
		settings_complain(s,
				  "%s= is there too often; %d are the most, and each can list "
				  "several with commas between.",
				  k->name, PP_SELECTIONS_MAX);
		return;
	}
	selection = &q->selections[q->count];
	if (!take_text(s, k, value, selection->event, sizeof(selection->event)))
		return;
	d->event.event_lines[q->count++] = s->line;
}

static void take_until(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct dropin_draft *d = into;
	uint32_t count = d->has_texts ? d->request.count : 0;

	take_event(s, k, value, into);
	d->event.until |= d->request.count > count;
}

static void print_events(FILE *f, const struct key *k, const void *from)
{
	const struct dropin_draft *d = from;

	for (uint32_t i = 0; i < d->request.count; i++) {
		fprintf(f, "%s=%s\n", k->name, d->request.selections[i].event);
		if (d->request.selections[i].filter[0])
			fprintf(f, "%s=%s\n", k[1].name, d->request.selections[i].filter);
	}
}

static void take_filter(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct dropin_draft *d = into;
	struct pp_msg_create_request *q = &d->request;

	if (q->count == 0) {
		settings_complain(s, "%s= stands before its Event=; move it behind.", k->name);
		return;
	}
	for (uint32_t i = d->has_texts ? q->count - 1 : 0;
	     i < q->count - (!d->has_texts && d->event.until); i++) {
		struct pp_msg_selection *selection = &q->selections[i];

		if (!take_text(s, k, value, selection->filter, sizeof(selection->filter)))
			return;
		d->event.filter_lines[i] = s->line;
	}
}

static struct pp_condition *condition_of(void *into)
{
	return &((struct dropin_draft *)into)->event.trigger.condition;
}

static void take_key(struct settings *s, const struct key *k, const char *value, void *into)
{
	char sentence[PP_SENTENCE_SIZE];

	if (condition_parse_key(value, condition_of(into), sentence, sizeof(sentence)) < 0)
		settings_complain(s, "%s=: %s", k->name, sentence);
}

static void take_sustained(struct settings *s, const struct key *k, const char *value, void *into)
{
	char sentence[PP_SENTENCE_SIZE];

	if (condition_parse_rate(value, condition_of(into), sentence, sizeof(sentence)) < 0)
		settings_complain(s, "%s=: %s", k->name, sentence);
}

static const struct type until = { .take = take_until, .is_text = true };
static const struct type pair_key = { .take = take_key, .is_text = true };
static const struct type sustained = { .take = take_sustained, .is_text = true };
static const struct type events = { .take = take_event, .print = print_events, .is_text = true };
/* print_events prints the filters too. */
static const struct type filter = { .take = take_filter, .is_text = true };

static void take_cpus(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct pp_cpumask mask;

	if (*value && pp_parse_cpus(value, &mask) < 0)
		settings_complain(s,
				  "%s= must be a list such as 0-3,8, or nothing for all, and "
				  "'%.64s' is neither.",
				  k->name, value);
	else
		take_text(s, k, value, (char *)into + k->offset, k->size);
}

static void take_targets(struct settings *s, const struct key *k, const char *value, void *into)
{
	if (!pp_targets_are_valid(value))
		settings_complain(
			s,
			"%s= must be names of events in the trigger's namespace, or globs, "
			"with commas between, and '%.64s' is not.",
			k->name, value);
	else
		take_text(s, k, value, (char *)into + k->offset, k->size);
}

static void take_after(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct pp_trigger_spec *spec = (void *)((char *)into + k->offset);

	uint64_t time, records;

	if (pp_parse_window(value, config_parse_duration, &time, &records) >= 0) {
		spec->after = time;
		spec->after_records = records;
	} else
		settings_complain(s,
				  "%s= must be a time such as 5ms, a number of records such as "
				  "200r, or both, with a comma between, and '%.64s' is not.",
				  k->name, value);
}

static void print_text(FILE *f, const struct key *k, const void *from)
{
	const char *text = (const char *)from + k->offset;

	if (*text)
		fprintf(f, "%s=%s\n", k->name, text);
}

static const struct type cpus = { .take = take_cpus, .print = print_text, .is_text = true };
/* is_text: it is more than one number. */
static const struct type after = { .take = take_after, .is_text = true };
static const struct type targets = { .take = take_targets, .print = print_text, .is_text = true };

/* ── the table ──────────────────────────────────────────────────────────────────────────── */

#define MIB (1ULL << 20)
#define FIELD(structure, member)                      \
	.offset = offsetof(struct structure, member), \
	.size = sizeof(((struct structure *)0)->member)

/* A default of 0 depends on another value or on the machine (fill_in() in config.c). */
#define DAEMON(member) FIELD(config, member)
static const struct key of_daemon[] = {
	{ "User", &user_name, DAEMON(user) },
	{ "Group", &group_name, DAEMON(group) },
	{ "MaxConnections", &number, DAEMON(max_connections), 1024, .max = 65536 },
	{ "MaxConnectionsPerUser", &number, DAEMON(max_connections_per_user), 256, .max = 65536 },
	{ "MaxRequestsPerConnection", &number, DAEMON(max_requests), 16, .max = PEER_REQUESTS_MAX },
	{ "MaxRequestsPerUser", &number, DAEMON(max_requests_per_user), 256, .max = 65536 },
	{ "MaxEvents", &number, DAEMON(max_events), 4096, .max = 1000000 },
	{ "MaxEventsPerNamespace", &number, DAEMON(max_events_per_namespace), .max = 1000000 },
	{ "MaxEventsPerUser", &number, DAEMON(max_events_per_user), .max = 1000000 },
	{ "MaxPrograms", &number, DAEMON(max_programs), 65536, .max = 100000000 },
	{ "MaxProgramsPerUser", &number, DAEMON(max_programs_per_user), .max = 100000000 },
	{ "MaxOnTracepoint", &number, DAEMON(max_on_tracepoint), 48, .max = 1000000 },
	{ "MaxOnTracepointPerUser", &number, DAEMON(max_on_tracepoint_per_user), 8,
	  .max = 1000000 },
	{ "MaxSampleRatePerUser", &number, DAEMON(max_sample_rate_per_user), 5000,
	  .max = 1000000000 },
	{ "MaxMemory", &memory, DAEMON(max_memory) },
	{ "MaxMemoryPerNamespace", &memory, DAEMON(max_memory_per_namespace) },
	{ "MaxMemoryPerUser", &memory, DAEMON(max_memory_per_user) },
	{ "MaxCopies", &memory, DAEMON(max_copies) },
	{ "MaxBuffer", &size, DAEMON(max_buffer), 256 * MIB, PP_DATA_SIZE_MIN, PP_DATA_SIZE_MAX },
	{ "Share", &word, DAEMON(share), false, .words = yes_no },
	{ "KeepEvents", &word, DAEMON(keep_events), true, .words = yes_no },
	{ "Sideband", &word, DAEMON(sideband), true, .words = yes_no },
	{ "MaxSideband", &size, DAEMON(max_sideband), 64 * MIB, MIB, 16384 * MIB },
	{ "CreateNamespaces", &word, DAEMON(makers), POLICY_ROOT, .words = who },
	{ "Probes", &word, DAEMON(probers), POLICY_ROOT, .words = who },
	{ "Programs", &word, DAEMON(programmers), POLICY_ROOT, .words = who },
};

#define NAMESPACE(member) FIELD(config_namespace, member)
static const struct key of_namespace[] = {
	{ "Owner", &user, NAMESPACE(owner), 0 },
	{ "Group", &group, NAMESPACE(group), CONFIG_GROUP_OF_DAEMON },
	{ "Mode", &mode, NAMESPACE(mode), NAMESPACE_MODE },
	{ "Live", &word, NAMESPACE(live), NAMESPACE_LIVE_GROUP, .words = live },
	{ "Fire", &word, NAMESPACE(fire), NAMESPACE_FIRE_WRITERS, .words = fire },
	{ "MaxMemory", &memory, NAMESPACE(max_memory), UINT64_MAX },
	{ "MaxEvents", &number, NAMESPACE(max_events), UINT64_MAX, .max = 1000000 },
};

#define EVENT(member) FIELD(dropin_draft, member)
#define FLAGS EVENT(request.flags)
static const struct key of_event[] = {
	{ "Event", .type = &events },
	{ "Filter", .type = &filter },
	{ "CPUs", &cpus, EVENT(request.cpus) },
	{ "Buffer", &size, EVENT(request.data_size), 0, PP_DATA_SIZE_MIN, PP_DATA_SIZE_MAX },
	{ "Period", &period, EVENT(request.period), .max = INT64_MAX },
	{ "Frequency", &period, EVENT(request.period), .max = INT64_MAX, .yes = PP_EVENT_FREQ },
	{ "MaxRate", &rate, EVENT(request.max_rate) },
	{ "CallGraph", &flag, FLAGS, .yes = PP_EVENT_CALLCHAIN },
	{ "Wakeup", &flag, FLAGS, .yes = PP_EVENT_WAKEUP },
	{ "Generic", &flag, FLAGS, .yes = PP_EVENT_GENERIC },
	{ "Checkpoint", &checkpoint, FLAGS, .yes = PP_EVENT_CHECKPOINT },
	{ "Share", &flag, FLAGS, .yes = PP_EVENT_SHARE, .no = PP_EVENT_NO_SHARE },
	{ "Optional", &word, EVENT(event.optional), false, .words = yes_no },
	{ "Enabled", &word, EVENT(event.enabled), true, .words = yes_no },
	{ "Creator", &user, EVENT(event.creator), 0 },
};

static const struct key of_trigger[] = {
	{ "On", .type = &events },
	{ "Filter", .type = &filter },
	{ "Until", .type = &until },
	{ "Key", .type = &pair_key },
	{ "LongerThan", &duration, EVENT(event.trigger.condition.longer_than), 0, 1000 },
	{ "Rate", .type = &sustained },
	{ "Action", &word, EVENT(event.trigger.action), PP_ACTION_SNAPSHOT, .words = actions },
	{ "Targets", &targets, EVENT(event.trigger.targets) },
	{ "HoldOff", &duration, EVENT(event.trigger.hold_off), 10 * SECOND, PP_HOLD_OFF_MIN },
	{ "MaxPerDay", &number, EVENT(event.trigger.max_per_day), .max = 1000000000 },
	{ "After", &after, EVENT(event.trigger) },
	{ "CPUs", &cpus, EVENT(request.cpus) },
	{ "Buffer", &size, EVENT(request.data_size), 64 * 1024, PP_DATA_SIZE_MIN,
	  PP_DATA_SIZE_MAX },
	{ "Period", &period, EVENT(request.period), .max = INT64_MAX },
	{ "Frequency", &period, EVENT(request.period), .max = INT64_MAX, .yes = PP_EVENT_FREQ },
	{ "MaxRate", &rate, EVENT(request.max_rate) },
	{ "CallGraph", &flag, FLAGS, .yes = PP_EVENT_CALLCHAIN },
	{ "Generic", &flag, FLAGS, .yes = PP_EVENT_GENERIC },
	{ "Optional", &word, EVENT(event.optional), false, .words = yes_no },
	{ "Enabled", &word, EVENT(event.enabled), true, .words = yes_no },
};

const struct keys daemon_keys = { of_daemon, ARRAY_SIZE(of_daemon),
				  "see the commented perfpersistd.conf for those there are" };
const struct keys namespace_keys = { of_namespace, ARRAY_SIZE(of_namespace), NULL };
const struct keys event_keys = { of_event, ARRAY_SIZE(of_event), NULL };
const struct keys trigger_keys = { of_trigger, ARRAY_SIZE(of_trigger), NULL };

/* ── all of a section ───────────────────────────────────────────────────────────────────── */

void keys_default(const struct keys *keys, void *into)
{
	for (const struct key *k = keys->all; k < keys->all + keys->n; k++)
		if (!k->type->is_text)
			put(k, into, k->fallback);
}

void keys_print(FILE *f, const struct keys *keys, const void *from)
{
	for (const struct key *k = keys->all; k < keys->all + keys->n; k++)
		if (k->type->print && (k->type->is_text || get(k, from) != k->fallback))
			k->type->print(f, k, from);
}

void keys_take(struct settings *s, const struct keys *keys, const char *key, const char *value,
	       void *into)
{
	char list[256] = "there are ";
	size_t n;

	for (size_t i = 0; i < keys->n; i++) {
		if (strcmp(keys->all[i].name, key) == 0) {
			keys->all[i].type->take(s, &keys->all[i], value, into);
			return;
		}
		n = strlen(list);
		snprintf(list + n, sizeof(list) - n,
			 "%s%s=", i == 0 ? "" : (i < keys->n - 1 ? ", " : " and "),
			 keys->all[i].name);
	}
	settings_complain(s, "[%s] has no key %s=; %s.", s->in, key,
			  keys->others ? keys->others : list);
}
