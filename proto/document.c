// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints the tables of PROTOCOL.md, in Markdown, from protocol.def's. Knows no packets. */
#include "protocol.h"

#include <inttypes.h>

#include "table.h"

/* Bytes on the wire of a whole message, without an array at its end. */
static size_t wire_size(const struct pp_message_type *type)
{
	size_t size = 0;

	for (const struct pp_field *f = type->fields; f->name; f++) {
		if (f->kind == FIELD_RECORD)
			size += wire_size(f->message);
		else if (f->kind != FIELD_ARRAY)
			size += f->size;
	}
	return size;
}

static const char *right_name(enum pp_right right)
{
	return right == PP_RIGHT_R ? "r" : right == PP_RIGHT_W ? "w" : right ? "root" : "none";
}

static void document_operations(FILE *f)
{
	const struct pp_operation *op;

	fprintf(f, "### Operations\n\n"
		   "| number | operation | since | right | request | reply | fds of the reply | "
		   "meaning |\n"
		   "| ---: | --- | ---: | --- | --- | --- | --- | --- |\n");
	for (size_t i = 0; (op = pp_operation_at(i)); i++)
		fprintf(f, "| %u | %s | %u | %s | `%s` | `%s` | %s | %s |\n", op->number, op->name,
			op->since, right_name(op->right), op->request->name, op->reply->name,
			op->fds, op->doc);
}

static void document_field(FILE *f, const struct pp_field *field, size_t offset, size_t size)
{
	fprintf(f, "| %zu | ", offset);
	switch (field->kind) {
	case FIELD_U32:
		fprintf(f, "%zu | u32", size);
		break;
	case FIELD_S32:
		fprintf(f, "%zu | s32", size);
		break;
	case FIELD_U64:
		fprintf(f, "%zu | u64", size);
		break;
	case FIELD_STR:
		fprintf(f, "%zu | string", size);
		break;
	case FIELD_RECORD:
		fprintf(f, "%zu | `%s`", size, field->message->name);
		break;
	case FIELD_ARRAY:
		fprintf(f, "%zu × `%s` | array of `%s`, at most %" PRIu32, size, field->count,
			field->message->name, field->max);
		break;
	}
	fprintf(f, " | `%s` | %s |\n", field->name, field->doc);
}

static void document_message(FILE *f, const struct pp_message_type *type)
{
	size_t offset = 0;

	fprintf(f, "\n### Message `%s`\n\n%s%s", type->name, type->doc, *type->doc ? "\n\n" : "");
	if (!type->fields->name) {
		fprintf(f, "No bytes.\n");
		return;
	}
	fprintf(f, "| offset | size | type | field | meaning |\n"
		   "| ---: | ---: | --- | --- | --- |\n");
	for (const struct pp_field *field = type->fields; field->name; field++) {
		size_t size = field->message ? wire_size(field->message) : field->size;

		document_field(f, field, offset, size);
		offset += field->kind == FIELD_ARRAY ? 0 : size;
	}
}

void pp_protocol_document(FILE *f)
{
	const struct pp_message_type *type;

	document_operations(f);
	for (size_t i = 0; (type = pp_message_at(i)); i++)
		document_message(f, type);
}
