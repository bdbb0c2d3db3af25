/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* protocol.def as data: a message's fields, and a walk over them that knows each one's place in its
 * struct. Only for the codec and the printer of the tables. */
#pragma once

#include "protocol.h"

enum field_kind {
	FIELD_U32 = 1,
	FIELD_S32,
	FIELD_U64,
	FIELD_STR,
	FIELD_RECORD,
	FIELD_ARRAY,
};

struct pp_field {
	const char *name; /* NULL ends the table */
	const char *doc;
	enum field_kind kind;
	uint32_t size;	/* bytes in the struct; of one element if it is an array */
	uint32_t align; /* of the struct's member */
	const struct pp_message_type *message; /* RECORD, ARRAY: the message with its fields */
	const char *count;		       /* ARRAY: the earlier field that counts it */
	uint32_t max;			       /* ARRAY: elements */
};

/* A table with the place in the struct where its next field lies. */
struct pp_walk {
	const struct pp_message_type *type;
	const struct pp_field *field;
	size_t offset; /* behind the fields passed so far */
};

struct pp_walk pp_walk_start(const struct pp_message_type *type);

/* The next field, with its offset in the struct; NULL behind the last. */
const struct pp_field *pp_walk_next(struct pp_walk *w, size_t *ret_offset);

/* All messages, in the order of protocol.def. NULL behind the last. */
const struct pp_message_type *pp_message_at(size_t i);
const struct pp_operation *pp_operation_at(size_t i);
