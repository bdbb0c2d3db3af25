#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Deleting events: `perfctl delete --all`, for all namespaces or for some, as far as the user may;
# and a daemon with KeepEvents=no, which deletes its events on a clean stop, never after a crash,
# which nothing can delay forever, and which names the events that it could not end.
. "$(dirname "$0")/../lib.sh"

names() {
	perfctl list --json | jq -r '.[] | "\(.namespace)/\(.name)"' | sort | xargs
}

# in_registry: NAMESPACE/EVENT of all events, with or without a daemon.
in_registry() {
	[ ! -e "$REGISTRY" ] || find "$REGISTRY" -mindepth 2 -maxdepth 2 -not -path '*/+*' -not -path '*/by-id/*' -printf '%P\n' | sort | xargs
}

logged() {
	grep -qE -- "$1" "$LOG"
}

# ── delete --all ─────────────────────────────────────────────────────────────────────────

write_conf "[namespace ours]
Owner=$NOBODY
Mode=0640
[namespace others]
Mode=0644"
start_daemon
expect_ok perfctl delete --all # there are none
make_some() {
	local name
	for name in a/x a/y b/x ours/x others/x; do
		perfctl create "$name" -e sched:sched_process_exec >/dev/null
	done
	perfctl create b/second -e sched:sched_process_exec --share >/dev/null
}
make_some
expect_exit 2 perfctl delete
expect_exit 2 perfctl delete --all --id 3
expect_exit 2 perfctl delete --all no/name
expect_exit 3 perfctl delete --all nosuch
expect_eq "$(names)" "a/x a/y b/second b/x others/x ours/x" "after what could not be meant"

# A user is told nothing about events that he may not read.
expect_exit 4 as_user perfctl delete --all
expect_match "$OUT" 'ours/x \(id [0-9]+\) is deleted' "what it says"
expect_match "$OUT" 'perfctl: .*may not .*others' "what it could not"
expect_eq "$(names)" "a/x a/y b/second b/x others/x"
expect_ok perfctl delete --all a others
expect_eq "$(names)" "b/second b/x"
expect_eq "$(perfctl -d --all --json | jq -r '[.[].name] | join(" ")')" "second x" "the second name first"
expect_eq "$(names)" ""
nothing_deleted() {
	[ -z "$(find "$REGISTRY" -maxdepth 1 -name '+del-*')" ]
}
wait_until 20 nothing_deleted # the kernel frees it a moment later
stop_daemon
[ ! -e "$RUN" ] || fail "without an event, this is left: $(find "$RUN" -printf '%P ')"
echo "delete --all: everything that the user may delete, and no more"

# A daemon that starts while the one before removes its directory has a directory, too.
for _ in 1 2 3 4 5; do
	start_daemon
	kill_daemon
done

# ── a stop that keeps ────────────────────────────────────────────────────────────────────

start_daemon
make_some
kept=$(event_ids)
stop_daemon
expect_eq "$(in_registry | wc -w)" 6 "events of nobody"
start_daemon
expect_eq "$(event_ids)" "$kept" "after a stop"

# ── a stop that ends ─────────────────────────────────────────────────────────────────────

write_conf "KeepEvents=maybe"
expect_exit 1 perfctl reload
expect_match "$OUT" 'KeepEvents= must be yes or no'
write_conf "KeepEvents=no"
expect_ok perfctl reload
kill_daemon
start_daemon
expect_eq "$(event_ids)" "$kept" "after a crash"
perfctl pause a/y >/dev/null

"$BIN/notify-listen" "$SCRATCH/notify" >"$SCRATCH/said" &
_spawned+=($!)
wait_until 10 test -S "$SCRATCH/notify"
stop_daemon
expect_eq "$(in_registry)" "" "what is left"
logged 'Ending on Terminated, and all events with it' || fail "the log does not say so"
NOTIFY_SOCKET=$SCRATCH/notify start_daemon
expect_eq "$(names)" ""
make_some
perfctl pause a/y >/dev/null

"$BIN/perfctl" --instance "$INSTANCE" watch --json >"$SCRATCH/watched" 2>/dev/null &
watcher=$!
_spawned+=("$watcher")
wait_until 10 grep -q started "$SCRATCH/watched"
"$BIN/perfctl" --instance "$INSTANCE" reopen b/x -f >/dev/null 2>"$SCRATCH/followed" &
follower=$!
_spawned+=("$follower")
follows() {
	grep -q "$REGISTRY\|bpf-map" "/proc/$follower/maps"
}
wait_until 10 follows
stop_daemon
wait_until 20 gone "$watcher"
expect_eq "$(in_registry)" "" "what is left"
expect_eq "$(jq -r 'select(.notice == "deleted").event | "\(.namespace)/\(.name)"' "$SCRATCH/watched" | sort | xargs)" \
	"a/x a/y b/second b/x others/x ours/x" "what watchers were told"
wait_until 10 gone "$follower"
grep -q 'the event is gone' "$SCRATCH/followed" || fail "a reader gets no message: $(<"$SCRATCH/followed")"
wait_until 20 grep -q STOPPING=1 "$SCRATCH/said"
wait_until 20 grep -qE 'EXTEND_TIMEOUT_USEC=[1-9][0-9]+$' "$SCRATCH/said" || fail "it asks for no time"
logged 'Ended all events: 6' || fail "the log does not count them"
# For events that readers still held, only the account may remain.
[ ! -e "$REGISTRY" ] || expect_eq "$(find "$REGISTRY" -path '*/+del-*' -type f ! -name meta)" "" "what still records"
echo "KeepEvents=no: all ended, in order, and everybody told"

# ── one that cannot end them ─────────────────────────────────────────────────────────────

# Tells the daemon to end while its engine does nothing.
end_without_engine() {
	engine=$(engine_pid)
	pid=$DAEMON_PID
	: >"$LOG"
	kill -STOP "$engine"
	kill -TERM "$pid"
	wait_until 20 logged 'Ending on Terminated, and all events with it \(KeepEvents=no\)'
	expect_exit 1 perfctl create a/late -e sched:sched_process_exit
	expect_match "$OUT" 'daemon is ending, and all events with it' "a creation meanwhile"
}
# has_ended: the daemon exited with success, and the engine too.
has_ended() {
	wait_until 30 gone "$pid" || fail "it waits for its engine for ever"
	wait "$pid" || fail "it ended with $?"
	kill -CONT "$engine" 2>/dev/null || true
	DAEMON_PID=
	wait_until 20 _no_processes
}
start_daemon
make_some
kept=$(event_ids)

# The daemon waits at most 10 s, and the process that runs the engine 5 s.
if full; then
	end_without_engine
	has_ended
	logged '6 events could not be ended, .*: a/x, a/y, b/second, b/x, others/x, ours/x' ||
		fail "the remaining events are not named"
	start_daemon
	# The engine may have carried out orders that it got before it stopped.
	expect_eq "$(comm -13 <(echo "$kept") <(event_ids))" "" "events that were not there"
	echo "and it is not held up"
fi

end_without_engine
kill -TERM "$pid"
wait_until 20 logged 'Ending on Terminated; the events go on recording' || fail "a second signal does not end it"
logged 'could not be ended' && fail "a second signal does not end it at once"
full || kill -CONT "$engine"
has_ended
echo "a second signal ends it at once"
start_daemon
expect_eq "$(comm -13 <(echo "$kept") <(event_ids))" "" "events that were not there"
perfctl delete --all >/dev/null
expect_eq "$(names)" ""
