/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine's heap. libbpf reads the kernel's BTF, of some megabytes, for each object, into two buffers that it frees
 * again. By malloc(3)'s own rules most of these go back to the kernel at once, which clears thousands of pages anew for
 * the next.
 */
#pragma once

/* At the start: such memory comes from the heap, and stays there from one object to the next. */
void heap_prepare(void);

/* Something came, perhaps an order, which takes memory. */
void heap_used(void);

/* Milliseconds after which, if nothing comes, heap_trim() is due; -1: it is not. */
int heap_timeout(void);

/* Gives what is free back to the kernel; earlier than that costs only time. */
void heap_trim(void);
