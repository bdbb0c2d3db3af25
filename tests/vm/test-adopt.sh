#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2 --memory 2048 --timeout 1500
#
# Adopted perf events on the oldest kernel, whose call chains a program finds only if its entry asks for them;
# and on a CPU that goes offline, with which they die.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/inside.sh"

inside adopt adopt-refused
export BUILD PP_TEST_INSTANCE=offline
expect_ok bash "$(dirname "$0")/adopt-offline.sh"
