/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files that check orders. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pp_parsed;

bool order_is_terminated(const char *field, size_t size);

/* Whether exactly an event with these flags has an AUX area, and what is beside it can be. */
bool order_group_is_good(const struct pp_parsed *parsed, uint32_t flags);

/* Terminals show it, and text files hold it on one line. */
bool order_is_printable(const char *field, size_t size);
