/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decodes the payloads of one tracepoint by its format text. The format comes from the kernel;
 * payloads are untrusted: each is checked before anything reads its fields. */
#pragma once

#include <event-parse.h>

#include "client/perfctl/output/output.h"

struct decoder {
	struct tep_handle *tep;
	struct tep_event *event; /* the only format that tep knows */
	bool by_print_fmt;	 /* the kernel's own print format is usable */
	unsigned char *raw;	 /* the payload, copied, with NULs behind it */
	size_t size, cap;
};

/* event: the event's text, "SYSTEM:NAME…". -EBADMSG: the format cannot be parsed. */
int decoder_new(const char *event, const char *format, size_t size, struct decoder **ret);
void decoder_free(struct decoder *d);

/* Loads a payload for the two below. -EBADMSG: it does not match this format; -ENOMEM. */
int decoder_load(struct decoder *d, const void *raw, size_t size);
void decoder_print(struct decoder *d, FILE *f);
void decoder_json(struct decoder *d, const char *key, struct json *j);

/* ── fields.c: one field of a payload that decoder_load() took ── */

/* NULL: the event has no such field. */
const struct tep_format_field *decoder_field(const struct decoder *d, const char *name);
bool field_fits(const struct tep_format_field *field, const unsigned char *raw, size_t size);
void field_print(const struct tep_format_field *field, const unsigned char *raw, FILE *f);
void field_json(const struct tep_format_field *field, const unsigned char *raw, struct json *j);

/* A field's kind, for other output forms. */
enum field_kind {
	FIELD_UNSIGNED,
	FIELD_SIGNED,
	FIELD_ADDRESS,
	FIELD_STRING,
	FIELD_ARRAY, /* of numbers */
	FIELD_BYTES, /* anything else */
};
struct field_value {
	enum field_kind kind;
	uint64_t number;	    /* for the first three; sign-extended */
	const unsigned char *bytes; /* for the others; strings without their NUL */
	size_t n, element;	    /* bytes, and (for an array) of each number */
};
void field_value(const struct tep_format_field *field, const unsigned char *raw,
		 struct field_value *ret);
/* A string's beginning, with a NUL; "" if it is none. */
void field_text(const struct tep_format_field *field, const unsigned char *raw, char *ret,
		size_t size);
uint64_t field_element(const struct tep_format_field *field, const struct field_value *v, size_t i);

/* Reads 1, 2, 4 or 8 bytes in the machine's byte order; sign-extended to 64 bits if signed. */
uint64_t field_number(const unsigned char *p, size_t n, bool is_signed);

/* ── dynamic-array.c: arrays that libtraceevent prints differently ── */

/* -ENOMEM */
int dynamic_arrays_init(struct tep_handle *tep);
/* Prepares the format for that handle, a text of *ret_size bytes. NULL: no memory. */
char *dynamic_arrays_format(const char *format, size_t size, size_t *ret_size);

/* ── printfmt.c ── */

/* Whether libtraceevent can print every payload that fits the fields by the event's print fmt
 * without reading outside of it. */
bool print_fmt_is_safe(struct tep_event *event);
