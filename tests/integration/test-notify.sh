#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The daemon's notifications to systemd: READY=1 when each configured event records, or has failed
# and is in the log, and not before; RELOADING=1 with the time, and READY=1 again; WATCHDOG=1 as
# often as requested; STOPPING=1. A broken file delays nothing.
. "$(dirname "$0")/../lib.sh"

DROPINS=$CONF.d
SAID=$SCRATCH/said

# said KEY=VALUE: how often the daemon sent it.
said() {
	grep -cE "^[0-9]+ $1\$" "$SAID" || true
}

said_times() {
	[ "$(said "$2")" -ge "$1" ]
}

# Lists the events at each READY=1, and whether they record.
cat >"$SCRATCH/at-ready" <<-END
	#!/bin/bash
	echo "AT READY \$($BIN/perfctl --instance $INSTANCE list --json |
		jq -r '[.[] | .name + ":" + .state] | sort | join(" ")')"
END
chmod 0755 "$SCRATCH/at-ready"

looked_times() {
	[ "$(grep -c '^AT READY ' "$SAID")" -ge "$1" ]
}

# at_ready N: the list at the Nth.
at_ready() {
	grep '^AT READY ' "$SAID" | sed -n "${1}s/^AT READY //p"
}

"$BIN/notify-listen" "$SCRATCH/notify" "$SCRATCH/at-ready" >"$SAID" &
_spawned+=($!)
wait_until 10 test -S "$SCRATCH/notify"
export NOTIFY_SOCKET=$SCRATCH/notify WATCHDOG_USEC=1000000

# Enough events to take a while, so that a READY=1 that is too early shows.
mkdir -m 0755 "$DROPINS"
events=
for i in $(seq 10 29); do
	printf '[event boot/e%s]\nEvent=sched:sched_process_*\nGeneric=yes\nBuffer=64K\n' "$i" >"$DROPINS/$i.conf"
	events+=" e$i:running"
done
printf '[event boot/no such name]\nEvent=sched:sched_switch\n' >"$DROPINS/15-broken.conf"
printf 'what is this\n' >"$DROPINS/16-broken.conf"
printf '[event boot/none]\nEvent=nosuch:nosuch\n' >"$DROPINS/17-broken.conf"

start_daemon
wait_until 120 said_times 1 READY=1 || fail "it never says that it is ready"
wait_until 20 looked_times 1
expect_eq " $(at_ready 1)" "$events" "what records at READY=1"
for file in 15 16 17; do
	grep -qF "$DROPINS/$file-broken.conf:" "$LOG" || fail "$file-broken.conf is not complained of"
done
expect_eq "$(said RELOADING=1)" 0 "reloads so far"
wait_until 20 said_times 1 'STATUS=20 events in 1 namespace'
expect_eq "$(cut -d' ' -f1 "$SAID" | grep -v AT | sort -u)" "$DAEMON_PID" "who speaks"
echo "ready with all 20 events recording, and three broken files"

wait_until 30 said_times 4 WATCHDOG=1
echo "watched: $(said WATCHDOG=1) signs of life"

# ── read again ───────────────────────────────────────────────────────────────────────────

for i in 30 31; do
	printf '[event boot/e%s]\nEvent=sched:sched_process_*\nGeneric=yes\nBuffer=64K\n' "$i" >"$DROPINS/$i.conf"
	events+=" e$i:running"
done
expect_exit 1 perfctl reload # because of the broken ones
wait_until 20 said_times 2 READY=1
expect_eq "$(said RELOADING=1)" 1
usec=$(sed -nE 's/^[0-9]+ MONOTONIC_USEC=([0-9]+)$/\1/p' "$SAID")
read -r up _ </proc/uptime
if [ "$usec" -le 0 ] || [ "$((usec / 1000000))" -gt "${up%.*}" ]; then
	fail "RELOADING=1 at $usec, by a clock at $up"
fi
expect_eq "$(grep -nE 'RELOADING=1|READY=1' "$SAID" | cut -d' ' -f2 | xargs)" "READY=1 RELOADING=1 READY=1"
wait_until 20 looked_times 2
expect_eq " $(at_ready 2)" "$events" "what records at the second READY=1"

rm "$DROPINS"/*-broken.conf "$DROPINS"/3?.conf
kill -HUP "$DAEMON_PID"
wait_until 60 said_times 3 READY=1
expect_eq "$(said RELOADING=1)" 2
echo "reloads are told, with the time, and end when all records"

# ── the end ──────────────────────────────────────────────────────────────────────────────

expect_eq "$(said STOPPING=1)" 0
stop_daemon
wait_until 10 said_times 1 STOPPING=1
expect_eq "$(said EXTEND_TIMEOUT_USEC=.*)" 0 "more time"
expect_eq "$(tail -n 1 "$SAID" | cut -d' ' -f2)" STOPPING=1 "its last word"
unset NOTIFY_SOCKET WATCHDOG_USEC
start_daemon
