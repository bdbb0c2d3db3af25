// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Composes a filter. --pid, --comm and --cgroup are shorthands: they become filter text, and the
 * event's properties show that text. The daemon checks it.
 */
#include <string.h>

#include "client/perfctl/perfctl.h"

static int take_comm(const struct given *g)
{
	struct filter_options *o = g->to;

	if (!*g->value)
		return refuse(g, "the name is empty, and no task has that");
	o->comm = g->value;
	return EXIT_OK;
}

const struct verb_option filter_options[] = {
	{ 'p', "pid", "PID,...", "record only these processes",
	  TAKE_TEXT(struct filter_options, pids), .completes = COMPLETE_PIDS },
	{ 0, "comm", "GLOB", "record only tasks with a matching name", .take = take_comm,
	  .completes = COMPLETE_TASK },
	{ 0, "cgroup", "PATH", "record only this cgroup, or unit of systemd, and those below it",
	  TAKE_TEXT(struct filter_options, cgroup), .completes = COMPLETE_CGROUP },
	{},
};

static void put_and(FILE *f, bool *first)
{
	if (!*first)
		fputs(" && ", f);
	*first = false;
}

/* "12,34" */
static int put_pids(FILE *f, const char *pids)
{
	bool several = strchr(pids, ',');

	fputs(several ? "(" : "", f);
	for (const char *p = pids;;) {
		size_t n = strcspn(p, ",");
		char one[24];
		uint64_t pid;

		if (n == 0 || n >= sizeof(one))
			return -EINVAL;
		memcpy(one, p, n);
		one[n] = 0;
		if (parse_number(one, &pid) < 0 || pid > INT32_MAX)
			return -EINVAL;
		fprintf(f, "%sPID == %u", p == pids ? "" : " || ", (unsigned)pid);
		if (!p[n])
			break;
		p += n + 1;
	}
	fputs(several ? ")" : "", f);
	return 0;
}

/* Takes the kind of quotes that the text does not contain. */
static void put_text(FILE *f, const char *field, const char *op, const char *text)
{
	char quote = strchr(text, '"') ? '\'' : '"';

	fprintf(f, "%s %s %c%s%c", field, op, quote, text, quote);
}

static int put_all(FILE *f, const struct filter_options *o)
{
	bool several = o->pids || o->comm || o->cgroup, first = true;

	if (o->pids) {
		put_and(f, &first);
		if (put_pids(f, o->pids) < 0)
			return -EINVAL;
	}
	if (o->comm) {
		put_and(f, &first);
		put_text(f, "COMM", "~", o->comm);
	}
	if (o->cgroup) {
		put_and(f, &first);
		put_text(f, "CGROUP", "==", o->cgroup);
	}
	if (o->filter && *o->filter) {
		put_and(f, &first);
		fprintf(f, several ? "(%s)" : "%s", o->filter);
	}
	return 0;
}

int filter_compose(const struct filter_options *o, char **ret)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int r;

	if (!f)
		return -ENOMEM;
	r = put_all(f, o);
	if (fclose(f))
		r = -ENOMEM;
	if (r < 0) {
		free(text);
		return r;
	}
	*ret = text;
	return 0;
}
