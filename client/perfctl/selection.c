// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which records are wanted: reads it from the command line, and says it of each. */
#include "client/perfctl/selection.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

#include "client/perfctl/perfctl.h"

#define SECOND 1000000000ULL
#define CPU_MAX 8191

/* ── Numbers ────────────────────────────────────────────────────────────────────────────── */

/* "12.345" in ns, as many digits as there are up to nine; *text is moved behind it. */
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

static bool parse_pids(const char *text, struct selection *s)
{
	for (;;) {
		char *end;
		unsigned long pid = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;
		uint32_t *pids;

		if (!isdigit((unsigned char)*text) || pid > INT32_MAX || (*end && *end != ','))
			return false;
		pids = reallocarray(s->pids, s->n_pids + 1, sizeof(*pids));
		if (!pids)
			return false;
		s->pids = pids;
		s->pids[s->n_pids++] = (uint32_t)pid;
		if (!*end)
			return true;
		text = end + 1;
	}
}

/* ── Times ──────────────────────────────────────────────────────────────────────────────── */

static uint64_t now(clockid_t clock)
{
	struct timespec t = {};

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

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

/* A date and a time, or a time of today, as the clock on the wall has it. */
static bool parse_wall_clock(const char *text, uint64_t *ret)
{
	time_t today = time(NULL), seconds;
	uint64_t fraction;
	const char *rest;
	struct tm tm = {};

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
	seconds = mktime(&tm);
	if (seconds < 0)
		return false;
	*ret = (uint64_t)seconds * SECOND + fraction;
	return true;
}

static bool parse_time(const char *text, uint64_t *ret, bool *ret_is_real)
{
	const char *p = text + (*text == '@');
	uint64_t v, clock = now(CLOCK_REALTIME);

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

static int wrong_time(struct call *call, const char *option)
{
	bad_usage(call,
		  "%s %s: not a time: 1234.567 as records have it, -10s, @1700000000, "
		  "\"2026-11-21 10:00:00\" or 10:00:00",
		  option, optarg);
	return -1;
}

int selection_option(struct selection *s, struct call *call, int c)
{
	switch (c) {
	case SELECTION_LAST:
		if (parse_duration(optarg, &s->last) >= 0)
			return 1;
		bad_usage(call, "--last %s: not a time like 10s, 500ms, 2m or 1h", optarg);
		return -1;
	case SELECTION_SINCE:
		return parse_time(optarg, &s->since, &s->since_is_real)
			       ? 1
			       : wrong_time(call, "--since");
	case SELECTION_UNTIL:
		return parse_time(optarg, &s->until, &s->until_is_real)
			       ? 1
			       : wrong_time(call, "--until");
	case SELECTION_PID:
		if (parse_pids(optarg, s))
			return 1;
		bad_usage(call, "--pid %s: neither a process id nor a list of these", optarg);
		return -1;
	case SELECTION_CPU:
		if (parse_cpus(optarg, s))
			return 1;
		bad_usage(call, "-C %s: not a list of CPUs like 0-3,8", optarg);
		return -1;
	}
	return 0;
}

void selection_done(struct selection *s)
{
	free(s->cpus);
	free(s->pids);
	*s = (struct selection){};
}

/* ── Records ────────────────────────────────────────────────────────────────────────────── */

/* A moment before the clock began is its beginning. */
static uint64_t to_monotonic(uint64_t real, uint64_t realtime_offset)
{
	return real > realtime_offset ? real - realtime_offset : 1;
}

void selection_settle(struct selection *s, uint64_t realtime_offset, uint64_t newest)
{
	if (!realtime_offset)
		realtime_offset = now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
	if (s->since_is_real)
		s->since = to_monotonic(s->since, realtime_offset);
	if (s->until_is_real)
		s->until = to_monotonic(s->until, realtime_offset);
	s->since_is_real = s->until_is_real = false;
	if (s->last)
		s->since = MAX(s->since, newest > s->last ? newest - s->last : 1);
	s->last = 0;
}

static bool has_pid(const struct selection *s, uint32_t pid)
{
	for (size_t i = 0; i < s->n_pids; i++)
		if (s->pids[i] == pid)
			return true;
	return false;
}

bool selection_wants(const struct selection *s, uint64_t time, uint32_t cpu, uint32_t pid)
{
	if (time < s->since || (s->until && time > s->until))
		return false;
	if (s->cpus && (cpu >= s->n_cpus || !s->cpus[cpu]))
		return false;
	return !s->pids || has_pid(s, pid);
}
