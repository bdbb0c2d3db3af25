#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs short programs at 80 % of the rate that the machine reaches with nothing attached, for
# BENCH_SECONDS (60), and measures sideband: tests/bench/sideband.sh [BUILD]. Also measures other
# load on the machine, which should be small. The test fails if memory exceeds its limit, or if the
# sideband neither names nor counts a program. The bar for the keeper's time is only shown.

BUILD=${1:-${BUILD:-build}}
export BUILD PP_TEST_INSTANCE=${PP_TEST_INSTANCE:-bench$$}
. "$(dirname "$0")/../lib.sh"

results=$SCRATCH/results
start_daemon
spawn "$BIN/bench-sideband" "$INSTANCE" "$SCRATCH" "${BENCH_SECONDS:-60}" >"$results"
wait "$SPAWNED" || fail "sideband does not bear the load: $(xargs <"$results")"
stop_daemon

of() {
	awk -v key="sideband_$1" '$1 == key { print $2 }' "$results"
}

printf 'Linux %s, %d CPUs, fork, exec and exit of a program of one page:\n' "$(uname -r)" "$(nproc)"
printf '  %-52s %10.0f\n' \
	"a second, with nothing attached" "$(of bare_rate)" \
	"a second, for ${BENCH_SECONDS:-60} s, with an event on" "$(of rate)" \
	"programs that ran" "$(of programs)" \
	"  not told of at the end" "$(of missing)" \
	"  processes forgotten for the limit's sake" "$(of forgotten)" \
	"  records that the kernel could not deliver" "$(of lost)" \
	"KiB that the table took at most" "$(awk -v n="$(of memory)" 'BEGIN { print n / 1024 }')" \
	"KiB that it may take" "$(awk -v n="$(of max_memory)" 'BEGIN { print n / 1024 }')"
printf '  %-52s %10.2f %%\n' "the keeper's time, of a CPU" "$(of cpu_percent)" \
	"  for 2,000 programs a second" "$(of cpu_percent_at_2000)"
awk -v n="$(of cpu_percent_at_2000)" 'BEGIN { exit !(n <= 10) }' &&
	echo "PASS  at most 10 % of a CPU at 2,000 a second" ||
	echo "MISS  at most 10 % of a CPU at 2,000 a second"
