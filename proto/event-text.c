// SPDX-License-Identifier: LGPL-2.1-or-later
#include "event-text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "macro.h"
#include "ring.h"

enum kind {
	DECIMAL,
	NOT_ZERO, /* the same, and left out if it is 0 */
	HEX,
	OCTAL,
	TEXT,
	RECORDER,
	STATE,
	FLAGS,
	CHECKPOINT, /* bits of the flags; left out if it is 0 */
	TARGET,	    /* likewise, as the next two */
	TARGET_FLAGS,
	CGROUP, /* a text */
};

struct key {
	const char *name;
	enum kind kind;
	size_t offset, size;
};

static const struct key keys[] = {
#define KEY(name, kind, member)                                        \
	{                                                              \
		name, kind, offsetof(struct pp_event_text, member),    \
			sizeof(((struct pp_event_text *)NULL)->member) \
	}
	KEY("id", DECIMAL, event.id),
	KEY("shares", NOT_ZERO, event.shares),
	KEY("namespace", TEXT, event.ns),
	KEY("name", TEXT, event.name),
	KEY("event", TEXT, event.event),
	KEY("filter", TEXT, event.filter),
	KEY("recorder", RECORDER, event.recorder),
	KEY("sources", DECIMAL, event.sources),
	KEY("set", DECIMAL, event.set),
	KEY("buffer", DECIMAL, event.data_size),
	KEY("memory", DECIMAL, event.memory),
	KEY("cpus", TEXT, event.cpus),
	KEY("sample_type", HEX, event.sample_type),
	KEY("period", DECIMAL, event.period),
	KEY("max_rate", DECIMAL, event.max_rate),
	KEY("flags", FLAGS, event.flags),
	KEY("checkpoint", CHECKPOINT, event.flags), /* behind the flags, which replace it */
	KEY("max_stack", NOT_ZERO, event.max_stack),
	KEY("stack_user", NOT_ZERO, event.stack_user),
	KEY("target", TARGET, event.target.kind),
	KEY("target_pid", NOT_ZERO, event.target.pid),
	KEY("target_cgroup", CGROUP, event.target.cgroup),
	KEY("target_start", NOT_ZERO, event.target.start),
	KEY("target_flags", TARGET_FLAGS, event.target.flags),
	KEY("owner", DECIMAL, event.owner),
	KEY("group", DECIMAL, event.group),
	KEY("mode", OCTAL, event.mode),
	KEY("creator", DECIMAL, event.creator),
	KEY("created", DECIMAL, event.created),
	KEY("state", STATE, event.state),
	KEY("skipped", NOT_ZERO, skipped),
	KEY("saved_mono", NOT_ZERO, saved_mono),
	KEY("saved", NOT_ZERO, saved),
#undef KEY
};

static const char *const recorders[] = {
	[PP_RECORDER_GENERIC] = "generic",   [PP_RECORDER_TP_BTF] = "tp_btf",
	[PP_RECORDER_OVERFLOW] = "overflow", [PP_RECORDER_PROBE] = "probe",
	[PP_RECORDER_AUX] = "aux",
};
static const char *const states[] = {
	[PP_EVENT_CREATING] = "creating",
	[PP_EVENT_RUNNING] = "running",
	[PP_EVENT_DELETING] = "deleting",
	[PP_EVENT_PAUSED] = "paused",
};
static const char *const targets[] = {
	[PP_TARGET_PROCESS] = "process",
	[PP_TARGET_THREAD] = "thread",
	[PP_TARGET_CGROUP] = "cgroup",
};

struct flag {
	uint32_t bit;
	const char *name;
};

static const struct flag flags[] = {
	{ PP_EVENT_FREQ, "freq" },
	{ PP_EVENT_CALLCHAIN, "callchain" },
	{ PP_EVENT_ALL_CPUS, "all-cpus" },
	{ PP_EVENT_GENERIC, "generic" },
	{ PP_EVENT_WAKEUP, "wakeup" },
	{ PP_EVENT_CONFIGURED, "configured" },
	{ PP_EVENT_PROGRAM, "program" },
	{ PP_EVENT_ADOPTED, "adopted" },
	{ PP_EVENT_NO_KERNEL_CHAIN, "no-kernel-chain" },
	{ PP_EVENT_NO_USER_CHAIN, "no-user-chain" },
	{ PP_EVENT_USER_STACK, "user-stack" },
	{ PP_EVENT_AUX, "aux" },
	{ PP_EVENT_AUX_GROUP, "aux-group" },
	{ PP_EVENT_BOUND, "bound" },
	{},
};

static const struct flag target_flags[] = {
	{ PP_TARGET_NO_INHERIT, "no-inherit" },
	{ PP_TARGET_DELETE, "delete-on-exit" },
	{},
};

/* ── writing ────────────────────────────────────────────────────────────────────────────── */

static uint64_t number_of(const struct pp_event_text *t, const struct key *k)
{
	const char *field = (const char *)t + k->offset;
	uint32_t v32;
	uint64_t v;

	if (k->size == sizeof(v)) {
		memcpy(&v, field, sizeof(v));
		return v;
	}
	memcpy(&v32, field, sizeof(v32));
	return k->kind == CHECKPOINT ? pp_event_checkpoint(v32) : v32;
}

static const char *word_of(const char *const *words, size_t n, uint64_t number)
{
	return number < n && words[number] ? words[number] : "unknown";
}

/* The text stays one line, whatever it contains. */
static void write_text(FILE *f, const char *text, size_t size)
{
	for (size_t i = 0; i < size && text[i]; i++)
		fputc(text[i] == '\n' ? ' ' : text[i], f);
}

static void write_flags(FILE *f, const struct flag *all, uint64_t bits)
{
	const char *sep = "";

	for (const struct flag *flag = all; flag->name; flag++)
		if (bits & flag->bit) {
			fprintf(f, "%s%s", sep, flag->name);
			sep = ",";
		}
}

static void write_value(FILE *f, const struct pp_event_text *t, const struct key *k)
{
	switch (k->kind) {
	case DECIMAL:
	case NOT_ZERO:
	case CHECKPOINT:
		fprintf(f, "%" PRIu64, number_of(t, k));
		break;
	case HEX:
		fprintf(f, "0x%" PRIx64, number_of(t, k));
		break;
	case OCTAL:
		fprintf(f, "%04" PRIo64, number_of(t, k));
		break;
	case TEXT:
	case CGROUP:
		write_text(f, (const char *)t + k->offset, k->size);
		break;
	case RECORDER:
		fputs(word_of(recorders, ARRAY_SIZE(recorders), number_of(t, k)), f);
		break;
	case STATE:
		fputs(word_of(states, ARRAY_SIZE(states), number_of(t, k)), f);
		break;
	case FLAGS:
		write_flags(f, flags, number_of(t, k));
		break;
	case TARGET:
		fputs(word_of(targets, ARRAY_SIZE(targets), number_of(t, k)), f);
		break;
	case TARGET_FLAGS:
		write_flags(f, target_flags, number_of(t, k));
		break;
	}
}

static bool is_there(const struct pp_event_text *t, const struct key *k)
{
	switch (k->kind) {
	case NOT_ZERO:
	case CHECKPOINT:
	case TARGET:
	case TARGET_FLAGS:
		return number_of(t, k) != 0;
	case CGROUP:
		return *((const char *)t + k->offset);
	default:
		return true;
	}
}

void pp_event_text_write(FILE *f, const struct pp_event_text *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!is_there(t, &keys[i]))
			continue;
		fprintf(f, "%s=", keys[i].name);
		write_value(f, t, &keys[i]);
		fputc('\n', f);
	}
}

/* ── reading ────────────────────────────────────────────────────────────────────────────── */

static uint64_t find_word(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (words[i] && !strcmp(words[i], word))
			return i;
	return 0;
}

static uint64_t parse_flags(const struct flag *all, char *text)
{
	uint64_t bits = 0;

	for (char *save, *word = strtok_r(text, ",", &save); word;
	     word = strtok_r(NULL, ",", &save))
		for (const struct flag *flag = all; flag->name; flag++)
			if (!strcmp(word, flag->name))
				bits |= flag->bit;
	return bits;
}

static uint64_t parse_number(enum kind kind, char *value)
{
	switch (kind) {
	case RECORDER:
		return find_word(recorders, ARRAY_SIZE(recorders), value);
	case STATE:
		return find_word(states, ARRAY_SIZE(states), value);
	case FLAGS:
		return parse_flags(flags, value);
	case TARGET:
		return find_word(targets, ARRAY_SIZE(targets), value);
	case TARGET_FLAGS:
		return parse_flags(target_flags, value);
	default:
		return strtoull(value, NULL, kind == OCTAL ? 8 : kind == HEX ? 0 : 10);
	}
}

static void take(struct pp_event_text *t, const struct key *k, char *value)
{
	char *field = (char *)t + k->offset;
	uint32_t v32;
	uint64_t v;

	if (k->kind == TEXT || k->kind == CGROUP) {
		memset(field, 0, k->size);
		memcpy(field, value, strnlen(value, k->size - 1));
		return;
	}
	v = parse_number(k->kind, value);
	v32 = (uint32_t)v;
	if (k->kind == CHECKPOINT)
		v32 = t->event.flags | pp_checkpoint_flags(v);
	memcpy(field, k->size == sizeof(v) ? (void *)&v : &v32, k->size);
}

void pp_event_text_parse(char *text, struct pp_event_text *t)
{
	for (char *save, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *value = strchr(line, '=');

		if (!value)
			continue;
		*value++ = 0;
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			if (!strcmp(line, keys[i].name))
				take(t, &keys[i], value);
	}
}
