/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constants of a template (daemon/engine/emit/template.h). The macros read them in a form that
 * instantiation can turn into immediates: the address of the constants and the load from it stand
 * side by side and use one register. The verifier then knows which way an option's jump goes, and
 * removes it and the unreachable code.
 */
#pragma once

#include <linux/types.h>

/* `constants` is the variable in .rodata and the tag of its struct; the member is a __u64. */
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

/* The same for a __u8: whether it is not 0. */
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
