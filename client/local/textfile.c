// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the reading of `info` (key=value lines) and `stat` (a line per CPU, and a total). */
#include "client/local/textfile.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "client/info.h"
#include "client/local/saved-file.h"
#include "client/public.h"
#include "proto/io.h"

#define TEXTFILE_MAX (1U << 20) /* `stat` has a line per CPU */

/* The whole file as a string; such files have no size to be told before. Takes fd over. */
static int read_text(int opened, char **ret)
{
	_cleanup_close_ int fd = opened;
	_cleanup_free_ char *text = NULL;
	size_t used = 0, size = 4096;
	ssize_t n;

	if (fd < 0)
		return fd;
	do {
		char *more = size < TEXTFILE_MAX ? realloc(text, 2 * size) : NULL;

		if (!more)
			return size < TEXTFILE_MAX ? -ENOMEM : -EFBIG;
		text = more;
		size *= 2;
		n = pp_read_all(fd, text + used, size - used - 1);
		if (n < 0)
			return (int)n;
		used += (size_t)n;
	} while (used + 1 == size);
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
		{ "freq", PERFPERSIST_FREQ },	      { "callchain", PERFPERSIST_CALLCHAIN },
		{ "all-cpus", PERFPERSIST_ALL_CPUS }, { "generic", PERFPERSIST_GENERIC },
		{ "wakeup", PERFPERSIST_WAKEUP },     { "configured", PERFPERSIST_CONFIGURED },
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

/* The keys whose values are a word or a text. False: none of them. */
static bool take_text_key(struct perfpersist_info *i, const char *key, char *value)
{
	static const char *const recorders[] = {
		[PERFPERSIST_RECORDER_GENERIC] = "generic",
		[PERFPERSIST_RECORDER_TP_BTF] = "tp_btf",
		[PERFPERSIST_RECORDER_OVERFLOW] = "overflow",
		[PERFPERSIST_RECORDER_PROBE] = "probe",
	};
	static const char *const states[] = {
		[PERFPERSIST_CREATING] = "creating",
		[PERFPERSIST_RUNNING] = "running",
		[PERFPERSIST_DELETING] = "deleting",
		[PERFPERSIST_PAUSED] = "paused",
	};

	if (!strcmp(key, "namespace"))
		TAKE_TEXT(i->ns, value);
	else if (!strcmp(key, "name"))
		TAKE_TEXT(i->name, value);
	else if (!strcmp(key, "event"))
		TAKE_TEXT(i->event, value);
	else if (!strcmp(key, "filter"))
		TAKE_TEXT(i->filter, value);
	else if (!strcmp(key, "cpus"))
		TAKE_TEXT(i->cpus, value);
	else if (!strcmp(key, "recorder"))
		i->recorder = find(recorders, ARRAY_SIZE(recorders), value);
	else if (!strcmp(key, "state"))
		i->state = find(states, ARRAY_SIZE(states), value);
	else if (!strcmp(key, "flags"))
		i->flags = parse_flags(value);
	else
		return false;
	return true;
}

static void take_number_key(struct perfpersist_info *i, const char *key, const char *value)
{
	static const struct {
		const char *name;
		size_t member, size;
		int base;
	} keys[] = {
#define KEY(name, member, base) \
	{ name, offsetof(struct perfpersist_info, member), sizeof(i->member), base }
		KEY("id", id, 10),
		KEY("shares", shares, 10),
		KEY("sources", sources, 10),
		KEY("set", set, 10),
		KEY("buffer", buffer, 10),
		KEY("memory", memory, 10),
		KEY("sample_type", sample_type, 0),
		KEY("period", period, 10),
		KEY("max_rate", max_rate, 10),
		KEY("owner", owner, 10),
		KEY("group", group, 10),
		KEY("mode", mode, 8),
		KEY("creator", creator, 10),
		KEY("created", created, 10),
		KEY("saved", saved, 10),
		KEY("saved_mono", saved_mono, 10),
#undef KEY
	};

	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		uint64_t v;
		uint32_t v32;

		if (strcmp(key, keys[k].name) != 0)
			continue;
		v = number(value, keys[k].base);
		v32 = (uint32_t)v;
		memcpy((char *)i + keys[k].member, keys[k].size == sizeof(v) ? (void *)&v : &v32,
		       keys[k].size);
	}
}

/* Takes in the text of `info`; unknown keys are left for later versions. 0 or -EBADMSG. */
static int parse_info(char *text, struct perfpersist_info *ret)
{
	struct perfpersist_info info = { .sz = sizeof(info), .sources = 1, .set = 1 };

	for (char *save, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *value = strchr(line, '=');

		if (!value)
			continue;
		*value++ = 0;
		if (!take_text_key(&info, line, value))
			take_number_key(&info, line, value);
	}
	if (info.id == 0 || !client_name_is_valid(info.ns) || !client_name_is_valid(info.name))
		return -EBADMSG;
	*ret = info;
	return 0;
}

/* The number behind " KEY=" in a line: 1; 0: it is unknown, or not there. */
static int find_number(const char *line, const char *key, uint64_t *ret)
{
	size_t line_size = strcspn(line, "\n"), n = strlen(key);
	const char *at = line;

	while ((at = strchr(at, ' ')) && (size_t)(at - line) < line_size) {
		at++;
		if (strncmp(at, key, n) != 0 || at[n] != '=')
			continue;
		if (at[n + 1] < '0' || at[n + 1] > '9')
			return 0;
		*ret = number(at + n + 1, 10);
		return 1;
	}
	return 0;
}

/* "KEY=N+": at least so many. Only where find_number() has found it. */
static bool has_more(const char *line, const char *key)
{
	char name[32];
	const char *at;

	snprintf(name, sizeof(name), " %s=", key);
	at = strstr(line, name) + strlen(name);
	return at[strspn(at, "0123456789")] == '+';
}

static const char *find_total(const char *stat)
{
	const char *line = strstr(stat, "\ntotal ");

	return !strncmp(stat, "total ", 6) ? stat : line ? line + 1 : NULL;
}

/* Takes in the `total` line of `stat`; without one the numbers stay 0, missed unknown. */
static void parse_stat(const char *text, struct perfpersist_info *ret)
{
	const char *total = find_total(text);

	ret->missed_unknown = true;
	if (!total)
		return;
	find_number(total, "records", &ret->records);
	find_number(total, "bytes", &ret->bytes);
	find_number(total, "limited", &ret->limited);
	ret->missed_unknown = !find_number(total, "missed", &ret->missed);
	ret->missed_at_least = !ret->missed_unknown && has_more(total, "missed");
}

/* Files on a disk may be cut off; both of them end with a line that is always there. */
static bool is_whole(const char *info, const char *stat)
{
	size_t n = strlen(info), m = strlen(stat);

	return n && info[n - 1] == '\n' && m && stat[m - 1] == '\n' && find_total(stat);
}

static int read_both(int info_fd, int stat_fd, bool is_saved, struct perfpersist_info *ret)
{
	_cleanup_free_ char *info = NULL, *stat = NULL;
	int r = read_text(info_fd, &info), stat_error = read_text(stat_fd, &stat);

	if (r >= 0)
		r = stat_error;
	if (r >= 0 && is_saved && !is_whole(info, stat))
		r = -EBADMSG;
	if (r >= 0)
		r = parse_info(info, ret);
	if (r >= 0)
		parse_stat(stat, ret);
	return r;
}

static int open_file(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int textfile_read_event(int dir_fd, struct perfpersist_info *ret)
{
	return read_both(open_file(dir_fd, "info"), open_file(dir_fd, "stat"), false, ret);
}

int textfile_read_saved(int dir_fd, struct perfpersist_info *ret)
{
	struct perfpersist_info info;
	int r;

	r = read_both(saved_file_open(dir_fd, "info"), saved_file_open(dir_fd, "stat"), true,
		      &info);
	if (r < 0)
		return r;
	if (info.saved == 0 || info.cpus[strspn(info.cpus, "0123456789,-")])
		return -EBADMSG;
	*ret = info;
	return 0;
}
