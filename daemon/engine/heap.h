/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine's heap. libbpf reads the kernel's BTF, of some megabytes, for each object, into two buffers that it frees
 * again. By malloc(3)'s own rules these come from mmap(2) and go back at once, so that the kernel clears thousands of
 * pages anew each time.
 */
#pragma once

/* At the start: such memory comes from the heap, and stays there from one object to the next. */
void heap_prepare(void);

/* An order is carried out. */
void heap_used(void);

/* Milliseconds without an order after which heap_trim() is due; -1: it is not. */
int heap_timeout(void);

/* Gives what is free back to the kernel. */
void heap_trim(void);
