// SPDX-License-Identifier: LGPL-2.1-or-later
/* The formats of tracepoints, which are in an embedded file of trace-cmd's form: looked up by the
 * id in a format's text, which is the event's config. */
#include <stdlib.h>
#include <string.h>

#include "proto/cursor.h"
#include "client/perfctl/trace/trace-internal.h"

static const uint8_t magic[] = { 23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g' };

/* The number behind "\nID: "; -1: there is none. */
static int64_t id_of(const char *format, size_t n)
{
	static const char key[] = "\nID: ";
	const char *p = memmem(format, n, key, sizeof(key) - 1), *end = format + n;
	uint64_t id = 0;
	const char *first;

	if (!p)
		return -1;
	first = p += sizeof(key) - 1;
	while (p < end && *p >= '0' && *p <= '9' && id <= UINT32_MAX)
		id = id * 10 + (uint64_t)(*p++ - '0');
	return p > first && p < end && *p == '\n' ? (int64_t)id : -1;
}

/* For a system's or event's name: the kernel's own are shorter. */
#define NAME_MAX_SHOWN 256

/* Parses "name: sched_switch\n" at the beginning. */
static char *name_of(const char *system, const char *format, size_t n)
{
	static const char key[] = "name: ";
	const char *begin = format + sizeof(key) - 1, *end;
	char *name;

	if (n < sizeof(key) || memcmp(format, key, sizeof(key) - 1))
		return NULL;
	end = memchr(begin, '\n', n - (sizeof(key) - 1));
	if (!end || asprintf(&name, "%.*s:%.*s", NAME_MAX_SHOWN, system,
			     (int)MIN(end - begin, NAME_MAX_SHOWN), begin) < 0)
		return NULL;
	return name;
}

/* By config: the first event that has it, then `next`. */
struct tracepoints {
	struct keytable by_config;
	int64_t *next;
};

static int tracepoints_find(const struct trace *t, struct tracepoints *ret)
{
	int r = 0;

	*ret = (struct tracepoints){ .next = calloc(t->n_events + 1, sizeof(*ret->next)) };
	if (!ret->next)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_events && r == 0; i++) {
		const struct trace_event *e = &t->events[i]->pub;

		if (e->type != PERF_TYPE_TRACEPOINT)
			continue;
		ret->next[i] = keytable_get(&ret->by_config, e->config);
		r = keytable_set(&ret->by_config, e->config, (uint32_t)i);
	}
	return r;
}

static void tracepoints_done(struct tracepoints *p)
{
	keytable_done(&p->by_config);
	free(p->next);
}

static int use_format(struct trace *t, const struct tracepoints *points, const char *system,
		      const char *format, size_t n)
{
	int64_t id = id_of(format, n);
	int64_t last = id < 0 ? -1 : keytable_get(&points->by_config, (uint64_t)id), first = -1;
	char *name;

	/* The newest of them has a format: then all have, and a small file can have thousands of formats. */
	if (last < 0 || t->events[last]->pub.format)
		return 0;
	for (int64_t i = last; i >= 0; i = points->next[i])
		if (!t->events[i]->pub.format)
			first = i;
	/* A small file can have thousands of events of one format: they share everything made from
	 * it. */
	name = name_of(system, format, n);
	for (int64_t i = last; i >= 0; i = points->next[i]) {
		struct event *e = t->events[i];

		if (e->pub.format)
			continue;
		e->pub.format = format;
		e->pub.format_size = n;
		e->pub.format_index = (uint32_t)first;
		e->point = name;
	}
	return name ? trace_keep(t, name) : 0;
}

/* Skips "header_page" and the like: a name, a size, that many bytes. */
static void skip_header(struct cursor *c, const char *name)
{
	const char *is = cursor_line(c);

	if (!is || strcmp(is, name))
		c->bad = true;
	cursor_bytes(c, cursor_u64(c));
}

static int read_systems(struct trace *t, const struct tracepoints *points, struct cursor *c)
{
	uint32_t n_systems, n;
	int r;

	n = cursor_u32(c); /* ftrace's own */
	while (n-- > 0 && !c->bad)
		cursor_bytes(c, cursor_u64(c));
	n_systems = cursor_u32(c);
	while (n_systems-- > 0 && !c->bad) {
		const char *system = cursor_line(c);

		n = cursor_u32(c);
		while (n-- > 0 && !c->bad) {
			uint64_t size = cursor_u64(c);
			const char *format = cursor_bytes(c, size);

			r = format ? use_format(t, points, system, format, size) : 0;
			if (r < 0)
				return r;
		}
	}
	return c->bad ? -EBADMSG : 0; /* the rest (symbols, names) is not used */
}

int tracing_data_read(struct trace *t, const uint8_t *bytes, size_t n)
{
	struct cursor c = { .p = bytes, .left = n };
	const uint8_t *begin = cursor_bytes(&c, sizeof(magic)), *endian;
	struct tracepoints points;
	int r;

	/* Each would look at all events once more. */
	if (!begin || memcmp(begin, magic, sizeof(magic)) || t->has_formats)
		return -EBADMSG;
	t->has_formats = true;
	cursor_line(&c);	      /* its version */
	endian = cursor_bytes(&c, 2); /* and the size of a long */
	cursor_u32(&c);		      /* and of a page */
	if (!endian || endian[0] != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
		return -EBADMSG;
	skip_header(&c, "header_page");
	skip_header(&c, "header_event");
	r = tracepoints_find(t, &points);
	if (r == 0)
		r = read_systems(t, &points, &c);
	tracepoints_done(&points);
	return r;
}
