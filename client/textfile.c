// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the reading of `info` (key=value lines) and `stat` (a line per CPU, and a total). */
#include "client/textfile.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "client/info.h"
#include "client/public.h"

#define TEXTFILE_MAX (1U << 20) /* `stat` has a line per CPU */

static int grow(char **text, size_t *size)
{
	char *p = realloc(*text, 2 * *size);

	if (!p)
		return -ENOMEM;
	*text = p;
	*size *= 2;
	return 0;
}

/* The whole file as a string; such files have no size to be told before. */
static int read_text(int dir_fd, const char *name, char **ret)
{
	_cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	size_t used = 0, size = 4096;

	if (fd < 0)
		return -errno;
	if (grow(&text, &size) < 0)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, text + used, size - used - 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
		if (used + 1 < size)
			continue;
		if (size >= TEXTFILE_MAX)
			return -EFBIG;
		if (grow(&text, &size) < 0)
			return -ENOMEM;
	}
	text[used] = 0;
	*ret = TAKE_PTR(text);
	return 0;
}

static uint64_t number(const char *text, int base)
{
	return strtoull(text, NULL, base);
}

static uint32_t find(const char *const *names, size_t n, const char *text)
{
	for (uint32_t i = 0; i < n; i++)
		if (names[i] && !strcmp(names[i], text))
			return i;
	return 0;
}

static uint32_t parse_flags(char *text)
{
	static const struct {
		const char *name;
		uint32_t flag;
	} flags[] = {
		{ "freq", PERFPERSIST_FREQ },
		{ "callchain", PERFPERSIST_CALLCHAIN },
		{ "all-cpus", PERFPERSIST_ALL_CPUS },
		{ "generic", PERFPERSIST_GENERIC },
	};
	uint32_t ret = 0;

	for (char *save, *word = strtok_r(text, ",", &save); word;
	     word = strtok_r(NULL, ",", &save))
		for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
			if (!strcmp(word, flags[i].name))
				ret |= flags[i].flag;
	return ret;
}

static void take_text(char *field, size_t size, const char *text)
{
	size_t n = strnlen(text, size - 1);

	memset(field, 0, size);
	memcpy(field, text, n);
}
#define TAKE_TEXT(field, text) take_text(field, sizeof(field), text)

static void take_key(struct perfpersist_info *i, const char *key, char *value)
{
	static const char *const recorders[] = {
		[PERFPERSIST_RECORDER_GENERIC] = "generic",
		[PERFPERSIST_RECORDER_TP_BTF] = "tp_btf",
		[PERFPERSIST_RECORDER_OVERFLOW] = "overflow",
	};
	static const char *const states[] = {
		[PERFPERSIST_CREATING] = "creating",
		[PERFPERSIST_RUNNING] = "running",
		[PERFPERSIST_DELETING] = "deleting",
	};

	if (!strcmp(key, "id"))
		i->id = number(value, 10);
	else if (!strcmp(key, "namespace"))
		TAKE_TEXT(i->ns, value);
	else if (!strcmp(key, "name"))
		TAKE_TEXT(i->name, value);
	else if (!strcmp(key, "event"))
		TAKE_TEXT(i->event, value);
	else if (!strcmp(key, "cpus"))
		TAKE_TEXT(i->cpus, value);
	else if (!strcmp(key, "recorder"))
		i->recorder = find(recorders, ARRAY_SIZE(recorders), value);
	else if (!strcmp(key, "state"))
		i->state = find(states, ARRAY_SIZE(states), value);
	else if (!strcmp(key, "buffer"))
		i->buffer = number(value, 10);
	else if (!strcmp(key, "sample_type"))
		i->sample_type = number(value, 0);
	else if (!strcmp(key, "period"))
		i->period = number(value, 10);
	else if (!strcmp(key, "flags"))
		i->flags = parse_flags(value);
	else if (!strcmp(key, "owner"))
		i->owner = (uint32_t)number(value, 10);
	else if (!strcmp(key, "group"))
		i->group = (uint32_t)number(value, 10);
	else if (!strcmp(key, "mode"))
		i->mode = (uint32_t)number(value, 8);
	else if (!strcmp(key, "created"))
		i->created = number(value, 10);
}

/* Takes in the text of `info`; unknown keys are left for later versions. 0 or -EBADMSG. */
static int parse_info(char *text, struct perfpersist_info *ret)
{
	struct perfpersist_info info = { .sz = sizeof(info) };

	for (char *save, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *value = strchr(line, '=');

		if (!value)
			continue;
		*value++ = 0;
		take_key(&info, line, value);
	}
	if (info.id == 0 || !client_name_is_valid(info.ns) || !client_name_is_valid(info.name))
		return -EBADMSG;
	*ret = info;
	return 0;
}

/* Takes in the `total` line of `stat`; without one the numbers stay 0, missed unknown. */
static void parse_stat(char *text, struct perfpersist_info *ret)
{
	char *total = !strncmp(text, "total ", 6) ? text : strstr(text, "\ntotal ");
	char missed[24];

	ret->missed_unknown = true;
	if (!total)
		return;
	total += *total == '\n';
	if (sscanf(total, "total records=%" SCNu64 " bytes=%" SCNu64 " missed=%23s", &ret->records,
		   &ret->bytes, missed) != 3)
		return;
	ret->missed_unknown = !strcmp(missed, "unknown");
	ret->missed = ret->missed_unknown ? 0 : number(missed, 10);
}

int textfile_read_event(int dir_fd, struct perfpersist_info *ret)
{
	_cleanup_free_ char *info = NULL, *stat = NULL;
	int error;

	error = read_text(dir_fd, "info", &info);
	if (error < 0)
		return error;
	error = parse_info(info, ret);
	if (error < 0)
		return error;
	error = read_text(dir_fd, "stat", &stat);
	if (error < 0)
		return error;
	parse_stat(stat, ret);
	return 0;
}
