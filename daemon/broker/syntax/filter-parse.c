// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The parser of filters: owns their syntax and its error messages. Must not know the fields of an
 * event. The terms of a chain (a && b && c) become a balanced tree, so that long chains are not
 * deep; their order stays.
 */
#include "daemon/filter.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/text.h"
#include "proto/macro.h"

#define NEAR_MAX 20 /* bytes of the text that an error message repeats */

struct parser {
	const char *text, *at;
	struct pp_filter_node *nodes;
	size_t n, cap;
	unsigned depth; /* of brackets and ! around this term */
	char *sentence;
	size_t size;
};

static int parse_filter(struct parser *p);
static int parse_term(struct parser *p);

/* ── What is wrong, and where ───────────────────────────────────────────────────────────── */

static _printf_(4, 5) int refuse(struct parser *p, int error, const char *at, const char *fmt, ...)
{
	int near = 0, n;
	va_list ap;

	while (near < NEAR_MAX && at[near] >= 0x20 && at[near] < 0x7f)
		near++;
	if (!*at)
		n = snprintf(p->sentence, p->size,
			     "the filter, at its end (byte %zu): ", (size_t)(at - p->text) + 1);
	else
		n = snprintf(p->sentence, p->size,
			     "the filter, at byte %zu ('%.*s'): ", (size_t)(at - p->text) + 1, near,
			     at);
	va_start(ap, fmt);
	if (n >= 0 && (size_t)n < p->size)
		vsnprintf(p->sentence + n, p->size - n, fmt, ap);
	va_end(ap);
	return error;
}

/* ── Words ──────────────────────────────────────────────────────────────────────────────── */

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static void skip_space(struct parser *p)
{
	while (is_space(*p->at))
		p->at++;
}

static bool take(struct parser *p, const char *token)
{
	size_t n = strlen(token);

	if (strncmp(p->at, token, n))
		return false;
	p->at += n;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_field(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

/* The characters of a value without quotes. */
static bool is_bare(char c)
{
	return (unsigned char)c > 0x20 && c != 0x7f && !strchr("&|()!<>=~\"'", c);
}

/* ── FIELD OP VALUE ─────────────────────────────────────────────────────────────────────── */

static int parse_field(struct parser *p, struct pp_filter_node *node)
{
	const char *at = p->at;

	if (!*at)
		return refuse(p, -EINVAL, at,
			      "a field is missing: write FIELD OP VALUE, as in prev_pid != 0");
	while (is_field(*p->at))
		p->at++;
	if (p->at == at)
		return refuse(
			p, -EINVAL, at,
			"the name of a field is expected here, as in prev_pid != 0, or ! or (");
	if (is_digit(*at))
		return refuse(p, -EINVAL, at,
			      "a field's name begins with a letter: write the field first and the "
			      "value behind the operator");
	if (p->at - at >= PP_FILTER_FIELD_SIZE)
		return refuse(p, -E2BIG, at, "the name of a field has at most %d bytes",
			      PP_FILTER_FIELD_SIZE - 1);
	if (*p->at == '.')
		return refuse(p, -EINVAL, p->at,
			      "a field stands without .ustring and the like: write its name alone");
	memcpy(node->field, at, p->at - at);
	return 0;
}

static int parse_operator(struct parser *p, struct pp_filter_node *node)
{
	/* A longer operator stands before its own beginnings. */
	static const struct {
		const char *token;
		uint32_t op;
	} operators[] = {
		{ "==", PP_FILTER_EQ }, { "!=", PP_FILTER_NE },	 { "!~", PP_FILTER_NOT_GLOB },
		{ "<=", PP_FILTER_LE }, { ">=", PP_FILTER_GE },	 { "<", PP_FILTER_LT },
		{ ">", PP_FILTER_GT },	{ "~", PP_FILTER_GLOB },
	};

	for (size_t i = 0; i < ARRAY_SIZE(operators); i++)
		if (take(p, operators[i].token)) {
			node->op = operators[i].op;
			return 0;
		}
	if (*p->at == '&' && p->at[1] != '&') {
		p->at++;
		node->op = PP_FILTER_BITS;
		return 0;
	}
	if (*p->at == '=')
		return refuse(p, -EINVAL, p->at, "'=' compares nothing: write ==");
	return refuse(p, -EINVAL, p->at,
		      "behind the field %s one of == != < <= > >= & ~ !~ is expected", node->field);
}

static int set_text(struct parser *p, struct pp_filter_node *node, const char *text, size_t n)
{
	if (n >= PP_FILTER_TEXT_SIZE)
		return refuse(p, -E2BIG, text, "a value has at most %d bytes",
			      PP_FILTER_TEXT_SIZE - 1);
	memcpy(node->text, text, n);
	return 0;
}

static bool op_wants_number(uint32_t op)
{
	return op >= PP_FILTER_LT && op <= PP_FILTER_BITS;
}

/* "…" or '…'; as in the kernel, no character inside is special. */
static int parse_quoted(struct parser *p, struct pp_filter_node *node)
{
	const char *open = p->at, *text = open + 1, *end = text;

	for (; *end != *open; end++) {
		if (!*end)
			return refuse(p, -EINVAL, open,
				      "the text that begins here has no end: "
				      "close it with the same quote");
		if ((unsigned char)*end < 0x20 || *end == 0x7f)
			return refuse(p, -EINVAL, end,
				      "an unprintable character cannot be looked for: use ? and ~");
	}
	p->at = end + 1;
	node->is_text = 1;
	if (*open == '\'' && end == text + 1)
		node->value = (unsigned char)*text;
	if (!op_wants_number(node->op))
		return set_text(p, node, text, end - text);
	if (!node->value)
		return refuse(p, -EINVAL, open,
			      "text is compared by == != ~ !~ only: write a number here");
	node->is_text = 0; /* flags & 'x': the character's code */
	return set_text(p, node, text, 1);
}

/* The value of that digit in that base, or -1. */
static int digit(char c, unsigned base)
{
	unsigned v = is_digit(c)				? (unsigned)(c - '0')
		     : ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') ? (unsigned)((c | 0x20) - 'a' + 10)
								: UINT_MAX;

	return v < base ? (int)v : -1;
}

/* Decimal, 0x… or 0…, with or without a sign: 0, -EINVAL, -ERANGE. */
static int scan_number(const char *s, size_t n, struct pp_filter_node *node)
{
	bool negative = n > 0 && *s == '-';
	const char *end = s + n;
	unsigned base = 10;
	uint64_t v = 0;

	s += negative;
	if (end - s > 2 && s[0] == '0' && (s[1] | 0x20) == 'x') {
		base = 16;
		s += 2;
	} else if (end - s > 1 && s[0] == '0') {
		base = 8;
		s++;
	}
	if (s == end)
		return -EINVAL;
	for (const char *c = s; c < end; c++)
		if (digit(*c, base) < 0)
			return -EINVAL;
	for (; s < end; s++)
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit(*s, base), &v))
			return -ERANGE;
	if (negative && v > (uint64_t)INT64_MAX + 1)
		return -ERANGE;
	node->value = negative ? -v : v;
	node->is_negative = negative;
	return 0;
}

/* A word: a number if it begins like one, unless it is a glob. */
static int parse_bare(struct parser *p, struct pp_filter_node *node)
{
	bool glob = node->op == PP_FILTER_GLOB || node->op == PP_FILTER_NOT_GLOB;
	const char *at = p->at;
	size_t n;
	int r;

	while (is_bare(*p->at))
		p->at++;
	n = p->at - at;
	if (n == 0)
		return refuse(p, -EINVAL, at,
			      "a value is expected here: a number, or text in quotes");
	r = set_text(p, node, at, n);
	if (r < 0)
		return r;
	if (!glob && (is_digit(*at) || *at == '-' || op_wants_number(node->op))) {
		r = scan_number(at, n, node);
		if (r == -ERANGE)
			return refuse(p, -EINVAL, at,
				      "the number is too large: 64 bits are what there is");
		if (r < 0)
			return refuse(p, -EINVAL, at, "this is no number: %s",
				      op_wants_number(node->op)
					      ? "text is compared by == != ~ !~ only"
					      : "put it in quotes if it is text");
		return 0;
	}
	node->is_text = 1;
	return 0;
}

static int refuse_length(struct parser *p)
{
	return refuse(p, -E2BIG, p->at,
		      "the filter is too long: all filters of an event have at most %d comparisons "
		      "and operators",
		      PP_FILTER_NODES_MAX);
}

static int add(struct parser *p, const struct pp_filter_node *node)
{
	if (p->n >= p->cap)
		return refuse_length(p);
	p->nodes[p->n++] = *node;
	return 0;
}

static int parse_comparison(struct parser *p)
{
	struct pp_filter_node node = { 0 };
	int r;

	r = parse_field(p, &node);
	if (r < 0)
		return r;
	skip_space(p);
	r = parse_operator(p, &node);
	if (r < 0)
		return r;
	skip_space(p);
	r = *p->at == '"' || *p->at == '\'' ? parse_quoted(p, &node) : parse_bare(p, &node);
	return r < 0 ? r : add(p, &node);
}

/* ── Terms and what combines them ───────────────────────────────────────────────────────── */

static int parse_bracket(struct parser *p)
{
	const char *open = p->at++;
	int r;

	r = parse_filter(p);
	if (r < 0)
		return r;
	if (!take(p, ")"))
		return *p->at ? refuse(p, -EINVAL, p->at, "&& || or ) is expected here")
			      : refuse(p, -EINVAL, p->at,
				       "the bracket opened at byte %zu is not closed",
				       (size_t)(open - p->text) + 1);
	return 0;
}

static int parse_not(struct parser *p)
{
	const struct pp_filter_node not = { .op = PP_FILTER_NOT };
	int r;

	p->at++;
	r = add(p, &not );
	return r < 0 ? r : parse_term(p);
}

static int parse_nested(struct parser *p)
{
	int r;

	if (p->depth == PP_FILTER_DEPTH_MAX)
		return refuse(p, -E2BIG, p->at, "brackets and ! are at most %d deep",
			      PP_FILTER_DEPTH_MAX);
	p->depth++;
	r = *p->at == '!' ? parse_not(p) : parse_bracket(p);
	p->depth--;
	return r;
}

static int parse_term(struct parser *p)
{
	int r;

	skip_space(p);
	r = *p->at == '!' || *p->at == '(' ? parse_nested(p) : parse_comparison(p);
	skip_space(p);
	return r;
}

/* For each of the terms [first, last), counts the operators before it in a balanced tree. */
static void balance(unsigned char *before, size_t first, size_t last)
{
	size_t middle = first + (last - first + 1) / 2;

	if (last - first < 2)
		return;
	before[first]++;
	balance(before, first, middle);
	balance(before, middle, last);
}

/* Joins the terms that begin at starts[0…n-1] and end with the last node. */
static int join(struct parser *p, uint32_t op, const size_t *starts, size_t n)
{
	unsigned char before[PP_FILTER_NODES_MAX] = { 0 };
	size_t end = p->n, shift = n - 1;

	if (p->n + shift > p->cap)
		return refuse_length(p);
	balance(before, 0, n);
	p->n += shift;
	for (size_t i = n; i-- > 0;) {
		size_t to = starts[i] + shift;

		memmove(&p->nodes[to], &p->nodes[starts[i]], (end - starts[i]) * sizeof(*p->nodes));
		end = starts[i];
		shift -= before[i];
		for (size_t k = 1; k <= before[i]; k++)
			p->nodes[to - k] = (struct pp_filter_node){ .op = op };
	}
	return 0;
}

/* Parses terms with that operator between them. */
static int parse_chain(struct parser *p, uint32_t op, const char *token,
		       int (*parse)(struct parser *p))
{
	size_t starts[PP_FILTER_NODES_MAX], n = 0;
	int r;

	do {
		if (n == ARRAY_SIZE(starts))
			return refuse_length(p);
		starts[n++] = p->n;
		r = parse(p);
		if (r < 0)
			return r;
	} while (take(p, token));
	return join(p, op, starts, n);
}

static int parse_and(struct parser *p)
{
	return parse_chain(p, PP_FILTER_AND, "&&", parse_term);
}

static int parse_filter(struct parser *p)
{
	return parse_chain(p, PP_FILTER_OR, "||", parse_and);
}

int pp_filter_parse(const char *text, struct pp_filter_node *nodes, size_t cap, char *sentence,
		    size_t size)
{
	struct parser p = {
		.text = text,
		.at = text,
		.nodes = nodes,
		.cap = MIN(cap, (size_t)PP_FILTER_NODES_MAX),
		.sentence = sentence,
		.size = size,
	};
	int r;

	r = parse_filter(&p);
	if (r < 0)
		return r;
	if (*p.at == ')')
		return refuse(&p, -EINVAL, p.at, "no bracket is open that this could close");
	if (*p.at)
		return refuse(&p, -EINVAL, p.at, "&& or || is expected here");
	if (pp_filter_check(nodes, p.n) < 0)
		return refuse(&p, -E2BIG, p.at, "the terms are nested too deep: at most %d levels",
			      PP_FILTER_DEPTH_MAX);
	return p.n;
}
