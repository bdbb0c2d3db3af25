#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Filters: generated ones on real tracepoints, with numbers, fixed and dynamic strings and globs,
# agree record for record with an evaluation of the unfiltered stream that shares no code with them.
# FILTERS (24; at full length 300) is how many each tracepoint gets, SEED seeds the generator. Then
# the shorthands, and that a filter belongs to the -e before it.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"

start_daemon

N=${FILTERS:-$(length 24 300)} # of each of these
seed=${SEED:-$$}
echo "seed $seed"

for what in \
	"raw_syscalls:sys_enter mine tp_btf" \
	"raw_syscalls:sys_exit mine tp_btf" \
	"raw_syscalls:sys_exit mine generic" \
	"sched:sched_switch mine tp_btf" \
	"sched:sched_switch mine generic" \
	"sched:sched_process_exec childrens tp_btf" \
	"sched:sched_process_exec childrens generic" \
	"syscalls:sys_enter_lseek mine generic" \
	"signal:signal_generate mine generic" \
	"task:task_rename mine generic"; do
	read -r event whose recorder <<<"$what"
	[ "$recorder $event" = "tp_btf sched:sched_switch" ] || [ "$recorder" = generic ] || hot_calls || continue
	"$BIN/filter-check" "$INSTANCE" f "$event" "$whose" "$recorder" "$N" "$seed"
done

# ── perfctl's words ──────────────────────────────────────────────────────────────────────

# The records of `true`, by tracepoint name.
seen() {
	perfctl reopen "$1" -n all --json 2>/dev/null | jq -r "$2" | sort | uniq -c | awk '{ $1 = $1; print }'
}

cp /bin/true "$BIN/pp-yes"
cp /bin/true "$BIN/pp-no"
perfctl create f/comm -e raw_syscalls:sys_enter --comm 'pp-y*' >/dev/null
perfctl create f/each -e sched:sched_process_exec --filter 'filename ~ "*/pp-yes"' \
	-e sched:sched_process_exit --filter 'comm == "pp-no"' >/dev/null
"$BIN/pp-yes"
"$BIN/pp-no"
[ "$(records_of f/comm)" -gt 5 ] || fail "--comm: nothing recorded"
expect_eq "$(perfctl show f/comm --json | jq -r .filter)" 'COMM ~ "pp-y*"' "the filter"
expect_eq "$(seen f/each .event)" "1 sched:sched_process_exec
1 sched:sched_process_exit" "each -e has its own filter"
expect_eq "$(seen f/each '.fields.filename // .fields.comm | sub(".*/"; "")')" "1 pp-no
1 pp-yes" "what fitted"

spawn sleep 60
perfctl create f/pid -e sched:sched_process_exit -p "$SPAWNED,1" >/dev/null
"$BIN/pp-yes"
kill "$SPAWNED"
wait "$SPAWNED" || true
expect_eq "$(seen f/pid .tid)" "1 $SPAWNED" "--pid"

cgroup=$(sed -n 's/^[0-9]* [0-9]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)
if [ -n "$cgroup" ] && mkdir "$cgroup/pp-$INSTANCE" 2>/dev/null; then
	no_cgroups() {
		find "$cgroup/pp-$INSTANCE" "$cgroup/pp-$INSTANCE.slice" -depth -type d -exec rmdir {} + 2>/dev/null
	}
	at_end() {
		no_cgroups || true
	}
	perfctl create f/cgroup -e sched:sched_process_exec --cgroup "/pp-$INSTANCE" >/dev/null
	"$BIN/pp-no"
	(echo $BASHPID >"$cgroup/pp-$INSTANCE/cgroup.procs" && exec "$BIN/pp-yes")
	expect_eq "$(seen f/cgroup '.fields.filename | sub(".*/"; "")')" "1 pp-yes" "--cgroup"
	expect_exit 3 perfctl create f/none -e sched:sched_process_exec --cgroup "/pp-none-$INSTANCE"

	# A unit by its name: in whatever slice; one of that name inside another unit is somebody's own.
	unit=pp-$INSTANCE.service slice=pp-$INSTANCE.slice
	mkdir -p "$cgroup/pp-$INSTANCE/$unit" "$cgroup/$slice/pp-$INSTANCE-a.slice"
	expect_exit 3 perfctl create f/unit -e sched:sched_process_exec --cgroup "$unit"
	mkdir "$cgroup/$slice/pp-$INSTANCE-a.slice/$unit"
	perfctl create f/unit -e sched:sched_process_exec --cgroup "$unit" >/dev/null
	(echo $BASHPID >"$cgroup/pp-$INSTANCE/$unit/cgroup.procs" && exec "$BIN/pp-no")
	(echo $BASHPID >"$cgroup/$slice/pp-$INSTANCE-a.slice/$unit/cgroup.procs" && exec "$BIN/pp-yes")
	expect_eq "$(seen f/unit '.fields.filename | sub(".*/"; "")')" "1 pp-yes" "--cgroup UNIT"
	no_cgroups
else
	echo "no cgroup can be made here (no cgroup2, or not ours): --cgroup was not tried"
fi

# ── bad ones ─────────────────────────────────────────────────────────────────────────────

bad() {
	expect_exit 2 perfctl create f/bad -e sched:sched_switch --filter "$1"
	expect_match "$OUT" "$2" "the sentence about $1"
	expect_eq "$(wc -l <<<"$OUT")" 1 "lines about $1"
}

bad 'prev_pidd == 1' 'prev_pidd.*prev_pid'
bad 'prev_pid == "x"' 'prev_pid'
bad 'prev_comm == 1' 'prev_comm'
bad 'prev_pid =' 'byte'
bad '(prev_pid == 1' '\)'
bad 'prev_pid == 1 &&' 'ends|end|missing|expected'
expect_exit 3 perfctl show f/bad
