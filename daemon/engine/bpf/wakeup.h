/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What recorders send to wake readers: shared with the broker, which takes it. */
#ifndef PP_BPF_WAKEUP_H
#define PP_BPF_WAKEUP_H

#include "daemon/wakeup.h"

#endif
