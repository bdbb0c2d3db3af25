#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Six scenes on a machine that does nothing else: what `perfctl incident` says afterwards names the culprit
# and how long it took in its first ten lines.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"

tracepoints_lock --shared
start_daemon
mkdir "$CONF.d"
perfctl preset enable flight --presets "$ROOT/conf/presets" -D "$CONF.d" >/dev/null
cd "$SCRATCH"

# incident SINCE REGEX: the first ten lines of the report have it
incident() {
	rm -rf inc inc.tar.gz
	perfctl incident --since "$1" -o inc >/dev/null 2>&1
	head -n 10 inc/report.txt >lines
	line=$(grep -nE "$2" lines) || fail "/$2/ is not in the first lines: $(<lines)"
	echo "$line"
}

now() {
	awk '{ printf "%.6f", $1 }' /proc/uptime
}

# played SCENE REGEX
played() {
	local from
	from=$(now)
	"$BIN/scene" "$1" 4000 >said
	incident "$from" "$2"
}

ms='[0-9.]+ m?s'
played hog "sc-hog\\[.* kept sc-loop.*: up to (2[5-9]|3[0-9]) ms, "
played mutex-spin "sc-holder\\[.* let sc-waiter.* for up to (4[5-9]|5[0-9]) ms, "
played mutex-sleep "sc-holder\\[.* let sc-waiter.* for up to (4[5-9]|5[0-9]) ms, "
played stall "sc-server\\[.* ran without a sleep for up to 1[45][0-9] ms, .*keys_command"
played fork-stall "sc-server\\[.* ran without a sleep for up to $ms, "

from=$(now)
for _ in {1..2000}; do "$(type -P true)"; done
incident "$from" "bash\\[$$\\] began (19|20)[0-9][0-9] processes in $ms, as true; they ran $ms in all"

from=$(now)
"$BIN/scene" crash 1 >said
sleep 30
incident "$from" "sc-crasher\\[[0-9]+\\] died of SIGSEGV .*, (29|3[0-9]) s before the end"

if [ "$(findmnt -T . -no FSTYPE)" = tmpfs ]; then
	echo "SKIP: a disk: $SCRATCH is on a tmpfs"
else
	from=$(now)
	dd if=/dev/zero of=big bs=1M count=100000 oflag=sync status=none &
	writer=$!
	"$BIN/scene" write 4000 >said
	kill $writer
	wait $writer 2>/dev/null || true
	rm big small
	incident "$from" "dd\\[$writer\\] kept disk .* was blocked for up to $ms"
fi
