/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Texts of values in perfpersistd.conf. All outputs are untouched on failure. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Bytes: a whole number, optionally with the suffix K, M or G. 0; -EINVAL; -ERANGE. */
int config_parse_size(const char *text, uint64_t *ret);

/* The same, or a percentage of `whole`: 10%. 0; -EINVAL; -ERANGE. */
int config_parse_share(const char *text, uint64_t whole, uint64_t *ret);

/* Bytes of memory in this machine. */
uint64_t config_machine_memory(void);

/* "10s", "500ms", "2m", "1h", "10" (seconds), in nanoseconds. 0; -EINVAL; -ERANGE. */
int config_parse_duration(const char *text, uint64_t *ret);

/* Three or four octal digits, at most 0777. 0; -EINVAL. */
int config_parse_mode(const char *text, uint32_t *ret);

/* By name, or any number. ret_gid (may be NULL) is set if the user has a group. 0; -EINVAL;
 * -ENOENT. */
int config_find_user(const char *text, uid_t *ret, gid_t *ret_gid);
int config_find_group(const char *text, gid_t *ret);
