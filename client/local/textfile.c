// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads `info` (key=value lines) and `stat` (a line per CPU, and a total). */
#include "client/local/textfile.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "client/info.h"
#include "client/local/saved-file.h"
#include "client/public.h"
#include "proto/event-text.h"
#include "proto/io.h"

#define TEXTFILE_MAX (1U << 20) /* `stat` has a line per CPU */

/* Reads the whole file as a string; such files do not report their size. Takes fd over. */
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

int textfile_parse_info(char *text, struct perfpersist_info *ret)
{
	struct pp_event_text t = { .event = { .sources = 1, .set = 1 } };
	const struct pp_msg_event *e = &t.event;

	pp_event_text_parse(text, &t);
	if (e->id == 0 || !client_name_is_valid(e->ns) || !client_name_is_valid(e->name))
		return -EBADMSG;
	client_info_from_message(e, ret);
	ret->saved = t.saved;
	ret->saved_mono = t.saved_mono;
	ret->skipped = t.skipped;
	return 0;
}

/* The number behind " KEY=" in a line: 1; 0: unknown or missing. */
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
		*ret = strtoull(at + n + 1, NULL, 10);
		return 1;
	}
	return 0;
}

/* "KEY=N+": at least N. Call it only if find_number() has found KEY. */
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

/* Parses the `total` line of `stat`; without one the numbers stay 0, missed unknown. */
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

/* Files on a disk may be truncated; both end with a line that is always there. */
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
		r = textfile_parse_info(info, ret);
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
