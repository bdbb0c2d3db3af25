/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Generates filters for tests: random trees over a tracepoint's fields, written as text for
 * perfpersist and evaluated here, by an independent evaluator that knows payloads and nothing of
 * BPF programs.
 */
#pragma once

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>

#include "client/perfpersist.h"
#include "tests/integration/tp-format.h"

#define TEXT_MAX 40
#define NODES_MAX 24

enum shape { AND, OR, NOT, LEAF };
enum what { FIELD, SPECIAL_CPU, SPECIAL_PID, SPECIAL_TID, SPECIAL_COMM };
enum comparison { EQ, NE, LT, LE, GT, GE, BITS, GLOB, NOT_GLOB };

struct node {
	enum shape shape;
	struct node *left, *right; /* NOT has only left */
	enum what what;
	const struct tp_format_field *field;
	enum comparison comparison;
	bool is_text, is_signed;
	uint64_t number;
	char text[TEXT_MAX];
};

struct expression {
	struct node nodes[NODES_MAX];
	size_t n;
	char text[1024];
};

/* The generator's inputs. */
struct vocabulary {
	const struct tp_format *format;
	const char *comm; /* of all judged records; NULL: not known */
	/* Observed payloads to take values from: a filter without a match proves little. */
	const struct perfpersist_sample *seen;
	size_t n_seen;
	uint64_t state; /* of the random numbers */
};

static inline uint64_t random_number(struct vocabulary *v)
{
	v->state ^= v->state << 13;
	v->state ^= v->state >> 7;
	v->state ^= v->state << 17;
	return v->state * 0x2545f4914f6cdd1dULL;
}

static inline unsigned one_of(struct vocabulary *v, unsigned n)
{
	return (random_number(v) >> 32) % n;
}

/* ── values in payloads ─────────────────────────────────────────────────────────────────── */

static inline uint64_t number_in(const struct tp_format_field *f, const void *payload)
{
	const char *at = (const char *)payload + f->offset;
	uint64_t v = 0;

	memcpy(&v, at, f->size); /* little endian */
	if (f->is_signed && f->size < 8 && v >> (f->size * 8 - 1))
		v |= ~0ULL << (f->size * 8);
	return v;
}

static inline void text_in(const struct tp_format_field *f, const struct perfpersist_sample *s,
			   char *buf, size_t size)
{
	const void *part = (const char *)s->raw + f->offset;
	size_t n = f->size;

	buf[0] = 0;
	if ((f->data_loc || f->rel_loc) &&
	    !tp_format_dynamic_part(f, s->raw, s->raw_size, &part, &n))
		return;
	n = strnlen(part, MIN(n, size - 1));
	memcpy(buf, part, n);
	buf[n] = 0;
}

/* ── evaluating ─────────────────────────────────────────────────────────────────────────── */

static inline bool compare_numbers(const struct node *n, uint64_t v)
{
	int64_t a = (int64_t)v, b = (int64_t)n->number;

	switch (n->comparison) {
	case EQ:
		return v == n->number;
	case NE:
		return v != n->number;
	case LT:
		return n->is_signed ? a < b : v < n->number;
	case LE:
		return n->is_signed ? a <= b : v <= n->number;
	case GT:
		return n->is_signed ? a > b : v > n->number;
	case GE:
		return n->is_signed ? a >= b : v >= n->number;
	default:
		return (v & n->number) != 0;
	}
}

static inline bool compare_texts(const struct node *n, const char *text)
{
	bool same = n->comparison == EQ || n->comparison == NE
			    ? !strcmp(text, n->text)
			    : !fnmatch(n->text, text, FNM_NOESCAPE);

	return same == (n->comparison == EQ || n->comparison == GLOB);
}

static inline bool judge_leaf(const struct node *n, const struct perfpersist_sample *s,
			      const char *comm)
{
	char text[4200];

	switch (n->what) {
	case SPECIAL_CPU:
		return compare_numbers(n, s->cpu);
	case SPECIAL_PID:
		return compare_numbers(n, s->pid);
	case SPECIAL_TID:
		return compare_numbers(n, s->tid);
	case SPECIAL_COMM:
		return compare_texts(n, comm);
	default:
		break;
	}
	if (!n->is_text)
		return compare_numbers(n, number_in(n->field, s->raw));
	text_in(n->field, s, text, sizeof(text));
	return compare_texts(n, text);
}

static inline bool judge(const struct node *n, const struct perfpersist_sample *s, const char *comm)
{
	switch (n->shape) {
	case AND:
		return judge(n->left, s, comm) && judge(n->right, s, comm);
	case OR:
		return judge(n->left, s, comm) || judge(n->right, s, comm);
	case NOT:
		return !judge(n->left, s, comm);
	default:
		return judge_leaf(n, s, comm);
	}
}

/* ── generating ─────────────────────────────────────────────────────────────────────────── */

static inline struct node *new_node(struct expression *e, enum shape shape)
{
	struct node *n = &e->nodes[e->n++];

	*n = (struct node){ .shape = shape };
	return n;
}

static inline bool field_is_text(const struct tp_format_field *f)
{
	return f->array || f->data_loc || f->rel_loc;
}

static inline bool field_is_usable(const struct tp_format_field *f)
{
	/* Recorders do not know these two common fields. */
	if (!strcmp(f->name, "common_flags") || !strcmp(f->name, "common_preempt_count"))
		return false;
	return field_is_text(f) || f->size == 1 || f->size == 2 || f->size == 4 || f->size == 8;
}

/* A glob that may match the text, in one of several ways. */
static inline void make_glob(struct vocabulary *v, const char *text, char *ret, size_t size)
{
	size_t n = strlen(text), from = n ? one_of(v, n) : 0,
	       to = from + (n ? one_of(v, n - from) : 0);

	switch (one_of(v, 7)) {
	case 0:
		snprintf(ret, size, "%.*s*", (int)MIN(to, size - 4), text);
		break;
	case 1:
		snprintf(ret, size, "*%.20s", n > 20 ? text + n - 20 : text + from);
		break;
	case 2:
		snprintf(ret, size, "*%.*s*", (int)MIN(to - from, size - 4), text + from);
		break;
	case 3:
		snprintf(ret, size, "%.*s?%s", (int)MIN(from, 15U), text,
			 from < n && from < 15 ? text + from + 1 : "*");
		break;
	case 4:
		snprintf(ret, size, "%.*s[a-m/p]*", (int)MIN(from, 15U), text);
		break;
	case 5:
		snprintf(ret, size, "%.*s[!x-z]*%.*s*", (int)MIN(from, 8U), text,
			 (int)MIN(to - from, 8U), text + from);
		break;
	default:
		snprintf(ret, size, "*%.*s?*", (int)MIN(to - from, 12U), text + from);
		break;
	}
}

/* Whether the text has no special character inside quotes. */
static inline bool text_is_plain(const char *text)
{
	return !text[strcspn(text, "\"'\\*?[]")] && strlen(text) < TEXT_MAX - 8;
}

static inline void make_text(struct vocabulary *v, struct node *n, const char *seen)
{
	static const enum comparison comparisons[] = { EQ, NE, GLOB, GLOB, NOT_GLOB };
	const char *text = text_is_plain(seen) ? seen : "other";

	n->is_text = true;
	n->comparison = comparisons[one_of(v, ARRAY_SIZE(comparisons))];
	if (n->comparison == GLOB || n->comparison == NOT_GLOB)
		make_glob(v, text, n->text, sizeof(n->text));
	else
		snprintf(n->text, sizeof(n->text), "%.*s", TEXT_MAX - 1,
			 one_of(v, 4) ? text : "other");
}

/* Limits the number to the range of a field of that size: the parser refuses any other. */
static inline uint64_t fit(uint64_t number, uint32_t size, bool is_signed)
{
	unsigned unused = 64 - size * 8;

	return is_signed ? (uint64_t)((int64_t)(number << unused) >> unused)
			 : number << unused >> unused;
}

static inline void make_number(struct vocabulary *v, struct node *n, uint64_t seen, uint32_t size)
{
	n->comparison = (enum comparison)one_of(v, 7);
	n->number = seen;
	switch (one_of(v, 6)) {
	case 0:
		n->number++;
		break;
	case 1:
		n->number--;
		break;
	case 2:
		n->number = one_of(v, 400);
		break;
	}
	if (n->comparison == BITS)
		n->number &= 0x7fffffffU >> (size < 4 ? 32 - size * 8 : 0);
	n->number = fit(n->number, size, n->is_signed);
}

static inline struct node *make_leaf(struct vocabulary *v, struct expression *e)
{
	const struct perfpersist_sample *s = &v->seen[one_of(v, v->n_seen)];
	struct node *n = new_node(e, LEAF);
	char text[4200];

	if (one_of(v, 6) == 0) {
		n->what = (enum what)(SPECIAL_CPU + one_of(v, v->comm ? 4 : 3));
		if (n->what == SPECIAL_COMM)
			make_text(v, n, v->comm);
		else
			make_number(v, n,
				    n->what == SPECIAL_CPU   ? s->cpu
				    : n->what == SPECIAL_PID ? s->pid
							     : s->tid,
				    4);
		return n;
	}
	do
		n->field = &v->format->fields[one_of(v, v->format->n)];
	while (!field_is_usable(n->field));
	n->is_signed = n->field->is_signed;
	if (field_is_text(n->field)) {
		text_in(n->field, s, text, sizeof(text));
		make_text(v, n, text);
	} else {
		make_number(v, n, number_in(n->field, s->raw), n->field->size);
	}
	return n;
}

static inline struct node *make_tree(struct vocabulary *v, struct expression *e, unsigned depth)
{
	unsigned dice = one_of(v, 10);
	struct node *n;

	if (!depth || dice < 4 || e->n > NODES_MAX - 8)
		return make_leaf(v, e);
	n = new_node(e, dice == 4 ? NOT : dice < 8 ? AND : OR);
	n->left = make_tree(v, e, depth - 1);
	if (n->shape != NOT)
		n->right = make_tree(v, e, depth - 1);
	return n;
}

/* ── writing ────────────────────────────────────────────────────────────────────────────── */

static inline const char *leaf_name(struct vocabulary *v, const struct node *n)
{
	switch (n->what) {
	case SPECIAL_CPU:
		return one_of(v, 2) ? "CPU" : "cpu";
	case SPECIAL_PID:
		return "PID"; /* in capitals, because `pid` may be a field */
	case SPECIAL_TID:
		return "TID";
	case SPECIAL_COMM:
		return "COMM";
	default:
		return n->field->name;
	}
}

static inline void write_leaf(struct vocabulary *v, const struct node *n, FILE *f)
{
	static const char *const operators[] = { "==", "!=", "<", "<=", ">", ">=", "&", "~", "!~" };
	const char *space = one_of(v, 3) ? " " : "";

	fprintf(f, "%s%s%s%s", leaf_name(v, n), space, operators[n->comparison], space);
	if (n->is_text)
		fprintf(f, "\"%s\"", n->text);
	else if (n->is_signed && (int64_t)n->number < 0)
		fprintf(f, "%" PRId64, (int64_t)n->number);
	else if (one_of(v, 3) == 0 || (int64_t)n->number < 0)
		fprintf(f, "0x%" PRIx64, n->number);
	else
		fprintf(f, "%" PRIu64, n->number);
}

static inline void write_tree(struct vocabulary *v, const struct node *n, enum shape parent,
			      FILE *f)
{
	/* Adds parentheses where the text would mean something else without them, and sometimes
	 * anyway. */
	bool inside = n->shape != LEAF && n->shape != NOT &&
		      (n->shape == OR ? parent != OR : parent == NOT);
	bool parentheses = inside || one_of(v, 8) == 0;

	if (n->shape == LEAF && parent == NOT)
		parentheses = true;
	fputs(parentheses ? "(" : "", f);
	if (n->shape == LEAF) {
		write_leaf(v, n, f);
	} else if (n->shape == NOT) {
		fputs("!", f);
		write_tree(v, n->left, NOT, f);
	} else {
		write_tree(v, n->left, n->shape, f);
		fputs(n->shape == AND ? " && " : " || ", f);
		write_tree(v, n->right, n->shape, f);
	}
	fputs(parentheses ? ")" : "", f);
}

/* At the top an OR needs no parentheses. */
static inline void make_expression(struct vocabulary *v, struct expression *e)
{
	FILE *f;

	do {
		*e = (struct expression){};
		make_tree(v, e, 4);
		f = fmemopen(e->text, sizeof(e->text), "w");
		if (!f)
			abort();
		write_tree(v, &e->nodes[0], OR, f);
		fclose(f);
	} while (strlen(e->text) > sizeof(e->text) - 8);
}
