/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When each CPU went away: shared with the broker and with clients, which read it. */
#pragma once

#include "daemon/hotplug.h"
