#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The records of a known workload agree one for one between a snapshot, read by perf script and by
# perfctl script, and a perf record that ran at the same time: system calls with their arguments,
# context switches, fork, exec and exit. Their numbers are the expected ones.
. "$(dirname "$0")/../lib.sh"
command -v perf >/dev/null || skip "there is no perf"

CALLS=2000
SWITCHES=1000
PROGRAMS=20
EVENTS=(raw_syscalls:sys_enter sched:sched_switch sched:sched_process_fork
	sched:sched_process_exec sched:sched_process_exit)

# perf script's records of the workload, without times: "TID EVENT: FIELDS", each thread's in their
# order; for PID only those between the marks.
of_workload() {
	awk -v pid="$PID" -v others="$PARTNER ${CHILDREN[*]}" '
		BEGIN { n = split(others, list, " "); for (i = 1; i <= n; i++) wanted[list[i]] = 1 }
		{ sub(/^ +/, ""); tid = $1 }
		tid == pid && /\((ffffffff)?ff95303f,/ { inside = 1 }
		tid == pid ? inside : tid in wanted { gsub(/ +/, " "); print }
		tid == pid && /\((ffffffff)?ff95303e,/ { inside = 0 }
	' | sort -s -n -k 1,1
}

count() {
	grep -cE "$1" "$SCRATCH/$2" || true
}

start_daemon
# Records only the workload: on a busy machine the records of all processes, or of another perf
# record, would overwrite its own within a second, and perf would lose some.
calls='COMM ~ "perfdata-load*" || COMM ~ "short-lived*"'
switches='prev_comm ~ "perfdata-load*" || prev_comm ~ "short-lived*"'
perfctl create exact/calls -e raw_syscalls:sys_enter --filter "$calls" -m 32M >/dev/null
perfctl create exact/switches -e sched:sched_switch --filter "$switches" -m 8M >/dev/null
perfctl create exact/lives -e 'sched:sched_process_fork,sched:sched_process_exec,sched:sched_process_exit' \
	-m 8M >/dev/null
cp /bin/true "$SCRATCH/short-lived"
cpu=$(awk '/Cpus_allowed_list/ { sub(/.*[-,]/, "", $2); print $2 }' /proc/self/status)

# These two have so few records that perf has room for all, however late it reads them. Our event
# reports when the kernel has shut one of its programs out.
witness=()
for event in "${EVENTS[@]}"; do
	witness+=(-e "$event")
	case $event in
	raw_syscalls:*) witness+=(--filter "$calls") ;;
	sched:sched_switch) witness+=(--filter "$switches") ;;
	esac
done
missed() {
	perfctl list --json | jq 'map(.missed) | add'
}
before=$(missed)
expect_ok perf record -q -a -k mono -m 16M --no-bpf-event "${witness[@]}" -o "$SCRATCH/witness.data" -- \
	"$BIN/perfdata-load" "$cpu" $CALLS $SWITCHES $PROGRAMS "$SCRATCH/short-lived"
workload=$OUT
without_ksymbols "$SCRATCH/witness.data"
expect_ok perfctl snapshot exact/ -o "$SCRATCH/ours.data"
perfctl pause exact/ >/dev/null
expect_ok perfctl snapshot exact/ -o "$SCRATCH/rested.data"
perfctl snapshot exact/ -o - 2>/dev/null >"$SCRATCH/pipe.data"
[ "$(missed)" = "$before" ] || skip "others' BPF programs kept ours out, which was told: there is nothing to compare"
expect_eq "$(perf script -i "$SCRATCH/witness.data" --show-lost-events 2>/dev/null | grep -c PERF_RECORD_LOST || true)" 0 \
	"losses that perf tells of"

value() {
	awk -v key="$1" '$1 == key { print $2 }' <<<"$workload"
}
PID=$(value pid)
PARTNER=$(value partner)
mapfile -t CHILDREN < <(value child)
expect_eq ${#CHILDREN[@]} $PROGRAMS "programs that ran"

perf script -i "$SCRATCH/ours.data" -F trace:tid,event,trace 2>"$SCRATCH/stderr" | of_workload >"$SCRATCH/ours"
expect_eq "$(complaints <"$SCRATCH/stderr")" "" "what perf script complains of"
# Now and then perf record writes a record twice, with the same nanosecond: that is one record.
perf script -i "$SCRATCH/witness.data" --ns -F trace:tid,cpu,time,event,trace 2>/dev/null |
	awk '!seen[$0]++' | sed -E 's/^( *[0-9]+) +\[[0-9]+\] +[0-9.]+: +/\1 /' | of_workload >"$SCRATCH/witness"

# The known numbers
grep -q "^$PID " "$SCRATCH/ours" || fail "nothing of $PID is in the snapshot: $(
	perf script -i "$SCRATCH/ours.data" -F trace:tid,event | sort | uniq -c | grep -w "$PID"
	perfctl list
	echo "the witness's:"
	cut -d : -f 1-2 "$SCRATCH/witness" | sort | uniq -c | grep -w "$PID")"
expect_eq "$(count "^$PID raw_syscalls:sys_enter: .*[(](ffffffff)?ff85[ef]" ours)" $CALLS "calls"
expect_eq "$(count "^$PID sched:sched_switch: " ours)" "$(value switches)" "switches away from $PID"
[ "$(value switches)" -ge $((SWITCHES + PROGRAMS)) ] || fail "there were fewer switches than that"
expect_eq "$(count 'sched:sched_process_exec: ' ours)" $PROGRAMS "programs executed"
expect_eq "$(count 'sched:sched_process_fork: ' ours)" $PROGRAMS "programs forked"
expect_eq "$(count 'sched:sched_process_exit: ' ours)" $((PROGRAMS + 1)) "processes that exited"

# The other recorder's records
cmp "$SCRATCH/ours" "$SCRATCH/witness" || fail "$(perfctl list --json | jq -c '.[] | [.name, .records, .missed]'
	diff "$SCRATCH/ours" "$SCRATCH/witness" | head -n 20)"
[ "$(wc -l <"$SCRATCH/ours")" -gt $((CALLS + 2 * SWITCHES + 3 * PROGRAMS)) ] || fail "that is too little"

perfctl script -i "$SCRATCH/ours.data" -F trace:tid,event,trace | of_workload >"$SCRATCH/own"
expect_eq "$(wc -l <"$SCRATCH/own")" "$(wc -l <"$SCRATCH/ours")" "records that perfctl script shows"
# perf prints a hostile name unchanged, and perfctl escapes it so that it cannot steer a terminal:
# there the outputs differ.
plain() {
	LC_ALL=C grep -avE '[^[:print:][:blank:]]|[\]' "$1" || true
}
cmp <(plain "$SCRATCH/ours") <(plain "$SCRATCH/own") || fail "$(diff "$SCRATCH/ours" "$SCRATCH/own" | head -n 20)"

# The pipe format has the same records.
perf script -i - -F trace:tid,event,trace <"$SCRATCH/pipe.data" 2>"$SCRATCH/stderr" | of_workload \
	>"$SCRATCH/piped"
expect_eq "$(complaints <"$SCRATCH/stderr")" "" "what perf script complains of"
perf script -i "$SCRATCH/rested.data" -F trace:tid,event,trace | of_workload >"$SCRATCH/rested"
cmp "$SCRATCH/rested" "$SCRATCH/piped" || fail "$(diff "$SCRATCH/rested" "$SCRATCH/piped" | head -n 20)"

echo "$(wc -l <"$SCRATCH/ours") records of the workload agree one for one"
