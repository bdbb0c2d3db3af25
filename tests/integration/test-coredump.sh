#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The preset coredump.conf: a program that a SIGSEGV kills leaves a file from which `perf script` shows its
# last system calls up to the signal, and `perfctl coredump` finds it, whatever of ours is killed before,
# during and after. A signal that is handled, or dumps no core, leaves none.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"
. "$(dirname "$0")/../collector.sh"

command -v perf >/dev/null || skip "needs perf"
SPOOL=$STATE/snapshots
# A program with a name of its own: others crash, too.
CRASHING=$SCRATCH/cr$$
cp "$BIN/crashing" "$CRASHING"
FIRST=$((0x50000000)) # of the numbers
CALLS=20              # of each program
TARGETS=2

# ── as it is shipped ─────────────────────────────────────────────────────────────────────

preset=$SCRATCH/coredump.conf
install -m 0644 "$ROOT/conf/presets/coredump.conf" "$preset"
install -d -m 0755 "$CONF.d"
ln -s "$preset" "$CONF.d/coredump.conf"
start_daemon
armed coredump/crash $TARGETS
expect_eq "$(perfctl list coredump | awk 'NR > 1 { print $2 }' | xargs)" "calls crash life" "events of the preset"
said 3 'no snapshot of a crash' perfctl coredump

# for_this [KEY…]: with its filter, for this program alone.
for_this() {
	{
		echo "[trigger coredump/crash]"
		echo "Filter=($(sed -n 's/^Filter=//p' "$preset")) && comm == \"${CRASHING##*/}\""
		printf '%s\n' "$@"
		printf '%s\n' "[event coredump/calls]" Buffer=1M "Filter=comm == \"${CRASHING##*/}\"" # nobody else fills it
	} >"$CONF.d/coredump2.conf"
	expect_ok perfctl reload
}

# No other firing holds it off, and it ends with the signal.
for_this HoldOff=10ms
armed coredump/crash $TARGETS
start_collector "$SPOOL"

# ── who crashes is found ─────────────────────────────────────────────────────────────────

CRASHED=() # process ids
# crash: a program that does it, in the background; the next PID of CRASHED.
crash() {
	"$CRASHING" $((FIRST + 1000 * ${#CRASHED[@]})) $CALLS 2>/dev/null &
	CRASHED+=($!)
}

# crashed: it is over.
crashed() {
	local status=0
	wait "${CRASHED[-1]}" 2>/dev/null || status=$?
	expect_eq $status $((128 + 11)) "the status of a program that a SIGSEGV killed"
}

# is_found PID: for wait_until.
is_found() {
	[ -e "$(perfctl coredump "$1" --path)" ]
}

# expect_calls PID NUMBER: the file has all of its calls, in order, then the signal, and nothing behind.
expect_calls() {
	local file i
	file=$(perfctl coredump "$1" --path)
	perf script -i "$file" --pid "$1" -F pid,event,trace 2>/dev/null >"$SCRATCH/calls"
	for ((i = 0; i < CALLS; i++)); do
		printf '%x\n' $((FIRST + 1000 * $2 + i))
	done >"$SCRATCH/want"
	sed -nE 's/.*sys_enter: NR 3 \(ffffffffffffffff, (5[0-9a-f]{7}),.*/\1/p' "$SCRATCH/calls" >"$SCRATCH/got"
	cmp -s "$SCRATCH/want" "$SCRATCH/got" || fail "the last calls of $1 in $file: $(tail -n 50 "$SCRATCH/calls")"
	# Its name may be gone with a keeper that was killed.
	expect_match "$(tail -n 1 "$SCRATCH/calls")" "^ *$1 +signal:signal_deliver: sig=11 .*sa_handler=0 " "its last record"
	# From the last call on: its return, and signals.
	expect_eq "$(sed "1,/(ffffffffffffffff, $(tail -n 1 "$SCRATCH/want"),/d" "$SCRATCH/calls" | grep -c sys_enter || true)" 0 \
		"calls behind the last one"
}

crash
crashed
wait_until 20 is_found "${CRASHED[0]}" || fail "nothing is saved: $(perfctl trigger show coredump/crash)"
expect_calls "${CRASHED[0]}" 0
# These leave nothing; the count of firings at the end shows it.
expect_exit 11 "$CRASHING" $FIRST 1 handled
for signal in TERM KILL; do
	status=0
	{ "$CRASHING" $FIRST 1 $signal; } 2>/dev/null || status=$?
	expect_eq $status $((128 + $(kill -l $signal))) "the status of a program that a SIG$signal killed"
done
file=$(perfctl coredump "${CRASHED[0]}" --path)

# What it says, with systemd-coredump's tool and without.
mkdir "$SCRATCH/tools"
printf '#!/bin/sh\necho "coredumpctl: $*"\n' >"$SCRATCH/tools/coredumpctl"
chmod 0755 "$SCRATCH/tools/coredumpctl"
PATH=$SCRATCH/tools:$PATH expect_ok perfctl coredump
expect_match "$OUT" "^${CRASHING##*/}\[${CRASHED[0]}\] crashed " "who"
expect_match "$OUT" "perfctl report -i $file" "what to do"
since=$(date -u -d "$(sed -E 's/.*\/([^.]*)\..*/\1/; s/T(..)-(..)-(..)/T\1:\2:\3/' <<<"$file")" +%s)
expect_match "$OUT" "coredumpctl: info --no-pager -1 COREDUMP_PID=${CRASHED[0]} --since=@$since" "systemd-coredump's entry"
PATH=$BIN expect_ok perfctl coredump latest
expect_match "$OUT" "perfctl report -i $file" "what to do, without coredumpctl"
expect_eq "$(perfctl coredump "${CRASHED[0]}" --json | json_field path)" "$file" "its path in JSON"
expect_eq "$("$BIN/perfctl" --complete --instance "$INSTANCE" coredump "${CRASHED[0]}" | tail -n 1)" "${CRASHED[0]}	${CRASHING##*/}" "the candidate of the tab key"
said 3 "process 1 in" perfctl coredump 1
said 3 'no snapshot of a crash' perfctl coredump --trigger coredump/other
said 2 'neither a process id' perfctl coredump now
said 2 "not a trigger's name" perfctl coredump --trigger a/b/c
echo "a crash is found, with its $CALLS last calls up to the signal"

# ── whoever is killed ────────────────────────────────────────────────────────────────────

kill_victim() {
	local pid
	case $1 in
	broker)
		kill_broker
		wait_until 20 _no_processes
		;;
	engine) kill_engine ;;
	dumper | keeper)
		pid=$("${1}_pid")
		[ -z "$pid" ] || _kill_9 "$pid"
		;;
	collector) kill -KILL "$(<"$SCRATCH/collector")" 2>/dev/null || true ;;
	esac
}

# The engine is restarted by the broker, and the collector by its loop.
revive() {
	[ "$1" != broker ] || start_daemon
}

# around VICTIM MOMENT: a crash, and what is killed.
around() {
	armed coredump/crash $TARGETS
	[ "$2" != before ] || kill_victim "$1"
	crash
	[ "$2" != during ] || kill_victim "$1"
	crashed
	[ "$2" != after ] || kill_victim "$1"
	revive "$1"
	wait_until 20 is_found "${CRASHED[-1]}" || fail "$1 killed $2 a crash, which is not saved: $(perfctl trigger show coredump/crash)"
}

if full; then
	for ((i = 0; i < 3; i++)); do
		for victim in broker engine dumper keeper collector; do
			for moment in before during after; do
				around $victim $moment
			done
		done
	done
else
	around broker before
	around engine during
	around collector after
fi
end_collector
for ((i = 0; i < ${#CRASHED[@]}; i++)); do
	expect_calls "${CRASHED[i]}" "$i"
done
expect_eq "$(trigger_field coredump/crash fired) $(trigger_field coredump/crash late)" "${#CRASHED[@]} 0" "firings, and late ones"
expect_eq "$(find "$SPOOL" -type f | wc -l)" "${#CRASHED[@]}" "files"
echo "${#CRASHED[@]} crashes, around which the daemons and the collector were killed: a file of each"

# As it is shipped: one more as soon as the first is saved.
start_collector "$SPOOL"
for_this
armed coredump/crash $TARGETS
for _ in 1 2; do
	crash
	crashed
	wait_until 20 is_found "${CRASHED[-1]}"
	armed coredump/crash $TARGETS
done
end_collector

write_conf KeepEvents=no
expect_ok perfctl reload
stop_daemon
