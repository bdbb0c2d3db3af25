// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzes filters. The first byte chooses: text (an accepted text is one tree that passes the
 * check), nodes as the engine gets them, or globs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/filter.h"
#include "proto/macro.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void fuzz_text(const char *text)
{
	_cleanup_free_ struct pp_filter_node *nodes =
		malloc(PP_FILTER_NODES_MAX * sizeof(struct pp_filter_node));
	char sentence[256] = "";
	int n;

	n = pp_filter_parse(text, nodes, PP_FILTER_NODES_MAX, sentence, sizeof(sentence));
	if (n < 0) {
		require((n == -EINVAL || n == -E2BIG) && *sentence);
		return;
	}
	require(n > 0 && !pp_filter_check(nodes, n));
	require(pp_filter_span(nodes) == (size_t)n);
	if (n > 1)
		require(pp_filter_check(nodes, n - 1) == -EBADMSG);
}

/* Exactly as large as the input, so that ASan sees an overrun. */
static void fuzz_nodes(const uint8_t *data, size_t size)
{
	size_t n = size / sizeof(struct pp_filter_node);
	_cleanup_free_ struct pp_filter_node *nodes = malloc(n * sizeof(*nodes) + 1);

	memcpy(nodes, data, n * sizeof(*nodes));
	if (!pp_filter_check(nodes, n))
		require(pp_filter_span(nodes) == n);
}

/* Shapes of trees: one byte per operation, with valid leaves. */
static void fuzz_shape(const uint8_t *data, size_t size)
{
	size_t n = MIN(size, (size_t)PP_FILTER_NODES_MAX + 1);
	_cleanup_free_ struct pp_filter_node *nodes = calloc(n + 1, sizeof(*nodes));

	for (size_t i = 0; i < n; i++) {
		nodes[i].op = data[i] % 14;
		if (nodes[i].op <= PP_FILTER_NOT)
			continue;
		nodes[i].field[0] = 'a';
		nodes[i].is_text = data[i] > 127;
	}
	if (!pp_filter_check(nodes, n))
		require(pp_filter_span(nodes) == n);
}

static void fuzz_glob(const char *glob, size_t size)
{
	const char *text = glob + strlen(glob) + 1;

	if (strlen(glob) + 1 < size && size < 512)
		pp_glob_match(glob, text);
	if (!strpbrk(glob, "*?[\\"))
		require(pp_glob_match(glob, glob));
	require(pp_glob_match("*", glob));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = NULL;

	if (size == 0)
		return 0;
	text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	switch (data[0] & 3) {
	case 0:
		fuzz_nodes(data + 1, size - 1);
		break;
	case 1:
		fuzz_shape(data + 1, size - 1);
		break;
	case 2:
		fuzz_glob(text, size);
		break;
	case 3:
		fuzz_text(text);
		break;
	}
	return 0;
}
