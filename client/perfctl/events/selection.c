// SPDX-License-Identifier: LGPL-2.1-or-later
/* Selects records: parses the options, and checks each record. */
#include "client/perfctl/events/selection.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>
#include <time.h>

#include "client/perfctl/decode/sources.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/trace/process-table.h"
#include "proto/clock.h"

#define SECOND 1000000000ULL
#define CPU_MAX 8191

/* ── Numbers ────────────────────────────────────────────────────────────────────────────── */

/* Reads "12.345", with up to nine decimals, in ns; moves *text behind it. */
static bool read_seconds(const char **text, uint64_t *ret)
{
	const char *p = *text;
	uint64_t v = 0, digit = SECOND / 10, fraction = 0;

	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	if (*p == '.')
		for (p++; isdigit((unsigned char)*p); p++, digit /= 10)
			fraction += digit * (uint64_t)(*p - '0');
	if (__builtin_mul_overflow(v, SECOND, &v) || __builtin_add_overflow(v, fraction, &v))
		return false;
	*text = p;
	*ret = v;
	return true;
}

/* Ascending or not: "0-3,8". */
static bool parse_cpus(const char *text, struct selection *s)
{
	uint8_t *cpus = calloc(CPU_MAX + 1, 1);

	while (cpus) {
		char *end;
		unsigned long first, last;

		if (!isdigit((unsigned char)*text))
			break;
		first = last = strtoul(text, &end, 10);
		if (*end == '-' && isdigit((unsigned char)end[1]))
			last = strtoul(end + 1, &end, 10);
		if (last < first || last > CPU_MAX || (*end && *end != ','))
			break;
		memset(cpus + first, 1, last - first + 1);
		if (!*end) {
			free(s->cpus);
			s->cpus = cpus;
			s->n_cpus = CPU_MAX + 1;
			return true;
		}
		text = end + 1;
	}
	free(cpus);
	return false;
}

static bool parse_ids(const char *text, struct selection *s, struct ids *ids)
{
	s->owners = s->owners ?: calloc(1, sizeof(*s->owners));
	while (s->owners) {
		char *end;
		unsigned long id = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;
		uint32_t *all;

		if (!isdigit((unsigned char)*text) || id > INT32_MAX || (*end && *end != ','))
			return false;
		all = reallocarray(ids->all, ids->n + 1, sizeof(*all));
		if (!all)
			return false;
		ids->all = all;
		all[ids->n++] = (uint32_t)id;
		if (!*end)
			return true;
		text = end + 1;
	}
	return false;
}

/* ── Times ──────────────────────────────────────────────────────────────────────────────── */

/* ".5", or nothing. */
static bool read_fraction(const char *text, uint64_t *ret)
{
	char padded[64];
	const char *p = padded;

	if (!*text) {
		*ret = 0;
		return true;
	}
	snprintf(padded, sizeof(padded), "0%s", text);
	return *text == '.' && isdigit((unsigned char)text[1]) && read_seconds(&p, ret) && !*p;
}

/* A date and a time, or a time of today, in local time. */
static bool parse_wall_clock(const char *text, uint64_t *ret)
{
	time_t today = time(NULL), seconds;
	uint64_t fraction;
	const char *rest;
	struct tm tm = {};
	int day;

	rest = strptime(text, "%Y-%m-%d", &tm);
	if (rest && (*rest == ' ' || *rest == 'T')) {
		rest = strptime(rest + 1, "%H:%M:%S", &tm);
	} else if (rest) {
		rest = *rest ? NULL : rest;
	} else {
		localtime_r(&today, &tm);
		tm.tm_sec = 0;
		rest = strptime(text, "%H:%M:%S", &tm);
	}
	if (!rest || !read_fraction(rest, &fraction))
		return false;
	tm.tm_isdst = -1;
	day = tm.tm_mday;
	seconds = mktime(&tm);
	if (seconds < 0 || tm.tm_mday != day) /* of February 30 it makes March 2 */
		return false;
	*ret = (uint64_t)seconds * SECOND + fraction;
	return true;
}

static bool parse_time(const char *text, uint64_t *ret, bool *ret_is_real)
{
	const char *p = text + (*text == '@');
	uint64_t v, clock = pp_clock_ns(CLOCK_REALTIME);

	if (*text == '-') {
		if (parse_duration(text + 1, &v) < 0 || v >= clock)
			return false;
		*ret = clock - v;
		*ret_is_real = true;
		return true;
	}
	if (read_seconds(&p, &v) && !*p && v) {
		*ret = v;
		*ret_is_real = *text == '@';
		return true;
	}
	*ret_is_real = true;
	return parse_wall_clock(text, ret);
}

/* ── The command line ───────────────────────────────────────────────────────────────────── */

/* Keeps the option as it was typed. */
static int note(struct selection *s, const struct given *g)
{
	size_t n = strlen(s->typed);

	snprintf(s->typed + n, sizeof(s->typed) - n, "%s--%s%s%s", n ? ", " : "", g->option->name,
		 g->value ? " " : "", g->value ?: "");
	return EXIT_OK;
}

static int take_last(const struct given *g)
{
	struct selection *s = g->to;

	return parse_duration(g->value, &s->last) < 0 ? refuse(g, NULL) : note(s, g);
}

#define WRONG_TIME                                                \
	"not a time: 1234.567 as in records, -10s, @1700000000, " \
	"\"2026-11-21 10:00:00\" or 10:00:00"

static int take_since(const struct given *g)
{
	struct selection *s = g->to;

	return parse_time(g->value, &s->since, &s->since_is_real) ? note(s, g) : refuse(g, NULL);
}

static int take_until(const struct given *g)
{
	struct selection *s = g->to;

	return parse_time(g->value, &s->until, &s->until_is_real) ? note(s, g) : refuse(g, NULL);
}

static int take_pids(const struct given *g)
{
	struct selection *s = g->to;

	return parse_ids(g->value, s, &s->pids) ? note(s, g) : refuse(g, NULL);
}

static int take_tids(const struct given *g)
{
	struct selection *s = g->to;

	return parse_ids(g->value, s, &s->tids) ? note(s, g) : refuse(g, NULL);
}

static int take_cpus(const struct given *g)
{
	struct selection *s = g->to;

	s->cpu_list = g->value;
	return parse_cpus(g->value, s) ? note(s, g) : refuse(g, NULL);
}

static int take_about(const struct given *g)
{
	struct selection *s = g->to;

	s->about = true;
	s->owners = s->owners ?: calloc(1, sizeof(*s->owners));
	return s->owners ? note(s, g) : EXIT_FAILED;
}

const struct verb_option selection_options[] = {
	{ 0, "last", "TIME",
	  "only records of the last 10s, 500ms, 2m or 1h, before --until if that is earlier",
	  .take = take_last, .refusal = "not a time such as 10s, 500ms, 2m or 1h" },
	{ 0, "since", "TIME",
	  "only records from then on: 1234.567 as in records, -10s, @1700000000, \"2026-11-21 "
	  "10:00:00\" or 10:00:00",
	  .take = take_since, .refusal = WRONG_TIME },
	{ 0, "until", "TIME", "only records up to then; the same syntax", .take = take_until,
	  .refusal = WRONG_TIME },
	{ 'C', "cpu", "LIST", "only records of these CPUs: 0-3,8", .take = take_cpus,
	  .refusal = "not a list of CPUs such as 0-3,8", .completes = COMPLETE_CPUS },
	{ 0, "pid", "PID,...", "only records of these processes", .take = take_pids,
	  .refusal = "not a list of process ids such as 12,34", .completes = COMPLETE_PIDS },
	{ 0, "tid", "TID,...", "only records of these threads", .take = take_tids,
	  .refusal = "not a list of thread ids such as 12,34", .completes = COMPLETE_PIDS },
	{},
};

static int take_event(const struct given *g)
{
	struct selection *s = g->to;

	s->event = g->value;
	return note(s, g);
}

const struct verb_option selection_about[] = {
	{ 0, "about", NULL, "also records of others about them: wakeups, switches to them",
	  .take = take_about },
	{ 0, "event", "GLOB", "only records of these events, as in 'sched:*'", .take = take_event,
	  .completes = COMPLETE_EVENT },
	{},
};

void selection_done(struct selection *s)
{
	free(s->cpus);
	free(s->pids.all);
	free(s->tids.all);
	if (s->owners)
		keytable_done(s->owners);
	free(s->owners);
	*s = (struct selection){};
}

/* ── Records ────────────────────────────────────────────────────────────────────────────── */

/* A time before the boot becomes 1, the beginning of the clock. */
static uint64_t to_monotonic(uint64_t real, uint64_t realtime_offset)
{
	return real > realtime_offset ? real - realtime_offset : 1;
}

void selection_settle(struct selection *s, uint64_t realtime_offset, uint64_t newest)
{
	if (!realtime_offset)
		realtime_offset = pp_clock_offset();
	if (s->since_is_real)
		s->since = to_monotonic(s->since, realtime_offset);
	if (s->until_is_real)
		s->until = to_monotonic(s->until, realtime_offset);
	s->since_is_real = s->until_is_real = false;
	if (s->until)
		newest = MIN(newest, s->until);
	if (s->last)
		s->since = MAX(s->since, newest > s->last ? newest - s->last : 1);
	s->last = 0;
}

bool selection_wants_when(const struct selection *s, uint64_t time, uint32_t cpu)
{
	if (time < s->since || (s->until && time > s->until))
		return false;
	return !s->cpus || (cpu < s->n_cpus && s->cpus[cpu]);
}

bool selection_wants_event(const struct selection *s, const char *name)
{
	return !s->event || !fnmatch(s->event, name, 0);
}

/* ── Whose they are ─────────────────────────────────────────────────────────────────────── */

bool selection_has_ids(const struct selection *s)
{
	return s->pids.n || s->tids.n;
}

int selection_learn(const struct selection *s, uint32_t pid, uint32_t tid)
{
	return s->owners && pid != UINT32_MAX ? keytable_set(s->owners, tid, pid) : 0;
}

static bool has(const struct ids *ids, uint32_t id)
{
	for (size_t i = 0; i < ids->n; i++)
		if (ids->all[i] == id)
			return true;
	return false;
}

/* The process of a thread; the thread itself if no record said. */
static uint32_t owner_of(const struct selection *s, uint32_t tid)
{
	int64_t pid = keytable_get(s->owners, tid);

	return pid < 0 ? tid : (uint32_t)pid;
}

bool selection_wants_whose(const struct selection *s, uint32_t pid, uint32_t tid)
{
	if (!selection_has_ids(s))
		return true;
	return has(&s->tids, tid) || has(&s->pids, pid == UINT32_MAX ? owner_of(s, tid) : pid);
}

/* ── About whom they are ────────────────────────────────────────────────────────────────── */

/* The kernel's tracepoints name a field with a thread's id so: pid, next_pid, parent_pid. */
static bool names_a_thread(const struct tep_format_field *f)
{
	const char *last = strrchr(f->name, '_');

	last = last ? last + 1 : f->name;
	return f->size == sizeof(uint32_t) && (!strcmp(last, "pid") || !strcmp(last, "tid"));
}

/* The next thread that the loaded payload names, from the field *f on, which it moves behind it. */
static bool next_thread(const struct decoder *d, const struct tep_format_field **f, uint32_t *ret)
{
	for (; *f; *f = (*f)->next) {
		struct field_value v;

		if (!names_a_thread(*f))
			continue;
		field_value(*f, d->raw, &v);
		if (v.kind != FIELD_UNSIGNED && v.kind != FIELD_SIGNED)
			continue;
		*ret = (uint32_t)v.number;
		*f = (*f)->next;
		return true;
	}
	return false;
}

static bool is_about(const struct selection *s, const struct decoder *d)
{
	const struct tep_format_field *f = d->event->format.fields;
	uint32_t tid;

	while (next_thread(d, &f, &tid))
		if (has(&s->tids, tid) || has(&s->pids, owner_of(s, tid)))
			return true;
	return false;
}

void selection_whom(const struct selection *s, const struct perfpersist_sample *sample,
		    struct decoder *d, struct about *ret)
{
	uint32_t own = sample->pid == UINT32_MAX ? owner_of(s, sample->tid) : sample->pid, tid;
	const struct tep_format_field *f;

	*ret = (struct about){};
	if (!d || !sample->raw || decoder_load(d, sample->raw, sample->raw_size) < 0)
		return;
	f = d->event->format.fields;
	while (ret->n < ABOUT_MAX && next_thread(d, &f, &tid)) {
		uint32_t pid = owner_of(s, tid);

		if (pid != own && pid <= INT32_MAX && !has(&(struct ids){ ret->pids, ret->n }, pid))
			ret->pids[ret->n++] = pid;
	}
}

bool selection_wants_who(const struct selection *s, const struct perfpersist_sample *sample,
			 struct decoder *d)
{
	if (selection_wants_whose(s, sample->pid, sample->tid))
		return true;
	return s->about && d && sample->raw &&
	       decoder_load(d, sample->raw, sample->raw_size) >= 0 && is_about(s, d);
}

bool selection_wants(const struct selection *s, const struct perfpersist_sample *sample,
		     const struct source *source)
{
	return selection_wants_when(s, sample->time, sample->cpu) &&
	       (!source || selection_wants_event(s, source->name)) &&
	       selection_wants_who(s, sample, source ? source->decoder : NULL);
}

/* Whether nothing but threads and --about is selected. */
static bool has_only_ids(const struct selection *s)
{
	return selection_has_ids(s) && !s->since && !s->until && !s->last && !s->cpus && !s->event;
}

/* "; its records are from 12.345678 to 23.456789" */
static void tell_span(const struct selection *s, const char *what, uint64_t first, uint64_t last)
{
	if (first && last)
		complain("%s has no record for %s; its records are from %.6f to %.6f", what,
			 s->typed, (double)first / SECOND, (double)last / SECOND);
	else
		complain("%s has no record for %s", what, s->typed);
}

void selection_tell_none(const struct selection *s, const char *what, uint64_t first, uint64_t last)
{
	for (size_t i = 0; i < s->pids.n; i++) {
		uint32_t id = s->pids.all[i], owner = owner_of(s, id);

		if (owner != id)
			complain("%u is a thread of process %u: --tid %u selects it", id, owner,
				 id);
	}
	if (!has_only_ids(s))
		return tell_span(s, what, first, last);
	complain("%s has no record %s the threads that --pid and --tid select%s", what,
		 s->about ? "of or about" : "of",
		 s->about ? "" : "; --about also selects records of others about them");
}
