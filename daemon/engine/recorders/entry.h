/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The entry: the small program that the kernel calls, and that goes on to the recording program in
 * its slot; see recorder.h. Knows nothing of either.
 */
#pragma once

#include <bpf/bpf.h>

#include "daemon/engine/recorders/recorder.h"

/* Loads an entry of that class. *ret_fd is the caller's. -errno of the kernel. */
int entry_load(const struct recorder_class *class, const struct recorder_slot *slot, int *ret_fd);

/* The same, and for the kernel it is a program that asks for call chains. */
int entry_load_chain(const struct recorder_class *class, const struct recorder_slot *slot,
		     int *ret_fd);

/* The same on raw_syscalls. With is_one only this system call goes on to its slot; otherwise each
 * call goes to the slot of its number, if it is full, whatever slot->index is. */
int entry_load_syscall(const struct recorder_slot *slot, const struct syscall_facts *call,
		       bool is_one, int *ret_fd);
