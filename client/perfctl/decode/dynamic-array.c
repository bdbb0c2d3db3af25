// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * __print_dynamic_array(), which is new in Linux 6.13. libtraceevent 1.8.4 does not know it, and
 * earlier versions print no array as the kernel does. So libtraceevent gets a function of ours
 * instead, with the array's place, its length and its element size as arguments.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/decode/decode.h"

#define KERNELS "__print_dynamic_array("
#define OURS "perfctl_print_array"

/* Like trace_print_array_seq() in kernel/trace/trace_output.c. */
static unsigned long long print(struct trace_seq *s, unsigned long long *args)
{
	const unsigned char *p = (const unsigned char *)(uintptr_t)args[0];
	size_t size = (size_t)args[1], n = (size_t)args[2];

	trace_seq_putc(s, '{');
	for (size_t i = 0; i + n <= size; i += n) {
		if (i)
			trace_seq_putc(s, ',');
		trace_seq_printf(s, "0x%" PRIx64, field_number(p + i, n, false));
	}
	trace_seq_putc(s, '}');
	return 0;
}

int dynamic_arrays_init(struct tep_handle *tep)
{
	return tep_register_print_function(tep, print, TEP_FUNC_ARG_STRING, OURS, TEP_FUNC_ARG_PTR,
					   TEP_FUNC_ARG_LONG, TEP_FUNC_ARG_LONG, TEP_FUNC_ARG_VOID)
		       ? -ENOMEM
		       : 0;
}

/* The element's size, as the kernel's formats write it. 0: unknown. */
static unsigned size_of(const char *text, size_t n)
{
	static const struct {
		const char *text;
		unsigned size;
	} sizes[] = {
		{ "1", 1 },	      { "2", 2 },	    { "4", 4 },
		{ "8", 8 },	      { "sizeof(u8)", 1 },  { "sizeof(u16)", 2 },
		{ "sizeof(u32)", 4 }, { "sizeof(u64)", 8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (strlen(sizes[i].text) == n && !memcmp(sizes[i].text, text, n))
			return sizes[i].size;
	return 0;
}

/* Parses "NAME, SIZE)" behind KERNELS; returns its length, or 0. */
static size_t arguments(const char *p, const char *end, int *ret_name, unsigned *ret_size)
{
	const char *q = p, *size;

	while (q < end && (isalnum((unsigned char)*q) || *q == '_'))
		q++;
	*ret_name = (int)(q - p);
	if (end - q < 2 || memcmp(q, ", ", 2))
		return 0;
	size = q += 2;
	while (q < end && *q != ')')
		q++;
	if (q < end && memchr(size, '(', (size_t)(q - size)))
		q++;
	if (q >= end || *q != ')')
		return 0;
	*ret_size = size_of(size, (size_t)(q - size));
	return *ret_size ? (size_t)(q + 1 - p) : 0;
}

char *dynamic_arrays_format(const char *format, size_t size, size_t *ret_size)
{
	const char *p = format, *end = format + size, *call;
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_size);
	bool failed;

	if (!f)
		return NULL;
	while ((call = memmem(p, (size_t)(end - p), KERNELS, strlen(KERNELS)))) {
		const char *name = call + strlen(KERNELS);
		int n_name;
		unsigned element;
		size_t n = arguments(name, end, &n_name, &element);

		fwrite(p, 1, (size_t)(call - p), f);
		if (n)
			fprintf(f,
				OURS
				"(__get_dynamic_array(%.*s), __get_dynamic_array_len(%.*s), %u)",
				n_name, name, n_name, name, element);
		else
			fputs(KERNELS, f);
		p = name + n;
	}
	fwrite(p, 1, (size_t)(end - p), f);
	failed = ferror(f);
	if (fclose(f) || failed) {
		free(text);
		return NULL;
	}
	return text;
}
