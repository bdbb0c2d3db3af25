// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A filter's tree: whether an array of nodes is a tree, and where a subtree ends. Must not know the
 * syntax (filter-parse.c) or an event's fields. The nodes are untrusted: nothing here recurses or
 * trusts a length.
 */
#include "daemon/filter.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The number of a node's operands, or -1 for an unknown operation. */
static int operands(uint32_t op)
{
	switch (op) {
	case PP_FILTER_AND:
	case PP_FILTER_OR:
		return 2;
	case PP_FILTER_NOT:
		return 1;
	case PP_FILTER_EQ ... PP_FILTER_NOT_GLOB:
		return 0;
	}
	return -1;
}

/* Printable, terminated within the field, zeros behind the NUL. Bytes over 0x7f are letters. */
static bool text_is_good(const char *field, size_t size)
{
	size_t n = strnlen(field, size);

	if (n == size)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)field[i] < 0x20 || field[i] == 0x7f)
			return false;
	for (size_t i = n; i < size; i++)
		if (field[i])
			return false;
	return true;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool field_is_good(const char *field)
{
	if (!text_is_good(field, PP_FILTER_FIELD_SIZE) || !is_letter(*field))
		return false;
	for (; *field; field++)
		if (!is_letter(*field) && !(*field >= '0' && *field <= '9'))
			return false;
	return true;
}

/* A number's sign agrees with its value; a text's value is its only character, or 0. */
static bool value_is_good(const struct pp_filter_node *n)
{
	if (n->is_text)
		return !n->is_negative &&
		       (!n->value || (n->value == (unsigned char)n->text[0] && !n->text[1]));
	return !n->is_negative || !n->value || n->value >> 63;
}

static bool leaf_is_good(const struct pp_filter_node *n)
{
	bool ordered = n->op >= PP_FILTER_LT && n->op <= PP_FILTER_BITS;
	bool glob = n->op == PP_FILTER_GLOB || n->op == PP_FILTER_NOT_GLOB;

	if (n->is_text > 1 || n->is_negative > 1 || n->reserved)
		return false;
	if ((ordered && n->is_text) || (glob && !n->is_text))
		return false;
	return field_is_good(n->field) && text_is_good(n->text, PP_FILTER_TEXT_SIZE) &&
	       value_is_good(n);
}

/* And, or, not: no field but the operation is set. */
static bool inner_is_good(const struct pp_filter_node *n)
{
	const struct pp_filter_node bare = { .op = n->op };

	return !memcmp(n, &bare, sizeof(bare));
}

int pp_filter_check(const struct pp_filter_node *nodes, size_t n)
{
	int missing[PP_FILTER_DEPTH_MAX + 1]; /* operands, of this node and those above it */
	unsigned depth = 0;

	if (n == 0 || n > PP_FILTER_NODES_MAX)
		return -EBADMSG;
	missing[0] = 1;
	for (size_t i = 0; i < n; i++) {
		int wants = operands(nodes[i].op);

		if (wants < 0 || missing[0] == 0)
			return -EBADMSG;
		if (!(wants ? inner_is_good(&nodes[i]) : leaf_is_good(&nodes[i])))
			return -EBADMSG;
		if (wants && ++depth > PP_FILTER_DEPTH_MAX)
			return -EBADMSG;
		if (wants) {
			missing[depth] = wants;
			continue;
		}
		/* A leaf completes itself and each node whose last operand it ends. */
		while (--missing[depth] == 0 && depth > 0)
			depth--;
	}
	return missing[0] == 0 ? 0 : -EBADMSG;
}

size_t pp_filter_span(const struct pp_filter_node *nodes)
{
	size_t n = 0;

	for (long missing = 1; missing > 0; n++)
		missing += operands(nodes[n].op) - 1;
	return n;
}
