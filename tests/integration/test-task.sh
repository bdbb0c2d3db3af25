#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Events of one process with its threads and children, of one thread, of one cgroup: they record these and nobody
# else, for whom no program runs; and they are kept or deleted when it ends, whichever daemon is dead then.
. "$(dirname "$0")/../lib.sh"

command -v jq >/dev/null || skip "needs jq"

TASKS=$BIN/tasks
FAULTS=64 # of each thread or child that is told to

# serve: TASK is the process, which takes lines.
serve() {
	coproc SERVER { exec "$TASKS" serve; }
	TASK=$SERVER_PID
	_spawned+=("$TASK")
	# bash takes its own away when the process ends
	exec {TO}>&"${SERVER[1]}" {FROM}<&"${SERVER[0]}"
}

engine_is_back() {
	[ "$(engine_pid)" != null ]
}

# tell LINE…: SAID is the answer.
tell() {
	echo "$*" >&"$TO"
	read -r SAID <&"$FROM"
}

ended() {
	kill -KILL "$TASK"
	exec {TO}>&- {FROM}<&-
	wait_until 10 gone "$TASK"
	wait "$TASK" 2>/dev/null || true
}

# faults EVENT CMD…: what the event records of it.
faults() {
	local before event=$1
	before=$(records_of "$event")
	shift
	"$@" >/dev/null
	echo $(($(records_of "$event") - before))
}

# about N GOT WHAT: the kernel has faults of its own for them, but few.
about() {
	[ "$2" -ge "$1" ] && [ "$2" -lt $(($1 + 40)) ] || fail "$3: $2 faults are recorded, $1 were told"
	echo "  $3: $2 records of $1 faults"
}

state_of() {
	perfctl list --json | jq -r --arg n "$1" '.[] | select(.name == $n) | .target.ended'
}

has_state() {
	[ "$(state_of "$1")" = "$2" ]
}

is_gone() {
	[ -z "$(state_of "$1")" ]
}

links() {
	perfctl show --fds "$1" --json | jq '[.fds[] | select(.kind == "counter")] | length'
}

write_conf "MaxMemoryPerUser=1M
[namespace u]
Mode=0666"
start_daemon
PAGES=(-e page-faults -c 1 -m 64K)
perfctl create t/anchor -e page-faults -c 1000000 -C 0 -m 64K # keeps the namespace

echo "== a process: its threads, those that it begins later, its children, and nobody else"
serve
neighbour=("$TASKS" serve)
tell threads 3
expect_ok perfctl create t/process "${PAGES[@]}" -p "$TASK"
expect_match "$OUT" "records page-faults of process $TASK on CPUs"
expect_eq "$(links t/process)" 4 "perf events of a process with four threads"
about $((4 * FAULTS)) "$(faults t/process tell fault)" "four threads"
tell threads 2
about $((6 * FAULTS)) "$(faults t/process tell fault)" "with two that began later"
about "$FAULTS" "$(faults t/process tell fork)" "a child"
about 0 "$(faults t/process "${neighbour[@]}" <<<$'fault\nfork\n')" "a neighbour"
link=$(perfctl show --fds t/process --json | jq '[.fds[] | select(.kind == "counter")][0].id')
runs=$("$TASKS" runs "$link" "${neighbour[@]}" <<<$'fault\nfork\n' | tail -n 1)
expect_eq "$runs" 0 "runs of the program while a neighbour has its faults"
expect_eq "$(perfctl reopen --copy t/process --json | jq -s --argjson t "$TASK" '[.[] | select(.pid == $t)] | length > 0')" true
expect_eq "$(perfctl show t/process --json | jq -c '.target')" \
	"{\"kind\":\"process\",\"pid\":$TASK,\"inherit\":true,\"on_exit\":\"keep\",\"ended\":false}"
expect_match "$(cat "$REGISTRY/t/process/info")" "target=process.*target_pid=$TASK"
expect_eq "$(perfctl show t/process --json | jq .missed)" null "missed"

echo "== without what it creates; one thread"
expect_ok perfctl create t/plain "${PAGES[@]}" -p "$TASK" --no-inherit
tell first
thread=$SAID
expect_ok perfctl create t/thread "${PAGES[@]}" -t "$thread"
about 0 "$(faults t/plain tell fork)" "a child that does not inherit"
about "$FAULTS" "$(faults t/thread tell fault)" "one thread of six"
expect_exit 2 perfctl create t/x "${PAGES[@]}" -p "$thread"
expect_match "$OUT" "$thread is a thread of process $TASK"

echo "== changed, paused, and through restarts of every daemon"
expect_ok perfctl change t/process -m 128K
expect_exit 1 perfctl change t/process -c 2
expect_match "$OUT" "has inherited its counters"
expect_ok perfctl pause t/process
about 0 "$(faults t/process tell fault)" "a paused process"
expect_ok perfctl resume t/process
n=$(length 1 10)
for ((i = 0; i < n; i++)); do
	kill_engine
	about $((6 * FAULTS)) "$(faults t/process tell fault)" "without an engine"
	wait_until 20 engine_is_back
	kill_daemon
	about "$FAULTS" "$(faults t/process tell fork)" "without a daemon"
	start_daemon
done
expect_eq "$(state_of process)" false "whether it has ended, after restarts"

echo "== it ends: kept, or deleted, whoever is dead then"
tell stay
child=$SAID
_spawned+=("$child")
expect_ok perfctl create t/deleted "${PAGES[@]}" -p "$TASK" --on-exit delete
expect_ok perfctl create t/deleted2 "${PAGES[@]}" -t "$thread" --on-exit delete
before=$(records_of t/process)
ended
wait_until 10 has_state process true
wait_until 10 has_state thread true
wait_until 10 is_gone deleted
wait_until 10 is_gone deleted2
expect_match "$(perfctl list)" "process .* ended"
[ "$(records_of t/process)" -ge "$before" ] || fail "records of a process that has ended are gone"
[ "$(perfctl reopen --copy t/process --json -n 10 | wc -l)" -eq 10 ] || fail "they cannot be read"
told() {
	local before
	before=$(records_of t/process)
	kill -USR1 "$child"
	wait_until 10 more_records_than $((before + FAULTS - 1)) t/process
}
told # a child records on
kill "$child"
serve
expect_ok perfctl create t/deleted "${PAGES[@]}" -p "$TASK" --on-exit delete
expect_ok perfctl create t/kept "${PAGES[@]}" -p "$TASK"
kill_daemon
ended
start_daemon
wait_until 10 is_gone deleted
expect_eq "$(state_of kept)" true "what has ended while there was no daemon"
serve
expect_ok perfctl create t/deleted "${PAGES[@]}" -p "$TASK" --on-exit delete
kill_engine
ended
wait_until 10 is_gone deleted
expect_ok perfctl delete t/process t/plain t/thread t/kept

echo "== refused: strangers, what cannot be bound, too much"
pinned() {
	find "$REGISTRY/by-id" -mindepth 1 -maxdepth 1 | wc -l
}
there=$(pinned)
expect_exit 1 perfctl create t/x "${PAGES[@]}" -p 4194303
expect_match "$OUT" "no process 4194303"
# its first process is another than ours
if unshare -p -f --mount-proc true 2>/dev/null; then
	expect_exit 1 unshare -p -f --mount-proc "$BIN/perfctl" --instance "$INSTANCE" create t/x "${PAGES[@]}" -p 1
	expect_match "$OUT" "another pid namespace"
else
	echo "SKIP: numbers of another pid namespace: cannot make one here"
fi
expect_exit 1 perfctl create t/x -e sched:sched_switch -t $$
expect_match "$OUT" "use --filter 'TID == $$'"
expect_exit 1 perfctl create t/x -e sched:sched_switch -e cpu-clock -p $$ --on-exit delete
expect_match "$OUT" "use --filter 'PID == $$'"
expect_exit 2 perfctl create t/x "${PAGES[@]}" -p "$$,1" --on-exit delete
expect_exit 2 perfctl create t/x "${PAGES[@]}" --no-inherit
expect_exit 2 perfctl create t/x "${PAGES[@]}" --on-exit stop -p $$
expect_exit 2 perfctl create t/x "${PAGES[@]}" -p $$ -G /
expect_exit 2 perfctl create t/x "${PAGES[@]}" -p $$ --boot
expect_exit 2 perfctl create t/x "${PAGES[@]}" -p none
serve
tell threads 100
expect_exit 1 as_user perfctl create u/x "${PAGES[@]}" -p "$TASK"
expect_match "$OUT" "has 101 threads.*there is room for [0-9]+,"
expect_ok as_user perfctl create u/x "${PAGES[@]}" -t "$TASK"
tell threads "$(length 420 3900)" # more
expect_exit 1 perfctl create t/x -c 1000 -m 64K -p "$TASK" \
	-e page-faults,minor-faults,major-faults,context-switches,cpu-migrations,alignment-faults,emulation-faults,cgroup-switches
expect_match "$OUT" "there is room for 4096"
expect_eq "$(pinned)" $((there + 1)) "events after these refusals"
expect_ok perfctl create t/many "${PAGES[@]}" -p "$TASK" --on-exit delete
n=$(links t/many)
about $((n * FAULTS)) "$(faults t/many tell fault)" "$n threads"
ended
wait_until 10 is_gone many

echo "== a tracepoint: -p is a filter"
expect_ok perfctl create t/calls -e sched:sched_switch --filter 'prev_pid != 0' -p $$ -m 64K
expect_eq "$(perfctl show t/calls --json | jq -c '[.filter, .target]')" "[\"PID == $$ && (prev_pid != 0)\",null]"

echo "== threads that begin while it is made are recorded, and once"
made() {
	perfctl create t/growing "${PAGES[@]}" -p "$TASK" >"$SCRATCH/out" 2>&1 ||
		{ grep -qE "makes threads so fast|forks so fast" "$SCRATCH/out" || fail "$(<"$SCRATCH/out")"; false; }
}
for ((i = 0; i < $(length 1 20); i++)); do
	serve
	tell threads 300 # attaching these takes long enough
	tell grow "$(length 200 1000)"
	tries=1
	until made; do tries=$((tries + 1)); done
	tell fault
	n=$SAID
	about $((n * FAULTS)) "$(faults t/growing tell fault)" "$n threads, $(links t/growing) of them attached in try $tries"
	perfctl delete t/growing >/dev/null
	ended
done

echo "== a cgroup"
cgroups=$(sed -n 's/^[0-9]* [0-9]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)
if [ -z "$cgroups" ] || ! mkdir "$cgroups/pp-$INSTANCE" 2>/dev/null; then
	echo "SKIP: a cgroup: no hierarchy of version 2 can be written here"
	exit 0
fi
# events.d: it is created when its cgroup is there
mkdir -m 0755 "$CONF.d"
printf '[event t/configured]\nEvent=page-faults\nPeriod=1\nBuffer=64K\nCgroup=/pp-%s/below\n' "$INSTANCE" >"$CONF.d/a.conf"
expect_exit 1 perfctl reload
expect_match "$OUT" "cgroup '/pp-$INSTANCE/below' cannot be found"
no_cgroups() {
	rmdir "$cgroups/pp-$INSTANCE/below" "$cgroups/pp-$INSTANCE" 2>/dev/null
}
at_end() { # when no process is in them any more
	no_cgroups || true
}
mkdir "$cgroups/pp-$INSTANCE/below"
expect_ok perfctl reload
expect_eq "$(perfctl show t/configured --json | jq -r .target.cgroup)" "/pp-$INSTANCE/below"
expect_match "$(perfctl reload 2>&1)" "0 created, 0 changed, 0 deleted"
serve
echo "$TASK" >"$cgroups/pp-$INSTANCE/below/cgroup.procs"
expect_ok perfctl create t/group "${PAGES[@]}" -G "/pp-$INSTANCE"
expect_ok perfctl create t/unit "${PAGES[@]}" -G "pp-$INSTANCE" --on-exit delete
expect_match "$OUT" "of cgroup /pp-$INSTANCE on CPUs"
expect_eq "$(links t/group)" "$(nproc)" "perf events of a cgroup"
tell threads 2
about $((3 * FAULTS)) "$(faults t/group tell fault)" "threads in a cgroup"
about $((3 * FAULTS)) "$(faults t/configured tell fault)" "the same by events.d"
about "$FAULTS" "$(faults t/group tell fork)" "a child there"
about 0 "$(faults t/group "${neighbour[@]}" <<<$'fault\nfork\n')" "a neighbour of the cgroup"
expect_ok perfctl change t/group -c 2
expect_ok perfctl change t/group -c 1
about $((3 * FAULTS)) "$(faults t/group tell fault)" "threads, by other counters"
kill_daemon
start_daemon
expect_exit 3 perfctl create t/x "${PAGES[@]}" -G "/pp-none-$INSTANCE"
expect_match "$OUT" "cannot be found"
ended
no_cgroups
wait_until 10 has_state group true
wait_until 10 is_gone unit
mkdir "$cgroups/pp-$INSTANCE" # another one
kill_engine
wait_until 20 perfctl create t/after -e cpu-clock -m 4K # another engine has told of all events
wait_until 10 has_state group true
