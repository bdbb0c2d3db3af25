// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzes event text, and the arguments in the notes of static probes. The engine accepts each event
 * that the parser accepts; each rejected one causes an error message.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/syntax/spec-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void fuzz_text(const char *text)
{
	static char sentence[PP_SENTENCE_SIZE];
	static struct pp_parsed parsed;
	int n;

	memset(sentence, 'x', sizeof(sentence));
	memset(&parsed, 0, sizeof(parsed));
	n = pp_spec_parse(text, parsed.sources, PP_TERMS_MAX, sentence, sizeof(sentence));
	if (n < 0) {
		require(memchr(sentence, 0, sizeof(sentence)) && *sentence);
		return;
	}
	require(n > 0 && n <= PP_TERMS_MAX);
	parsed.n_sources = n;
	require(pp_parsed_check(&parsed, true) == 0);
}

static void fuzz_args(const char *text)
{
	static struct pp_parsed parsed;
	struct pp_source *s = &parsed.sources[0];

	memset(&parsed, 0, sizeof(parsed));
	parsed.n_sources = 1;
	s->kind = PP_SOURCE_UPROBE;
	strcpy(s->path, "/x");
	strcpy(s->name, "x");
	strcpy(s->text, "usdt:/x:x");
	spec_usdt_args(text, s);
	require(pp_parsed_check(&parsed, true) == 0);
}

/* The first byte chooses a beginning, so that the fuzzer reaches every syntax. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const beginnings[] = {
		"",
		"cycles:",
		"L1-dcache-",
		"r",
		"msr/",
		"mem:0x",
		"kprobe:",
		"kprobe:f(",
		"kretprobe:f(",
		"uprobe:/proc/self/exe:",
		"usdt:/",
		"sched:",
	};
	_cleanup_free_ char *text = NULL;
	const char *beginning;

	if (size == 0)
		return 0;
	beginning = beginnings[data[0] % ARRAY_SIZE(beginnings)];
	text = calloc(1, strlen(beginning) + size);
	strcpy(text, beginning);
	memcpy(text + strlen(beginning), data + 1, size - 1);
	if (data[0] >= 240)
		fuzz_args(text + strlen(beginning));
	else
		fuzz_text(text);
	return 0;
}
