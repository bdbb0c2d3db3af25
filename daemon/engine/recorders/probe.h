/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kprobes and uprobes, recorded by emitted programs (probe.c). What a probe records is told like a
 * tracepoint's payload: by a format, which is made up here in the way ftrace makes it for probes
 * of its own.
 */
#pragma once

#include "daemon/engine/kernel/tracefs.h"
#include "daemon/order.h"

/*
 * Makes up the tracepoint of a KPROBE or UPROBE source: format text, fields and sizes. Its id is
 * made from the text, above those that kernels give. tracepoint_done() releases it. -ENOMEM;
 * -EINVAL: no probe.
 */
int probe_tracepoint(const struct pp_source *parsed, struct tracepoint *ret);
