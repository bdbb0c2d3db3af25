/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the recorder of sampling events tells the rest of the engine. */
#ifndef PP_OVERFLOW_H
#define PP_OVERFLOW_H

#include <linux/perf_event.h>

#include "daemon/order.h"

/* The event as it is opened, and as the rings' headers describe it. */
void overflow_attr(const struct pp_spec *spec, struct perf_event_attr *ret);

#endif
