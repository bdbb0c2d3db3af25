// SPDX-License-Identifier: LGPL-2.1-or-later
/* The codec: one encoder and one decoder that walk the tables made from protocol.def. Owns a
 * packet's bytes; knows neither sockets nor a message's meaning. */
#include "protocol.h"

#include <errno.h>
#include <string.h>

#include "macro.h"
#include "table.h"

/* The value in `body` of the U32 field of that name: an array's count. */
static uint32_t count_of(const struct pp_message_type *type, const uint8_t *body, const char *name)
{
	struct pp_walk w = pp_walk_start(type);
	const struct pp_field *f;
	uint32_t count = UINT32_MAX;
	size_t offset;

	while ((f = pp_walk_next(&w, &offset)))
		if (f->kind == FIELD_U32 && !strcmp(f->name, name))
			memcpy(&count, body + offset, sizeof(count));
	return count;
}

/* ── Numbers, little endian wherever this runs ──────────────────────────────────────────── */

static void put_le(uint8_t *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = v >> (8 * i);
}

static uint64_t get_le(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

/* ── Encoding ───────────────────────────────────────────────────────────────────────────── */

struct output {
	uint8_t *p;
	size_t left;
};

static int put_number(struct output *out, const uint8_t *value, size_t size)
{
	uint32_t v32;
	uint64_t v;

	if (out->left < size)
		return -EMSGSIZE;
	if (size == sizeof(v32)) {
		memcpy(&v32, value, sizeof(v32));
		v = v32;
	} else {
		memcpy(&v, value, sizeof(v));
	}
	put_le(out->p, v, size);
	out->p += size;
	out->left -= size;
	return 0;
}

/* The bytes behind the NUL in the struct are not copied: they may be uninitialized. */
static int put_string(struct output *out, const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	if (n == size)
		return -EINVAL;
	if (out->left < size)
		return -EMSGSIZE;
	memcpy(out->p, text, n);
	memset(out->p + n, 0, size - n);
	out->p += size;
	out->left -= size;
	return 0;
}

static int encode_fields(const struct pp_message_type *type, const uint8_t *body,
			 struct output *out);

static int encode_array(const struct pp_field *f, uint32_t count, const uint8_t *first,
			struct output *out)
{
	if (count > f->max)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		int r = encode_fields(f->message, first + (size_t)i * f->size, out);

		if (r < 0)
			return r;
	}
	return 0;
}

static int encode_fields(const struct pp_message_type *type, const uint8_t *body,
			 struct output *out)
{
	struct pp_walk w = pp_walk_start(type);
	const struct pp_field *f;
	size_t offset;
	int r = 0;

	while (r == 0 && (f = pp_walk_next(&w, &offset))) {
		const uint8_t *value = body + offset;

		switch (f->kind) {
		case FIELD_U32:
		case FIELD_S32:
		case FIELD_U64:
			r = put_number(out, value, f->size);
			break;
		case FIELD_STR:
			r = put_string(out, (const char *)value, f->size);
			break;
		case FIELD_RECORD:
			r = encode_fields(f->message, value, out);
			break;
		case FIELD_ARRAY:
			r = encode_array(f, count_of(type, body, f->count), value, out);
			break;
		}
	}
	return r;
}

static void put_header(const struct pp_header *h, uint8_t *p)
{
	put_le(p, h->version, 2);
	put_le(p + 2, h->opcode, 2);
	put_le(p + 4, h->serial, 4);
	put_le(p + 8, h->size, 4);
	put_le(p + 12, h->fds, 4);
}

ssize_t pp_encode(struct pp_header *header, const void *body, void *buf, size_t cap)
{
	const struct pp_message_type *type = pp_message_by_opcode(header->opcode);
	struct output out;
	int r;

	if (!type)
		return -EINVAL;
	if (cap < PP_HEADER_SIZE)
		return -EMSGSIZE;
	out.p = (uint8_t *)buf + PP_HEADER_SIZE;
	out.left = cap - PP_HEADER_SIZE;
	r = encode_fields(type, body, &out);
	if (r < 0)
		return r;
	header->version = PP_PROTOCOL_VERSION;
	header->size = cap - out.left;
	put_header(header, buf);
	return header->size;
}

/* ── Decoding ───────────────────────────────────────────────────────────────────────────── */

struct input {
	const uint8_t *p;
	size_t left;
};

static int take_number(struct input *in, uint8_t *value, size_t size)
{
	uint64_t v;
	uint32_t v32;

	if (in->left < size)
		return -EBADMSG;
	v = get_le(in->p, size);
	if (size == sizeof(v32)) {
		v32 = v;
		memcpy(value, &v32, sizeof(v32));
	} else {
		memcpy(value, &v, sizeof(v));
	}
	in->p += size;
	in->left -= size;
	return 0;
}

/* Text, a NUL, and only NULs after it: no hidden bytes. */
static int take_string(struct input *in, char *text, size_t size)
{
	size_t n;

	if (in->left < size)
		return -EBADMSG;
	n = strnlen((const char *)in->p, size);
	if (n == size)
		return -EBADMSG;
	/* Each byte is the same as the one before it, and the first one is 0. */
	if (memcmp(in->p + n, in->p + n + 1, size - n - 1) != 0)
		return -EBADMSG;
	memcpy(text, in->p, size);
	in->p += size;
	in->left -= size;
	return 0;
}

static int decode_fields(const struct pp_message_type *type, struct input *in, uint8_t *body);

static int decode_array(const struct pp_field *f, uint32_t count, struct input *in, uint8_t *first)
{
	if (count > f->max)
		return -EBADMSG;
	for (uint32_t i = 0; i < count; i++) {
		int r = decode_fields(f->message, in, first + (size_t)i * f->size);

		if (r < 0)
			return r;
	}
	return 0;
}

static int decode_fields(const struct pp_message_type *type, struct input *in, uint8_t *body)
{
	struct pp_walk w = pp_walk_start(type);
	const struct pp_field *f;
	size_t offset;
	int r = 0;

	while (r == 0 && (f = pp_walk_next(&w, &offset))) {
		uint8_t *value = body + offset;

		switch (f->kind) {
		case FIELD_U32:
		case FIELD_S32:
		case FIELD_U64:
			r = take_number(in, value, f->size);
			break;
		case FIELD_STR:
			r = take_string(in, (char *)value, f->size);
			break;
		case FIELD_RECORD:
			r = decode_fields(f->message, in, value);
			break;
		case FIELD_ARRAY:
			r = decode_array(f, count_of(type, body, f->count), in, value);
			break;
		}
	}
	return r;
}

static struct pp_header take_header(const uint8_t *p)
{
	return (struct pp_header){
		.version = get_le(p, 2),
		.opcode = get_le(p + 2, 2),
		.serial = get_le(p + 4, 4),
		.size = get_le(p + 8, 4),
		.fds = get_le(p + 12, 4),
	};
}

int pp_decode(const void *buf, size_t size, size_t fds, bool reply, struct pp_header *ret_header,
	      union pp_body *ret_body)
{
	const struct pp_message_type *type;
	struct input in;
	struct pp_header h;
	int r;

	if (size < PP_HEADER_SIZE || size > PP_PACKET_MAX)
		return -EBADMSG;
	h = take_header(buf);
	if (h.version != PP_PROTOCOL_VERSION)
		return -EPROTONOSUPPORT;
	if (h.size != size || h.fds != fds || !!(h.opcode & PP_OP_REPLY) != reply)
		return -EBADMSG;
	type = pp_message_by_opcode(h.opcode);
	if (!type) {
		*ret_header = h;
		return -EOPNOTSUPP;
	}
	in.p = (const uint8_t *)buf + PP_HEADER_SIZE;
	in.left = size - PP_HEADER_SIZE;
	r = decode_fields(type, &in, (uint8_t *)ret_body);
	if (r < 0)
		return r;
	if (in.left)
		return -EBADMSG;
	*ret_header = h;
	return 0;
}
