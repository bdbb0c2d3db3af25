#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The keeper without systemd: it runs while there are events, survives the exit or death of all
# other processes, is found by the next daemon, and is replaced when it dies. It holds no descriptor
# of the launcher's, and no process has to wait for it.
. "$(dirname "$0")/../lib.sh"

has_keeper() {
	[ -n "$(keeper_pid)" ]
}
no_keeper() {
	! has_keeper
}
keeps() {
	[ "$(perfctl ping --json | jq '.sideband.processes // 0')" -gt 0 ]
}
# is_new PID: another keeper than that one runs, and keeps something.
is_new() {
	has_keeper && [ "$(keeper_pid)" != "$1" ] && keeps
}
create() {
	perfctl create "$1" -e sched:sched_process_exec -m 64K >/dev/null
	wait_until 20 keeps || fail "no keeper keeps sideband"
}
status_of() {
	sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"
}

start_daemon
wait_until 20 no_keeper || fail "there are no events, and a keeper"
create t/one
keeper=$(keeper_pid)
echo "a keeper comes with the first event"

expect_match "$(status_of "$keeper" Uid)" "^${DAEMON_UID}[[:space:]]+${DAEMON_UID}[[:space:]]" "its user"
expect_match "$(status_of "$keeper" Gid)" "^${DAEMON_GID}[[:space:]]+${DAEMON_GID}[[:space:]]" "its group"
expect_eq "$(status_of "$keeper" Groups | xargs)" "" "its other groups"
expect_match "$(status_of "$keeper" CapEff)" '^0+$' "its capabilities"
expect_eq "$(status_of "$keeper" NoNewPrivs)" 1 "NoNewPrivs"
expect_eq "$(ps -o sid= -p "$keeper" | xargs)" "$keeper" "its session"
expect_eq "$(readlink "/proc/$keeper/cwd")" / "where it stands"
expect_eq "$(stat -c '%a %u' "$RUN/keeper")" "600 $DAEMON_UID" "its socket"
# It holds the engine's iterators until it has read them, which takes longer with other processes'
# mappings.
holds_its_own() {
	held=$(find "/proc/$keeper/fd" -mindepth 1 -printf '%l\n')
	! grep -E "^$RUN|pipe:|pidfd|signalfd|bpf" <<<"$held"
}
wait_until 20 holds_its_own || fail "it holds the launcher's descriptors: $held"
expect_eq "$(grep -c 'perf_event' <<<"$held")" "$(getconf _NPROCESSORS_ONLN)" "perf events that it holds"

echo "it goes on when the daemon ends, and the next one finds it"
stop_daemon
expect_eq "$(keeper_pid)" "$keeper" "the keeper after SIGTERM to the daemon"
start_daemon
wait_until 20 keeps || fail "it is not found"
expect_eq "$(keeper_pid)" "$keeper" "the keeper of the next daemon"
kill_daemon
expect_eq "$(keeper_pid)" "$keeper" "the keeper after SIGKILL to all others"
start_daemon
wait_until 20 keeps || fail "it is not found"
expect_eq "$(keeper_pid)" "$keeper" "the keeper after that"

echo "found, and gone: another one takes its place"
_kill_9 "$keeper"
wait_until 20 is_new "$keeper" || fail "no successor of the keeper starts"
keeper=$(keeper_pid)
_kill_9 "$keeper"
wait_until 20 is_new "$keeper" || fail "no successor of the keeper starts the second time"

echo "not needed: it ends, and comes back"
perfctl delete --all >/dev/null
wait_until 20 no_keeper || fail "it stays without events"
create t/two
keeper=$(keeper_pid)
stop_daemon
start_daemon
wait_until 20 keeps || fail "it is not found"
perfctl delete --all >/dev/null
wait_until 20 no_keeper || fail "one that was found stays without events"
create t/three

echo "one that does not answer is replaced"
keeper=$(keeper_pid)
kill_daemon
kill -STOP "$keeper"
: >"$LOG"
start_daemon
wait_until 20 is_new "$keeper" || fail "it is not replaced"
expect_match "$(<"$LOG")" "The process that listens on $RUN/keeper does not answer like the keeper" "what is said of it"
kill -CONT "$keeper"
wait_until 20 gone "$keeper" || fail "it stays, although nothing can reach it"

echo "no process waits for it"
stop_daemon
keeper=$(keeper_pid)
_kill_9 "$keeper"
# The reader of a pipe sees its end when every process has closed it.
{ "$BUILD/perfpersistd" --instance "$INSTANCE" --config "$CONF" 2>&1 || true; } | cat >"$SCRATCH/piped" &
reader=$!
answers() {
	perfctl list >/dev/null 2>&1 && keeps
}
wait_until 20 answers || fail "the daemon does not start: $(<"$SCRATCH/piped")"
has_keeper || fail "there is no keeper"
kill -TERM "$(broker_pid)"
wait_until 20 gone "$reader" || fail "a pipe's reader waits for the keeper"
wait_until 20 _no_processes
has_keeper || fail "the keeper ended with the pipe"

echo "its socket is gone: it ends"
keeper=$(keeper_pid)
rm "$RUN/keeper"
wait_until 20 gone "$keeper" || fail "it stays when nothing can reach it"

write_conf
expect_exit 1 "$BUILD/perfpersistd" --instance "$INSTANCE" --config "$CONF" --keeper /nonexistent/keeper
expect_match "$OUT" 'There is no keeper to run at /nonexistent/keeper: No such file.*--keeper' "a keeper that is not there"
start_daemon
perfctl delete --all >/dev/null
