#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Kills engine, broker, dumper and reaper at each step of every order, and the engine's successor at
# each step of its recovery. Each time the order is carried out completely or not at all, and the
# answer is true.
#
# crash.c runs broker, engine and dumper itself, as systemd would, and restarts each at once;
# test-restart.sh tests the daemon's own launcher. Grace periods of the kernel take most of the
# time, so several lanes share the work: a lane is this script once more, with an instance of its
# own.
#
# The short form has each victim and each act at least once. Where there are many steps it kills at
# the first call of each kind, around each rename, and at every 30th of the others (tracer.h). At any
# length tests/unit/test-event-life.c kills at each step of creating and changing an event.
. "$(dirname "$0")/../lib.sh"

if [ "${1-}" = lane ]; then
	write_conf
	spawn "$BIN/crash" "$INSTANCE" "$BUILD" "$CONF" "$DAEMON_UID" 2>>"$LOG"
	exec 3<&-
	wait "$SPAWNED"
	exit
fi

scenarios=()

# parts N EVERY SCENARIO…: splits each into N parts, so that lanes share it.
parts() {
	local n=$1 every=$2 scenario i
	shift 2
	for scenario in "$@"; do
		for ((i = 1; i <= n; i++)); do
			scenarios+=("$scenario $i/$n $every")
		done
	done
}

# Longest first.
if full; then
	parts 4 1 recovery:{create:generic,resize:hot} engine:{create,resize}:several
	scenarios+=(
		recovery:{delete,bequeath}:generic
		engine:create:{hot,generic,sampling,waking} engine:filter:hot
		{recovery,engine,reaper}:sample:sampling {engine,broker}:sample:several
		engine:{pause,resume}:{hot,sampling} engine:{alias,unalias,bequeath}:generic
		engine:delete:{hot,generic,sampling,several}
		reaper:delete:{hot,sampling,several} reaper:resize:several
		broker:{create,delete}:{hot,generic,sampling}
		broker:{filter,resize,pause,resume,alias,unalias,bequeath,copy}:several
		dumper:copy:several descriptors
	)
else
	parts 3 30 recovery:resize:hot engine:resize:several
	parts 2 30 recovery:{create,delete,bequeath}:generic engine:create:several engine:filter:hot
	scenarios+=(
		descriptors reaper:{resize,delete}:hot
		engine:{delete,bequeath,alias,unalias}:generic engine:{pause:hot,resume:sampling}
		broker:{create:hot,resize:several,bequeath:several,copy:several}
	)
	parts 1 30 dumper:copy:several {recovery,engine}:sample:sampling broker:sample:several
fi

# A lane that is killed cleans up.
at_end() {
	wait
}

printf '%-47s\n' "${scenarios[@]}" >"$SCRATCH/scenarios"
exec 3<"$SCRATCH/scenarios"
lanes=({a..h})
for lane in "${lanes[@]}"; do
	spawn env PP_TEST_INSTANCE="$INSTANCE-$lane" bash "$0" lane
done
exec 3<&-
for _ in "${lanes[@]}"; do
	wait -n || fail "a lane failed"
done
