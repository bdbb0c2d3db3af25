// SPDX-License-Identifier: LGPL-2.1-or-later
/* Offline CPUs and missing rings, as text and as JSON. Prints its arguments, asks nobody. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/print/away.h"
#include "client/perfctl/print/info.h"

/* Reads the next range of a list; moves *list behind it. */
static bool next_range(const char **list, unsigned long *first, unsigned long *last)
{
	char *end;

	if (**list < '0' || **list > '9')
		return false;
	*first = *last = strtoul(*list, &end, 10);
	if (*end == '-')
		*last = strtoul(end + 1, &end, 10);
	*list = end + (*end == ',');
	return true;
}

bool list_has_cpu(const char *list, unsigned cpu)
{
	unsigned long first, last;

	while (next_range(&list, &first, &last))
		if (cpu >= first && cpu <= last)
			return true;
	return false;
}

const char *lacking_why(const struct perfpersist_info *info)
{
	if (!info->lacking[0])
		return "";
	switch (info->lacking_error) {
	case 0:
		return "it has just come online and is about to record";
	case -EDQUOT:
		return "its buffer would be over a limit (`perfctl limits`)";
	case -EAGAIN:
		return "the engine is not running";
	default:
		return strerror(-info->lacking_error);
	}
}

/* 0: unknown. */
static uint64_t since(unsigned cpu, const struct perfpersist_cpu_away *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].cpu == cpu)
			return v[i].since;
	return 0;
}

static void print_cpus(FILE *f, const char *key, unsigned long first, unsigned long last)
{
	fprintf(f, "%-12s CPU %lu", key, first);
	if (last > first)
		fprintf(f, "-%lu", last);
}

static void print_since(FILE *f, uint64_t when)
{
	if (when)
		fprintf(f, ", since %s, %s ago\n", format_time(when).s, format_age(when).s);
	else
		fputs(", since an unknown time\n", f);
}

/* Puts CPUs that went offline in the same second on one line. */
static void print_away(FILE *f, unsigned long first, unsigned long last,
		       const struct perfpersist_cpu_away *v, size_t n)
{
	while (first <= last) {
		uint64_t when = since(first, v, n);
		unsigned long end = first;

		while (end < last && since(end + 1, v, n) / 1000000000 == when / 1000000000)
			end++;
		print_cpus(f, "away", first, end);
		print_since(f, when);
		first = end + 1;
	}
}

void away_print(FILE *f, const struct perfpersist_info *info, const struct perfpersist_cpu_away *v,
		size_t n)
{
	const char *list = info->away;
	unsigned long first, last;

	while (next_range(&list, &first, &last))
		print_away(f, first, last, v, n);
	if (info->lacking[0])
		fprintf(f, "%-12s CPU %s: %s\n", "lacking", info->lacking, lacking_why(info));
}

void away_json(struct json *j, const struct perfpersist_info *info,
	       const struct perfpersist_cpu_away *v, size_t n)
{
	const char *list = info->away;
	unsigned long first, last;

	json_begin(j, "cpus_away", '[');
	while (next_range(&list, &first, &last))
		for (unsigned long cpu = first; cpu <= last; cpu++) {
			uint64_t when = since(cpu, v, n);

			json_begin(j, NULL, '{');
			json_unsigned(j, "cpu", cpu);
			if (when)
				json_unsigned(j, "since", when);
			else
				json_null(j, "since");
			json_end(j, '}');
		}
	json_end(j, ']');
}
