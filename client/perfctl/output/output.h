/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The two forms of output: tables and text for people, JSON for programs. Neither trusts its input:
 * text cannot control a terminal, JSON is always valid UTF-8. */
#pragma once

#include <sys/ioctl.h>

#include "proto/macro.h"

/* Writes bytes to a terminal: printable UTF-8 and backslashes as they are, all else as \xNN. */
void print_text(FILE *f, const char *bytes, size_t n);
void print_hex(FILE *f, const void *bytes, size_t n);

/* The size of the terminal that stdout is; zeros: it is none. */
struct winsize terminal(void);

/* ── Tables ── */

struct column {
	const char *title;
	bool right; /* right-aligned, for numbers */
};

/* Columns are as wide as their contents; cells are added row by row. */
struct table {
	const struct column *columns;
	size_t n_columns;
	char **cells;
	size_t n_cells, cap;
	size_t width; /* of a line, which is cut at its end; 0: unlimited */
	bool failed;  /* out of memory */
};

void table_cell(struct table *t, const char *fmt, ...) _printf_(2, 3);
int table_print(struct table *t, FILE *f); /* 0 or -ENOMEM */
void table_done(struct table *t);

/* ── JSON ── */

#define JSON_DEPTH_MAX 8

/* Compact, on one line. key is NULL inside an array and at the top. */
struct json {
	FILE *f;
	unsigned depth;
	bool more[JSON_DEPTH_MAX]; /* an element precedes, on this level */
};

void json_begin(struct json *j, const char *key, char bracket); /* '{' or '[' */
void json_end(struct json *j, char bracket);			/* '}' or ']' */
void json_bytes(struct json *j, const char *key, const char *bytes, size_t n);
void json_string(struct json *j, const char *key, const char *s);
void json_unsigned(struct json *j, const char *key, uint64_t v);
void json_signed(struct json *j, const char *key, int64_t v);
/* With three decimals; null if it is no finite number. */
void json_double(struct json *j, const char *key, double v);
void json_bool(struct json *j, const char *key, bool v);
void json_null(struct json *j, const char *key);
/* Addresses are strings, "0x…": most readers lose the low bits of such a JSON number. */
void json_address(struct json *j, const char *key, uint64_t v);
void json_hex(struct json *j, const char *key, const void *bytes, size_t n);
