/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Converts text that people write to values and back: names, numbers, sizes, CPU lists. Strict and
 * bounded: the whole text must be consumed. Outputs are untouched on failure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/order.h"

/* [a-zA-Z_][a-zA-Z0-9_-]*, at most 63 bytes. */
bool pp_name_is_valid(const char *name);

/* As above, at most PP_TP_NAME_SIZE - 1 bytes; may begin with a digit (9p:9p_client_req). */
bool pp_tp_name_is_valid(const char *name);

/* A name as above, or a glob of such names with * ? [...]. */
bool pp_tp_glob_is_valid(const char *glob);
bool pp_is_glob(const char *text);

/* Targets of a trigger: names of events and globs of them, with commas between, at most
 * PP_TARGET_NAMES_MAX. */
bool pp_targets_are_valid(const char *text);

/* Decimal, or hexadecimal with 0x. Returns 0, -EINVAL, -ERANGE. */
int pp_parse_u64(const char *text, uint64_t *ret);
int pp_parse_u32(const char *text, uint32_t *ret);

/*
 * "0-3,8". Returns 0; -EINVAL (not a list, empty, a range that runs backward); -ERANGE (a CPU
 * number of PP_CPUS_MAX or more).
 */
int pp_parse_cpus(const char *text, struct pp_cpumask *ret);

/* The shortest equivalent list, always NUL-terminated; -ENOSPC if it does not fit. */
int pp_format_cpus(const struct pp_cpumask *mask, char *buf, size_t size);

/* Copies text into a field of that size and zeroes the rest. 0 or -ENAMETOOLONG. */
int pp_copy_text(char *field, size_t size, const char *text);
