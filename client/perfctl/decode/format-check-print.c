// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The grammar that a print fmt must follow: a string, and C expressions of numbers, fields, casts,
 * operators and the few functions that printfmt.c allows. libtraceevent could not print the
 * kernel's other constructs (GCC's statements in parentheses, the kernel's own functions).
 */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "client/perfctl/decode/format-check.h"
#include "proto/macro.h"

#define NESTING_MAX 48 /* libtraceevent's recursion reaches this depth and more */
#define PRINT_MAX 65536

struct text {
	const char *p, *end;
	const struct format_fields *fields;
	unsigned nesting;
};

static bool expression(struct text *t);

static void skip_space(struct text *t)
{
	while (t->p < t->end && (*t->p == ' ' || *t->p == '\n' || *t->p == '\t'))
		t->p++;
}

static bool take(struct text *t, const char *expected)
{
	size_t n = strlen(expected);

	skip_space(t);
	if ((size_t)(t->end - t->p) < n || memcmp(t->p, expected, n))
		return false;
	t->p += n;
	return true;
}

static bool at(const struct text *t, int (*is)(int))
{
	return t->p < t->end && is((unsigned char)*t->p);
}

static int is_word(int c)
{
	return isalnum(c) || c == '_';
}

/* Takes an identifier and returns its length; 0: there is none. */
static size_t take_word(struct text *t)
{
	const char *first;

	skip_space(t);
	first = t->p;
	if (at(t, isdigit))
		return 0;
	while (at(t, is_word))
		t->p++;
	return (size_t)(t->p - first);
}

/* Takes a field's name. libtraceevent looks it up without checking that it exists. */
static bool take_field(struct text *t, bool dynamic)
{
	size_t n = take_word(t);

	for (size_t i = 0; i < t->fields->n; i++) {
		const struct format_field *f = &t->fields->all[i];

		if (f->length == n && !memcmp(f->name, t->p - n, n))
			return f->dynamic || !dynamic;
	}
	return false;
}

static bool take_number(struct text *t)
{
	const char *first = t->p;
	bool hex = t->end - t->p > 2 && t->p[0] == '0' && (t->p[1] == 'x' || t->p[1] == 'X');

	if (hex)
		t->p += 2;
	while (at(t, hex ? isxdigit : isdigit))
		t->p++;
	while (t->p < t->end && strchr("uUlL", *t->p))
		t->p++;
	return t->p > first + (hex ? 2 : 0) && !at(t, is_word);
}

static bool one_string(struct text *t)
{
	if (!take(t, "\""))
		return false;
	while (t->p < t->end && *t->p != '"') {
		if (iscntrl((unsigned char)*t->p) && *t->p != '\n' && *t->p != '\t')
			return false;
		t->p += *t->p == '\\' ? 2 : 1; /* and any escaped character */
	}
	return t->p < t->end && *t->p++ == '"';
}

/* Adjacent strings form one. */
static bool string(struct text *t)
{
	if (!one_string(t))
		return false;
	for (skip_space(t); t->p < t->end && *t->p == '"'; skip_space(t))
		if (!one_string(t))
			return false;
	return true;
}

/* 'x' */
static bool character(struct text *t)
{
	if (t->end - t->p < 3 || t->p[0] != '\'' || t->p[2] != '\'' ||
	    !isprint((unsigned char)t->p[1]) || strchr("'\\", t->p[1]))
		return false;
	t->p += 3;
	return true;
}

/* ── Functions ──────────────────────────────────────────────────────────────────────────── */

/* ", { VALUE, STRING }" any number of times; the last one is followed by "((void *)0)". */
static bool pairs(struct text *t)
{
	while (take(t, ",")) {
		if (!take(t, "{") || !expression(t) || !take(t, ","))
			return false;
		skip_space(t);
		if (!(t->p < t->end && *t->p == '"' ? string(t) : expression(t)))
			return false;
		if (!take(t, "}"))
			return false;
	}
	return true;
}

static bool symbolic(struct text *t)
{
	return expression(t) && pairs(t);
}

static bool flags(struct text *t)
{
	return expression(t) && take(t, ",") && string(t) && pairs(t);
}

static bool dynamic_field(struct text *t)
{
	return take_field(t, true);
}

/* The elements' size is a number, or sizeof a type. */
static bool dynamic_array(struct text *t)
{
	if (!take_field(t, true) || !take(t, ","))
		return false;
	if (take(t, "sizeof("))
		return take_word(t) > 0 && take(t, ")");
	skip_space(t);
	return take_number(t);
}

static bool expected(struct text *t)
{
	return expression(t) && take(t, ",") && expression(t);
}

static const struct {
	const char *name;
	bool (*arguments)(struct text *t);
} functions[] = {
	{ "__print_symbolic", symbolic },
	{ "__print_flags", flags },
	{ "__print_dynamic_array", dynamic_array }, /* dynamic-array.c */
	{ "__get_str", dynamic_field },
	{ "__get_dynamic_array", dynamic_field },
	{ "__get_dynamic_array_len", dynamic_field },
	{ "__builtin_expect", expected },
};

/* A function call, behind its name. */
static bool function(struct text *t, const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (strlen(functions[i].name) == n && !memcmp(functions[i].name, name, n))
			return take(t, "(") && functions[i].arguments(t) && take(t, ")");
	return false;
}

/* ── Expressions ────────────────────────────────────────────────────────────────────────── */

/* A cast: only words and stars, in parentheses. Otherwise takes nothing. */
static bool cast(struct text *t)
{
	struct text try = *t;
	bool any = false;

	if (!take(&try, "("))
		return false;
	while (take_word(&try) > 0)
		any = true;
	while (take(&try, "*"))
		;
	if (!any || !take(&try, ")"))
		return false;
	*t = try;
	return true;
}

static bool in_parentheses(struct text *t)
{
	return take(t, "(") && expression(t) && take(t, ")");
}

/* REC->field, a function call, or a kernel constant, which counts as 0. */
static bool named(struct text *t)
{
	const char *name = t->p;
	size_t n = take_word(t);

	if (n == 3 && !memcmp(name, "REC", 3))
		return take(t, "->") && take_field(t, false);
	skip_space(t);
	if (t->p == t->end || *t->p != '(')
		return n > 0;
	return function(t, name, n);
}

static bool primary(struct text *t)
{
	skip_space(t);
	if (t->p == t->end)
		return false;
	if (isdigit((unsigned char)*t->p))
		return take_number(t);
	switch (*t->p) {
	case '"':
		return string(t);
	case '\'':
		return character(t);
	case '(':
		return in_parentheses(t);
	default:
		return named(t);
	}
}

/* A value with its prefix operators and indices. */
static bool value(struct text *t)
{
	bool good;

	if (t->nesting == NESTING_MAX)
		return false;
	t->nesting++;
	if (cast(t) || take(t, "-") || take(t, "~") || take(t, "!"))
		good = value(t);
	else
		good = primary(t);
	while (good && take(t, "["))
		good = expression(t) && take(t, "]");
	t->nesting--;
	return good;
}

/* Longer operators come before their prefixes. No division: libtraceevent evaluates constants while
 * it parses, and divides by 0. */
static bool operator(struct text *t)
{
	static const char *const operators[] = { "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
						 "<",  ">",  "+",  "-",	 "*",  "&",  "|",  "^" };

	for (size_t i = 0; i < ARRAY_SIZE(operators); i++)
		if (take(t, operators[i]))
			return true;
	return false;
}

static bool expression(struct text *t)
{
	bool good;

	if (t->nesting == NESTING_MAX)
		return false;
	t->nesting++;
	good = value(t);
	while (good && operator(t))
		good = value(t);
	if (good && take(t, "?"))
		good = expression(t) && take(t, ":") && expression(t);
	t->nesting--;
	return good;
}

bool format_check_print(const char *text, size_t size, const struct format_fields *fields)
{
	struct text t = { .p = text, .end = text + size, .fields = fields };

	if (size > PRINT_MAX || !string(&t))
		return false;
	while (take(&t, ","))
		if (!expression(&t))
			return false;
	skip_space(&t);
	return t.p == t.end;
}
