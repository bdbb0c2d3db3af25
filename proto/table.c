// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The tables made from protocol.def, and look-ups in them. Knows no bytes.
 *
 * A field's place in its struct is not in the tables: the struct has the fields in the table's
 * order, so the walk finds it as the compiler does, by size and alignment.
 */
#include "table.h"

#include <assert.h>

#include "macro.h"

#define MESSAGE(name, doc, ...) static const struct pp_message_type message_##name;
#define OPERATION(...)
#include "protocol.def"

#define SCALAR(name, doc, kind, type) \
	{ #name, doc, kind, sizeof(type), __alignof__(struct { type t; }), NULL, NULL, 0 },
#define NESTED(name, message, doc, kind, count, max) \
	{ #name,                                     \
	  doc,                                       \
	  kind,                                      \
	  sizeof(struct pp_msg_##message),           \
	  __alignof__(struct pp_msg_##message),      \
	  &message_##message,                        \
	  count,                                     \
	  max },

#define U32(name, doc) SCALAR(name, doc, FIELD_U32, uint32_t)
#define S32(name, doc) SCALAR(name, doc, FIELD_S32, int32_t)
#define U64(name, doc) SCALAR(name, doc, FIELD_U64, uint64_t)
#define STR(name, size, doc) { #name, doc, FIELD_STR, size, 1, NULL, NULL, 0 },
#define RECORD(name, message, doc) NESTED(name, message, doc, FIELD_RECORD, NULL, 0)
#define ARRAY(name, message, count, max, doc) NESTED(name, message, doc, FIELD_ARRAY, #count, max)
#define MESSAGE(name, doc, ...)                                                                  \
	static const struct pp_field fields_##name[] = { __VA_ARGS__{ NULL, NULL, 0, 0, 0, NULL, \
								      NULL, 0 } };               \
	static const struct pp_message_type message_##name = { #name, doc, fields_##name,        \
							       sizeof(struct pp_msg_##name) };
#define OPERATION(...)
#include "protocol.def"

static const struct pp_message_type *const messages[] = {
#define MESSAGE(name, doc, ...) &message_##name,
#define OPERATION(...)
#include "protocol.def"
};

static const struct pp_operation operations[] = {
#define MESSAGE(...)
#define OPERATION(NAME, number, since, right, request, reply, fds, doc) \
	{ number, #NAME, since, PP_RIGHT_##right, &message_##request, &message_##reply, fds, doc },
#include "protocol.def"
};

const struct pp_operation *pp_operation_by_number(uint16_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		if (operations[i].number == number)
			return &operations[i];
	return NULL;
}

const struct pp_message_type *pp_message_by_opcode(uint16_t opcode)
{
	const struct pp_operation *op;

	if (opcode == PP_OP_ERROR)
		return &message_error;
	op = pp_operation_by_number(opcode & ~PP_OP_REPLY);
	if (!op)
		return NULL;
	return opcode & PP_OP_REPLY ? op->reply : op->request;
}

const struct pp_message_type *pp_message_at(size_t i)
{
	return i < ARRAY_SIZE(messages) ? messages[i] : NULL;
}

const struct pp_operation *pp_operation_at(size_t i)
{
	return i < ARRAY_SIZE(operations) ? &operations[i] : NULL;
}

struct pp_walk pp_walk_start(const struct pp_message_type *type)
{
	return (struct pp_walk){ .type = type, .field = type->fields };
}

const struct pp_field *pp_walk_next(struct pp_walk *w, size_t *ret_offset)
{
	const struct pp_field *f = w->field;
	size_t offset;

	if (!f->name)
		return NULL;
	offset = ALIGN_TO(w->offset, (size_t)f->align);
	w->offset = offset + f->size * (f->kind == FIELD_ARRAY ? (size_t)f->max : 1);
	assert(w->offset <= w->type->struct_size);
	w->field++;
	*ret_offset = offset;
	return f;
}
