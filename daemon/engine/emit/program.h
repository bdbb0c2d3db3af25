/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads instructions into the kernel; logs the reason (log_debug) when it refuses. */
#pragma once

#include <bpf/bpf.h>
#include <stddef.h>

/* As bpf_prog_load(3), with the licence GPL. The fd, or -errno of the first refusal. */
int program_load(enum bpf_prog_type type, const char *name, const struct bpf_insn *insns, size_t n,
		 struct bpf_prog_load_opts *opts);
