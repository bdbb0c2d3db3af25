#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Perf events that programs open themselves: handed over they record without them, through restarts of every
# daemon; given back they end with their new owner. At each moment one side owns them, whoever is killed.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/adopter.sh"

command -v jq >/dev/null || skip "needs jq"

# Which no other test fires, nor hardly any program.
TRACEPOINT=syscalls:sys_enter_io_cancel

links() {
	find -L "$REGISTRY/by-id/$(perfctl show "$1" --json | jq .id)" -name 'link*' | wc -l
}

drafts() {
	find "$REGISTRY" -maxdepth 1 -name '+new-*' | wc -l
}

no_drafts() {
	[ "$(drafts)" -eq 0 ]
}

write_conf "$(printf '[namespace u]\nMode=0660\nLive=group')"
start_daemon
perfctl create t/anchor -e sched:sched_process_exec -C 0 -m 64K # keeps the namespace
CPUS=$(nproc)

echo "== the counters of each CPU, by the library; who opened them is gone"
expect_ok "$ADOPTER" adopt "$SOCKET" clock clock
busy "$(length 60 600)"
load=$SPAWNED
wait_until 20 more_records_than 100 t/clock
expect_eq "$(perfctl show t/clock --json | jq -c '[.adopted, .missed]')" '[true,null]'
expect_eq "$(links t/clock)" "$CPUS" "links"

# fds EVENT FILTER: of what the name stands for.
fds() {
	perfctl show --fds "$1" --json | jq -c "$2"
}

expect_eq "$(fds t/clock '[.fds[].kind] | unique')" '["counter","programs","ring"]' "what a clock consists of"
expect_eq "$(fds t/clock '[.fds[] | select(.kind == "counter" or .kind == "ring") | .cpu] | unique')" \
	"[$(seq -s , 0 $((CPUS - 1)))]" "its CPUs"
expect_eq "$(fds t/clock '[.fds[] | select(.kind == "counter") | .perf_id] | unique | length')" "$CPUS" "its perf events"
expect_eq "$(fds t/clock '[.fds[].alive] | unique')" "[true]" "its life"
expect_match "$(perfctl show --fds t/clock)" "counter +0 +[0-9]+ +- +[0-9]+ +-  yes"
expect_exit 4 as_user perfctl show --fds t/clock

echo "== with call chains, which the perf events ask for, too"
expect_ok "$ADOPTER" adopt "$SOCKET" chains chains
wait_until 20 more_records_than 20 t/chains
expect_match "$(perfctl reopen --copy t/chains -n 20)" "([0-9a-f]{8,} .*){3}"
expect_ok perfctl delete t/chains

echo "== through restarts"
n=$(length 3 20)
for ((i = 0; i < n; i++)); do
	before=$(records_of t/clock)
	case $((i % 3)) in
	0) kill_engine ;;
	1) kill_daemon && start_daemon ;;
	2) stop_daemon && start_daemon ;;
	esac
	wait_until 20 more_records_than "$((before + 10))" t/clock
done
echo "  $n restarts, $(records_of t/clock) records"
expect_ok perfctl change t/clock -m 64K
expect_ok perfctl pause t/clock
expect_ok perfctl resume t/clock
wait_until 20 more_records_than "$(($(records_of t/clock) + 10))" t/clock
rest "$load"

echo "== claimed, it ends with its new owner"
id=$(perfctl show t/clock --json | jq .id)
expect_ok "$ADOPTER" claim "$SOCKET" clock
read -r before after state <<<"${OUT%%$'\n'*}"
[ "$after" -gt "$before" ] || fail "a claimed event does not go on: $OUT"
expect_eq "$state" 0 "state of claimed rings"
echo "  $before records, then $after"
expect_exit 3 perfctl show t/clock
expect_exit 1 test -e "$REGISTRY/by-id/$id"

echo "== those of a running process, by perfctl; the process is killed"
open_events clock
expect_ok perfctl adopt t/taken -e cpu-clock -c 1000000 --pid "$OPENER" --fd "$FDS"
expect_match "$OUT" "records cpu-clock .* with $CPUS perf events? of process $OPENER"
ended "$OPENER"
busy 30
wait_until 20 more_records_than 50 t/taken
rest "$SPAWNED"

echo "== a tracepoint: every call once, of whichever task"
tracefs=/sys/kernel/tracing/events/${TRACEPOINT/://}/id
[ -e "$tracefs" ] || tracefs=/sys/kernel/debug/tracing/events/${TRACEPOINT/://}/id
expect_ok env ADOPTER_EVENT=$TRACEPOINT "$ADOPTER" adopt "$SOCKET" calls tracepoint "$(cat "$tracefs")"
expect_eq "$(links t/calls)" 1 "links of a tracepoint"
calls=$(length 50000 2000000)
spawn "$ADOPTER" cancel "$calls"
kill_daemon
start_daemon
wait "$SPAWNED"
expect_eq "$(records_of t/calls)" "$calls" "records of $calls calls, during which every daemon was killed"
expect_eq "$(perfctl reopen t/calls -n 1 | wc -l)" 1 "lines of one record"

echo "== a task and the children that it forks later; it ends, and its event stays"
expect_ok "$ADOPTER" task "$SOCKET" task 5
faults=$(records_of t/task)
[ "$faults" -ge $((5 * 64)) ] || fail "5 children have 64 faults each, and $faults are recorded"
for _ in 1 2 3 4 5; do true | cat; done
expect_eq "$(records_of t/task)" "$faults" "records of others' faults"
expect_eq "$(fds t/task '[.fds[] | select(.kind == "counter") | [.cpu, .tid, .alive]]')" "[[null,null,false]]" "its perf event"
expect_eq "$(fds t/calls '[.fds[] | select(.kind == "link") | [.cpu, .alive]]')" "[[null,true]]" "the link of a tracepoint"
echo "  $faults faults of 5 children"

echo "== claimed by a command, it ends with the command"
id=$(perfctl show t/taken --json | jq .id)
maps=$(find -L "$REGISTRY/by-id/$id" -name 'cpu*' | wc -l)
expect_eq "$maps" "$CPUS" "rings"
expect_ok env -C "$BIN" PATH= ./perfctl --instance "$INSTANCE" claim t/taken -- adopter read # it is in the current directory
read -r before after state <<<"$OUT"
[ "$after" -gt "$before" ] || fail "a claimed event does not go on: $OUT"
expect_exit 3 perfctl show t/taken
expect_exit 127 perfctl claim t/task -- "$SCRATCH/none"
expect_ok perfctl show t/task
released() {
	[ "$(perfctl limits --json | jq '[.[] | select(.scope == "total")][0].held')" = 0 ]
}
! full || wait_until 20 released || fail "the buffers of claimed events are still there: $(perfctl limits)"

echo "== an ordinary user's, who may write to the namespace"
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
	expect_ok as_member env ADOPTER_NAMESPACE=u "$ADOPTER" task "$SOCKET" mine 2
	[ "$(records_of u/mine)" -ge 128 ] || fail "2 children have 64 faults each: $(records_of u/mine)"
	perfctl create u/other -e cpu-clock -C 0 -m 64K
	expect_exit 4 as_member perfctl claim u/other -- true
	expect_match "$OUT" "sampling events that were adopted from him"
	expect_ok as_member perfctl claim u/mine -- true
	expect_exit 3 perfctl show u/mine
	perfctl delete u/other
else
	echo "SKIP: ordinary users open no perf events here (kernel.perf_event_paranoid)"
fi

echo "== killed in the middle: the perf events are still the program's"
for killed in client engine $(length "" "nobody broker"); do
	started "$ADOPTER" leave "$SOCKET" half clock
	left=$SPAWNED
	expect_eq "$LINE" attached
	expect_exit 1 perfctl show t/half
	expect_match "$OUT" "still being created"
	expect_exit 6 perfctl create t/half -e cpu-clock
	case $killed in
	client) ended "$left" ;;
	engine) kill_engine ;;
	nobody) # whoever may delete need not wait for it
		expect_ok perfctl delete t/half
		expect_match "$OUT" "was being adopted"
		;;
	broker) kill_daemon && start_daemon ;;
	esac
	[ "$killed" = client ] || ended "$left"
	wait_until 20 no_drafts || fail "a draft is left when the $killed is killed"
	wait_until 20 perfctl create t/half -e cpu-clock -C 0
	expect_ok perfctl delete t/half
done

# claim NAME: a claimer of it that waits when it has all parts, until claim_goes_on; CLAIMER.
mkfifo "$SCRATCH/go"
claim() {
	rm -f "$SCRATCH/claimed"
	spawn sh -c 'exec "$@" <"$0/go" >"$0/claimed" 2>"$0/why"' "$SCRATCH" "$ADOPTER" last "$SOCKET" "$1"
	CLAIMER=$SPAWNED
	exec 7>"$SCRATCH/go"
	wait_until 10 test -s "$SCRATCH/claimed"
}
claim_goes_on() {
	echo >&7
	STATUS=0
	wait "$CLAIMER" || STATUS=$?
	exec 7>&-
}

echo "== what was claimed has become another before the end, or somebody else's"
busy 60
load=$SPAWNED
perfctl create t/other -e cpu-clock -c 10000000 -m 64K
for what in "change t/other -c 5000000" "pause t/other" killed "claim t/other -- sleep 30"; do
	claim other
	read -ra words <<<"$what"
	case $what in
	killed) kill_daemon && start_daemon ;;
	claim*) spawn perfctl "${words[@]}" && wait_until 10 sh -c '! "$@" >/dev/null 2>&1' - "${PERFCTL[@]}" show t/other ;;
	*) expect_ok perfctl "${words[@]}" ;;
	esac
	[[ $what != pause* ]] || expect_ok perfctl resume t/other
	claim_goes_on
	expect_eq "$STATUS" 1 "the status of a claim after '$what'"
	case $what in
	killed) expect_match "$(<"$SCRATCH/why")" "is not the caller's; claim it again" ;;
	claim*) expect_match "$(<"$SCRATCH/why")" "no event with the id" ;;
	*) expect_match "$(<"$SCRATCH/why")" "has changed during the claim" ;;
	esac
	[[ $what == claim* ]] || wait_until 20 more_records_than "$(($(records_of t/other) + 2))" t/other
done
rest "$load" "$SPAWNED"

echo "== a process that forks is alive, whatever the kernel swaps; what was claimed can be read"
spawn bash -c 'while :; do (:); done'
expect_ok perfctl create t/forks -e page-faults:u -c 1 -m 64K -p "$SPAWNED"
wait_until 20 more_records_than 1000 t/forks
expect_eq "$(fds t/forks '[.fds[] | select(.kind == "counter") | .alive]')" "[true]" "its perf event"
rest "$SPAWNED"
expect_ok perfctl delete t/forks
expect_ok perfctl create t/two -e cpu-clock,page-faults -c 1000000 -m 64K
expect_match "$(perfctl claim t/two -- printenv LISTEN_FDNAMES)" '^(cpu[0-9]+:)+catalog(:kept)+$' "names of what was claimed"

echo "== the broker is killed when the engine has given back and nobody was told"
is_being_deleted() {
	[ "$(perfctl show t/last --json | jq -r .state)" = deleting ]
}
expect_ok "$ADOPTER" adopt "$SOCKET" last clock
id=$(perfctl show t/last --json | jq .id)
claim last
broker=$(broker_pid) engine=$(engine_pid)
kill -STOP "$engine"
echo >&7
wait_until 10 is_being_deleted
kill -STOP "$broker"
kill -CONT "$engine"
wait_until 10 test ! -e "$REGISTRY/by-id/$id"
kill -KILL "$broker"
wait "$CLAIMER"
exec 7>&-
expect_match "$(<"$SCRATCH/why")" "cannot tell whether it still has the event"
read -r before after state < <(sed -n 2p "$SCRATCH/claimed")
[ "$after" -gt "$before" ] || fail "nobody owns the event: $(<"$SCRATCH/claimed")"
expect_eq "$state" 0 "state of claimed rings"
wait "$broker" 2>/dev/null || true
DAEMON_PID=
wait_until 20 _no_processes
start_daemon
expect_exit 3 perfctl show t/last
