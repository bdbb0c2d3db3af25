/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The names of system calls by number, as of the headers that perfctl was built with. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether the numbers are this machine's kind: its uname -m. */
bool syscall_names_fit(const char *arch);
/* NULL: unknown. */
const char *syscall_name(uint64_t number);
