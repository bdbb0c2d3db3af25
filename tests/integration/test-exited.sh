#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A program that ran for 50 ms and exited before the snapshot still has its name, and its functions
# theirs, when perf and perfctl read the file. So does a program that ran while broker and engine
# were dead and, with --direct, while they still are.
. "$(dirname "$0")/../lib.sh"
command -v perf >/dev/null || skip "there is no perf"

# brief NAME: exits after 50 ms of CPU time.
brief() {
	cp "$BIN/perfdata-load" "$SCRATCH/$1"
	spawn "$SCRATCH/$1" burn
	wait_until 20 burnt "$SPAWNED"
	kill -KILL "$SPAWNED"
	wait "$SPAWNED" 2>/dev/null || true
}
# utime: in ticks of 10 ms
burnt() {
	[ "$(awk '{ sub(/.*\) /, ""); print $12 }' "/proc/$1/stat")" -ge 5 ]
}

# named FILE NAME: perf and perfctl show its function and its file.
named() {
	local by
	perf script -i "$1" -F comm,ip,sym,dso >"$SCRATCH/perf.txt" 2>"$SCRATCH/perf.err" ||
		fail "perf script: $(<"$SCRATCH/perf.err")"
	perfctl script -i "$1" -F comm,ip,sym,dso >"$SCRATCH/perfctl.txt" 2>/dev/null
	for by in perf perfctl; do
		[ "$(grep -A3 -E "^ *$2\b" "$SCRATCH/$by.txt" | grep -cE " burn(\+0x[0-9a-f]+)? \(.*/$2\)")" -ge 3 ] ||
			fail "$by does not show $2's work: $(grep -A3 -E "^ *$2\b" "$SCRATCH/$by.txt" | head -n 8)"
	done
}

start_daemon
# Records only these two: on a busy machine other processes would fill the rings within the minute.
perfctl create t/profile -e cpu-clock -F 1000 -g -m 4M --filter 'comm == "pp-first" || comm == "pp-second"' >/dev/null
wait_until 20 kept || fail "nothing is kept"
brief pp-first
expect_ok perfctl snapshot t/profile -o "$SCRATCH/first.data"
named "$SCRATCH/first.data" pp-first

kill_daemon
brief pp-second
expect_ok perfctl --direct snapshot t/profile -o "$SCRATCH/direct.data"
named "$SCRATCH/direct.data" pp-second
start_daemon
expect_ok perfctl snapshot t/profile -o "$SCRATCH/second.data"
named "$SCRATCH/second.data" pp-first
named "$SCRATCH/second.data" pp-second
echo "named, and with their functions: one that had ended, and one that began and ended while the daemons were dead"
