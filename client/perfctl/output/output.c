// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tables, JSON and text that is safe to show. Knows nothing of events. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/output/output.h"
#include "proto/printable.h"

/* Writes the plain characters at the beginning, which are most; returns how many. */
static size_t write_plain(FILE *f, const char *bytes, size_t n)
{
	size_t len = 0;

	while (len < n && bytes[len] >= ' ' && bytes[len] < 0x7f && bytes[len] != '"' &&
	       bytes[len] != '\\')
		len++;
	fwrite(bytes, 1, len, f); /* a failure shows in ferror(), at the end */
	return len;
}

void print_text(FILE *f, const char *bytes, size_t n)
{
	while (n) {
		size_t len = write_plain(f, bytes, n);

		bytes += len;
		n -= len;
		if (!n)
			break;
		len = printable_length(bytes, n);
		if (len) {
			fwrite(bytes, 1, len, f);
		} else {
			len = 1;
			fprintf(f, "\\x%02x", (unsigned char)*bytes);
		}
		bytes += len;
		n -= len;
	}
}

void print_hex(FILE *f, const void *bytes, size_t n)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < n; i++)
		fprintf(f, "%02x", b[i]);
}

struct winsize terminal(void)
{
	struct winsize w;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0)
		return (struct winsize){};
	return w;
}

/* ── Tables ── */

static void table_add(struct table *t, char *cell)
{
	if (t->n_cells == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		char **cells = reallocarray(t->cells, cap, sizeof(*cells));

		if (!cells) {
			free(cell);
			t->failed = true;
			return;
		}
		t->cells = cells;
		t->cap = cap;
	}
	t->cells[t->n_cells++] = cell;
}

/* The output of print_text() for s; or NULL. */
static char *to_text(const char *s)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	print_text(f, s, strlen(s));
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

void table_cell(struct table *t, const char *fmt, ...)
{
	_cleanup_free_ char *raw = NULL;
	char *cell;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&raw, fmt, ap);
	va_end(ap);
	if (n < 0)
		raw = NULL;
	cell = raw ? to_text(raw) : NULL;
	if (cell)
		table_add(t, cell);
	else
		t->failed = true;
}

/* Characters, not bytes. */
static size_t text_width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* Cuts text to that many characters and marks the cut with an ellipsis. */
static void cut_text(char *text, size_t width)
{
	char *c = text;

	if (text_width(text) <= width || width < 4)
		return;
	for (size_t n = 0; n < width - 3; n++)
		do
			c++;
		while ((*c & 0xc0) == 0x80);
	memcpy(c, "...", sizeof("..."));
}

/* If lines have a width, the last column shrinks. */
static void cut_last(struct table *t, const size_t *width)
{
	size_t used = 0;

	for (size_t i = 0; i + 1 < t->n_columns; i++)
		used += width[i] + 2;
	for (size_t i = t->n_columns - 1; i < t->n_cells; i += t->n_columns)
		cut_text(t->cells[i], t->width > used + 16 ? t->width - used : 16);
}

/* The last column is not padded, so that lines do not end in blanks. */
static void print_cell(FILE *f, const struct column *c, const char *text, size_t width, bool last)
{
	int pad = (int)(width - text_width(text));

	if (c->right)
		fprintf(f, "%*s", pad, "");
	fputs(text, f);
	if (!c->right && !last)
		fprintf(f, "%*s", pad, "");
	fputs(last ? "\n" : "  ", f);
}

int table_print(struct table *t, FILE *f)
{
	_cleanup_free_ size_t *width = calloc(t->n_columns, sizeof(*width));

	if (!width || t->failed)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_columns; i++)
		width[i] = text_width(t->columns[i].title);
	for (size_t i = 0; i < t->n_cells; i++) {
		size_t c = i % t->n_columns;

		width[c] = MAX(width[c], text_width(t->cells[i]));
	}
	if (t->width)
		cut_last(t, width);
	for (size_t i = 0; i < t->n_columns; i++)
		print_cell(f, &t->columns[i], t->columns[i].title, width[i], i + 1 == t->n_columns);
	for (size_t i = 0; i < t->n_cells; i++) {
		size_t c = i % t->n_columns;

		print_cell(f, &t->columns[c], t->cells[i], width[c], c + 1 == t->n_columns);
	}
	return 0;
}

void table_done(struct table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	t->cells = NULL;
	t->n_cells = t->cap = 0;
}

/* ── JSON ── */

static void json_quote(FILE *f, const char *bytes, size_t n)
{
	fputc('"', f);
	while (n) {
		size_t len = write_plain(f, bytes, n);
		unsigned char b;
		uint32_t c = 0;

		bytes += len;
		n -= len;
		if (!n)
			break;
		b = (unsigned char)*bytes;
		len = utf8_length(bytes, n, &c);
		if (b == '"' || b == '\\')
			fprintf(f, "\\%c", b);
		else if (printable_length(bytes, n))
			fwrite(bytes, 1, len, f);
		else
			fprintf(f, "\\u%04x", len ? c : b);
		len = len ?: 1;
		bytes += len;
		n -= len;
	}
	fputc('"', f);
}

static void json_key(struct json *j, const char *key)
{
	if (j->more[j->depth])
		fputc(',', j->f);
	j->more[j->depth] = true;
	if (key) {
		json_quote(j->f, key, strlen(key));
		fputc(':', j->f);
	}
}

void json_begin(struct json *j, const char *key, char bracket)
{
	json_key(j, key);
	fputc(bracket, j->f);
	if (j->depth + 1 < JSON_DEPTH_MAX)
		j->depth++;
	j->more[j->depth] = false;
}

void json_end(struct json *j, char bracket)
{
	fputc(bracket, j->f);
	if (j->depth)
		j->depth--;
}

void json_bytes(struct json *j, const char *key, const char *bytes, size_t n)
{
	json_key(j, key);
	json_quote(j->f, bytes, n);
}

void json_string(struct json *j, const char *key, const char *s)
{
	json_bytes(j, key, s, strlen(s));
}

void json_unsigned(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	fprintf(j->f, "%" PRIu64, v);
}

void json_signed(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	fprintf(j->f, "%" PRId64, v);
}

void json_double(struct json *j, const char *key, double v)
{
	json_key(j, key);
	if (isfinite(v))
		fprintf(j->f, "%.3f", v);
	else
		fputs("null", j->f);
}

void json_bool(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	fputs(v ? "true" : "false", j->f);
}

void json_null(struct json *j, const char *key)
{
	json_key(j, key);
	fputs("null", j->f);
}

void json_address(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	fprintf(j->f, "\"0x%" PRIx64 "\"", v);
}

void json_hex(struct json *j, const char *key, const void *bytes, size_t n)
{
	json_key(j, key);
	fputc('"', j->f);
	print_hex(j->f, bytes, n);
	fputc('"', j->f);
}
