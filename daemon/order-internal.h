/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files that check orders. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool order_is_terminated(const char *field, size_t size);

/* Terminals show it, and text files hold it on one line. */
bool order_is_printable(const char *field, size_t size);
