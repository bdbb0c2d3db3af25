#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A machine that is reset, with no message from its kernel.
. "$(dirname "$0")/../lib.sh"
monitor system_reset
sleep infinity
