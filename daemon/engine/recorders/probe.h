/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kprobes and uprobes, recorded by emitted programs (probe.c). A format describes their records, as
 * for tracepoints; it is generated here in the way of ftrace's own probes.
 */
#pragma once

#include "daemon/engine/kernel/tracefs.h"
#include "daemon/order.h"

/*
 * Makes the tracepoint of a KPROBE or UPROBE source: format text, fields and sizes. Its id is a
 * hash of the text, above the kernel's ids. tracepoint_done() releases it. -ENOMEM; -EINVAL: not a
 * probe.
 */
int probe_tracepoint(const struct pp_source *parsed, struct tracepoint *ret);
