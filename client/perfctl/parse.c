// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Parses names, numbers and sizes on a command line. Strict: the whole text must be valid. Prints
 * nothing.
 */
#include <string.h>

#include "client/perfctl/perfctl.h"

#define DEFAULT_NAMESPACE "default"

static bool is_alpha_(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool name_is_valid(const char *name)
{
	size_t n = 0;

	if (!is_alpha_(name[0]))
		return false;
	while (is_alpha_(name[n]) || (name[n] >= '0' && name[n] <= '9') || name[n] == '-')
		n++;
	return !name[n] && n < sizeof(((struct event_name *)NULL)->name);
}

int parse_event_name(const char *text, const char *ns, struct event_name *ret)
{
	const char *slash = strchr(text, '/');
	struct event_name n = {};

	if (slash) {
		if ((size_t)(slash - text) >= sizeof(n.ns))
			return -EINVAL;
		memcpy(n.ns, text, slash - text);
		text = slash + 1;
	} else {
		if (!ns)
			ns = DEFAULT_NAMESPACE;
		if (strlen(ns) >= sizeof(n.ns))
			return -EINVAL;
		memcpy(n.ns, ns, strlen(ns));
	}
	if (!name_is_valid(n.ns) || !name_is_valid(text))
		return -EINVAL;
	memcpy(n.name, text, strlen(text));
	*ret = n;
	return 0;
}

/* Reads digits up to *ret_end. */
static int parse_digits(const char *text, const char **ret_end, uint64_t *ret)
{
	uint64_t v = 0;
	const char *p = text;

	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -ERANGE;
	if (p == text)
		return -EINVAL;
	*ret_end = p;
	*ret = v;
	return 0;
}

int parse_events_name(const char *text, struct event_name *ret)
{
	size_t n = strlen(text);
	struct event_name name = {};

	if (n < 2 || text[n - 1] != '/')
		return parse_event_name(text, NULL, ret);
	if (n > sizeof(name.ns))
		return -EINVAL;
	memcpy(name.ns, text, n - 1);
	if (!name_is_valid(name.ns))
		return -EINVAL;
	*ret = name;
	return 0;
}

int parse_persistent(const char *text, char **ret)
{
	static const char prefix[] = "persistent/";
	size_t n = strlen(text);
	const char *name = text + strlen(prefix);

	*ret = NULL;
	if (strncmp(text, prefix, strlen(prefix)) != 0)
		return 0;
	if (n < strlen(prefix) + 2 || text[n - 1] != '/')
		return -EINVAL;
	n = strlen(name);
	*ret = strndup(name, memchr(name, '/', n - 1) ? n - 1 : n);
	return *ret ? 0 : -ENOMEM;
}

int parse_number(const char *text, uint64_t *ret)
{
	const char *end;
	uint64_t v;
	int r = parse_digits(text, &end, &v);

	if (r < 0)
		return r;
	if (*end)
		return -EINVAL;
	*ret = v;
	return 0;
}

static int parse_unit(const char *text, uint64_t page, uint64_t *ret)
{
	if (text[0] && text[1])
		return -EINVAL;
	switch (text[0]) {
	case '\0':
		*ret = page;
		return 0;
	case 'B':
	case 'b':
		*ret = 1;
		return 0;
	case 'K':
	case 'k':
		*ret = 1ULL << 10;
		return 0;
	case 'M':
	case 'm':
		*ret = 1ULL << 20;
		return 0;
	case 'G':
	case 'g':
		*ret = 1ULL << 30;
		return 0;
	}
	return -EINVAL;
}

int parse_buffer_size(const char *text, uint64_t *ret)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), v, unit, size = page;
	const char *end;
	int r;

	text += *text == ','; /* of an AUX area, in perf's words: -m ,SIZE */
	r = parse_digits(text, &end, &v);
	if (r < 0)
		return r;
	r = parse_unit(end, page, &unit);
	if (r < 0)
		return r;
	if (!v)
		return -EINVAL;
	if (__builtin_mul_overflow(v, unit, &v) || v > 1ULL << 62)
		return -ERANGE;
	while (size < v)
		size <<= 1;
	*ret = size;
	return 0;
}

int parse_max_rate(const char *text, uint64_t *ret)
{
	const char *end;
	uint64_t v;
	int r = parse_digits(text, &end, &v);

	if (r < 0)
		return r;
	if (*end && strcmp(end, "/s"))
		return -EINVAL;
	*ret = v;
	return 0;
}

int parse_size(const char *text, uint64_t *ret)
{
	const char *end;
	uint64_t v, unit;
	int r = parse_digits(text, &end, &v);

	if (r >= 0)
		r = parse_unit(end, 1, &unit);
	if (r < 0)
		return r;
	if (!v)
		return -EINVAL;
	if (__builtin_mul_overflow(v, unit, &v) || v > 1ULL << 62)
		return -ERANGE;
	*ret = v;
	return 0;
}

/* Accepts decimal digits with at most one point, and nothing else that strtod(3) accepts. */
int parse_duration(const char *text, uint64_t *ret)
{
	static const struct {
		const char *name;
		double nsec;
	} units[] = {
		{ "", 1e9 },   { "ns", 1 },	{ "us", 1e3 },	 { "ms", 1e6 },	   { "s", 1e9 },
		{ "m", 60e9 }, { "min", 60e9 }, { "h", 3600e9 }, { "d", 86400e9 },
	};
	size_t n = strspn(text, "0123456789.");
	double v;
	char *end;

	if (!n || *text == '.')
		return -EINVAL;
	v = strtod(text, &end);
	if (end != text + n)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		v *= units[i].nsec;
		if (v < 1)
			return -EINVAL;
		if (v > 9e18)
			return -ERANGE;
		*ret = (uint64_t)v;
		return 0;
	}
	return -EINVAL;
}

int parse_interval(const char *text, uint32_t *ret)
{
	uint64_t nsec = 0;
	int r = strcmp(text, "0") ? parse_duration(text, &nsec) : 0;

	if (r < 0)
		return r;
	if (nsec % 1000000000 || nsec / 1000000000 > PERFPERSIST_CHECKPOINT_MAX)
		return -ERANGE;
	*ret = (uint32_t)(nsec / 1000000000);
	return 0;
}
