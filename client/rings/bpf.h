/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The few commands of bpf(2) that reading and handing over need. Knows nothing of rings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens a pinned map for mapping; the descriptor is CLOEXEC. -errno. */
int client_bpf_open_pin(const char *path);

/* Size of the value of a one-element array; 0: fd is something else, or we may not ask. */
size_t client_bpf_value_size(int fd);

/* Whether fd is an array map with values of this size. */
bool client_bpf_is_array(int fd, size_t value_size);

/* Reads the value at key, in full. 0 or -errno. */
int client_bpf_lookup(int fd, const void *key, void *value);

/* Attaches the program to the perf event: a link, the caller's. -EBADF: fd is none; -EEXIST: it has a program;
 * -errno. */
int client_bpf_link_perf(int program, int fd);

/* The kernel's id of a link; 0: we may not ask. */
uint32_t client_bpf_link_id(int link);

/* Whether it is a program for samples of perf events. */
bool client_bpf_is_sampling(int program);
