// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Names in the spool's directory. The input is a name, which is ours exactly if we would write it;
 * and then a task's name, whose file is always recognized as ours.
 */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/events/spool.h"
#include "client/perfctl/perfctl.h"
#include "proto/macro.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void fuzz_name(const char *name)
{
	struct spooled f, again;

	if (spool_parse(name, &f) < 0)
		return;
	require(!strcmp(f.name, name));
	require(name_is_valid(f.ns) && name_is_valid(f.trigger));
	again = f;
	spool_name(&again);
	require(!strcmp(again.name, name));
}

static void fuzz_comm(const uint8_t *data, size_t size)
{
	struct spooled f = { .ns = "web", .trigger = "slow", .number = size, .id = 1 }, again;

	memcpy(f.comm, data, MIN(size, sizeof(f.comm)));
	if (size > sizeof(f.comm))
		memcpy(&f.pid, data + sizeof(f.comm), MIN(size - sizeof(f.comm), sizeof(f.pid)));
	if (size > 20)
		memcpy(&f.time, data + 20, MIN(size - 20, sizeof(f.time)));
	spool_name(&f);
	require(spool_parse(f.name, &again) == 0);
	require(!strcmp(f.name, again.name) && f.pid == again.pid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *name = strndup((const char *)data, size);

	fuzz_name(name);
	fuzz_comm(data, size);
	return 0;
}
