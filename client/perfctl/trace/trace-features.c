// SPDX-License-Identifier: LGPL-2.1-or-later
/* A file's facts about itself and the machine, by section; unknown sections are skipped. */
#include <string.h>

#include "proto/cursor.h"
#include "client/perfctl/trace/trace-internal.h"

/* A length, and that many bytes with a text. Lives as long as the section. */
static const char *get_text(struct cursor *c)
{
	uint32_t n = cursor_u32(c);

	return cursor_text(c, n);
}

static void set_text(struct cursor *c, const char **ret)
{
	const char *text = get_text(c);

	if (text)
		*ret = text;
}

static int read_cmdline(struct trace *t, struct cursor *c)
{
	uint32_t n = cursor_u32(c);
	size_t length = 0;
	char *all = malloc(c->left + 1);

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const char *word = get_text(c);

		if (!word)
			break;
		if (i)
			all[length++] = ' '; /* there is room: each word came with its length */
		memcpy(all + length, word, strlen(word));
		length += strlen(word);
	}
	all[length] = 0;
	t->info.cmdline = all;
	return trace_keep(t, all);
}

/* The events again, with their names. */
static int read_event_desc(struct trace *t, struct cursor *c)
{
	uint32_t n = cursor_u32(c), attr_size = cursor_u32(c);

	for (uint32_t i = 0; i < n && !c->bad; i++) {
		const char *name;
		uint32_t n_ids;

		cursor_bytes(c, attr_size);
		n_ids = cursor_u32(c);
		name = get_text(c);
		cursor_bytes(c, (uint64_t)n_ids * sizeof(uint64_t));
		if (name && !c->bad)
			events_name(t, i, name);
	}
	return 0;
}

static void read_clock_data(struct trace *t, struct cursor *c)
{
	uint32_t version = cursor_u32(c);
	uint64_t realtime, clock;

	cursor_u32(c); /* the clock of the times; only the times matter */
	realtime = cursor_u64(c);
	clock = cursor_u64(c);
	if (version == 1 && !c->bad)
		t->info.realtime_offset = realtime - clock;
}

int feature_build_id(struct trace *t, const uint8_t *record, size_t n)
{
	struct perf_file_build_id b;
	const char *path;
	size_t size;

	if (n <= sizeof(b))
		return -EBADMSG;
	memcpy(&b, record, sizeof(b));
	path = (const char *)record + sizeof(b);
	if (!memchr(path, 0, n - sizeof(b)))
		return -EBADMSG;
	size = b.header.misc & PERF_FILE_BUILD_ID_HAS_SIZE ? b.size : BUILD_ID_SIZE_MAX;
	if (size > BUILD_ID_SIZE_MAX)
		return -EBADMSG;
	return processes_build_id(t->processes, path, b.build_id, size);
}

static int read_build_ids(struct trace *t, struct cursor *c)
{
	while (c->left > 0) {
		struct perf_event_header h;
		const uint8_t *record = c->p;
		int r;

		if (c->left < sizeof(h))
			return -EBADMSG;
		memcpy(&h, record, sizeof(h));
		if (h.size < sizeof(h) || !cursor_bytes(c, h.size))
			return -EBADMSG;
		r = feature_build_id(t, record, h.size);
		if (r < 0)
			return r;
	}
	return 0;
}

int feature_read(struct trace *t, unsigned feature, const uint8_t *bytes, size_t n)
{
	struct trace_info *info = &t->info;
	struct cursor c = { .p = bytes, .left = n };
	int r = 0;

	switch (feature) {
	case FEATURE_TRACING_DATA:
		return tracing_data_read(t, bytes, n);
	case FEATURE_BUILD_ID:
		return read_build_ids(t, &c);
	case FEATURE_HOSTNAME:
		set_text(&c, &info->hostname);
		break;
	case FEATURE_OSRELEASE:
		set_text(&c, &info->release);
		break;
	case FEATURE_VERSION:
		set_text(&c, &info->version);
		break;
	case FEATURE_ARCH:
		set_text(&c, &info->arch);
		break;
	case FEATURE_CPUDESC:
		set_text(&c, &info->cpudesc);
		break;
	case FEATURE_NRCPUS:
		info->nr_cpus_avail = cursor_u32(&c);
		info->nr_cpus_online = cursor_u32(&c);
		break;
	case FEATURE_CMDLINE:
		r = read_cmdline(t, &c);
		break;
	case FEATURE_EVENT_DESC:
		r = read_event_desc(t, &c);
		break;
	case FEATURE_SAMPLE_TIME:
		info->first_time = cursor_u64(&c);
		info->last_time = cursor_u64(&c);
		break;
	case FEATURE_CLOCK_DATA:
		read_clock_data(t, &c);
		break;
	default:
		break;
	}
	return r == 0 && c.bad ? -EBADMSG : r;
}
