# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Shared by the tests of tracepoints: tracefs, their CPUs, and the lock for tests that fill a
# tracepoint.

# with_tracefs CMD…: runs it with tracefs where perf looks for it; if it is not mounted, mounts it
# for the command alone.
with_tracefs() {
	if [ -e /sys/kernel/tracing/events ]; then
		"$@"
	else
		unshare --mount sh -c 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"' sh "$@"
	fi
}

# first_cpus N: the first N online CPUs, separated by commas.
first_cpus() {
	tr ',' '\n' </sys/devices/system/cpu/online |
		while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done |
		awk -v n="$1" 'NR <= n' | paste -sd,
}

# hot_calls: whether system calls, and the life of processes, have a tp_btf recorder. Since 7.0 a
# task may be preempted in it.
hot_calls() {
	[ "$(uname -r | cut -d . -f 1)" -lt 7 ]
}

# The kernel runs at most 64 programs on one tracepoint, from all users. A test that fills a
# tracepoint has it to itself; tests that record whole systems of tracepoints share them.
# tracepoints_lock [--shared]
tracepoints_lock() {
	mkdir -p "$LOCKS"
	[ -n "${TRACEPOINTS_FD-}" ] || exec {TRACEPOINTS_FD}>>"$LOCKS/tracepoints.lock"
	flock "$@" "$TRACEPOINTS_FD"
}

# Also unlocks processes that were started meanwhile and have the file open.
tracepoints_unlock() {
	flock --unlock "$TRACEPOINTS_FD"
}
