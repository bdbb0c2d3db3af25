#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2 --memory 6144 --timeout 3000 --append preempt=lazy
#
# With preempt=lazy on the kernel's command line: integration tests of everything that a preempted
# task could break: recorders, shared rings, readers and filters, sideband, and killed daemons.
# test-exact is not among them: its worker is a real-time task, which can keep a preempted task off
# the CPU, and with it all programs of tracepoints if that task was using a map.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/inside.sh"

expect_preempt lazy
inside several follow rate filter sideband restart
