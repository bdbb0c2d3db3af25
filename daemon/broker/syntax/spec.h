/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Event text in perf's syntax, made into sources:
 *
 *   TEXT   := EVENT[,EVENT]…
 *   EVENT  := SYSTEM:NAME                   tracepoints; either may be a glob
 *           | NAME[:MODIFIERS]              perf's software, hardware and cache events
 *           | rHEX[:MODIFIERS]              raw
 *           | PMU/TERM[=VALUE],…/[MODIFIERS]  by /sys/bus/event_source/devices/PMU
 *           | mem:ADDRESS[/LENGTH][:ACCESS][:MODIFIERS]     ACCESS: r w x rw
 *           | kprobe:FUNCTION[+OFFSET][(ARGS)] | kretprobe:FUNCTION[(ARGS)]
 *           | uprobe:PATH:FUNCTION[+OFFSET][(ARGS)] | uretprobe:… | uprobe:PATH:OFFSET[(ARGS)]
 *           | usdt:PATH:[PROVIDER:]NAME     its arguments are arg1, arg2, …
 *   ARGS   := [NAME=]PLACE[:TYPE],…
 *   PLACE  := argN | retval | %REGISTER | +OFFSET(PLACE) | -OFFSET(PLACE)
 *   TYPE   := u8 u16 u32 u64 s8 s16 s32 s64 x8 x16 x32 x64 string      (x64)
 *
 * Strangers' text ends here; it runs without capabilities. It looks at sysfs (of PMUs) and at
 * the files that uprobes name, with the rights of who runs it: the daemon's user.
 */
#pragma once

#include <stddef.h>

#include "daemon/order.h"

/*
 * Parses text into at most cap sources (filter and n_filter 0). Returns their number (> 0), or:
 * -EINVAL (the text is wrong); -E2BIG (more than cap); -ENOENT (no such file, function, PMU or PMU
 * event); -EACCES (the daemon may not read the file); -EOPNOTSUPP (valid perf syntax that is not
 * recorded). On an error `sentence` names the wrong part of the text and a correction.
 */
int pp_spec_parse(const char *text, struct pp_source *sources, size_t cap, char *sentence,
		  size_t size);

/*
 * Whether the text names a probe or a breakpoint. Call this before parsing if not everybody may
 * have those: it looks at no file.
 */
bool pp_spec_has_probe(const char *text);
