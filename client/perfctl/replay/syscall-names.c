// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/replay/syscall-names.h"

#include <asm/unistd.h>
#include <string.h>

#include "proto/macro.h"

static const char *const names[] = {
#include "syscall-numbers.h" /* generated: [__NR_read] = "read", … */
};

bool syscall_names_fit(const char *arch)
{
#if defined(__x86_64__)
	return !strcmp(arch, "x86_64");
#elif defined(__aarch64__)
	return !strcmp(arch, "aarch64");
#else
	return !*arch;
#endif
}

const char *syscall_name(uint64_t number)
{
	return number < ARRAY_SIZE(names) ? names[number] : NULL;
}
