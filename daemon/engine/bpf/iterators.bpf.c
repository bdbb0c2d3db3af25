// SPDX-License-Identifier: GPL-2.0-only
/*
 * All iterators that the engine needs at its start. They are one object because libbpf reads all of
 * the kernel's BTF for each object, and searches it for each kernel type.
 */
#include "daemon/engine/bpf/tree.bpf.h"
#include "daemon/engine/bpf/links.bpf.h"
#include "daemon/engine/bpf/tasks.bpf.h"

char LICENSE[] SEC("license") = "GPL";
