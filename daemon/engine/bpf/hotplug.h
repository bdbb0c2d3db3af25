/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared with the broker and with clients, which read it: when each CPU went offline. */
#pragma once

#include "daemon/hotplug.h"
