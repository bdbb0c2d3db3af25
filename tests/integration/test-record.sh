#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# perfctl record: the kernel proposal's own command lines; every record of a period, once and in
# order of time, in one file or in many, even while the buffers are replaced and when the daemon
# dies; the count of overwritten records; --overwrite and its SIGUSR2; and bad command lines, full
# disks and signals, which leave no file behind.
. "$(dirname "$0")/../lib.sh"

write_conf '[namespace own]
Mode=0600
[namespace t]
Mode=0664
[namespace copied]
Mode=0644
Live=nobody'
start_daemon
cd "$SCRATCH" || exit 1
# A unique name, even if this test runs twice at once.
OURS=pp-$$
cp "$BIN/numbered" "$OURS"
ours="id == 3 && COMM == \"$OURS\""

# perf_script FILE: perf must not complain.
perf_script() {
	perf script -i "$1" --ns 2>"$SCRATCH/perf.err" ||
		fail "perf script -i $1: $(<"$SCRATCH/perf.err")"
	[ ! -s "$SCRATCH/perf.err" ] || fail "perf script -i $1: $(<"$SCRATCH/perf.err")"
}

# numbers FILE…: the numbers of the calls in it, in their order.
numbers() {
	local file
	for file in "$@"; do
		perf_script "$file" | sed -n "s/^ *$OURS .*NR 3 (ffffffffffffffff, \\([0-9a-f]*\\),.*/0x\\1/p"
	done | xargs -r printf "%d\n"
}

# expect_numbers FROM N FILE…: exactly these, each once and in order.
expect_numbers() {
	numbers "${@:3}" >found
	seq "$1" $(($1 + $2 - 1)) >wanted
	cmp -s found wanted || fail "${*:3}: $(wc -l <found) calls of $2: $(diff found wanted | head -n 4)"
}

expect_sentence() {
	local regex=$1 code=$2
	shift 2
	expect_exit "$code" "$@"
	expect_eq "$(wc -l <<<"$OUT")" 1 "lines of: $OUT"
	expect_match "$OUT" "^perfctl: .*$regex" "what is said"
}

nothing_hidden() {
	expect_eq "$(find . -name '.*-*')" "" "half-made files"
}

# record OPTION…: runs in the background; it has begun when its command has.
record() {
	rm -f begun
	"${PERFCTL[@]}" record "$@" -- sh -c 'echo $$ >begun.; mv begun. begun; exec sleep 600' >record.out 2>&1 &
	RECORDER=$!
	_spawned+=("$RECORDER")
	wait_until 30 test -e begun || fail "perfctl record $*: $(<record.out)"
	_spawned+=("$(<begun)")
}
# end_record: the output is complete when it has ended; the command continues.
end_record() {
	wait "$RECORDER" || fail "perfctl record ended with $?: $(<record.out)"
	kill "$(<begun)"
}
stop_record() {
	kill "-$1" "$RECORDER"
	end_record
}
files() {
	find . -name "$1.2*" | sort
}
has_files() {
	[ "$(files "$1" | wc -l)" -ge "$2" ]
}

# ── as the kernel's own perf record was to do it ─────────────────────────────────────────

expect_ok perfctl record -e raw_syscalls:sys_enter --filter "$ours" -e sched:sched_process_exec -a -P web -m 64K
expect_match "$OUT" '^web/sys_enter \(id' "the first event"
expect_match "$OUT" 'web/sched_process_exec \(id' "the second event"
expect_ok perfctl record -e cpu-clock -F 100 -g -a -P web
expect_eq "$(perfctl list web --json | jq -c 'map(.name) | sort')" '["cpu-clock","sched_process_exec","sys_enter"]' "the events made"
expect_ok perfctl record -e sched:sched_process_exec -P web
expect_match "$OUT" '^web/sched_process_exec-2 ' "a second one of a name"
expect_exit 3 perfctl record -e sched:sched_switch -e no:such -P web
expect_eq "$(perfctl list web --json | jq length)" 4 "events, after one that could not be made"

"./$OURS" 0 100
expect_ok perfctl record -e persistent/web/ -a -o read.data "./$OURS" 100 1000
expect_numbers 0 1100 read.data
expect_eq "$(perfctl list web --json | jq length)" 4 "events are read, and stay"
expect_ok perfctl record -e persistent/web/sys_enter/ -a -k -o kill.data "./$OURS" 1100 10
expect_numbers 0 1110 kill.data
expect_eq "$(perfctl list web --json | jq -c 'map(.name) | sort')" '["cpu-clock","sched_process_exec","sched_process_exec-2"]' "-k ends what was read"
perfctl record -e persistent/web/ -k -o - true 2>/dev/null >all.data || fail "-k of all"
expect_eq "$(perfctl list --json | jq length)" 0 "events"
nothing_hidden

# ── from now on, exactly ─────────────────────────────────────────────────────────────────

# The rings hold everything below, however late a reader is; they record no other process's execs.
expect_ok perfctl create t/calls -e raw_syscalls:sys_enter --filter "$ours" -m 16M
expect_ok perfctl create t/exec -e sched:sched_process_exec --filter "filename ~ \"*$OURS\"" -m 64K
"./$OURS" 0 50
expect_ok perfctl record t/calls t/exec -o now.data -- "./$OURS" 1000 20000
expect_match "$OUT" '^perfctl record: [0-9]+ records, .*: now.data$' "what is said"
expect_numbers 1000 20000 now.data
expect_match "$(perf_script now.data)" "$OURS .*sched:sched_process_exec" "the other event"
expect_eq "$(stat -c %a now.data)" 600 "whose file it is"
perf_script now.data | awk '{ sub(":", "", $4); if ($4 < last) exit 1; last = $4 }' || fail "not in order of time"

# The exit code of a command that does not exist.
expect_sentence 'cannot run no-such-command' 127 perfctl record t/calls -o none.data -- no-such-command
[ ! -e none.data ] || fail "a file of nothing"

# With the records from before: all of them, or some.
expect_ok perfctl record t/calls --history --timeout 1ms -o history.data
expect_eq "$(numbers history.data | tail -n 1)" 20999 "the newest that was there"
expect_ok perfctl record t/calls --last 1h --timeout 1ms -o last.data
expect_match "$(perf report --header-only -i last.data)" "# cmdline : perfctl record t/calls --last 1h" "the command in the header"
expect_eq "$(numbers last.data)" "$(numbers history.data)" "all of the last hour"
expect_ok perfctl record t/calls --timeout 1ms -o nothing.data
expect_eq "$(numbers nothing.data)" "" "before it began"

# Into a pipe, which perf reads meanwhile.
"${PERFCTL[@]}" record t/calls -o - -- "./$OURS" 30000 5000 2>record.out | cat >pipe.data
expect_eq "$(perf script -i - <pipe.data 2>&1 | grep -c "$OURS.*NR 3 (ffffffffffffffff")" 5000 "calls in the pipe: $(<record.out)"

# While the buffers are replaced, and when the daemon is killed. A reader that does not look between
# two replacements misses the buffers in between, and says so: so the test waits for it.
reads_rings_of() {
	local ring
	for ring in "$REGISTRY/$1/cpu"*; do
		grep -qx "map_id:[[:space:]]*$(bpftool --json map show pinned "$ring" | jq .id)" \
			"/proc/$RECORDER/fdinfo/"* || return 1
	done
}
record t/calls -o change.data
for i in 0 1 2 3; do
	"./$OURS" $((40000 + i * 1000)) 1000
	expect_ok perfctl change t/calls -m $((128 << (i % 2 * 2)))K
	wait_until 30 reads_rings_of t/calls || fail "the new buffers are not read: $(<record.out)"
done
kill_broker
"./$OURS" 44000 1000
stop_record INT
wait_until 20 _no_processes || fail "the daemon's end"
expect_numbers 40000 5000 change.data
start_daemon
expect_ok perfctl change t/calls -m 16M

# Copies come from the daemon: its end is that of a recording of them, which has what it read before,
# and says that it is not complete.
expect_ok perfctl create copied/calls -e raw_syscalls:sys_enter --filter "$ours" -m 64K
"./$OURS" 0 100
# The command tells that it has begun.
as_user perfctl record copied/calls --history -o - -- sh -c 'echo $$ >&2; exec sleep 600' 2>copied.out >copied.data &
recorder=$!
_spawned+=("$recorder")
wait_until 30 test -s copied.out || fail "no recording begins"
command=$(head -n 1 copied.out)
_spawned+=("$command")
expect_ok perfctl change copied/calls -m 128K
wait_until 30 grep -q 'records in between were not read' copied.out || fail "no gap is told: $(<copied.out)"
kill_broker
code=0
wait "$recorder" || code=$?
kill "$command"
expect_eq "$code" 1 "exit code: $(<copied.out)"
expect_match "$(<copied.out)" 'copied/calls: the connection to perfpersistd has ended' "what is said"
expect_eq "$(perf script -i - <copied.data 2>/dev/null | grep -c 'NR 3 (ffffffffffffffff')" 100 "calls that were copied"
expect_eq "$(perfctl report --json -i copied.data | jq '.events[0].history | .to > 0 and .from == .to')" true \
	"whether the file says so"
wait_until 20 _no_processes || fail "the daemon's end"
start_daemon

# ── many files ───────────────────────────────────────────────────────────────────────────

record t/calls -o size.data --switch-output=100K
"./$OURS" 50000 10000
wait_until 30 has_files size.data 4 || fail "no other file after 100K: $(<record.out)"
stop_record TERM
mapfile -t parts < <(files size.data)
expect_numbers 50000 10000 "${parts[@]}"

record t/calls -o few.data --switch-output=50K --switch-max-files 2
"./$OURS" 60000 10000
stop_record INT
expect_eq "$(files few.data | wc -l)" 2 "files that are kept"
mapfile -t parts < <(files few.data)
expect_eq "$(numbers "${parts[@]}" | tail -n 1)" 69999 "the newest is in them"

record t/calls -o usr2.data --switch-output
for i in 1 2 3; do
	"./$OURS" $((70000 + i * 100)) 100
	kill -USR2 "$RECORDER"
	wait_until 30 has_files usr2.data $i || fail "no file after SIGUSR2: $(<record.out)"
done
stop_record INT
mapfile -t parts < <(files usr2.data)
expect_eq "${#parts[@]}" 4 "files"
expect_numbers 70100 300 "${parts[@]}"

record t/calls -o time.data --switch-output=200ms
wait_until 30 has_files time.data 2 || fail "no other file after its time"
stop_record INT

record t/calls -o max.data --max-size 50K
"./$OURS" 80000 10000
end_record
n=$(numbers max.data | wc -l)
if [ "$n" -eq 0 ] || [ "$n" -gt 1000 ]; then fail "--max-size 50K: $n calls"; fi
nothing_hidden

# ── snapshots with SIGUSR2 ───────────────────────────────────────────────────────────────

record --overwrite t/calls -o over.data
"./$OURS" 90000 100
kill -USR2 "$RECORDER"
wait_until 30 has_files over.data 1 || fail "no snapshot after SIGUSR2: $(<record.out)"
"./$OURS" 90100 100
stop_record INT
mapfile -t parts < <(files over.data)
expect_eq "${#parts[@]}" 2 "snapshots"
expect_eq "$(numbers "${parts[0]}" | tail -n 1)" 90099 "the newest in the first"
expect_eq "$(numbers "${parts[1]}" | tail -n 200)" "$(seq 90000 90199)" "in the second"

# Two at once, of one name: each keeps its own file.
: >record.out
recorders=()
for _ in 1 2 3 4; do
	"${PERFCTL[@]}" record --overwrite t/calls -o twice.data --timeout 60s 2>>record.out &
	recorders+=($!)
	_spawned+=($!)
done
is_caught() { # SIGUSR2 is number 12. (bash catches it, too, before it becomes perfctl.)
	[ "$(<"/proc/$1/comm")" = perfctl ] && ((0x$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status") >> 11 & 1))
}
for pid in "${recorders[@]}"; do
	wait_until 30 is_caught "$pid"
done
kill -USR2 "${recorders[@]}"
wait_until 30 has_files twice.data 4 || fail "of 4 snapshots at once there are: $(files twice.data); $(<record.out)"
kill -INT "${recorders[@]}"
wait "${recorders[@]}"
expect_eq "$(sed -n 's/.* bytes: //p' record.out | sort)" "$(files twice.data | sed 's|^\./||')" "the files that are told of"
expect_eq "$(files twice.data | wc -l)" 8 "snapshots of four"

# --last counts from each snapshot.
record --overwrite t/calls --last 1s -o last.data
"./$OURS" 90200 100
sleep 1.5
kill -USR2 "$RECORDER"
wait_until 30 has_files last.data 1 || fail "no snapshot after SIGUSR2: $(<record.out)"
stop_record INT
for file in $(files last.data); do
	expect_eq "$(numbers "$file" | wc -l)" 0 "calls of the last second in $file"
done

# ── several names, a terminal that goes, another event of the name ───────────────────────

expect_ok perfctl create t/second -e raw_syscalls:sys_enter --filter "$ours" -m 16M --share
expect_eq "$(perfctl show t/second --json | jq ".shares != null and .shares != 0")" true "it shares the rings"
record t/calls t/second -o shared.data
"./$OURS" 90300 100
stop_record HUP
expect_numbers 90300 100 shared.data
perfctl delete t/second >/dev/null

# The reader of what is told goes at the same time.
mkfifo told
perfctl create t/short -e raw_syscalls:sys_enter --filter "$ours" -m 64K >/dev/null
"${PERFCTL[@]}" record t/calls t/short -k -o pipe.data --timeout 60s 2>told &
RECORDER=$!
_spawned+=("$RECORDER")
exec {told}<told
wait_until 30 is_caught "$RECORDER"
"./$OURS" 90400 100
exec {told}<&-
kill -INT "$RECORDER"
wait "$RECORDER" || fail "perfctl record ended with $?"
expect_eq "$(perfctl list t/ --json | jq -c 'map(.name)')" '["exec"]' "-k, of what is left"
perf_script pipe.data >/dev/null
expect_ok perfctl create t/calls -e raw_syscalls:sys_enter --filter "$ours" -m 16M

perfctl create t/made-anew -e sched:sched_process_exec -m 64K >/dev/null
record t/made-anew t/calls -o anew.data
kill -STOP "$RECORDER"
perfctl change t/made-anew -m 128K >/dev/null
perfctl delete t/made-anew >/dev/null
perfctl create t/made-anew -e raw_syscalls:sys_enter --filter "$ours" -m 64K >/dev/null
"./$OURS" 90500 100
kill -CONT "$RECORDER"
"./$OURS" 90600 100
kill -INT "$RECORDER"
code=0
wait "$RECORDER" || code=$?
kill "$(<begun)"
expect_eq "$code" 1 "exit code where an event was made anew"
expect_match "$(<record.out)" 't/made-anew was deleted, and another event has its name' "what is said"
expect_numbers 90500 200 anew.data
perfctl delete t/made-anew >/dev/null

# ── what cannot be read in time ──────────────────────────────────────────────────────────

expect_ok perfctl create t/tiny -e raw_syscalls:sys_enter --filter "$ours" -m 4K
record t/tiny -o tiny.data
kill -STOP "$RECORDER"
"./$OURS" 100000 20000
kill -CONT "$RECORDER"
stop_record INT
lost=$(sed -n 's/^perfctl: \([0-9]*\) records were overwritten.*/\1/p' record.out)
held=$(perf script -i tiny.data 2>/dev/null | grep -c "$OURS.*NR 3 ")
expect_eq $((held + lost)) "$(records_of t/tiny)" "records in the file ($held), and those told as overwritten ($lost)"
[ "$held" -gt 0 ] || fail "nothing was read"
expect_match "$(perf report -i tiny.data --stats 2>/dev/null)" "LOST_SAMPLES events: +[1-9]" "what the file says of it"
expect_eq "$(perfctl report --json -i tiny.data | jq '.first as $first | .last as $last | .events[0].history |
	.from > 0 and .from <= $first and .to == $last')" true "from when to when the file is complete"

# ── who may, and what is wrong ───────────────────────────────────────────────────────────

expect_ok perfctl create own/calls -e raw_syscalls:sys_enter --filter "$ours" -m 64K
cp "$OURS" "$BIN/$OURS"
as_user perfctl record t/calls -o - -- "$BIN/$OURS" 200000 500 2>record.out >user.data ||
	fail "others cannot record: $(<record.out)"
expect_eq "$(perf script -i - <user.data 2>/dev/null | grep -c 'NR 3 (ffffffffffffffff')" 500 "calls that others see"
expect_sentence 'own' 4 as_user perfctl record own/calls -o - --timeout 1ms
expect_sentence 'no event that you may read fits no\*/such' 3 perfctl record 'no*/such' -o other.data
expect_sentence 'usage|--help|NAMESPACE' 2 perfctl record -e sched:sched_switch
expect_sentence '-P creates events, .* reads them: give one of these' 2 perfctl record t/calls -e sched:sched_switch -P web
expect_sentence '-e EVENT is missing' 2 perfctl record -P web
expect_sentence 'switch-output=10x' 2 perfctl record t/calls --switch-output=10x
expect_sentence 'needs --switch-output' 2 perfctl record t/calls --switch-max-files 3
expect_sentence 'one stream' 2 perfctl record t/calls -o - --overwrite
expect_sentence 'it is a directory' 1 perfctl record t/calls -o . --timeout 1ms
expect_sentence 'something is there that is no file' 1 perfctl record t/calls -o /dev/null --timeout 1ms
mkfifo pipe
ln -s pipe link
expect_sentence 'something is there that is no file' 1 perfctl record t/calls -o link --timeout 1ms
[ -L link ] || fail "-o replaced a link to a pipe"
expect_sentence 'No such file or directory' 1 perfctl record t/calls -o no/such/file --timeout 1ms
expect_sentence 'Permission denied' 1 as_user perfctl record t/calls -o /root/file --timeout 1ms
[ ! -e other.data ] || fail "a refused recording left a file"

mkdir full
expect_sentence 'No space left on device' 1 unshare --mount sh -c "
	mount -t tmpfs -o size=64k tmpfs full || exit 99
	'$BIN/perfctl' --instance '$INSTANCE' record t/calls -o full/file -- './$OURS' 0 10000
	code=\$?
	[ -z \"\$(ls -A full)\" ] || exit 98
	exit \$code"
record t/calls -o killed.data
kill -KILL "$RECORDER"
wait "$RECORDER" 2>/dev/null || true
kill "$(<begun)"
[ ! -e killed.data ] || fail "a recorder that was killed left a file"
nothing_hidden
echo "every call once, in each of $(find . -name '*.data*' | wc -l) files"
