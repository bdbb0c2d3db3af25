// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads and writes lists of CPUs. */
#include "client/cpus.h"

#include <stdlib.h>
#include <string.h>

#include "client/info.h"
#include "proto/macro.h"

static int parse_number(const char **p, unsigned *ret)
{
	char *end;
	unsigned long v;

	if (**p < '0' || **p > '9')
		return -EINVAL;
	v = strtoul(*p, &end, 10);
	if (v >= CLIENT_CPUS_MAX)
		return -EINVAL;
	*p = end;
	*ret = (unsigned)v;
	return 0;
}

static int parse_range(const char **p, struct client_cpus *c)
{
	unsigned first, last;

	if (parse_number(p, &first) < 0)
		return -EINVAL;
	last = first;
	if (**p == '-') {
		(*p)++;
		if (parse_number(p, &last) < 0 || last < first)
			return -EINVAL;
	}
	for (unsigned cpu = first; cpu <= last; cpu++)
		c->bits[cpu / 64] |= 1ULL << (cpu % 64);
	return 0;
}

int client_cpus_parse(const char *text, struct client_cpus *ret)
{
	struct client_cpus c = { .bits = { 0 } };

	while (*text) {
		if (parse_range(&text, &c) < 0 || (*text && *text != ','))
			return -EINVAL;
		if (*text == ',' && !*++text)
			return -EINVAL;
	}
	*ret = c;
	return 0;
}

void client_cpus_format(const struct client_cpus *c, char *buf, size_t size)
{
	uint32_t cpus[CLIENT_CPUS_MAX];
	size_t n = 0;

	for (unsigned cpu = 0; cpu < CLIENT_CPUS_MAX; cpu++)
		if (client_cpus_have(c, cpu))
			cpus[n++] = cpu;
	client_format_cpus(cpus, n, buf, size);
}

void client_cpus_remove(struct client_cpus *a, const struct client_cpus *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(a->bits); i++)
		a->bits[i] &= ~b->bits[i];
}

int client_cpus_read(const char *which, struct client_cpus *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[4096] = "";

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s", which);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	if (!fgets(line, sizeof(line), f) && ferror(f))
		return -EIO;
	line[strcspn(line, "\n")] = 0;
	return client_cpus_parse(line, ret);
}
