// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzes the files that uprobes and static probes name. An even first byte takes the rest as the
 * file. An odd one changes some bytes of a program that has a symbol of every kind (three bytes a
 * change: where, and to what). Every address that the parser finds must lie in the file's code.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/broker/syntax/spec-internal.h"
#include "tests/unit/elf-image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void look_up(int fd, const char *kind, const char *what)
{
	static struct pp_source sources[PP_TERMS_MAX];
	char sentence[PP_SENTENCE_SIZE] = "", text[128];
	int n;

	snprintf(text, sizeof(text), "%s:/proc/self/fd/%d:%s", kind, fd, what);
	n = pp_spec_parse(text, sources, PP_TERMS_MAX, sentence, sizeof(sentence));
	if (n < 0) {
		require(*sentence);
		for (const char *c = sentence; *c; c++)
			require(*c >= 0x20 && *c <= 0x7e);
	}
	for (int i = 0; i < n; i++)
		require(sources[i].kind == PP_SOURCE_UPROBE && sources[i].offset <= INT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const functions[] = { "plain+1", "twice", "grown", "exported",
						 "chosen" };
	static const char *const probes[] = { "begin", "app:both", "nothing" };
	static struct elf_image image;
	_cleanup_close_ int fd = -EBADF;

	if (size == 0)
		return 0;
	image_make(&image);
	for (size_t i = 1; data[0] & 1 && i + 3 <= size; i += 3)
		((uint8_t *)&image)[(data[i] | data[i + 1] << 8) % IMAGE_SIZE] = data[i + 2];
	fd = memfd_create("elf", MFD_CLOEXEC);
	if (data[0] & 1)
		require(write(fd, &image, IMAGE_SIZE) == IMAGE_SIZE);
	else
		require(write(fd, data, size) == (ssize_t)size);
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		look_up(fd, "uprobe", functions[i]);
	for (size_t i = 0; i < ARRAY_SIZE(probes); i++)
		look_up(fd, "usdt", probes[i]);
	return 0;
}
