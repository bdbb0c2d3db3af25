/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Event text in perf's syntax, made into a struct pp_source: SYSTEM:NAME for tracepoints,
 * perf's names for software and hardware events, with :modifiers (u k h H G I p).
 * Pure, but for what it is handed. Strangers' text ends here; it runs without capabilities.
 */
#ifndef PP_SPEC_H
#define PP_SPEC_H

#include <stddef.h>

#include "daemon/order.h"

/*
 * Returns 0; -EINVAL (the text is wrong); -EOPNOTSUPP (valid perf syntax that this version
 * does not record). On failure `sentence` says what is wrong with which part of the text and
 * what to write instead; *ret is untouched.
 */
int pp_source_parse(const char *text, struct pp_source *ret, char *sentence, size_t size);

#endif
