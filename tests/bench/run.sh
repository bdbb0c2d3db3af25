#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Measures what recording costs and how long readers wait, beside other tools, and compares the
# figures with our bars: tests/bench/run.sh [BUILD]
#
# Uses its own instance and mount namespace, and leaves nothing on the machine. Medians go to
# BUILD/bench.json, with the quartiles under "quartiles". A missed bar is shown but is not a
# failure: machines differ, and neighbours are noisy. ROUNDS (15) is how often the costs are
# measured. PARTS is what is measured, all of it by default; a part that fails does not
# cost the others their figures.

set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
BUILD=${1:-build}
ROUNDS=${ROUNDS:-15}
all_parts="costs options latency trigger file page many"
PARTS=${PARTS:-$all_parts}
for name in $PARTS; do
	[[ " $all_parts " == *" $name "* ]] ||
		{ echo "bench: PARTS has '$name', which is none of: $all_parts" >&2; exit 2; }
done
for program in perfpersistd perfctl tests/bench-cost tests/bench-options tests/bench-latency \
	tests/bench-many tests/bench-file tests/bench-trigger; do
	[ -x "$BUILD/$program" ] || { echo "bench: $BUILD/$program is not built; type: make bench" >&2; exit 1; }
done

if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || { echo "bench: needs root, and there is no sudo here" >&2; exit 1; }
	exec sudo ROUNDS="$ROUNDS" PARTS="$PARTS" bash "$0" "$BUILD"
fi
if [ "${PP_BENCH_MOUNTS-}" != own ]; then
	PP_BENCH_MOUNTS=own exec unshare --mount --propagation private bash "$0" "$BUILD"
fi

export BUILD PP_TEST_INSTANCE=bench$$
. tests/lib.sh
TRACEFS=/sys/kernel/tracing
[ -e $TRACEFS/instances ] || mount -t tracefs tracefs $TRACEFS || skip "there is no tracefs to mount"

# ── measuring ────────────────────────────────────────────────────────────────────────────

RESULTS=$SCRATCH/results

# result KEY [COLUMN]: the median, or another column.
result() {
	awk -v key="$1" -v column="${2:-2}" '$1 == key { print $column }' "$RESULTS"
}

# milliseconds COMMAND…: how long it takes.
milliseconds() {
	local began=$EPOCHREALTIME

	"$@" >/dev/null 2>&1 || fail "$* fails"
	awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print (b - a) * 1000 }'
}

# A page of switches, wakeups and samples with call chains, beside `perf script` of the same file, both
# as for 500,000 records.
measure_page() {
	local data=$SCRATCH/page.data records _

	perfctl create page/sched -e sched:sched_switch,sched:sched_wakeup,sched:sched_waking -m 64M >/dev/null
	perfctl create page/samples -e cpu-clock -F 4999 -g -m 32M >/dev/null
	perf bench sched pipe -l 100000 >/dev/null
	records=$(perfctl snapshot page/ -o "$data" --json 2>/dev/null | jq .records)
	perfctl delete page/sched page/samples >/dev/null
	for _ in $(seq $((ROUNDS / 3 + 1))); do
		printf 'page_ms %s\n' "$(milliseconds perfctl report -i "$data" --html "$SCRATCH/page.html")"
		printf 'perf_script_ms %s\n' "$(milliseconds perf script -i "$data")"
	done | sort -k1,1 -k2,2n | awk -v scale="$records" '
		{ all[$1, ++n[$1]] = $2 * 500000 / scale }
		function at(key, part) { return all[key, int(1 + (n[key] - 1) * part + 0.5)] }
		END { for (key in n) print key, at(key, 0.5), at(key, 0.25), at(key, 0.75) }'
	rm -f "$data" "$SCRATCH/page.html"
}

# part NAME WHAT COMMAND…: the command's figures. It runs in the background so that the shell handles a
# signal at once.
unmeasured=()
part() {
	local name=$1 what=$2

	shift 2
	[[ " $PARTS " == *" $name "* ]] || return 0
	spawn "$@" >>"$RESULTS"
	wait "$SPAWNED" && return
	unmeasured+=("$what")
	perfctl delete --all >/dev/null 2>&1 # its events, which the next part would pay for
}

start_daemon
mkdir "$SCRATCH/files"
: >"$RESULTS"
printf 'perfpersist on Linux %s, %d CPUs, %s\n' "$(uname -r)" "$(nproc)" \
	"$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
printf '\nMeasuring, which takes up to half an hour:\n'
part costs "the costs" "$BIN/bench-cost" "$INSTANCE" "$TRACEFS" "$SCRATCH" "$ROUNDS"
part options "the cost of options" "$BIN/bench-options" "$INSTANCE" $((ROUNDS / 3 + 1))
part latency "the latencies" "$BIN/bench-latency" "$INSTANCE"
part trigger "how fast triggers freeze" "$BIN/bench-trigger" "$INSTANCE" "$TRACEFS" "$SCRATCH" 500
part file "the time to a file" "$BIN/bench-file" "$INSTANCE" "$BIN/perfctl" "$SCRATCH/files" "$ROUNDS"
if command -v perf >/dev/null; then part page "the time to a page" measure_page; fi
part many "the cost of many events" "$BIN/bench-many" "$INSTANCE" "$TRACEFS"
stop_daemon

# ── output ───────────────────────────────────────────────────────────────────────────────

if [ -t 1 ]; then
	BOLD=$'\e[1m' GREEN=$'\e[32m' RED=$'\e[31m' PLAIN=$'\e[0m'
else
	BOLD='' GREEN='' RED='' PLAIN=''
fi

heading() {
	printf '\n%s%s%s\n' "$BOLD" "$1" "$PLAIN"
}

# row UNIT KEY TEXT
row() {
	if [ -z "$(result "$2")" ]; then
		printf '  %-52s %10s\n' "$3" "-"
		return
	fi
	printf '  %-52s %10.1f %s   (%.1f … %.1f)\n' "$3" "$(result "$2")" "$1" "$(result "$2" 3)" \
		"$(result "$2" 4)"
}

# bar LIMIT KEY OTHER TEXT: KEY is at most LIMIT times OTHER, which is a key, or 1.
missed=0
bar() {
	local value other=1 met=1

	value=$(result "$2")
	[ "$3" = 1 ] || other=$(result "$3")
	if [ -z "$value" ] || [ -z "$other" ]; then
		printf '  -     %s: not measured\n' "$4"
		return
	fi
	awk -v a="$value" -v b="$other" -v limit="$1" 'BEGIN { exit !(a <= limit * b) }' || met=0
	awk -v a="$value" -v b="$other" -v limit="$1" -v text="$4" -v met=$met \
		-v pass="${GREEN}PASS${PLAIN}" -v miss="${RED}MISS${PLAIN}" 'BEGIN {
		ratio = a / b
		printf "  %s  %-60s %7.2f, bar %g", met ? pass : miss, text, ratio, limit
		if (!met)
			printf ", missed by %.0f %%", 100 * (ratio / limit - 1)
		print ""
	}'
	missed=$((missed + 1 - met))
}

rounds=$(result rounds | sed 's/\..*//')
[ "${rounds:=$ROUNDS}" -eq "$ROUNDS" ] ||
	printf '%d rounds are left out: somebody else recorded system calls meanwhile.\n' $((ROUNDS - rounds))

heading "Added cost per event: 2 M close(-1), raw_syscalls:sys_enter and sys_exit (median of $rounds, quartiles)"
row ns empty_ns "empty tp_btf programs"
row ns empty_tracepoint_ns "empty tracepoint programs"
row ns recorder_ns "perfpersist, tp_btf recorders"
row ns generic_ns "perfpersist, generic recorders"
row ns ftrace_ns "ftrace"
row ns ftrace_mono_ns "ftrace with the clock that perf and we have"
row ns perf_overwrite_ns "perf record --overwrite"
row ns chains_ns "perfpersist, with call chains"
row ns perf_chains_ns "perf record --overwrite -g"
row ns stacks_ns "perfpersist, with registers and stack"
row ns perf_stacks_ns "perf record --overwrite --call-graph dwarf"
if [ -n "$(result bpftrace_chains_ns)" ]; then
	row ns bpftrace_chains_ns "bpftrace, which counts by call chain and keeps no record"
else
	echo "  (bpftrace is not installed)"
fi
row ns bare_ns "for comparison: the whole call with nothing attached"

heading "When a trigger fires: how long another CPU goes on writing to what is frozen (median of 500, quartiles)"
row ns frozen_after_record_ns "perfpersist, after the trigger's record"
row ns frozen_after_record_p99_ns "  99th percentile (least … most)"
row ns frozen_late_ns "  after the call that fires was begun"
row ns frozen_late_p99_ns "  99th percentile (least … most)"
row ns traceoff_late_ns "ftrace, traceoff trigger, after the call was begun"
row ns traceoff_late_p99_ns "  99th percentile (least … most)"
row ns switch_output_late_ns "perf record --switch-output-event (of 10)"

heading "What options add to it: raw_syscalls:sys_enter alone (median of $((ROUNDS / 3 + 1)), quartiles)"
row ns plain_ns "tp_btf recorder, no options"
row ns filter_all_ns "  with a filter that lets all pass"
row ns filter_none_ns "  with a filter that lets none pass"
row ns high_rate_ns "  with a rate limit that lets all pass"
row ns low_rate_ns "  with a rate limit that keeps nearly all out"
row ns two_sources_ns "  two events in one ring, per record"
row ns armed_added_ns "  what a trigger armed on it adds, by turns"
row ns generic_plain_ns "generic recorder, no options"
row ns generic_armed_added_ns "  what a trigger armed on it adds, by turns"
row ns generic_filter_all_ns "  with a filter that lets all pass"
row ns generic_filter_none_ns "  with a filter that lets none pass"
row ns generic_low_rate_ns "  with a rate limit that keeps nearly all out"
row ns polled_ns "tp_btf recorder, followed every 10 ms on another CPU"
row ns busy_reader_ns "tp_btf recorder, followed without a pause"
row ns copied_ns "tp_btf recorder, copied for a reader every 10 ms"
row ns busy_copier_ns "tp_btf recorder, copied for a reader without a pause"

heading "Reopening by name, 2 CPUs: descriptors received, rings of 512 KiB mapped and checked"
row us reopen_us "on a connection that is there"
row us reopen_connect_us "connecting included"
row us reopen_map_us "of it: the kernel's mmap of both rings"
row us reopen_rest_us "so that the rest is, on a connection that is there"
row us socket_us "for comparison: a socket's round trip, two descriptors"

heading "A snapshot of full rings that are mapped, beside a memcpy of as many bytes"
row us snapshot_us "2 x 512 KiB, into memory used before"
row us memcpy_us "memcpy of 1 MiB, into memory used before"
row us snapshot_fresh_us "2 x 512 KiB, a process's first, into new memory"
row us memcpy_fresh_us "memcpy of 1 MiB, into new memory"
row us snapshot_64m_us "2 x 64 MiB, into memory used before"
row us memcpy_64m_us "memcpy of 128 MiB, into memory used before"
row us snapshot_64m_fresh_us "2 x 64 MiB, a process's first, into new memory"
row us memcpy_64m_fresh_us "memcpy of 128 MiB, into new memory"

heading "The past in a file: 2 x 512 KiB of raw_syscalls, $ROUNDS times in turn"
row ms file_ms "perfctl snapshot, from the command to its end"
row ms perf_file_ms "perf record --overwrite, from SIGUSR2 to its file"
row ns call_ns "a recorded close(-1), nobody reading"
row ns call_during_file_ns "a recorded close(-1) while snapshots are written"

if [ -n "$(result page_ms)" ]; then
	heading "A page of 500,000 records: switches, wakeups, samples with call chains"
	row ms page_ms "perfctl report --html"
	row ms perf_script_ms "perf script of the same file, as text"
fi

heading "Many: 1,000 events in 50 namespaces, and syscalls:* created and deleted beside them"
row us list_us "a list of all"
row ms create_large_ms "creating syscalls:*"
row us beside_p99_us "ping, show or open meanwhile, 99th percentile (median … longest)"

heading "Bars"
bar 0.90 recorder_ns ftrace_ns "tp_btf recorder / ftrace"
bar 0.35 recorder_ns perf_overwrite_ns "tp_btf recorder / perf record --overwrite"
bar 1.05 generic_ns ftrace_ns "generic recorder / ftrace"
bar 1.00 chains_ns perf_chains_ns "with call chains / perf record --overwrite -g"
bar 1.00 stacks_ns perf_stacks_ns "with user stacks / perf record --call-graph dwarf"
bar 2 armed_added_ns 1 "a trigger armed on an event, ns a record"
bar 2 generic_armed_added_ns 1 "  the same, generic recorder"
bar 500 frozen_after_record_p99_ns 1 "how long another CPU goes on after a trigger's record, 99th pct, ns"
bar 1 frozen_late_ns traceoff_late_ns "… after the call that fires was begun / ftrace's traceoff"
bar 60 reopen_rest_us 1 "reopening by name, without the kernel's mmap, us"
bar 100 reopen_connect_us 1 "reopening by name, connecting and mmap included, us"
bar 10000 list_us 1 "a list of 1,000 events, us"
bar 5000 beside_p99_us 1 "99th percentile of others' requests meanwhile, us"
bar 0.25 file_ms perf_file_ms "perfctl snapshot / perf record --overwrite, to a file"
[ -z "$(result page_ms)" ] || bar 5000 page_ms 1 "a page of 500,000 records, ms"
bar 1.05 call_during_file_ns call_ns "a recorded call while snapshots are written / else"
bar 1.5 snapshot_us memcpy_us "snapshot / memcpy, 2 x 512 KiB"
bar 1.5 snapshot_fresh_us memcpy_fresh_us "snapshot / memcpy, 2 x 512 KiB, new memory"
bar 1.5 snapshot_64m_us memcpy_64m_us "snapshot / memcpy, 2 x 64 MiB"
bar 1.5 snapshot_64m_fresh_us memcpy_64m_fresh_us "snapshot / memcpy, 2 x 64 MiB, new memory"

jq -nR '[inputs | split(" ")] | (map({ key: .[0], value: .[1] | tonumber }) | from_entries) +
	{ quartiles: (map({ key: .[0], value: .[2:4] | map(tonumber) }) | from_entries) }' \
	<"$RESULTS" >"$BUILD/bench.json"
printf '\n%d bars missed; the medians are in %s\n' "$missed" "$BUILD/bench.json"
for what in "${unmeasured[@]}"; do
	echo "bench: $what could not be measured; its own message is above" >&2
done
[ ${#unmeasured[@]} -eq 0 ]
