// SPDX-License-Identifier: LGPL-2.1-or-later
/* Takes files of settings apart, line by line. */
#include "daemon/broker/config/settings.h"

#include <ini.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/io.h"
#include "proto/macro.h"
#include "proto/printable.h"

#define BLANKS " \t\r"

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
	/* It quotes the file, which need not be the reader's. */
	if (text)
		make_printable(text, '?');
	fprintf(s->complaints, "%s:%u: %s\n", s->path, s->line, text ?: "out of memory");
}

/* ── a setting, with inih ───────────────────────────────────────────────────────────────── */

/*
 * inih takes lines of less than INI_MAX_LINE bytes, and goes on with a setting in further lines
 * that begin with a blank; so a longer line is given to it in such pieces. It knows no quotes: what
 * would begin a comment within them is hidden from it meanwhile.
 */
#define PIECE (INI_MAX_LINE - 4) /* with a blank, a newline and a NUL around it */
#define HIDDEN_SEMICOLON '\001'
#define HIDDEN_HASH '\002'

struct setting {
	char *rest; /* of the line, for the reader */
	bool begun;
	char key[64];
	char value[SETTINGS_LINE_MAX + 1];
};

static void replace(char *text, char from, char to)
{
	for (; (text = strchr(text, from)); text++)
		*text = to;
}

/* Where to cut a line that is too long: between two letters, since blanks at an end get lost. */
static size_t piece_size(const char *text)
{
	size_t n = strlen(text);

	if (n <= PIECE)
		return n;
	for (n = PIECE; n > 1; n--)
		if (!strchr(BLANKS, text[n - 1]) && !strchr(BLANKS, text[n]))
			return n;
	return PIECE;
}

/* Hands out the next piece: as fgets(3). */
static char *read_piece(char *buf, int size, void *stream)
{
	struct setting *s = stream;
	size_t n = piece_size(s->rest);

	if (n == 0)
		return NULL;
	snprintf(buf, size, "%s%.*s\n", s->begun ? " " : "", (int)n, s->rest);
	s->begun = true;
	s->rest += n;
	return buf;
}

static int take_piece(void *userdata, const char *section _unused_, const char *key,
		      const char *value)
{
	struct setting *s = userdata;
	size_t n = strlen(s->value);

	if (!s->key[0])
		snprintf(s->key, sizeof(s->key), "%s", key);
	snprintf(s->value + n, sizeof(s->value) - n, "%s", value);
	return 1;
}

static void take_setting(struct settings *s, char *line)
{
	struct setting setting = { .rest = line };

	if (strpbrk(line, "\001\002") || !strchr(line, '=')) {
		settings_complain(s, "This is no setting; write KEY=VALUE.");
		return;
	}
	replace(line, ';', HIDDEN_SEMICOLON);
	replace(line, '#', HIDDEN_HASH);
	if (ini_parse_stream(read_piece, &setting, take_piece, &setting) != 0 || !setting.key[0]) {
		settings_complain(s, "This is no setting; write KEY=VALUE.");
		return;
	}
	replace(setting.value, HIDDEN_SEMICOLON, ';');
	replace(setting.value, HIDDEN_HASH, '#');
	s->key(s, setting.key, setting.value);
}

/* ── a line ─────────────────────────────────────────────────────────────────────────────── */

/* Without the blanks at both ends. */
static char *trim(char *text)
{
	size_t n;

	text += strspn(text, BLANKS);
	n = strlen(text);
	while (n > 0 && strchr(BLANKS, text[n - 1]))
		n--;
	text[n] = '\0';
	return text;
}

/* Cuts off what stands behind a blank and a semicolon; a filter may have these within quotes. */
static void cut_comment(char *line)
{
	char quote = '\0';

	for (char *p = strchr(line, '='); p && *p; p++) {
		if (quote) {
			quote = *p == quote ? '\0' : quote;
		} else if (*p == '"' || *p == '\'') {
			quote = *p;
		} else if (*p == ';' && strchr(BLANKS "=", p[-1])) {
			*p = '\0';
			return;
		}
	}
}

/* inih cuts names of sections at 49 bytes, and says nothing of one that has no settings. */
static void take_section(struct settings *s, char *line)
{
	char *end = strchr(line, ']'), *rest = end ? end + 1 + strspn(end + 1, BLANKS) : NULL;

	if (!end || (*rest && *rest != ';' && *rest != '#')) {
		s->section(s, NULL);
		settings_complain(s, "This section's name has no end, or something behind it, and "
				     "what follows is left out; write the name in [brackets].");
		return;
	}
	*end = '\0';
	s->section(s, trim(line + 1));
}

static void take_line(struct settings *s, char *line)
{
	line = trim(line);
	if (*line == '\0' || *line == ';' || *line == '#')
		return;
	if (*line == '[') {
		take_section(s, line);
		return;
	}
	cut_comment(line);
	take_setting(s, trim(line));
}

/* ── a file ─────────────────────────────────────────────────────────────────────────────── */

void settings_parse(struct settings *s, const char *text, size_t size)
{
	const char *end = text + size;
	char line[SETTINGS_LINE_MAX + 1];

	for (s->line = 1; text < end; s->line++) {
		const char *newline = memchr(text, '\n', end - text);
		size_t n = (newline ? newline : end) - text;

		if (n > SETTINGS_LINE_MAX) {
			settings_complain(s, "This line is too long; %d characters are the most.",
					  SETTINGS_LINE_MAX);
		} else if (memchr(text, '\0', n)) {
			settings_complain(s, "This line has a NUL byte in it; remove it.");
		} else {
			memcpy(line, text, n);
			line[n] = '\0';
			take_line(s, line);
		}
		text = newline ? newline + 1 : end;
	}
}

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
	/* With room for one more: it may have grown. */
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
