#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For test-adopt.sh, in the guest: a CPU goes offline, and the perf events on it are dead from then on.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../integration/adopter.sh"

put_cpu() {
	echo "$2" >"/sys/devices/system/cpu/cpu$1/online"
}

# "CPU ALIVE" of each perf event, as the kernel has it.
counters() {
	perfctl show --fds t/clock --json | jq -r '.fds[] | select(.kind == "counter") | "\(.cpu) \(.alive)"' | xargs
}

start_daemon
expect_ok "$ADOPTER" adopt "$SOCKET" clock clock
expect_eq "$(counters)" "0 true 1 true"
open_events clock
put_cpu 1 0
expect_eq "$(counters)" "0 true 1 false" "of which the second CPU is offline"
expect_exit 1 perfctl adopt t/gone -e cpu-clock -c 1000000 --pid "$OPENER" --fd "$FDS"
expect_match "$OUT" "Perf event 1 is dead: .* its CPU has gone offline"
put_cpu 1 1
expect_eq "$(counters)" "0 true 1 false" "of which the second CPU is online again"
ended "$OPENER"
