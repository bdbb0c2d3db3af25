#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A kernel that panics: once on the test's request, and once unexpectedly.
. "$(dirname "$0")/../lib.sh"
[ "$PHASE" -gt 1 ] || next_boot
echo "boot $PHASE"
echo c >/proc/sysrq-trigger
sleep infinity
