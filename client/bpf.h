/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The two commands of bpf(2) that reading needs. Knows nothing of rings. */
#ifndef PP_CLIENT_BPF_H
#define PP_CLIENT_BPF_H

#include <stddef.h>

/* Opens a pinned map for mapping; the descriptor is CLOEXEC. -errno. */
int client_bpf_open_pin(const char *path);

/* Bytes of the value of a one-element array; 0: fd is something else, or we may not ask. */
size_t client_bpf_value_size(int fd);

#endif
