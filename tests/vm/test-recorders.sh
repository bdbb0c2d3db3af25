#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2 --memory 4096 --timeout 1500
#
# The guest's kernel accepts every recording program, with each option, and runs it right: verifiers differ
# in what they prove, and in how they count the stack.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/inside.sh"

inside_unit recorders emit-record syscall filter-emit
