// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Decodes a tracepoint's payloads with libtraceevent: by the kernel's print format if that is safe
 * with untrusted bytes, otherwise field by field. Untrusted formats are checked (format-check.h)
 * before libtraceevent sees them.
 */
#include <string.h>

#include "client/perfctl/decode/decode.h"
#include "client/perfctl/decode/format-check.h"

/* NULs behind the copy of a payload: an unterminated string ends there. */
#define PADDING 64

static struct tep_handle *new_tep(void)
{
	struct tep_handle *tep = tep_alloc();

	if (!tep)
		return NULL;
	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_long_size(tep, sizeof(long));
	tep_set_page_size(tep, (int)sysconf(_SC_PAGESIZE));
	tep_set_file_bigendian(tep, tep_is_bigendian() ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_local_bigendian(tep, tep_is_bigendian() ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	return tep;
}

static const struct tep_format_field *common_type(const struct tep_event *event)
{
	const struct tep_format_field *f = event->format.common_fields;

	while (f && strcmp(f->name, "common_type"))
		f = f->next;
	return f && f->size == sizeof(uint16_t) && f->offset >= 0 ? f : NULL;
}

/* The format without its print fmt, a text of *ret_size bytes. */
static char *fields_alone(const char *format, size_t fields, size_t *ret_size)
{
	char *text;
	int n = asprintf(&text, "%.*sprint fmt: \"\"\n", (int)fields, format);

	if (n < 0)
		return NULL;
	*ret_size = (size_t)n;
	return text;
}

int decoder_new(const char *event, const char *format, size_t size, struct decoder **ret)
{
	_cleanup_free_ char *system = strndup(event, strcspn(event, ":")), *text = NULL;
	struct decoder *d;
	size_t fields;
	int form;

	form = format_check(format, size, &fields);
	if (form < 0)
		return form;
	d = calloc(1, sizeof(*d));
	format = text = form > 0 ? fields_alone(format, fields, &size)
				 : dynamic_arrays_format(format, size, &size);
	if (!system || !d || !format)
		goto no_memory;
	d->tep = new_tep();
	if (!d->tep || dynamic_arrays_init(d->tep) < 0)
		goto no_memory;
	/* A print fmt that libtraceevent can't read is an error here, but the fields are parsed. */
	tep_parse_format(d->tep, &d->event, format, size, system);
	if (!d->event || !d->event->format.fields) {
		decoder_free(d);
		return -EBADMSG;
	}
	d->by_print_fmt = form == 0 && common_type(d->event) && print_fmt_is_safe(d->event);
	*ret = d;
	return 0;

no_memory:
	decoder_free(d);
	return -ENOMEM;
}

void decoder_free(struct decoder *d)
{
	if (!d)
		return;
	tep_free(d->tep); /* this frees the event, too */
	free(d->raw);
	free(d);
}

static bool fields_fit(const struct tep_format_field *f, const unsigned char *raw, size_t size)
{
	for (; f; f = f->next)
		if (!field_fits(f, raw, size))
			return false;
	return true;
}

int decoder_load(struct decoder *d, const void *raw, size_t size)
{
	const struct tep_format_field *type;

	if (size + PADDING > d->cap) {
		unsigned char *bigger = realloc(d->raw, size + PADDING);

		if (!bigger)
			return -ENOMEM;
		d->raw = bigger;
		d->cap = size + PADDING;
	}
	memcpy(d->raw, raw, size);
	memset(d->raw + size, 0, PADDING);
	d->size = size;
	if (!fields_fit(d->event->format.common_fields, d->raw, size) ||
	    !fields_fit(d->event->format.fields, d->raw, size))
		return -EBADMSG;

	/* libtraceevent finds the event by it; we know which one it is. */
	type = common_type(d->event);
	if (type) {
		uint16_t id = (uint16_t)d->event->id;

		memcpy(d->raw + type->offset, &id, sizeof(id));
	}
	return 0;
}

static void print_by_print_fmt(struct decoder *d, FILE *f)
{
	struct tep_record record = { .data = d->raw, .size = (int)d->size };
	struct trace_seq s;

	trace_seq_init(&s);
	tep_print_event(d->tep, &s, &record, "%s", TEP_PRINT_INFO);
	if (s.state == TRACE_SEQ__GOOD)
		print_text(f, s.buffer, s.len);
	trace_seq_destroy(&s);
}

void decoder_print(struct decoder *d, FILE *f)
{
	if (d->by_print_fmt) {
		print_by_print_fmt(d, f);
		return;
	}
	for (const struct tep_format_field *field = d->event->format.fields; field;
	     field = field->next) {
		fprintf(f, "%s%s=", field == d->event->format.fields ? "" : " ", field->name);
		field_print(field, d->raw, f);
	}
}

void decoder_json(struct decoder *d, const char *key, struct json *j)
{
	json_begin(j, key, '{');
	for (const struct tep_format_field *field = d->event->format.fields; field;
	     field = field->next)
		field_json(field, d->raw, j);
	json_end(j, '}');
}
