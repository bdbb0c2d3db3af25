#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Clients that send garbage or descriptors, shut down one half, never read, or are killed in the
# middle of a request, disturb no other client and leave nothing behind. A message names each limit
# on connections.
. "$(dirname "$0")/../lib.sh"

SOCKET=$RUN/control
ns=$INSTANCE

fds_of() {
	find "/proc/$1/fd" -mindepth 1 | wc -l
}

holds_no_more() {
	[ "$(fds_of "$broker")" -le "$broker_fds" ] && [ "$(fds_of "$engine")" -le "$engine_fds" ] &&
		[ "$(fds_of "$dumper")" -le "$dumper_fds" ]
}

# Neither nobody nor root.
as_other() {
	(cd / && exec setpriv --reuid=61005 --regid=61005 --clear-groups -- "${PERFCTL[@]}" "${@:2}")
}

# look: after each client the same three processes run, with no more descriptors, and the event
# keeps recording.
look() {
	expect_eq "$(broker_pid) $(engine_pid) $(dumper_pid)" "$broker $engine $dumper" \
		"broker, engine and dumper after $1"
	wait_until 20 holds_no_more ||
		fail "after $1 the broker holds $(fds_of "$broker") descriptors (before: $broker_fds), the engine $(fds_of "$engine") ($engine_fds), the dumper $(fds_of "$dumper") ($dumper_fds)"
	expect_eq "$(event_ids)" "$ids" "the events after $1"
	wait_until 20 more_records_than "$records" "$ns/witness" || fail "$ns/witness does not record after $1"
	records=$(records_of "$ns/witness")
}

write_conf "MaxConnections=40
MaxConnectionsPerUser=10
[namespace $ns]
Mode=0644"
start_daemon
perfctl create "$ns/witness" -e sched:sched_switch
broker=$(broker_pid)
engine=$(engine_pid)
dumper=$(dumper_pid)
ids=$(event_ids)
records=0

# Runs each client once, because the three processes load some things once and keep them.
"$BIN/stranger" "$SOCKET" silent 3 >/dev/null
perfctl create "$ns/k0" -e sched:sched_switch >/dev/null
perfctl delete "$ns/k0" >/dev/null
as_user perfctl reopen "$ns/witness" -n 1 >/dev/null 2>&1
broker_fds=$(fds_of "$broker")
engine_fds=$(fds_of "$engine")
dumper_fds=$(fds_of "$dumper")

# hold AS MANNER…: a stranger that sets LINE when it is connected, and stays until release.
hold() {
	coproc HOLD { "$1" "$BIN/stranger" "$SOCKET" "${@:2}"; }
	read -r LINE <&"${HOLD[0]}"
}

release() {
	local input=${HOLD[1]}
	exec {input}>&-
	wait "$HOLD_PID"
}

as_root() {
	"$@"
}

for manner in garbage descriptors "silent 200"; do
	# shellcheck disable=SC2086
	"$BIN/stranger" "$SOCKET" $manner || fail "$manner"
	look "$manner"
done

hold as_user deaf "$ns" 8
expect_match "$LINE" '^deaf: [1-9].* and [1-9].* opens' "the deaf ones"
echo "$LINE"
expect_ok perfctl reopen "$ns/witness" -n 1
expect_ok as_other perfctl reopen "$ns/witness" -n 1
release
look deaf

"$BIN/stranger" "$SOCKET" killed "$ns" 120
# The engine carries out orders in turn: when this one is done, theirs are.
perfctl create "$ns/last" -e sched:sched_switch >/dev/null
perfctl delete "$ns/last" >/dev/null
mapfile -t left < <(perfctl list --json | jq -r --arg witness witness '.[] | select(.name != $witness) | "\(.namespace)/\(.name)"')
echo "killed: ${#left[@]} of their events exist, complete"
expect_eq "$(find "$REGISTRY/by-id" -mindepth 1 -type d | wc -l)" $((${#left[@]} + 1)) "events in by-id"
for event in "${left[@]}"; do
	perfctl reopen "$event" -n 1 >/dev/null 2>&1
	perfctl delete "$event" >/dev/null
done
look "clients that were killed"
rings_are_gone() {
	[ "$("$BIN/census" "$ns")" -eq "$(find "$REGISTRY/$ns/witness/" -name 'cpu*' | wc -l)" ]
}
wait_until 20 rings_are_gone || fail "$("$BIN/census" "$ns") rings are in the kernel"

answered() {
	as_user perfctl ping
}

hold as_user hold 10
expect_eq "$LINE" ready "the holder"
expect_exit 1 as_user perfctl list
expect_match "$OUT" 'has 10 connections, and 1 more would be over the limit of 10; end some, or have MaxConnectionsPerUser= raised' "the refusal"
echo "limit: $OUT"
expect_ok perfctl list
release
wait_until 20 answered || fail "nobody is let in again"

hold as_root hold 40
expect_eq "$LINE" ready "the holder"
expect_exit 1 as_user perfctl list
expect_match "$OUT" 'has 4[0-9] connections, and 1 more would be over the limit of 40; end some, or have MaxConnections= raised' "the refusal"
expect_ok perfctl list
release
wait_until 20 answered || fail "nobody is let in again"
look "limits"
perfctl delete "$ns/witness" >/dev/null
echo "broker $broker_fds, engine $engine_fds and dumper $dumper_fds descriptors, before and after"
