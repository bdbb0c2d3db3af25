// SPDX-License-Identifier: LGPL-2.1-or-later
/* perf's -F: selects the columns for each type of event. */
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/replay/script.h"

enum type { SOFTWARE, HARDWARE, TRACEPOINT, RAW, OTHER, TYPES };

static const char *const type_names[] = { "sw", "hw", "trace", "raw", NULL };

#define ALWAYS (FIELD_COMM | FIELD_TID | FIELD_CPU | FIELD_TIME | FIELD_EVENT)
#define PLACE (FIELD_IP | FIELD_SYM | FIELD_SYMOFF | FIELD_DSO)

struct chosen_fields {
	unsigned of[TYPES];
	unsigned asked;	 /* by name: an event must have these */
	bool set[TYPES]; /* replaces perf's default */
};

static enum type type_of(const struct trace_event *e)
{
	switch (e->type) {
	case PERF_TYPE_SOFTWARE:
		return SOFTWARE;
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
		return HARDWARE;
	case PERF_TYPE_TRACEPOINT:
		return TRACEPOINT;
	case PERF_TYPE_RAW:
		return RAW;
	}
	return OTHER;
}

static unsigned field_named(const char *name, size_t len)
{
	unsigned field = 1;

	for (const char *word = SCRIPT_FIELDS;; word = strchr(word, ' ') + 1, field <<= 1) {
		size_t n = strcspn(word, " ");

		if (n == len && !memcmp(word, name, len))
			return field;
		if (!word[n])
			return 0;
	}
}

static int no_such_field(const struct call *call, const char *name, size_t len)
{
	return bad_usage(call, "-F: unknown field %.*s; the fields are " SCRIPT_FIELDS, (int)len,
			 name);
}

/* "trace:" before the fields: *ret_type is that type; else TYPES: all of them. */
static const char *take_type(const char *text, size_t *ret_type)
{
	*ret_type = TYPES;
	for (size_t i = 0; i < OTHER; i++) {
		size_t len = strlen(type_names[i]);

		if (!strncmp(text, type_names[i], len) && text[len] == ':') {
			*ret_type = i;
			return text + len + 1;
		}
	}
	return text;
}

static void change(struct chosen_fields *c, size_t type, char sign, unsigned field)
{
	for (size_t i = 0; i < TYPES; i++) {
		if (type != TYPES && i != type)
			continue;
		c->set[i] = true;
		if (sign == '-')
			c->of[i] &= ~field;
		else
			c->of[i] |= field;
	}
	if (sign != '-')
		c->asked |= field;
}

static int parse(const struct call *call, const char *text, struct chosen_fields *c)
{
	size_t type;
	const char *list = take_type(text, &type);
	bool changes = *list == '+' || *list == '-';

	for (size_t i = 0; i < TYPES && !changes; i++)
		if (type == TYPES || i == type)
			c->of[i] = 0;
	for (;;) {
		size_t len = strcspn(list, ",");
		char sign = *list == '+' || *list == '-' ? *list : '\0';
		unsigned field;

		if (changes != !!sign)
			return bad_usage(call,
					 "-F %s: either each field has a sign, + to add or - to "
					 "remove it, or none has",
					 text);
		field = field_named(list + changes, len - changes);
		if (!field)
			return no_such_field(call, list, len);
		change(c, type, sign, field);
		if (!list[len])
			return EXIT_OK;
		list += len + 1;
	}
}

/* The fields that an event's samples have. */
static unsigned fields_of(const struct trace_event *e)
{
	static const struct {
		uint64_t sample;
		unsigned fields;
	} has[] = {
		{ PERF_SAMPLE_TID, FIELD_COMM | FIELD_TID | FIELD_PID },
		{ PERF_SAMPLE_TIME, FIELD_TIME | FIELD_TOD },
		{ PERF_SAMPLE_CPU, FIELD_CPU },
		{ PERF_SAMPLE_RAW, FIELD_TRACE },
		{ PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN, PLACE },
		{ PERF_SAMPLE_ADDR, FIELD_ADDR },
	};
	unsigned all = FIELD_EVENT | FIELD_PERIOD; /* a fixed period is in no record */

	for (size_t i = 0; i < ARRAY_SIZE(has); i++)
		if (e->sample_type & has[i].sample)
			all |= has[i].fields;
	return all;
}

/* perf's defaults. Tracepoints print the address only with a call chain. */
static void choose_defaults(const struct script *s, struct chosen_fields *c)
{
	for (size_t i = 0; i < TYPES; i++)
		c->of[i] = ALWAYS | PLACE | FIELD_PERIOD;
	c->of[RAW] |= FIELD_ADDR;
	c->of[TRACEPOINT] = ALWAYS | FIELD_TRACE;
	for (size_t i = 0; i < s->n_events && !s->no_chains; i++)
		if (type_of(s->events[i].event) == TRACEPOINT &&
		    s->events[i].event->sample_type & PERF_SAMPLE_CALLCHAIN)
			c->of[TRACEPOINT] |= PLACE;
}

static int check_asked(const struct script *s, const struct call *call, unsigned asked)
{
	const char *name = SCRIPT_FIELDS;
	unsigned have = 0, lacking;

	for (size_t i = 0; i < s->n_events; i++)
		have |= fields_of(s->events[i].event);
	lacking = s->n_events ? asked & ~have : 0;
	if (!lacking)
		return EXIT_OK;
	for (; !(lacking & 1); lacking >>= 1)
		name += strcspn(name, " ") + 1;
	return bad_usage(call, "-F: no event in %s has the field %.*s", s->in.what,
			 (int)strcspn(name, " "), name);
}

int script_choose_fields(struct script *s, const struct call *call)
{
	struct chosen_fields c = {};
	int r = EXIT_OK;

	choose_defaults(s, &c);
	if (s->fields)
		r = parse(call, s->fields, &c);
	if (!r)
		r = check_asked(s, call, c.asked);
	for (size_t i = 0; i < s->n_events && !r; i++) {
		struct script_event *e = &s->events[i];

		e->fields = c.of[type_of(e->event)] & fields_of(e->event);
		if (s->time == TIME_REAL)
			e->fields &= ~(unsigned)FIELD_TOD;
		/* These fields print parts of ip. */
		if (!(e->fields & FIELD_IP))
			e->fields &= ~(unsigned)PLACE;
	}
	return r;
}
