// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Takes the input as the format of a tracepoint and as its payload: libtraceevent must survive each
 * format that passes the check. The payload is the end of the input; the last byte is its length.
 */
#include <stdint.h>
#include <string.h>

#include "client/perfctl/decode/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libtraceevent leaks memory when it cannot parse a format; only the library could free that. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libtraceevent";
}

static const char head[] = "name: a\nID: 1\nformat:\n"
			   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			   "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

static void print_some(struct decoder *d, const void *raw, size_t size)
{
	static char *text;
	static size_t n;
	static FILE *f;
	struct json j = { 0 };

	if (decoder_load(d, raw, size) < 0)
		return;
	if (!f)
		f = open_memstream(&text, &n);
	if (!f)
		abort();
	rewind(f);
	decoder_print(d, f);
	j.f = f;
	decoder_json(d, NULL, &j);
}

static void decode(const char *format, size_t size, const void *raw, size_t raw_size)
{
	struct decoder *d;

	if (decoder_new("a:a", format, size, &d) < 0)
		return;
	print_some(d, raw, raw_size);
	decoder_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[1U << 16];
	size_t raw_size;

	if (size < 1 || size > sizeof(text) - sizeof(head))
		return 0;
	size--;
	raw_size = MIN((size_t)data[size], size);
	size -= raw_size;
	decode((const char *)data, size, data + size, raw_size);
	/* Keeps the common part from being parsed anew each time. */
	memcpy(text, head, sizeof(head) - 1);
	memcpy(text + sizeof(head) - 1, data, size);
	decode(text, sizeof(head) - 1 + size, data + size, raw_size);
	return 0;
}
