// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Decides which print formats libtraceevent may apply to untrusted payloads. It checks the offsets
 * of single fields, but trusts lengths, widths, indices and divisors from the payload. So only
 * constructs that read fields and strings are allowed, which decoder_load() has checked; an event
 * with any other construct is printed field by field.
 */
#include <ctype.h>
#include <string.h>

#include "client/perfctl/decode/decode.h"

static bool arg_is_safe(struct tep_event *event, const struct tep_print_arg *arg);

/* A dynamic field's 4-byte word. Relative ones are left out: libtraceevent 1.7 adds their base
 * after its own check, and through a null pointer if only the length is wanted. */
static bool dynamic_is_safe(const struct tep_format_field *field)
{
	return field && field->flags & TEP_FIELD_IS_DYNAMIC &&
	       !(field->flags & TEP_FIELD_IS_RELATIVE) && field->size == sizeof(uint32_t);
}

static bool index_is_safe(const struct tep_print_arg_op *op)
{
	const struct tep_print_arg *left = op->left;

	if (!left || !op->right || op->right->type != TEP_PRINT_ATOM)
		return false;
	while (left->type == TEP_PRINT_TYPE && left->typecast.item)
		left = left->typecast.item;
	if (left->type == TEP_PRINT_DYNAMIC_ARRAY)
		return dynamic_is_safe(left->dynarray.field);
	return left->type == TEP_PRINT_FIELD;
}

static bool op_is_safe(struct tep_event *event, const struct tep_print_arg_op *op)
{
	if (!strcmp(op->op, "["))
		return index_is_safe(op);
	if (!op->left || !op->right)
		return false;
	if (!strcmp(op->op, "?") && op->right->type != TEP_PRINT_OP)
		return false;
	if ((op->op[0] == '/' || op->op[0] == '%') &&
	    (op->right->type != TEP_PRINT_ATOM || !strtoull(op->right->atom.atom, NULL, 0)))
		return false;
	return arg_is_safe(event, op->left) && arg_is_safe(event, op->right);
}

/* The only function is ours (dynamic-array.c): a field, its length, and a number. */
static bool function_is_safe(const struct tep_print_arg_func *func)
{
	const struct tep_print_arg *array = func->args, *length = array ? array->next : NULL;

	return length && length->next && array->type == TEP_PRINT_DYNAMIC_ARRAY &&
	       length->type == TEP_PRINT_DYNAMIC_ARRAY_LEN &&
	       length->next->type == TEP_PRINT_ATOM &&
	       array->dynarray.field == length->dynarray.field &&
	       dynamic_is_safe(array->dynarray.field);
}

static bool arg_is_safe(struct tep_event *event, const struct tep_print_arg *arg)
{
	if (!arg)
		return false;
	switch (arg->type) {
	case TEP_PRINT_NULL:
	case TEP_PRINT_ATOM:
	case TEP_PRINT_BSTRING:
	case TEP_PRINT_FIELD:
		return true;
	case TEP_PRINT_TYPE:
		return arg_is_safe(event, arg->typecast.item);
	case TEP_PRINT_FLAGS:
		return arg_is_safe(event, arg->flags.field);
	case TEP_PRINT_SYMBOL:
		return arg_is_safe(event, arg->symbol.field);
	case TEP_PRINT_STRING:
		return dynamic_is_safe(arg->string.field
					       ? arg->string.field
					       : tep_find_any_field(event, arg->string.string));
	case TEP_PRINT_DYNAMIC_ARRAY_LEN:
		return dynamic_is_safe(arg->dynarray.field);
	case TEP_PRINT_OP:
		return op_is_safe(event, &arg->op);
	case TEP_PRINT_FUNC:
		return function_is_safe(&arg->func);
	default: /* __print_hex, __print_array, bitmasks */
		return false;
	}
}

/* %p alone, as a symbol, or as an IP or socket address in a field of its own. */
static bool pointer_is_safe(const char *after)
{
	switch (after[0]) {
	case 'S':
	case 's':
	case 'F':
	case 'f':
		return true;
	case 'I':
	case 'i':
		return after[1] == '4' || after[1] == '6' || after[1] == 'S';
	}
	return !isalnum((unsigned char)after[0]);
}

static bool format_is_safe(const char *format)
{
	for (const char *c = format; *c; c++) {
		if (*c != '%')
			continue;
		if (c[1] == '%') {
			c++;
			continue;
		}
		while (c[1] && strchr("#0- +.123456789hlzLqtj", c[1]))
			c++;
		if (!c[1] || !strchr("diouxXcsp", c[1])) /* no '*' in particular */
			return false;
		c++;
		if (*c == 'p' && !pointer_is_safe(c + 1))
			return false;
	}
	return true;
}

bool print_fmt_is_safe(struct tep_event *event)
{
	const int special = TEP_EVENT_FL_ISFTRACE | TEP_EVENT_FL_ISPRINT | TEP_EVENT_FL_ISBPRINT |
			    (int)TEP_EVENT_FL_FAILED;

	if (event->flags & special || !event->print_fmt.format ||
	    !format_is_safe(event->print_fmt.format))
		return false;
	for (const struct tep_print_arg *arg = event->print_fmt.args; arg; arg = arg->next)
		if (!arg_is_safe(event, arg))
			return false;
	return true;
}
