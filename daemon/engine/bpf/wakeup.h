/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What recorders send to wake readers: shared with the broker, which takes it. */
#pragma once

#include "daemon/wakeup.h"
