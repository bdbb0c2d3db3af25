// SPDX-License-Identifier: LGPL-2.1-or-later
/* A field of a tracepoint's payload: its bytes, their meaning, its text. Call field_fits() first;
 * the other functions then read only bytes that it has checked. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/decode/decode.h"

/* A field's bytes. */
struct span {
	const unsigned char *p;
	size_t n;
};

enum kind {
	KIND_NUMBER,
	KIND_ADDRESS,
	KIND_STRING,
	KIND_ARRAY, /* of numbers */
	KIND_BYTES, /* anything else */
};

const struct tep_format_field *decoder_field(const struct decoder *d, const char *name)
{
	const struct tep_format_field *f = d->event->format.fields;

	while (f && strcmp(f->name, name))
		f = f->next;
	return f;
}

static bool is_dynamic(const struct tep_format_field *field)
{
	return field->flags & TEP_FIELD_IS_DYNAMIC;
}

/* Reads offset and length from the word of a __data_loc or __rel_loc field. */
static void dynamic_place(const struct tep_format_field *field, const unsigned char *raw,
			  size_t *ret_offset, size_t *ret_size)
{
	uint32_t word;

	memcpy(&word, raw + field->offset, sizeof(word));
	*ret_offset = word & 0xffff;
	*ret_size = word >> 16;
	if (field->flags & TEP_FIELD_IS_RELATIVE)
		*ret_offset += (size_t)field->offset + sizeof(word);
}

bool field_fits(const struct tep_format_field *field, const unsigned char *raw, size_t size)
{
	size_t offset, n;

	if (field->offset < 0 || field->size < 0 ||
	    (size_t)field->offset + (size_t)field->size > size)
		return false;
	if (!is_dynamic(field))
		return true;
	if (field->size != sizeof(uint32_t))
		return false;
	dynamic_place(field, raw, &offset, &n);
	return offset + n <= size;
}

static struct span find(const struct tep_format_field *field, const unsigned char *raw)
{
	size_t offset = (size_t)field->offset, n = (size_t)field->size;

	if (is_dynamic(field))
		dynamic_place(field, raw, &offset, &n);
	return (struct span){ raw + offset, n };
}

static bool is_number_size(size_t n)
{
	return n == 1 || n == 2 || n == 4 || n == 8;
}

static enum kind kind_of(const struct tep_format_field *field)
{
	if (field->flags & (TEP_FIELD_IS_ARRAY | TEP_FIELD_IS_DYNAMIC)) {
		/* libtraceevent takes u8 arrays for strings as well; they are addresses and
		 * hashes. */
		if (strstr(field->type, "char") && !strstr(field->type, "unsigned char"))
			return KIND_STRING;
		return is_number_size(field->elementsize) ? KIND_ARRAY : KIND_BYTES;
	}
	if (!is_number_size((size_t)field->size))
		return KIND_BYTES;
	return field->flags & TEP_FIELD_IS_POINTER ? KIND_ADDRESS : KIND_NUMBER;
}

uint64_t field_number(const unsigned char *p, size_t n, bool is_signed)
{
	uint64_t v = 0;

	switch (n) {
	case 1:
		return is_signed ? (uint64_t)(int8_t)*p : *p;
	case 2: {
		uint16_t v16;

		memcpy(&v16, p, sizeof(v16));
		return is_signed ? (uint64_t)(int16_t)v16 : v16;
	}
	case 4: {
		uint32_t v32;

		memcpy(&v32, p, sizeof(v32));
		return is_signed ? (uint64_t)(int32_t)v32 : v32;
	}
	case 8:
		memcpy(&v, p, sizeof(v));
	}
	return v;
}

static void print_number(const unsigned char *p, size_t n, bool is_signed, FILE *f)
{
	uint64_t v = field_number(p, n, is_signed);

	if (is_signed)
		fprintf(f, "%" PRId64, (int64_t)v);
	else
		fprintf(f, "%" PRIu64, v);
}

static void print_array(const struct tep_format_field *field, struct span s, FILE *f)
{
	size_t n = field->elementsize;

	fputc('{', f);
	for (size_t i = 0; i + n <= s.n; i += n) {
		if (i)
			fputc(',', f);
		print_number(s.p + i, n, field->flags & TEP_FIELD_IS_SIGNED, f);
	}
	fputc('}', f);
}

void field_print(const struct tep_format_field *field, const unsigned char *raw, FILE *f)
{
	struct span s = find(field, raw);

	switch (kind_of(field)) {
	case KIND_NUMBER:
		print_number(s.p, s.n, field->flags & TEP_FIELD_IS_SIGNED, f);
		break;
	case KIND_ADDRESS:
		fprintf(f, "0x%" PRIx64, field_number(s.p, s.n, false));
		break;
	case KIND_STRING:
		print_text(f, (const char *)s.p, strnlen((const char *)s.p, s.n));
		break;
	case KIND_ARRAY:
		print_array(field, s, f);
		break;
	case KIND_BYTES:
		print_hex(f, s.p, s.n);
		break;
	}
}

static void json_number(const char *key, const unsigned char *p, size_t n, bool is_signed,
			struct json *j)
{
	uint64_t v = field_number(p, n, is_signed);

	if (is_signed)
		json_signed(j, key, (int64_t)v);
	else
		json_unsigned(j, key, v);
}

static void json_array(const struct tep_format_field *field, struct span s, struct json *j)
{
	size_t n = field->elementsize;

	json_begin(j, field->name, '[');
	for (size_t i = 0; i + n <= s.n; i += n)
		json_number(NULL, s.p + i, n, field->flags & TEP_FIELD_IS_SIGNED, j);
	json_end(j, ']');
}

void field_json(const struct tep_format_field *field, const unsigned char *raw, struct json *j)
{
	struct span s = find(field, raw);

	switch (kind_of(field)) {
	case KIND_NUMBER:
		json_number(field->name, s.p, s.n, field->flags & TEP_FIELD_IS_SIGNED, j);
		break;
	case KIND_ADDRESS:
		json_address(j, field->name, field_number(s.p, s.n, false));
		break;
	case KIND_STRING:
		json_bytes(j, field->name, (const char *)s.p, strnlen((const char *)s.p, s.n));
		break;
	case KIND_ARRAY:
		json_array(field, s, j);
		break;
	case KIND_BYTES:
		json_hex(j, field->name, s.p, s.n);
		break;
	}
}

void field_value(const struct tep_format_field *field, const unsigned char *raw,
		 struct field_value *ret)
{
	static const enum field_kind kinds[] = {
		[KIND_NUMBER] = FIELD_UNSIGNED, [KIND_ADDRESS] = FIELD_ADDRESS,
		[KIND_STRING] = FIELD_STRING,	[KIND_ARRAY] = FIELD_ARRAY,
		[KIND_BYTES] = FIELD_BYTES,
	};
	enum kind kind = kind_of(field);
	bool is_signed = kind == KIND_NUMBER && field->flags & TEP_FIELD_IS_SIGNED;
	struct span s = find(field, raw);

	*ret = (struct field_value){ .kind = is_signed ? FIELD_SIGNED : kinds[kind],
				     .bytes = s.p,
				     .n = s.n,
				     .element = kind == KIND_ARRAY ? field->elementsize : 0 };
	if (kind == KIND_NUMBER || kind == KIND_ADDRESS)
		ret->number = field_number(s.p, s.n, is_signed);
	else if (kind == KIND_STRING)
		ret->n = strnlen((const char *)s.p, s.n);
}

void field_text(const struct tep_format_field *field, const unsigned char *raw, char *ret,
		size_t size)
{
	struct field_value v;
	size_t n;

	field_value(field, raw, &v);
	n = v.kind == FIELD_STRING ? MIN(v.n, size - 1) : 0;
	if (n)
		memcpy(ret, v.bytes, n);
	ret[n] = '\0';
}

uint64_t field_element(const struct tep_format_field *field, const struct field_value *v, size_t i)
{
	return field_number(v->bytes + i * v->element, v->element,
			    field->flags & TEP_FIELD_IS_SIGNED);
}
