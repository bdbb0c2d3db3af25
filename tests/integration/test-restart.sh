#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Restarts under load: SIGKILL of the broker, SIGKILL of the engine, SIGTERM, in turn, in the
# foreground, where the daemon's launcher restarts the engine. No event, id or record is lost; no
# descriptor and no pin leaks. ROUNDS (3; at full length 25) is how often each happens.
. "$(dirname "$0")/../lib.sh"

rounds=${ROUNDS:-$(length 3 25)} # of four restarts each

fds_of() {
	find "/proc/$1/fd" -mindepth 1 2>/dev/null | wc -l
}

# For wait_until: another engine than this one runs.
engine_is_new() {
	local pid
	pid=$(engine_pid)
	[ "$pid" -gt 0 ] && [ "$pid" -ne "$1" ] && perfctl list
}

broker_holds() {
	[ "$(fds_of "$1")" -le "$2" ]
}

checks=0 joins=0 runs=0 numbers=0
export SEQUENCE_MARK=$$

# After each restart the same events exist and keep recording.
look() {
	local seen joined of out

	expect_eq "$(event_ids)" "$ids" "names and ids after restart $restarts"
	for event in "${events[@]}"; do
		wait_until 20 more_records_than "${records[$event]}" "$event" ||
			fail "$event does not record after restart $restarts"
		records[$event]=$(records_of "$event")
	done
	out=$("$BIN/sequence" check "$INSTANCE" "$INSTANCE/calls" "$SCRATCH/state") ||
		fail "after restart $restarts: $out"
	read -r seen joined of <<<"$out"
	[ $checks -eq 0 ] || expect_eq "$joined" "$of" "runs that join on to those before, after restart $restarts"
	checks=$((checks + 1)) joins=$((joins + joined)) runs=$((runs + of))
	numbers=$((numbers + seen))
}

restart_engine() {
	local pid
	pid=$(engine_pid)
	kill_engine
	wait_until 20 engine_is_new "$pid" || fail "the engine does not come back"
}

start_daemon
perfctl create "$INSTANCE/calls" -e raw_syscalls:sys_enter --filter "$("$BIN/sequence" filter)" -m 64M
perfctl create "$INSTANCE/names" -e task:task_rename -m 64M
perfctl create "$INSTANCE/samples" -e cpu-clock -F 999 -g
perfctl create "$INSTANCE/switches" -e sched:sched_switch --generic
events=("$INSTANCE/calls" "$INSTANCE/names" "$INSTANCE/samples" "$INSTANCE/switches")
declare -A records
for event in "${events[@]}"; do
	records[$event]=0
done
ids=$(event_ids)
listing=$(ls "$REGISTRY" "$REGISTRY/by-id" "$REGISTRY/$INSTANCE"/*)
rings=$("$BIN/census" "$INSTANCE")

spawn "$BIN/sequence" work "$SCRATCH/work"
worker=$SPAWNED

restarts=0
for ((round = 0; round < rounds; round++)); do
	kill_broker
	wait_until 20 _no_processes || fail "left behind by a broker that was killed: $(daemon_pids | xargs)"
	start_daemon
	restarts=$((restarts + 1))
	look
	held=$(fds_of "$DAEMON_PID")
	for _ in 1 2; do
		restart_engine
		restarts=$((restarts + 1))
		look
	done
	wait_until 20 broker_holds "$DAEMON_PID" "$held" ||
		fail "the broker holds $(fds_of "$DAEMON_PID") descriptors, $held before its engine was killed"
	stop_daemon
	start_daemon
	restarts=$((restarts + 1))
	look
done

kill -TERM "$worker"
wait "$worker" || fail "the workload failed"
"$BIN/sequence" all "$INSTANCE" "$INSTANCE/names" "$SCRATCH/work" || fail "records are missing in names"
for event in "${events[@]}"; do
	echo "$event: $(records_of "$event") records, missed $(stat_of "$event" missed)"
done
expect_eq "$(ls "$REGISTRY" "$REGISTRY/by-id" "$REGISTRY/$INSTANCE"/*)" "$listing" "the registry's files"
expect_eq "$("$BIN/census" "$INSTANCE")" "$rings" "the rings in the kernel"

perfctl delete "${events[@]}" >/dev/null
registry_is_empty() {
	[ -z "$(find "$REGISTRY" -mindepth 1 ! -path "$REGISTRY/by-id" ! -path "$REGISTRY/+last-id" ! -path "$REGISTRY/+cpus*" ! -path "$REGISTRY/+totals*" ! -name '*.debug')" ] &&
		[ "$("$BIN/census" "$INSTANCE")" -eq 0 ]
}
wait_until 20 registry_is_empty || fail "left in registry or kernel: $(ls -R "$REGISTRY")"
stop_daemon
echo "$restarts restarts in $SECONDS s; ids and files unchanged, nothing left"
echo "calls: $checks snapshots with $numbers numbers, none missing; $joins of $runs runs join on to those before"
