#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Scenes on a machine that does nothing else: what `perfctl incident` says afterwards names the culprit
# and how long it took in its first ten lines, and a comparison with the time before it in its first three.
# The comparison says nothing of a time in which nothing is played.

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

# now NAME: sets that; doze SECONDS. Both without a process of their own, which would be what is new in a quiet time.
from='' until=''
mkfifo silence
exec {silence}<>silence
doze() {
	read -r -t "$1" -u "$silence" || true
}
now() {
	read -r "$1" _ </proc/uptime
}

# The time before is as long for each scene, and nobody works in it.
BEFORE=$(length 20 40)
rest() {
	doze "$BEFORE"
	now from
}

# compare: the time since the rest with the time before it, in the file `changes`. To be called before anything else
# runs.
compare() {
	now until
	perfctl report flight/ --since "$from" --until "$until" --against "${BEFORE}s" >changes 2>/dev/null
}

# against REGEX: the first three lines of the comparison have it.
against() {
	compare
	tail -n +2 changes | grep -v '^ *NOW  ' | head -n 3 >lines
	line=$(grep -nE "$1" lines) || fail "/$1/ is not in the first lines of the comparison: $(<changes)"
	echo "        compared: ${line%%$'\n'*}"
}

# played SCENE LEAST REGEX NAME; LONGEST in it: from LEAST, in ms, to what the scene itself saw on the clock, and 5 more:
# where somebody else has the CPU, also a hypervisor, it takes longer.
played() {
	local longest
	rest
	"$BIN/scene" "$1" 4000 >said
	longest=$(sed -n 's/^longest=//p' said)
	against "$4"
	incident "$from" "${3/LONGEST/($(seq -s '|' "$2" $((longest + 5))))}"
}

# A thread of the machine's own that worked in the quiet moment and never before is rightly named: then the moment was
# not quiet.
switches_to() {
	perfctl script flight/ --event sched:sched_switch --since "$2" --until "$3" 2>/dev/null | grep -cF " next_comm=$1 next_pid="
}
disturbed() {
	local line name said=1
	while IFS= read -r line; do
		[[ $line =~ 'never in '[0-9]+' slices '+([^\ \(][^\(]*)': on a CPU'(, .*)?$ ]] || return 1
		name=${BASH_REMATCH[1]} said=0
		[[ $name != @(bash|perf*) ]] || return 1
		[ "$(switches_to "$name" "$(awk -v s="$from" -v b="$BEFORE" 'BEGIN { print s - b + 1 }' )" "$from")" -eq 0 ] || return 1
		[ "$(switches_to "$name" "$from" "$until")" -gt 0 ] || return 1
		echo "SKIP: a quiet moment: $name, which is not of this test, began to work in it"
	done < <(tail -n +2 changes | grep -vE '^ *NOW  | lacks ')
	return $said
}
rest
doze 5
compare
grep -q '^nothing unusual' changes || disturbed || fail "of a quiet moment it says: $(<changes)"

ms='[0-9.]+ m?s'
played hog 25 'sc-hog\[.* kept sc-loop.*: up to LONGEST ms, ' sc-hog
played mutex-spin 45 'sc-holder\[.* let sc-waiter.* for up to LONGEST ms, ' sc-holder
played mutex-sleep 45 'sc-holder\[.* let sc-waiter.* for up to LONGEST ms, ' sc-holder
played chain 55 'sc-backend\[.* let sc-(front|middle).* for up to LONGEST ms, ' sc-backend
played stall 150 'sc-server\[.* ran without a sleep for up to LONGEST ms, .*keys_command' sc-server
played fork-stall 0 "sc-server\\[.* ran without a sleep for up to $ms, " sc-server

rest
for _ in {1..2000}; do "$(type -P true)"; done
began="bash\\[$$\\] began (19|20)[0-9][0-9] processes in $ms, as true; they ran $ms in all"
against "$began"
incident "$from" "$began"

rest
"$BIN/scene" crash 1 >said
doze 2 # a moment of some milliseconds is compared with hardly more
against 'sc-crasher.*SIGSEGV'
doze 30
incident "$from" "sc-crasher\\[[0-9]+\\] died of SIGSEGV .*, (29|3[0-9]) s before the end"

if [ "$(findmnt -T . -no FSTYPE)" = tmpfs ]; then
	echo "SKIP: a disk: $SCRATCH is on a tmpfs"
else
	rest
	dd if=/dev/zero of=big bs=1M count=100000 oflag=sync status=none &
	writer=$!
	"$BIN/scene" write 4000 >said
	kill $writer
	wait $writer 2>/dev/null || true
	rm big small
	against '\<dd\>'
	incident "$from" "dd\\[$writer\\] kept disk .* was blocked for up to $ms"
fi
