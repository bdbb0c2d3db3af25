// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The lines of a format:
 *
 *     name: NAME
 *     ID: NUMBER
 *     format:
 *     <tab>field:TYPE NAME[LENGTH];<tab>offset:N;<tab>size:N;<tab>signed:N;
 *     (an empty line behind the common fields, and behind all)
 *     print fmt: …
 */
#include "client/perfctl/decode/format-check.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "proto/macro.h"

#define FORMAT_MAX (1U << 20)
#define NAME_MAX_CHARS 128
#define WORDS_MAX 32  /* in a field's type */
#define NESTING_MAX 4 /* parentheses in an array's length */
#define PLACE_MAX UINT16_MAX

struct text {
	const char *p, *end;
};

static bool take(struct text *t, const char *expected)
{
	size_t n = strlen(expected);

	if ((size_t)(t->end - t->p) < n || memcmp(t->p, expected, n))
		return false;
	t->p += n;
	return true;
}

static bool take_number(struct text *t, uint64_t max)
{
	const char *first = t->p;
	uint64_t v = 0;

	while (t->p < t->end && isdigit((unsigned char)*t->p)) {
		v = v * 10 + (uint64_t)(*t->p++ - '0');
		if (v > max)
			return false;
	}
	return t->p > first;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool take_word(struct text *t)
{
	const char *first = t->p;

	while (t->p < t->end && is_word(*t->p) && t->p - first < NAME_MAX_CHARS)
		t->p++;
	return t->p > first && !isdigit((unsigned char)*first);
}

/* Probes' names may have other characters as well. */
static bool take_name(struct text *t)
{
	const char *first = t->p;

	while (t->p < t->end && (is_word(*t->p) || (t->p > first && strchr("-.:@/+", *t->p))) &&
	       *t->p && t->p - first < NAME_MAX_CHARS)
		t->p++;
	return t->p > first;
}

/* Takes a length behind its bracket: "16]", "TASK_COMM_LEN]", "(6)]", "sizeof(struct
 * sockaddr_in6)]". */
static bool take_length(struct text *t)
{
	unsigned nesting = 0;
	bool any = false;

	for (; t->p < t->end && *t->p != ']'; t->p++) {
		if (*t->p == '(' && nesting < NESTING_MAX)
			nesting++;
		else if (*t->p == ')' && nesting > 0 && t->p[-1] != '(')
			nesting--;
		else if (is_word(*t->p))
			any = true;
		else if (!strchr(" *+", *t->p))
			return false;
	}
	return any && nesting == 0 && take(t, "]");
}

/* Takes the name's "[…]", if any; ftrace's own events have "[]" for data behind all fields. */
static bool take_array(struct text *t)
{
	return !take(t, "[") || take(t, "]") || take_length(t);
}

/* Takes TYPE NAME, then a length: words, stars and (for dynamic arrays) "[]"; the last word is the
 * name. *ret says where the name is. */
static bool take_declaration(struct text *t, struct format_field *ret)
{
	static const char *const dynamic[] = { "__data_loc ", "__rel_loc " };
	unsigned words = 0;
	bool named = false; /* the last token may be the name */

	*ret = (struct format_field){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(dynamic); i++)
		if ((size_t)(t->end - t->p) > strlen(dynamic[i]) &&
		    !memcmp(t->p, dynamic[i], strlen(dynamic[i])))
			ret->dynamic = true;
	for (unsigned things = 0; things < WORDS_MAX; things++) {
		if (take(t, " "))
			continue;
		if (take(t, "*")) {
			if (words == 0)
				return false;
			named = false;
		} else if (t->end - t->p > 2 && !memcmp(t->p, "[] ", 3)) {
			if (words == 0)
				return false;
			t->p += 2;
			named = false;
		} else if (t->p < t->end && is_word(*t->p)) {
			ret->name = t->p;
			if (!take_word(t))
				return false;
			ret->length = (size_t)(t->p - ret->name);
			named = ++words > 1;
		} else {
			break;
		}
	}
	return named && take_array(t);
}

static bool take_field(struct text *t, struct format_field *ret)
{
	return take(t, "\tfield:") && take_declaration(t, ret) && take(t, ";\toffset:") &&
	       take_number(t, PLACE_MAX) && take(t, ";\tsize:") && take_number(t, PLACE_MAX) &&
	       take(t, ";\tsigned:") && take_number(t, 1) && take(t, ";\n");
}

/* Takes one or more fields, and an empty line. */
static bool take_fields(struct text *t, struct format_fields *f)
{
	size_t before = f->n;

	for (; t->p < t->end && *t->p == '\t'; f->n++)
		if (f->n == FORMAT_FIELDS_MAX || !take_field(t, &f->all[f->n]))
			return false;
	return f->n > before && take(t, "\n");
}

int format_check(const char *format, size_t size, size_t *ret_fields)
{
	struct text t = { .p = format, .end = format + size };
	struct format_fields fields;

	fields.n = 0;
	if (size > FORMAT_MAX || memchr(format, 0, size) || !take(&t, "name: ") || !take_name(&t) ||
	    !take(&t, "\nID: ") || !take_number(&t, INT32_MAX) || !take(&t, "\nformat:\n") ||
	    !take_fields(&t, &fields))
		return -EBADMSG;
	/* An event without fields of its own has one more empty line. */
	if (t.p < t.end && *t.p == '\t' ? !take_fields(&t, &fields) : !take(&t, "\n"))
		return -EBADMSG;
	*ret_fields = (size_t)(t.p - format);
	if (!take(&t, "print fmt: "))
		return 1;
	return format_check_print(t.p, (size_t)(t.end - t.p), &fields) ? 0 : 1;
}
