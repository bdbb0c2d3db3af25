#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A kernel that panics: once as a test means it to, and once as it does not.
. "$(dirname "$0")/../lib.sh"
[ "$PHASE" -gt 1 ] || next_boot
echo "boot $PHASE"
echo c >/proc/sysrq-trigger
sleep infinity
