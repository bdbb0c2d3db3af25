/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When each CPU went away: shared with the broker and with clients, which read it. */
#ifndef PP_BPF_HOTPLUG_H
#define PP_BPF_HOTPLUG_H

#include "daemon/hotplug.h"

#endif
