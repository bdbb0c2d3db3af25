/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared with the broker, which receives it: the message of recorders that wakes readers. */
#pragma once

#include "daemon/wakeup.h"
