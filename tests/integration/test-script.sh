#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# perfctl script prints the same lines as `perf script` for the same file, with the same fields, and
# JSON with the same content. For events it takes a snapshot first. An unreadable file causes one
# message.
. "$(dirname "$0")/../lib.sh"
command -v perf >/dev/null || skip "there is no perf"

export HOME=$SCRATCH # for perf's caches
cd "$SCRATCH"

# record FILE ARG…: runs perf record; its buffers have room for everything, however late it empties
# them, and no other process keeps it from that.
record() {
	perf record -q -N --no-bpf-event -r 1 -m 8M -o "$1" "${@:2}" >/dev/null 2>"$SCRATCH/err" </dev/null || fail "perf record: $(<"$SCRATCH/err")"
}

# plain: drops the lines in which perf prints a hostile name unchanged, and perfctl escapes it so
# that it cannot steer a terminal.
plain() {
	LC_ALL=C grep -avE '[^[:print:][:blank:]]|[\]' || true
}

# same FILE ARG…: with these arguments perf and perfctl print the same lines of FILE, in the same
# order except for equal times.
same() {
	local lines
	perf script -i "$@" >perf.txt 2>err.txt || fail "perf script $*: $(<err.txt)"
	perfctl script -i "$@" >ours.txt 2>err.txt || fail "perfctl script $*: $(<err.txt)"
	lines=$(wc -l <perf.txt)
	[ "$lines" -gt 10 ] || fail "perf script $*: only $lines lines"
	plain <perf.txt | sort >perf.sorted
	plain <ours.txt | sort >ours.sorted
	cmp -s perf.sorted ours.sorted || fail "perfctl script $*: $(diff perf.txt ours.txt | head -n 6)"
}

# ── line for line ────────────────────────────────────────────────────────────────────────

workload=(bash -c 'for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done')
record tracepoints.data -k mono -e sched:sched_process_exec,sched:sched_switch,raw_syscalls:sys_enter "${workload[@]}"
same tracepoints.data
same tracepoints.data --ns
for fields in comm,tid,pid,time,cpu,event,trace comm,pid tid,event time,trace event,period,trace \
	cpu,time,event +period -comm,-time +pid,-trace trace:comm,event; do
	same tracepoints.data -F "$fields"
done
same tracepoints.data --pid "$(perf script -i tracepoints.data -F pid | awk 'NR == 1 { print $1 }')"

# Addresses, in perfctl's own format; test-symbols.sh compares the chains of programs.
record samples.data -e cpu-clock,page-faults -F 2000 dd if=/dev/zero of=/dev/null bs=1 count=100000
same samples.data -F comm,tid,time,event,period,ip
same samples.data -F -sym,-symoff,-dso
same samples.data -F comm,time,event,ip,dso

record all.data -a -e sched:sched_switch -e cpu-clock "${workload[@]}"
without_ksymbols all.data
# Without names: perf has none for exited processes, perfctl does.
same all.data -F -comm,-ip,-sym,-symoff,-dso
same all.data -F -comm,-ip,-sym,-symoff,-dso -C 0

# perf names only tasks with a sample of their own; the words are the same.
perf script -i tracepoints.data --show-task-events | grep -oE 'PERF_RECORD_(COMM|FORK|EXIT).*' >perf.txt
perfctl script -i tracepoints.data --show-task-events | grep -oE 'PERF_RECORD_(COMM|FORK|EXIT).*' >ours.txt
[ "$(wc -l <perf.txt)" -gt 20 ] || fail "no tasks: $(<perf.txt)"
diff perf.txt ours.txt >&2 || fail "perfctl tells of other tasks (>) than perf (<)"
mmaps() {
	sed -nE 's/.*PERF_RECORD_(MMAP2?) .*(\[0x[0-9a-f]+\(0x[0-9a-f]+\)) @ .*: .?.?.?.? (.*)/\1 \2 \3/p'
}
perf script -i tracepoints.data --show-mmap-events | mmaps | grep '^MMAP2' >perf.txt
perfctl script -i tracepoints.data --show-mmap-events | mmaps | grep '^MMAP2' >ours.txt
[ "$(wc -l <perf.txt)" -gt 20 ] || fail "nothing is mapped: $(<perf.txt)"
diff perf.txt ours.txt >&2 || fail "perfctl tells of other maps (>) than perf (<)"

# ── times ────────────────────────────────────────────────────────────────────────────────

expect_eq "$(perfctl script -i tracepoints.data --time real -F time | sed 's/: *$//' | sort | md5sum)" \
	"$(perf script -i tracepoints.data -F tod | sed 's/ *$//' | sort | md5sum)" "the times of day"
expect_eq "$(perfctl script -i tracepoints.data --time relative -F time | sed -n '1s/ //gp')" 0.000000: "the first time"
half=$(perfctl script -i tracepoints.data --ns -F time | awk '{ t[NR] = $1 } END { print t[int(NR / 2)] }' | tr -d :)
expect_eq "$(perfctl script -i tracepoints.data --since "$half" | wc -l)" \
	"$(perfctl script -i tracepoints.data --ns -F time | awk -v half="$half" '$1 + 0 >= half + 0' | wc -l)" "records since $half"
expect_eq "$(perfctl script -i tracepoints.data --until "$half" | wc -l)" \
	"$(perfctl script -i tracepoints.data --ns -F time | awk -v half="$half" '$1 + 0 <= half + 0' | wc -l)" "records until $half"
span=$(perfctl script -i tracepoints.data --ns -F time | awk 'NR == 1 { a = $1 } END { printf "%.0f", ($1 - a) * 1e9 / 2 }')
few=$(perfctl script -i tracepoints.data --last "$(awk -v ns="$span" 'BEGIN { printf "%.6f", ns / 1e9 }')s" | wc -l)
if [ "$few" -eq 0 ] || [ "$few" -ge "$(perfctl script -i tracepoints.data | wc -l)" ]; then
	fail "in the newer half: $few"
fi

perfctl script -i tracepoints.data --ns -F time | LC_ALL=C sort -c -n || fail "out of order"

# ── JSON ─────────────────────────────────────────────────────────────────────────────────

perfctl script -i tracepoints.data --json >ours.json
jq empty ours.json || fail "no JSON"
expect_eq "$(wc -l <ours.json)" "$(perf script -i tracepoints.data | wc -l)" "objects"
expect_eq "$(jq -r 'select(.event == "sched:sched_switch") | "\(.comm) \(.tid) \(.fields.prev_pid) \(.fields.next_comm)"' ours.json | plain | sort | md5sum)" \
	"$(perf script -i tracepoints.data -F comm,tid,event,trace | sed -nE 's/^ *(.*[^ ]) +([0-9]+) +sched:sched_switch: .*prev_pid=([0-9]+) .* next_comm=(.*) next_pid=.*/\1 \2 \3 \4/p' | plain | sort | md5sum)" \
	"what sched_switch says"
expect_eq "$(perfctl script -i samples.data --json | jq -s 'map(select(.event == "cpu-clock") | .period) | add')" \
	"$(perf script -i samples.data -F event,period | awk '$2 == "cpu-clock:" { n += $1 } END { printf "%.0f", n }')" "all periods"
expect_eq "$(perfctl script -i tracepoints.data --json --show-task-events | jq -r 'select(.record == "EXIT") | .tid' | wc -l)" \
	"$(perf script -i tracepoints.data --show-task-events | grep -c 'PERF_RECORD_EXIT')" "exits"
perfctl script -i tracepoints.data --json --time real | jq -se 'all(.realtime > 1600000000000000000)' >/dev/null || fail "no time of day"

# ── pipes ────────────────────────────────────────────────────────────────────────────────

perf record -q -N -e raw_syscalls:sys_enter -o - /bin/true 2>/dev/null >pipe.data || fail "perf record -o -"
perf script -i - <pipe.data >perf.txt
perfctl script -i - <pipe.data >ours.txt
[ "$(wc -l <perf.txt)" -gt 10 ] || fail "perf script -i -: $(wc -l <perf.txt) lines"
cmp perf.txt ours.txt || fail "of a pipe perfctl shows others"
# perfctl also reads from a pipe, and prints no error when its reader closes early.
mkfifo fifo
spawn cp pipe.data fifo
perfctl script -i fifo | cmp - ours.txt || fail "a pipe that is one"
{ perfctl script -i all.data 2>err.txt || true; } | head -n 1 >/dev/null
[ ! -s err.txt ] || fail "a reader that goes: $(<err.txt)"

# ── what cannot be read ──────────────────────────────────────────────────────────────────

expect_exit 3 perfctl script
expect_match "$OUT" 'no file perf.data here' "without a file"
expect_exit 3 perfctl script -i none.data
expect_exit 1 perfctl script -i /etc/passwd
expect_eq "$(wc -l <<<"$OUT")" 1 "lines about a file that is none"
expect_exit 1 perfctl script -i "$SCRATCH"
expect_exit 2 perfctl script -i all.data some/event
expect_exit 2 perfctl script -i all.data -F comm,nothing
expect_match "$OUT" "unknown field nothing"
expect_exit 2 perfctl script -i all.data -F comm,+time
expect_exit 2 perfctl script -i all.data -F ''
expect_exit 2 perfctl script -i tracepoints.data -F comm,addr
expect_match "$OUT" "has the field addr"
expect_exit 2 perfctl script -i all.data --time yesterday
expect_exit 2 perfctl script -i all.data --max-stack 0
expect_exit 2 perfctl script -i all.data --last soon
chmod 0600 all.data
expect_exit 4 as_user perfctl script -i "$SCRATCH/all.data"

# The part before the damage is shown.
head -c $(($(stat -c %s pipe.data) - 40)) pipe.data >cut.data
perfctl script -i cut.data >cut.txt 2>err.txt && fail "a file that was cut off is called whole"
expect_eq "$(wc -l <err.txt)" 1 "lines about a file that was cut off"
[ "$(wc -l <cut.txt)" -gt 5 ] || fail "of a file that was cut off: $(wc -l <cut.txt) lines"
head -n "$(wc -l <cut.txt)" ours.txt | cmp - cut.txt || fail "of a file that was cut off others are shown"

# ── events ───────────────────────────────────────────────────────────────────────────────

write_conf '[namespace team]
Mode=0660'
start_daemon
perfctl create team/calls -e raw_syscalls:sys_enter,raw_syscalls:sys_exit -m 256K >/dev/null
perfctl create team/sched -e sched:sched_switch -m 256K >/dev/null
wait_until 20 more_records_than 100 team/calls
wait_until 20 more_records_than 10 team/sched
perfctl pause team/ >/dev/null
perfctl snapshot team/ -o team.data >/dev/null 2>&1
perf script -i team.data >perf.txt 2>err.txt || fail "perf script of a snapshot: $(<err.txt)"
perfctl script team/ >ours.txt 2>err.txt || fail "perfctl script of events: $(<err.txt)"
[ "$(wc -l <perf.txt)" -gt 100 ] || fail "of a snapshot: $(wc -l <perf.txt) lines"
expect_eq "$(wc -l <ours.txt)" "$(wc -l <perf.txt)" "records of events"
# Each of the two asked for names at its own time. The oldest known name of a task that renames
# itself all the time changes in a moment: only that name is left out.
perf script -i team.data --show-task-events 2>/dev/null |
	awk '/PERF_RECORD_COMM:/ && match($0, /[0-9]+\/[0-9]+$/) { tid = substr($0, RSTART); sub(/.*\//, "", tid); n[tid]++ }
	END { for (tid in n) if (n[tid] > 8) print tid }' >renamed
known() {
	plain | awk 'NR == FNR { renamed[$1]; next }
		{ tid = substr($0, 17); sub(/^ */, "", tid); sub(/[ \t].*/, "", tid) }
		tid in renamed { $0 = substr($0, 17) } { print }' renamed -
}
cmp <(known <perf.txt) <(known <ours.txt) || fail "of events: $(diff perf.txt ours.txt | head -n 6)"
expect_eq "$(perfctl script team/sched 2>/dev/null | wc -l)" "$(grep -c sched:sched_switch: perf.txt)" "records of one event"
expect_eq "$(as_member perfctl script team/sched 2>/dev/null | cut -c 17- | md5sum)" \
	"$(perfctl script team/sched 2>/dev/null | cut -c 17- | md5sum)" "for a member"
expect_exit 3 perfctl script team/none
expect_exit 4 as_user perfctl script team/sched
echo "perf and perfctl agree on $(wc -l <perf.txt) records of a snapshot"
