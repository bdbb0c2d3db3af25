#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Kills the engine at each step of giving an event the ring and the counter of a CPU that comes
# online.
#
# An engine that does not see one of the CPUs creates the events; no CPU of this machine changes
# state. crash-cpus.c runs the engine alone.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../blind.sh"

EVENTS=32 # one for each kill

mount_registry
start_daemon --engine "$BLIND"
for i in $(seq $EVENTS); do
	perfctl create "t/e$i" -e syscalls:sys_enter_sched_getscheduler,cpu-clock -m 64K >/dev/null
done
stop_daemon
mapfile -t names < <(for i in $(seq $EVENTS); do
	echo "t/e$i=$(sed -n 's/^id=//p' "$REGISTRY/t/e$i/info")"
done)
"$BIN/crash-cpus" "$INSTANCE" "$BUILD" "$DAEMON_UID" "$FIRST" "$LAST" "${names[@]}" 2>>"$LOG"

# The broker finds them complete.
start_daemon
expect_eq "$(perfctl list --json | jq length)" $EVENTS "events"
