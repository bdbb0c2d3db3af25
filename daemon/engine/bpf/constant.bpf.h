/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constants of a template (daemon/engine/emit/template.h): read in a form that instantiation can
 * turn into immediates, the address of the constants and the load from it side by side in one
 * register. The verifier knows which way the jump of an option goes, and removes it and all that
 * nobody can reach.
 */
#pragma once

#include <linux/types.h>

/* `constants` is the variable in .rodata and the tag of its struct; the member a __u64. */
#define CONSTANT(constants, member)                                       \
	({                                                                \
		__u64 _value;                                             \
                                                                          \
		asm("%0 = " #constants " ll\n\t"                          \
		    "%0 = *(u64 *)(%0 + %1)"                              \
		    : "=r"(_value)                                        \
		    : "i"(__builtin_offsetof(struct constants, member))); \
		_value;                                                   \
	})

/* The same of a __u8: whether it is not 0. */
#define OPTION(constants, member)                                                     \
	({                                                                            \
		__label__ _no;                                                        \
		_Bool _is = 0;                                                        \
                                                                                      \
		asm volatile goto("r0 = " #constants " ll\n\t"                        \
				  "r0 = *(u8 *)(r0 + %0)\n\t"                         \
				  "if r0 == 0 goto %l[_no]"                           \
				  :                                                   \
				  : "i"(__builtin_offsetof(struct constants, member)) \
				  : "r0"                                              \
				  : _no);                                             \
		_is = 1;                                                              \
	_no:                                                                          \
		_is;                                                                  \
	})
