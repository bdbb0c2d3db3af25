/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of --call-graph and CallGraph=: which halves of call chains are recorded, or "dwarf" with a
 * number of bytes: the kernel's half, and registers and stack of user space, from which perf unwinds it.
 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/macro.h"
#include "proto/protocol.h"

#define PP_STACK_USER_DEFAULT 8192 /* as perf's */

/* Rounded up to a multiple of 8, as perf does. -ERANGE: too large. */
static inline int pp_parse_stack_user(const char *text, uint32_t *ret)
{
	uint64_t n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (*text < '0' || *text > '9' || *end || !n)
		return -EINVAL;
	if (errno || n > PP_STACK_USER_MAX)
		return -ERANGE;
	*ret = (uint32_t)ALIGN_TO(n, 8UL);
	return 0;
}

/* *ret_flags: bits of PP_EVENT_CHAINS. 0; -EINVAL; -ERANGE: that is more than a stack can have. */
static inline int pp_parse_call_graph(const char *text, uint32_t *ret_flags,
				      uint32_t *ret_stack_user)
{
	*ret_stack_user = 0;
	if (!strncmp(text, "dwarf", 5) && (!text[5] || text[5] == ',')) {
		*ret_flags = PP_EVENT_CALLCHAIN | PP_EVENT_NO_USER_CHAIN;
		*ret_stack_user = PP_STACK_USER_DEFAULT;
		return text[5] ? pp_parse_stack_user(text + 6, ret_stack_user) : 0;
	}
	if (!strcmp(text, "kernel"))
		*ret_flags = PP_EVENT_CALLCHAIN | PP_EVENT_NO_USER_CHAIN;
	else if (!strcmp(text, "user"))
		*ret_flags = PP_EVENT_CALLCHAIN | PP_EVENT_NO_KERNEL_CHAIN;
	else if (!strcmp(text, "both") || !strcmp(text, "fp")) /* as perf says it */
		*ret_flags = PP_EVENT_CALLCHAIN;
	else
		return -EINVAL;
	return 0;
}
