#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# libperfpersist against a real daemon: every blocking call, two connections in one poll loop, a
# reader that outlives its event, its daemon and the registry, a daemon that exits while it has
# clients, and inherited rings.
. "$(dirname "$0")/../lib.sh"

# Not as an argument, because that marks the daemon's own processes.
export INSTANCE

start_daemon
echo "blocking calls"
"$BIN/library-calls" calls
expect_eq "$(perfctl list --json)" '[]' "what is left of them"

echo "asynchronous calls on two connections, in one loop"
"$BIN/library-calls" async
expect_eq "$(perfctl list --json)" '[]' "what is left of them"

echo "inherited rings"
# The ring never fills up: it records only perfctl's switches.
perfctl create t/outlive -e sched:sched_switch --filter 'prev_comm == "perfctl"' -m 16M >/dev/null
made_more_than() {
	perfctl list
	more_records_than "$1" t/outlive
}
wait_until 20 made_more_than 20
perfctl reopen t/outlive -- "$BIN/library-calls" fds
perfctl create t/two -e sched:sched_switch,sched:sched_waking --filter 'common_pid > 0' -m 16M >/dev/null
perfctl reopen t/two -- "$BIN/library-calls" fds
expect_match "$(perfctl reopen t/two -- printenv LISTEN_FDNAMES)" '^(cpu[0-9]+:)+catalog$' "the names"
perfctl delete t/two >/dev/null

# A helper that reads a line and answers with a line.
mkfifo "$SCRATCH/to" "$SCRATCH/from"
converse() {
	spawn sh -c 'cd "$0" && exec bin/library-calls "$1" <to >from 2>helper' "$SCRATCH" "$1"
	exec {to}>"$SCRATCH/to" {from}<"$SCRATCH/from"
	read -r -t 60 -u "$from" answer || fail "no word of $1: $(<"$SCRATCH/helper")"
}
ask() {
	echo >&"$to"
	read -r -t 60 -u "$from" answer || fail "no answer: $(<"$SCRATCH/helper")"
}
finished() {
	exec {to}>&- {from}<&-
	wait "$SPAWNED" || fail "$(<"$SCRATCH/helper")"
	expect_match "$(<"$SCRATCH/helper")" '^[1-9][0-9]* checks$' "what the helper says at its end"
}

echo "a reader outlives the event and the daemon"
converse outlive
expect_eq "$answer" open
ask
first=$answer
[ "$first" -gt 0 ] || fail "nothing was recorded"
wait_until 20 made_more_than $((first + 50))
ask
second=$answer
[ "$second" -gt "$first" ] || fail "the rings are not live: $first, then $second records"
perfctl delete t/outlive >/dev/null
expect_eq "$(perfctl list --json)" '[]' "the list without it"
# The recorder stops with the last of its links, which the kernel releases a little later.
still() {
	local before
	ask
	before=$answer
	perfctl list >/dev/null # makes switches
	ask
	[ "$answer" -eq "$before" ]
}
wait_until 20 still
third=$answer
[ "$third" -ge "$second" ] || fail "records were lost by the deletion: $second, then $third"
kill_daemon
wait_until 20 umount "$REGISTRY" # any `bpftool --bpffs` keeps it busy
ask
expect_eq "$answer" "$third" "records when daemon and registry are gone"
finished
echo "  $first records, $second a moment later, $third after the deletion, $answer when all is gone"

echo "a daemon that exits while it has clients"
start_daemon
converse gone
expect_eq "$answer" connected
kill_daemon
echo >&"$to"
finished
start_daemon
stop_daemon
echo "every call did what perfpersist.h says"
