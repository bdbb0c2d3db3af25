/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the running kernel can do, where it cannot be found out by trying. */
#ifndef PP_KERNEL_H
#define PP_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* Whether it has the BTF that iterators and tp_btf programs need. */
bool kernel_has_btf(void);

/* Whether it is locked down so far that no program may read what is the kernel's. */
bool kernel_is_confidential(void);

/* By its release; a distribution's kernel may have more than its number says, never less. */
bool kernel_is_at_least(int major, int minor);

/* Nanoseconds between two ticks of its clock: of one jiffy. */
uint64_t kernel_tick(void);

#endif
