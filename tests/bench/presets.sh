#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Measures what each preset costs and how far back it reaches: tests/bench/presets.sh [BUILD]. For a
# load that it records, prints the CPU time that it adds to an operation, records and bytes of one,
# and the history of each buffer at a rate that people know; then the history on the machine as it is
# now. The presets' own words (conf/presets) come from here. ROUNDS (5) with the preset and without
# alternate, and medians are shown; a load takes BENCH_MSEC (400) of each; IDLE (5) seconds are idle.

BUILD=${1:-${BUILD:-build}}
export BUILD PP_TEST_INSTANCE=${PP_TEST_INSTANCE:-bench$$}
. "$(dirname "$0")/../lib.sh"

ROUNDS=${ROUNDS:-5}
IDLE=${IDLE:-5}
MSEC=${BENCH_MSEC:-400}
CPUS=$(nproc)
UNIT=$INSTANCE.service
# A rate on each CPU that people know.
declare -A RATE=([switches]=20000 [calls]=10000 [programs]=10 [connections]=1000 [disk]=1000)
declare -A LOADS=([flight]="switches programs disk" [latency]=switches [network]=connections
	[syscalls]=calls [coredump]=calls)

install -d -m 0755 "$SCRATCH/presets" "$CONF.d"
install -m 0644 "$ROOT"/conf/presets/*.conf "$SCRATCH/presets/"
PRESETS=(--presets "$SCRATCH/presets" -D "$CONF.d")

# For the preset of one unit: a cgroup of this name, in which the loads run.
hierarchy=$(sed -n 's/^[0-9]* [0-9]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)
if [ -n "$hierarchy" ] && mkdir "$hierarchy/$UNIT" 2>/dev/null; then
	at_end() {
		rmdir "$hierarchy/$UNIT" 2>/dev/null || true
	}
else
	UNIT=
fi

# load KIND OPERATIONS: "operations ns seconds".
load() {
	(
		[ -z "$UNIT" ] || echo "$BASHPID" >"$hierarchy/$UNIT/cgroup.procs"
		exec "$BIN/bench-presets" "$1" "$2" "$SCRATCH"
	)
}

median() {
	sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}

# events PRESET: NAMESPACE/NAME BUFFER records bytes, of each of its events now.
events() {
	local name
	for name in $(perfctl list "$1" --json | jq -r '.[] | "\(.namespace)/\(.name)"'); do
		echo "$name $(perfctl show "$name" --json | jq .buffer) $(stat_of "$name" records) $(stat_of "$name" bytes)"
	done
}

# per N RATE LEAST: what came from one `events` (file before) to the next (after): records and bytes of
# one of N operations, and the history at RATE of them a second on each CPU. Events with fewer than
# LEAST records of one have others, which do not come with the load.
per() {
	join "$SCRATCH/before" "$SCRATCH/after" | awk -v n="$1" -v rate="$2" -v least="$3" '
		function span(s) {
			return s < 0 ? "for ever" : s >= 5940 ? sprintf("%.1f h", s / 3600) : s >= 99 ? sprintf("%.0f min", s / 60) : sprintf("%.1f s", s)
		}
		{
			records = $6 - $3; bytes = $7 - $4
			if (records / n < least)
				next
			history = bytes ? $2 / (bytes / n * rate) : -1
			printf "    %-22s %9.3f records, %4.0f bytes each; %s\n", $1, records / n, records ? bytes / records : 0, span(history)
		}'
}

enable() {
	perfctl preset enable "$@" "${PRESETS[@]}" >/dev/null
}

disable() {
	perfctl preset disable "$@" "${PRESETS[@]}" >/dev/null
}

# operations KIND: as many as take MSEC.
operations() {
	load "$1" 200 | awk -v msec="$MSEC" -v cpus="$CPUS" '{ n = int($1 / cpus * msec / 1000 / $3); print n < 100 ? 100 : n }'
}

# measure LOAD PRESET [UNIT]
measure() {
	local kind=$1 n result
	shift
	n=$(operations "$kind")
	n=$(load "$kind" "$n" | awk -v msec="$MSEC" -v n="$n" '{ print int(n * msec / 1000 / $3) }')
	: >"$SCRATCH/with"
	: >"$SCRATCH/without"
	for ((i = 0; i < ROUNDS; i++)); do
		load "$kind" "$n" | awk '{ print $2 }' >>"$SCRATCH/without"
		enable "$@"
		events "$1" >"$SCRATCH/before"
		result=$(load "$kind" "$n")
		events "$1" >"$SCRATCH/after"
		awk '{ print $2 }' <<<"$result" >>"$SCRATCH/with"
		disable "$@"
	done
	awk -v kind="$kind" -v rate="${RATE[$kind]}" -v without="$(median <"$SCRATCH/without")" -v with="$(median <"$SCRATCH/with")" 'BEGIN {
		printf "  %s: %.0f ns of CPU time each, and %.0f with it: %+.0f ns, %.2f %% of a CPU at %d a second\n",
			kind, without, with, with - without, (with - without) * rate / 1e7, rate }'
	per "$(awk '{ print $1 }' <<<"$result")" "${RATE[$kind]}" 0.2
}

# idle PRESET [UNIT]
idle() {
	enable "$@"
	events "$1" >"$SCRATCH/before"
	sleep "$IDLE"
	events "$1" >"$SCRATCH/after"
	disable "$@"
	echo "  each second of a CPU, on the machine as it is now:"
	per $((IDLE * CPUS)) 1 0
}

start_daemon
printf 'Linux %s, %d CPUs\n' "$(uname -r)" "$CPUS"
for preset in ${PRESET:-flight latency network syscalls coredump}; do
	name=("$preset")
	[ "$preset" != syscalls ] || name+=("$UNIT")
	[ -n "${name[-1]}" ] || { echo "not measured: $preset, because no cgroup can be made here"; continue; }
	enable "${name[@]}"
	# With the second sets of what its triggers freeze.
	perfctl list "$preset" --json |
		jq -r --arg name "$preset" --argjson cpus "$CPUS" '"\n\($name): \(map(.memory) | add / $cpus / 1048576 * 10 | round / 10) MiB on each CPU"'
	disable "${name[@]}"
	for kind in ${LOADS[$preset]}; do
		measure "$kind" "${name[@]}"
	done
	idle "${name[@]}"
done
stop_daemon
