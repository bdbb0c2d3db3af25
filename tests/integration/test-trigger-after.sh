#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Triggers that let their targets go on: `--after` holds exactly as many records of each, or as much
# time to the record, as asked, of every recorder, beside writers on all CPUs, and whoever is killed
# in the window; a quiet machine, a pause and a deletion end it, too.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"

command -v perf >/dev/null || skip "needs perf"
command -v jq >/dev/null || skip "needs jq"
MARK=$SCRATCH/mark-$$
cp "$(type -P true)" "$MARK"
NUMBERED=$SCRATCH/num-$$
cp "$BIN/numbered" "$NUMBERED"
NAME=${NUMBERED##*/}
ON_MARK=(--on sched:sched_process_exec --filter "filename ~ \"*/${MARK##*/}\"")
SPOOL=$SCRATCH/spool
mkdir "$SPOOL"

is_armed() {
	[ "$(perfctl trigger show "$1" --json | json_field n_armed)" = "$2" ]
}

armed() {
	wait_until 20 is_armed "$@" || fail "$1 has not $2 targets armed: $(perfctl trigger show "$1")"
}

# is_turned TRIGGER: the windows of all targets are over; for wait_until.
is_turned() {
	[ "$(perfctl trigger show "$1" --json | json_field tapes)" = "${#NAMES[@]}" ]
}

# late_is TRIGGER N
late_is() {
	expect_eq "$(perfctl trigger show "$1" --json | json_field late)" "$2" "late"
}

# collect: FILE is the next snapshot, and the only one.
collect() {
	_collected() {
		perfctl snapshots collect --once -D "$SPOOL" >>"$LOG" 2>&1
		compgen -G "$SPOOL/*.data"
	}
	rm -f "$SPOOL"/*.data
	wait_until 20 _collected || fail "no snapshot"
	expect_eq "$(find "$SPOOL" -name '*.data' | wc -l)" 1 "snapshots"
	FILE=$(perfctl snapshots show -D "$SPOOL")
	perf script --ns -i "$FILE" -F time,event >"$SCRATCH/records" 2>/dev/null
}

# in_file EVENT: its records in FILE.
in_file() {
	grep -cE ": +$1:" "$SCRATCH/records" || true
}

# write N: N numbered calls on each CPU, in as many processes, all at once; and N/4 of the probe.
write() {
	local pids=() i
	for ((i = 0; i < $(nproc); i++)); do
		"$NUMBERED" $((NEXT + i * $1)) "$1" &
		pids+=($!)
	done
	NEXT=$((NEXT + $(nproc) * $1))
	[ -z "$PROBE" ] || "$BIN/probe-target" $(($1 / 4)) <<<'' >/dev/null
	wait "${pids[@]}"
}
NEXT=$((0x50000000))

# ── every kind of target, to the record ──────────────────────────────────────────────────

start_daemon
NAMES=(calls returns several samples)
declare -A EVENT=([calls]=raw_syscalls:sys_enter [returns]=raw_syscalls:sys_exit
	[several]='(syscalls:sys_enter_close|sched:sched_switch)' [samples]=page-faults [probe]='[^ ]*pp_work[^ ]*')
perfctl create e/calls -e raw_syscalls:sys_enter --filter 'id == 3' --comm "$NAME" -m 2M >/dev/null
perfctl create e/returns -e raw_syscalls:sys_exit --generic --comm "$NAME" -m 2M >/dev/null
perfctl create e/several -e syscalls:sys_enter_close,sched:sched_switch --comm "$NAME" -m 2M >/dev/null
perfctl create e/samples -e page-faults -c 1 --comm "$NAME" -m 2M >/dev/null
PROBE=
if perfctl create e/probe -e "uprobe:$BIN/probe-target:pp_work" -m 2M >/dev/null 2>&1; then
	NAMES+=(probe)
	PROBE=1
else
	echo "SKIP: this kernel has no uprobes"
fi

# Before the trigger fires; nothing writes then.
remember_records() {
	local name
	for name in "${NAMES[@]}"; do
		BEFORE[$name]=$(records_of "e/$name")
	done
}
declare -A BEFORE=() SAVED=() EXTRA=()

# expect_after N: FILE has all records from before, and N of each target after the firing; each record
# ever written is in one snapshot or in the buffers.
expect_after() {
	local name n left
	for name in "${NAMES[@]}"; do
		n=$(in_file "${EVENT[$name]}")
		left=$(perfctl reopen "e/$name" -n all --json 2>/dev/null | wc -l)
		expect_eq $((SAVED[$name] + n)) $((BEFORE[$name] + $1)) "records of $name until the end of the window"
		SAVED[$name]=$((SAVED[$name] + n))
		expect_eq $((SAVED[$name] + left)) "$(records_of "e/$name")" "records of $name, saved and in the buffers"
		# Page faults come while other programs run.
		[ "$name" = samples ] || expect_eq "$(stat_of "e/$name" missed | tr -d +)" 0 "missed records of $name"
	done
}


# window FIRE OPTION…: a window of a new trigger, with records before it, in it and after it.
window() {
	perfctl trigger add e/t "${ON_MARK[@]}" "${@:2}" '*' >/dev/null
	armed e/t ${#NAMES[@]}
	write 100
	remember_records
	"$1"
	write 200
	collect
	late_is e/t 0
	perfctl trigger remove e/t >/dev/null
}

by_hand() {
	perfctl trigger fire e/t >/dev/null
}

by_record() {
	"$MARK"
}

# The engine is away while the window is open.
engine_dies() {
	"$MARK"
	kill_engine
}

broker_dies() {
	"$MARK"
	kill_broker
	wait_until 20 _no_processes
	write 100
	start_daemon
}

windows=0
fires=(by_record engine_dies)
! full || fires+=(by_hand broker_dies)
for ((i = 0; i < $(length 1 10); i++)); do
	for fire in "${fires[@]}"; do
		window "$fire" --after 20r
		expect_after 20
		windows=$((windows + 1))
	done
done
echo "$windows windows of 20 records: exactly as many of each of ${#NAMES[@]} targets, on $(nproc) CPUs at once"

# ── to the nanosecond ────────────────────────────────────────────────────────────────────

# deadline TRIGGER: when its last window was over, in seconds, as records have it.
deadline() {
	local bytes
	bytes=$(bpftool map lookup pinned "$(find "$REGISTRY" -name trigger)" key 0 0 0 0 --json | jq -r '.value[8:16] | reverse | .[]' | sed 's/0x//' | tr -d '\n')
	awk -v n=$((16#$bytes + $1)) 'BEGIN { printf "%d.%09d\n", int(n / 1000000000), n % 1000000000 }'
}

# expect_until DEADLINE: all records up to it are in FILE, none later, and the first ones after it in
# the buffers.
expect_until() {
	local name last first left
	for name in "${NAMES[@]}"; do
		last=$(grep -E ": +${EVENT[$name]}:" "$SCRATCH/records" | tail -n 1 | sed 's/: .*//; s/ //g')
		perfctl reopen "e/$name" -n all --json 2>/dev/null >"$SCRATCH/left"
		first=$(head -n 1 "$SCRATCH/left" | jq -r .time)
		left=$(wc -l <"$SCRATCH/left")
		[[ ! $last > $1 ]] || fail "$name has a record of $last, after $1"
		[ "$left" = 0 ] || [[ $first > $1 ]] || fail "$name has a record of $first in its new buffers, and the window was open until $1"
		[ "$left" -gt 0 ] || fail "$name has nothing after the window"
		SAVED[$name]=$((SAVED[$name] + $(in_file "${EVENT[$name]}")))
		expect_eq $((SAVED[$name] + left)) "$(records_of "e/$name")" "records of $name, saved and in the buffers"
	done
}

# Writes until $SCRATCH/enough is there; no more than leaves room in a buffer for twice as much, also if all
# of it happens on one CPU: what is overwritten is in no snapshot.
spawn_writers() {
	rm -f "$SCRATCH/enough"
	(
		trap - EXIT ERR
		for ((i = 0; i < 6000 / 100 / $(nproc); i++)); do
			[ -e "$SCRATCH/enough" ] || write 100
		done
	) &
	WRITERS=$!
	_spawned+=("$WRITERS")
}

TIME=20000000
perfctl trigger add e/t "${ON_MARK[@]}" --hold-off 10s --after 20ms '*' >/dev/null
armed e/t ${#NAMES[@]}
for ((i = 0; i < $(length 1 20); i++)); do
	spawn_writers
	"$MARK"
	wait_until 20 is_turned e/t || fail "the window stays open: $(perfctl trigger show e/t)"
	touch "$SCRATCH/enough"
	wait "$WRITERS"
	write 100
	collect
	expect_until "$(deadline $TIME)"
	perfctl trigger remove e/t >/dev/null
	perfctl trigger add e/t "${ON_MARK[@]}" --after 20ms '*' >/dev/null
	armed e/t ${#NAMES[@]}
done
perfctl trigger remove e/t >/dev/null
echo "$i windows of 20 ms beside writers on all CPUs: no record of a target is on the wrong side of the end"

# ── and when nothing happens ─────────────────────────────────────────────────────────────

# What is asked for never comes, or nothing does.
for after in 1000000r,100ms $(length "" 100ms); do
	perfctl trigger add e/t "${ON_MARK[@]}" --after "$after" '*' >/dev/null
	armed e/t ${#NAMES[@]}
	remember_records
	"$MARK"
	collect
	expect_after 0
	perfctl trigger remove e/t >/dev/null
done
echo "a quiet machine ends the window, too"

# A change of a target ends its window; a second firing finds that open, and is late.
perfctl trigger add e/t "${ON_MARK[@]}" --after 10s '*' >/dev/null
perfctl trigger add e/second "${ON_MARK[@]}" --hold-off 10ms '*' >/dev/null
armed e/t ${#NAMES[@]}
armed e/second ${#NAMES[@]}
remember_records
perfctl trigger fire e/t >/dev/null
perfctl trigger fire e/second >/dev/null
late_is e/second ${#NAMES[@]}
write 100
for name in "${NAMES[@]}"; do
	perfctl pause "e/$name" >/dev/null
	EXTRA[$name]=$(($(records_of "e/$name") - BEFORE[$name]))
	perfctl resume "e/$name" >/dev/null
done
write 100
collect
for name in "${NAMES[@]}"; do
	n=$(in_file "${EVENT[$name]}")
	expect_eq $((SAVED[$name] + n)) $((BEFORE[$name] + EXTRA[$name])) "records of $name until it was paused"
done
echo "a pause ends the window at once; who fires in it is late"

# ── what is refused ──────────────────────────────────────────────────────────────────────

said 2 'longer hold-off' perfctl trigger add e/x "${ON_MARK[@]}" --hold-off 1s --after 2s calls
said 2 'for a minute' perfctl trigger add e/x "${ON_MARK[@]}" --hold-off 1h --after 2m calls
said 2 'at most 1000000000' perfctl trigger add e/x "${ON_MARK[@]}" --after 1000000001r calls
for after in 0r r 5ms,5ms 5r,5r '5ms,' -1r 5x ''; do
	said 2 'neither a time' perfctl trigger add e/x "${ON_MARK[@]}" --after "$after" calls
done
stop_daemon
