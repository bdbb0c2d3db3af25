/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parses a tracepoint's `format`, and compares payloads by it. For tests: an independent parser, so
 * that tests do not judge the recorders by their own view of a format.
 *
 * Two payloads are equal if every field is, except common_flags and common_preempt_count, which a
 * recorder cannot know. Bytes between and after the fields do not matter.
 */
#pragma once

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "proto/macro.h"

#define TP_FIELDS_MAX 96

struct tp_format_field {
	char name[64];
	uint32_t offset, size;
	bool array;		/* an array of chars in the fixed part */
	bool data_loc, rel_loc; /* a word that gives the field's place */
	bool is_signed;
};

struct tp_format {
	uint32_t id;
	char name[96];
	size_t n;
	uint32_t end; /* end of the last field: where the dynamic parts begin */
	struct tp_format_field fields[TP_FIELDS_MAX];
};

/* "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;" */
static inline bool tp_format_field(const char *line, struct tp_format_field *ret)
{
	const char *text = strstr(line, "field:");
	const char *end = text ? strchr(text, ';') : NULL;
	const char *name, *bracket;
	size_t length;
	int is_signed = 0;

	if (!end || sscanf(end, ";\toffset:%u;\tsize:%u;\tsigned:%d", &ret->offset, &ret->size,
			   &is_signed) < 2)
		return false;
	ret->is_signed = is_signed;
	text += strlen("field:");
	ret->data_loc = !strncmp(text, "__data_loc ", 11);
	ret->rel_loc = !strncmp(text, "__rel_loc ", 10);
	bracket = memchr(text, '[', end - text);
	ret->array = bracket && !ret->data_loc && !ret->rel_loc && !strncmp(text, "char ", 5);
	/* `char comm[16]`, but `__data_loc char[] comm` */
	if (bracket && !ret->data_loc && !ret->rel_loc)
		end = bracket;
	for (name = end; name > text && (isalnum((unsigned char)name[-1]) || name[-1] == '_');)
		name--;
	length = MIN((size_t)(end - name), sizeof(ret->name) - 1);
	memcpy(ret->name, name, length);
	ret->name[length] = '\0';
	return true;
}

/* Parses the text, which need not end with a NUL. Returns false if it is no format. */
static inline bool tp_format_parse(const char *text, size_t size, struct tp_format *ret)
{
	_cleanup_free_ char *copy = strndup(text, size);
	char *rest = copy, *line;

	*ret = (struct tp_format){};
	while (copy && (line = strsep(&rest, "\n"))) {
		sscanf(line, "name: %95s", ret->name);
		sscanf(line, "ID: %u", &ret->id);
		if (!strncmp(line, "print fmt:", 10))
			break;
		if (ret->n == TP_FIELDS_MAX)
			return false;
		if (!tp_format_field(line, &ret->fields[ret->n]))
			continue;
		ret->end = MAX(ret->end, ret->fields[ret->n].offset + ret->fields[ret->n].size);
		ret->n++;
	}
	return ret->id && ret->n >= 4;
}

static inline size_t tp_format_dynamic(const struct tp_format *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += f->fields[i].data_loc || f->fields[i].rel_loc;
	return n;
}

/* The target of a __data_loc or __rel_loc word; false: outside the payload. */
static inline bool tp_format_dynamic_part(const struct tp_format_field *field, const void *payload,
					  size_t size, const void **ret, size_t *ret_size)
{
	uint32_t word, at;

	memcpy(&word, (const char *)payload + field->offset, sizeof(word));
	at = (word & 0xffff) + (field->rel_loc ? field->offset + 4 : 0);
	*ret = (const char *)payload + at;
	*ret_size = word >> 16;
	return at + *ret_size <= size;
}

/* The special features of a tracepoint's payload, as words separated by commas. */
static inline void tp_format_print_shape(const struct tp_format *f, const char *event)
{
	const struct tp_format_field *last = &f->fields[f->n - 1];
	size_t dynamic = tp_format_dynamic(f);
	bool array = false, rel_loc = false;

	for (size_t i = 0; i < f->n; i++) {
		array |= f->fields[i].array;
		rel_loc |= f->fields[i].rel_loc;
	}
	fputs(dynamic == 0 ? "fixed" : dynamic == 1 ? "one-dynamic" : "several-dynamic", stdout);
	if (f->n == 4)
		fputs(",no-field", stdout);
	if (f->end % 8)
		fputs(f->end % 4 ? ",odd-end" : ",end-on-4", stdout);
	if (last->size <= 2)
		fputs(last->size == 1 ? ",u8-tail" : ",u16-tail", stdout);
	if (array)
		fputs(",char-array", stdout);
	if (rel_loc)
		fputs(",rel-loc", stdout);
	if (!strncmp(event, "syscalls:", 9))
		fputs(strstr(f->name, "sys_enter") ? ",sys-enter" : ",sys-exit", stdout);
}

/*
 * One field may differ between two handlers of one event: the parent of an exited task turns it
 * from a zombie into a dead task, on another CPU, at any time.
 */
static inline bool tp_format_is_reaped(const struct tp_format_field *field, const void *a,
				       const void *b)
{
	const uint64_t dead = 0x10, zombie = 0x20;
	uint64_t x, y;

	if (strcmp(field->name, "prev_state") || field->size != sizeof(x))
		return false;
	memcpy(&x, (const char *)a + field->offset, sizeof(x));
	memcpy(&y, (const char *)b + field->offset, sizeof(y));
	return (x == dead && y == zombie) || (x == zombie && y == dead);
}

/* NULL if they are equal; else the name of the first different field. */
static inline const char *tp_format_compare(const struct tp_format *f, const void *a, size_t a_size,
					    const void *b, size_t b_size)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct tp_format_field *field = &f->fields[i];
		const void *part_a, *part_b;
		size_t part_a_size, part_b_size;

		if (!strcmp(field->name, "common_flags") ||
		    !strcmp(field->name, "common_preempt_count"))
			continue;
		if (field->offset + field->size > MIN(a_size, b_size))
			return field->name;
		if (memcmp((const char *)a + field->offset, (const char *)b + field->offset,
			   field->size) &&
		    !tp_format_is_reaped(field, a, b))
			return field->name;
		if (!field->data_loc && !field->rel_loc)
			continue;
		if (!tp_format_dynamic_part(field, a, a_size, &part_a, &part_a_size) ||
		    !tp_format_dynamic_part(field, b, b_size, &part_b, &part_b_size) ||
		    part_a_size != part_b_size || memcmp(part_a, part_b, part_a_size))
			return field->name;
	}
	return NULL;
}
