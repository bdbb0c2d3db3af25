// SPDX-License-Identifier: LGPL-2.1-or-later
/* Parses settings files with inih. */
#include "daemon/broker/config/settings.h"

#include <ini.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/io.h"
#include "proto/macro.h"
#include "proto/printable.h"

void settings_complain(struct settings *s, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	s->faults++;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		text = NULL;
	/* The message quotes the file, which the reader may not be allowed to see. */
	if (text)
		make_printable(text, '?');
	fprintf(s->complaints, "%s:%u: %s\n", s->path, s->line, text ?: "out of memory");
}

/* ── with inih ──────────────────────────────────────────────────────────────────────────── */

/* The characters that inih treats as blanks within a line. */
#define BLANKS " \t\r\v\f"

/* inih's position in the text. */
struct lines {
	struct settings *settings;
	const char *at, *end;
};

/*
 * inih cuts section names at 49 bytes and does not report sections without settings, so section
 * lines are read here. False: this is no section line.
 */
static bool take_section(struct settings *s, const char *line)
{
	const char *name = line + 1 + strspn(line + 1, BLANKS), *end = strchr(name, ']');
	const char *rest = end ? end + 1 + strspn(end + 1, BLANKS) : NULL;

	if (!end || (*rest && *rest != ';' && *rest != '#')) {
		s->section(s, NULL);
		settings_complain(s, "This section's name has no end, or something behind it, and "
				     "what follows is left out; write the name in [brackets].");
		return false;
	}
	while (end > name && strchr(BLANKS, end[-1]))
		end--;
	snprintf(s->in, sizeof(s->in), "%.*s", (int)(end - name), name);
	s->section(s, s->in);
	return true;
}

/* As fgets(3): the next line, unchanged. Lines that cannot be read are skipped. */
static char *next_line(char *buf, int size, void *userdata)
{
	struct lines *l = userdata;
	struct settings *s = l->settings;

	while (l->at < l->end) {
		const char *text = l->at, *newline = memchr(text, '\n', l->end - text), *start;
		size_t n = (newline ? newline : l->end) - text;

		l->at = newline ? newline + 1 : l->end;
		s->line++;
		if (n >= (size_t)size) {
			settings_complain(s, "This line is too long; %d characters are the most.",
					  size - 1);
			continue;
		}
		if (memchr(text, '\0', n)) {
			settings_complain(s, "This line has a NUL byte in it; remove it.");
			continue;
		}
		memcpy(buf, text, n);
		buf[n] = '\0';
		start = buf + strspn(buf, BLANKS);
		if (*start != '[' || take_section(s, start))
			return buf;
	}
	return NULL;
}

/* The length of a value before a comment: a ; behind a blank. Filters may have these in quotes. */
static size_t without_comment(const char *value)
{
	size_t n = 0;
	char quote = '\0';

	for (; value[n]; n++) {
		if (quote)
			quote = value[n] == quote ? '\0' : quote;
		else if (value[n] == '"' || value[n] == '\'')
			quote = value[n];
		else if (value[n] == ';' && (n == 0 || strchr(BLANKS, value[n - 1])))
			break;
	}
	while (n > 0 && strchr(BLANKS, value[n - 1]))
		n--;
	return n;
}

static int take_setting(void *userdata, const char *section _unused_, const char *key,
			const char *value)
{
	const struct lines *l = userdata;
	char copy[SETTINGS_LINE_MAX + 1];

	if (!*key)
		return 0;
	snprintf(copy, sizeof(copy), "%.*s", (int)without_comment(value), value);
	l->settings->key(l->settings, key, copy);
	return 1;
}

/*
 * In Debian's build, inih's options are variables. inih must accept lines as long as ours. It must
 * leave comments behind values to us, since it knows no quotes. It must stop at each line that it
 * cannot read, since otherwise it only reports the first one. An indented line is a setting of its
 * own.
 */
void settings_parse(struct settings *s, const char *text, size_t size)
{
	struct lines l = { .settings = s, .at = text, .end = text + size };

	ini_max_line = SETTINGS_LINE_MAX + 1;
	ini_allow_multiline = ini_allow_inline_comments = ini_allow_bom = false;
	ini_stop_on_first_error = true;
	s->line = 0;
	while (ini_parse_stream(next_line, &l, take_setting, &l) > 0)
		settings_complain(s, "This is no setting; write KEY=VALUE.");
}

/* ── a file ─────────────────────────────────────────────────────────────────────────────── */

int settings_read(int fd, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > (off_t)SETTINGS_FILE_MAX)
		return -EFBIG;
	/* One byte more: the file may have grown. */
	text = malloc(SETTINGS_FILE_MAX + 1);
	if (!text)
		return -ENOMEM;
	n = pp_read_all(fd, text, SETTINGS_FILE_MAX + 1);
	if (n < 0)
		return (int)n;
	if ((size_t)n > SETTINGS_FILE_MAX)
		return -EFBIG;
	*ret = TAKE_PTR(text);
	*ret_size = (size_t)n;
	return 0;
}
