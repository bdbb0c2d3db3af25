#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Followers lose nothing without saying so: of a burst at full speed on every CPU each record is
# read, or counted as overwritten, or counted as missed; so while the buffer is changed again and
# again, and while the filter is. Both recorders of tracepoints, an event of one source and one of
# several. Then what perfctl makes of it: reopen -f, --wakeup, a resize, the event's end.
. "$(dirname "$0")/../lib.sh"

start_daemon

ours='id == 3 && COMM == "pp-follow"'

for recorder in tp_btf generic; do
	option=()
	[ $recorder = generic ] && option=(--generic)
	for size in 8K 1M; do
		perfctl create "t/burst" -e raw_syscalls:sys_enter --filter "$ours" -m $size "${option[@]}" >/dev/null
		expect_eq "$(perfctl show --json t/burst | jq -r .recorder)" $recorder "recorder"
		"$BIN/follow-check" "$INSTANCE" t/burst burst 200000
		perfctl delete t/burst >/dev/null
	done
	for mode in resize filter; do
		changes=20
		[ $mode = filter ] && changes=200
		perfctl create "t/$mode" -e raw_syscalls:sys_enter --filter "$ours" -m 16M "${option[@]}" >/dev/null
		"$BIN/follow-check" "$INSTANCE" "t/$mode" $mode $changes
		perfctl delete "t/$mode" >/dev/null
	done
done

# ── perfctl reopen -f ────────────────────────────────────────────────────────────────────

lines() {
	[ "$(wc -l <"$1")" -ge "$2" ]
}

# A process of a known name, by nobody else's.
cp /bin/true "$BIN/pp-rare"

# follow FILE OPTION…: a follower in the background that writes into FILE.
follow() {
	local file=$1
	shift
	"${PERFCTL[@]}" reopen t/rare "$@" --json >"$file" 2>"$file.err" &
	SPAWNED=$!
	_spawned+=("$SPAWNED")
}

for option in -f --wakeup; do
	wake=()
	[ $option = --wakeup ] && wake=(--wakeup)
	perfctl create t/rare -e sched:sched_process_exec --filter 'filename ~ "*/pp-rare"' -m 64K "${wake[@]}" >/dev/null
	"$BIN/pp-rare"
	out=$SCRATCH/follow$option
	follow "$out" $option -n 10
	follower=$SPAWNED
	wait_until 20 lines "$out" 1 || fail "$option does not print what was there"
	"$BIN/pp-rare"
	wait_until 20 lines "$out" 2 || fail "$option does not print what comes"
	perfctl change t/rare -m 128K >/dev/null
	"$BIN/pp-rare"
	wait_until 20 lines "$out" 3 || fail "$option does not go on after a resize"
	perfctl delete t/rare >/dev/null
	wait_until 20 gone "$follower" || fail "$option does not end with its event"
	wait "$follower" || fail "$option ended with $?"
	expect_eq "$(jq -r .fields.filename "$out" | sort | uniq -c | awk '{ print $1 }')" 3 "records"
	expect_match "$(cat "$out.err")" '3 records printed, 0 overwritten unread; the event is gone' "the summary"
	echo "reopen $option: 3 records, through a resize, until the event was deleted"
done

# A follower that is woken does nothing meanwhile: the kernel counts how often it was put to sleep.
perfctl create t/rare -e sched:sched_process_exec --filter 'filename ~ "*/pp-rare"' --wakeup >/dev/null
follow "$SCRATCH/idle" --wakeup -n 0
follower=$SPAWNED
it_follows() {
	"$BIN/pp-rare"
	lines "$SCRATCH/idle" 1
}
wait_until 20 it_follows
switches() {
	sed -n 's/^voluntary_ctxt_switches:\t//p' "/proc/$follower/status"
}
before=$(switches)
busy 2
wait "$SPAWNED" || true
after=$(switches)
[ $((after - before)) -le 3 ] || fail "a woken follower woke $((after - before)) times in 2 s without records"
kill -TERM "$follower"
wait "$follower" || fail "a follower that is interrupted ended with $?"

# Not every event wakes.
perfctl create t/quiet -e sched:sched_process_exec >/dev/null
expect_exit 2 perfctl reopen t/quiet --wakeup
expect_match "$OUT" 'wakeup' "the sentence"
