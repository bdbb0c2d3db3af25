/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The values that perfpersistd.conf can have. All outputs are untouched on failure. */
#ifndef PP_BROKER_CONFIG_VALUE_H
#define PP_BROKER_CONFIG_VALUE_H

#include <stdint.h>
#include <sys/types.h>

/* Bytes: a whole number with K, M or G behind it, or nothing. 0; -EINVAL; -ERANGE. */
int config_parse_size(const char *text, uint64_t *ret);

/* Three or four octal digits, at most 0777. 0; -EINVAL. */
int config_parse_mode(const char *text, uint32_t *ret);

/* By name, or any number. ret_gid (may be NULL) is set if the user has a group. 0; -EINVAL;
 * -ENOENT. */
int config_find_user(const char *text, uid_t *ret, gid_t *ret_gid);
int config_find_group(const char *text, gid_t *ret);

#endif
