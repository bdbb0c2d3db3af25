// SPDX-License-Identifier: LGPL-2.1-or-later
/* The table of keys. See keys.h. */
#include "daemon/broker/config/keys.h"

#include <string.h>

#include "daemon/broker/config/dropin-file.h"
#include "daemon/broker/config/keys-internal.h"
#include "daemon/broker/edge/peer.h"
#include "daemon/broker/edge/policy.h"
#include "proto/fired.h"
#include "proto/macro.h"

struct keys {
	const struct key *all;
	size_t n;
	const char *others; /* the message for an unknown key; NULL: the list of keys */
};

/* ── words ──────────────────────────────────────────────────────────────────────────────── */

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

/* ── the table ──────────────────────────────────────────────────────────────────────────── */

#define MIB (1ULL << 20)
#define FIELD(structure, member)                      \
	.offset = offsetof(struct structure, member), \
	.size = sizeof(((struct structure *)0)->member)

/* A default of 0 depends on another value or on the machine (fill_in() in config.c). */
#define DAEMON(member) FIELD(config, member)
static const struct key of_daemon[] = {
	{ "User", &key_user_name, DAEMON(user) },
	{ "Group", &key_group_name, DAEMON(group) },
	{ "MaxConnections", &key_number, DAEMON(max_connections), 1024, .max = 65536 },
	{ "MaxConnectionsPerUser", &key_number, DAEMON(max_connections_per_user), 256,
	  .max = 65536 },
	{ "MaxRequestsPerConnection", &key_number, DAEMON(max_requests), 16,
	  .max = PEER_REQUESTS_MAX },
	{ "MaxRequestsPerUser", &key_number, DAEMON(max_requests_per_user), 256, .max = 65536 },
	{ "MaxEvents", &key_number, DAEMON(max_events), 4096, .max = 1000000 },
	{ "MaxEventsPerNamespace", &key_number, DAEMON(max_events_per_namespace), .max = 1000000 },
	{ "MaxEventsPerUser", &key_number, DAEMON(max_events_per_user), .max = 1000000 },
	{ "MaxPrograms", &key_number, DAEMON(max_programs), 65536, .max = 100000000 },
	{ "MaxProgramsPerUser", &key_number, DAEMON(max_programs_per_user), .max = 100000000 },
	{ "MaxOnTracepoint", &key_number, DAEMON(max_on_tracepoint), 48, .max = 1000000 },
	{ "MaxOnTracepointPerUser", &key_number, DAEMON(max_on_tracepoint_per_user), 8,
	  .max = 1000000 },
	{ "MaxSampleRatePerUser", &key_number, DAEMON(max_sample_rate_per_user), 5000,
	  .max = 1000000000 },
	{ "MaxMemory", &key_memory, DAEMON(max_memory) },
	{ "MaxMemoryPerNamespace", &key_memory, DAEMON(max_memory_per_namespace) },
	{ "MaxMemoryPerUser", &key_memory, DAEMON(max_memory_per_user) },
	{ "MaxCopies", &key_memory, DAEMON(max_copies) },
	{ "MaxBuffer", &key_size, DAEMON(max_buffer), 256 * MIB, PP_DATA_SIZE_MIN,
	  PP_DATA_SIZE_MAX },
	{ "Share", &key_word, DAEMON(share), false, .words = key_yes_no },
	{ "KeepEvents", &key_word, DAEMON(keep_events), true, .words = key_yes_no },
	{ "Sideband", &key_word, DAEMON(sideband), true, .words = key_yes_no },
	{ "MaxSideband", &key_size, DAEMON(max_sideband), 64 * MIB, MIB, 16384 * MIB },
	{ "CreateNamespaces", &key_word, DAEMON(makers), POLICY_ROOT, .words = who },
	{ "Probes", &key_word, DAEMON(probers), POLICY_ROOT, .words = who },
	{ "Programs", &key_word, DAEMON(programmers), POLICY_ROOT, .words = who },
	{ "UserStacks", &key_word, DAEMON(stack_users), POLICY_ROOT, .words = who },
	{ "AuxTraces", &key_word, DAEMON(tracers), POLICY_ROOT, .words = who },
};

#define NAMESPACE(member) FIELD(config_namespace, member)
static const struct key of_namespace[] = {
	{ "Owner", &key_user, NAMESPACE(owner), 0 },
	{ "Group", &key_group, NAMESPACE(group), CONFIG_GROUP_OF_DAEMON },
	{ "Mode", &key_mode, NAMESPACE(mode), NAMESPACE_MODE },
	{ "Live", &key_word, NAMESPACE(live), NAMESPACE_LIVE_GROUP, .words = live },
	{ "Fire", &key_word, NAMESPACE(fire), NAMESPACE_FIRE_WRITERS, .words = fire },
	{ "MaxMemory", &key_memory, NAMESPACE(max_memory), UINT64_MAX },
	{ "MaxEvents", &key_number, NAMESPACE(max_events), UINT64_MAX, .max = 1000000 },
};

#define EVENT(member) FIELD(dropin_draft, member)
#define FLAGS EVENT(request.flags)
static const struct key of_event[] = {
	{ "Event", .type = &key_events },
	{ "Filter", .type = &key_filter },
	{ "CPUs", &key_cpus, EVENT(request.cpus) },
	{ "Cgroup", &key_cgroup, EVENT(request.target.cgroup) },
	{ "Buffer", &key_size, EVENT(request.data_size), 0, PP_DATA_SIZE_MIN, PP_DATA_SIZE_MAX },
	{ "Period", &key_period, EVENT(request.period), .max = INT64_MAX },
	{ "Frequency", &key_period, EVENT(request.period), .max = INT64_MAX, .yes = PP_EVENT_FREQ },
	{ "MaxRate", &key_rate, EVENT(request.max_rate) },
	{ "CallGraph", &key_chains, EVENT(request) },
	{ "MaxStack", &key_number, EVENT(request.max_stack), .max = PP_MAX_STACK },
	{ "Wakeup", &key_flag, FLAGS, .yes = PP_EVENT_WAKEUP },
	{ "Generic", &key_flag, FLAGS, .yes = PP_EVENT_GENERIC },
	{ "Checkpoint", &key_checkpoint, FLAGS, .yes = PP_EVENT_CHECKPOINT },
	{ "Share", &key_flag, FLAGS, .yes = PP_EVENT_SHARE, .no = PP_EVENT_NO_SHARE },
	{ "Optional", &key_word, EVENT(event.optional), false, .words = key_yes_no },
	{ "Enabled", &key_word, EVENT(event.enabled), true, .words = key_yes_no },
	{ "Creator", &key_user, EVENT(event.creator), 0 },
};

static const struct key of_trigger[] = {
	{ "On", .type = &key_events },
	{ "Filter", .type = &key_filter },
	{ "Until", .type = &key_until },
	{ "Key", .type = &key_pair },
	{ "LongerThan", &key_duration, EVENT(event.trigger.condition.longer_than), 0, 1000 },
	{ "Rate", .type = &key_sustained },
	{ "Action", &key_word, EVENT(event.trigger.action), PP_ACTION_SNAPSHOT, .words = actions },
	{ "Targets", &key_targets, EVENT(event.trigger.targets) },
	{ "HoldOff", &key_duration, EVENT(event.trigger.hold_off), 10 * SECOND, PP_HOLD_OFF_MIN },
	{ "MaxPerDay", &key_number, EVENT(event.trigger.max_per_day), .max = 1000000000 },
	{ "After", &key_after, EVENT(event.trigger) },
	{ "CPUs", &key_cpus, EVENT(request.cpus) },
	{ "Buffer", &key_size, EVENT(request.data_size), 64 * 1024, PP_DATA_SIZE_MIN,
	  PP_DATA_SIZE_MAX },
	{ "Period", &key_period, EVENT(request.period), .max = INT64_MAX },
	{ "Frequency", &key_period, EVENT(request.period), .max = INT64_MAX, .yes = PP_EVENT_FREQ },
	{ "MaxRate", &key_rate, EVENT(request.max_rate) },
	{ "CallGraph", &key_chains, EVENT(request) },
	{ "MaxStack", &key_number, EVENT(request.max_stack), .max = PP_MAX_STACK },
	{ "Generic", &key_flag, FLAGS, .yes = PP_EVENT_GENERIC },
	{ "Optional", &key_word, EVENT(event.optional), false, .words = key_yes_no },
	{ "Enabled", &key_word, EVENT(event.enabled), true, .words = key_yes_no },
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
			key_put(k, into, k->fallback);
}

void keys_print(FILE *f, const struct keys *keys, const void *from)
{
	for (const struct key *k = keys->all; k < keys->all + keys->n; k++)
		if (k->type->print && (k->type->is_text || key_get(k, from) != k->fallback))
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
