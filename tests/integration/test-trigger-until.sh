#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Triggers on two events and on rates: which of them fire, against an independent evaluation of all
# that happened, recorded by another event; ends that never come; tables without room; tasks that end.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"

command -v jq >/dev/null || skip "needs jq"
FIRST=1048576 # no file has such a descriptor
LIMIT=20      # ms
MARK=$SCRATCH/mark-$$
cp "$(type -P sleep)" "$MARK"
SEE='fd >= 1048576 && fd < 2097152'
ON=syscalls:sys_enter_ftruncate
UNTIL=syscalls:sys_enter_lseek

trigger_field() {
	perfctl trigger show "$1" --json | json_field "$2"
}

# has_field TRIGGER FIELD VALUE: for wait_until.
has_field() {
	[ "$(trigger_field "$1" "$2")" = "$3" ]
}

# records EVENT: "TIME NAME FD NUMBER" of each, as decimals, in order.
records() {
	perfctl reopen "$1" -n 0 2>/dev/null |
		awk '{ sub(/.*sys_enter_/, "", $4); sub(/:/, "", $4); print $2, $4, $6, $8 }' | tr -d ,
}

# evaluate MS <RECORDS: which ends came later than MS after the latest beginning of their key, as
# "must NUMBER" or, where the two times can be on different sides of the limit, "may NUMBER"; and how
# many beginnings have no end of theirs: "lost N". All from the stream alone.
evaluate() {
	awk -v limit="$1" '
	BEGIN { margin = 2 }
	$2 == "ftruncate" { if ($3 in began) lost++; began[$3] = $1 }
	$2 == "lseek" && $3 in began {
		ms = ($1 - began[$3]) * 1000
		delete began[$3]
		if (ms > limit + margin) print "must", $4
		else if (ms > limit - margin) print "may", $4
	}
	END { for (key in began) lost++; print "lost", lost + 0 }'
}

# compare NAME: what NAME recorded, beside what `all` did. Sets MUST, MAY, LOST, GOT.
compare() {
	records all >"$SCRATCH/all"
	evaluate $LIMIT <"$SCRATCH/all" >"$SCRATCH/verdict"
	records "$1" | awk '{ print $4 }' | sort >"$SCRATCH/got"
	expect_eq "$(perfctl show all --json | json_field missed)" 0 "missed by the witness"
	MUST=$(grep -c ^must "$SCRATCH/verdict" || true)
	MAY=$(grep -c ^may "$SCRATCH/verdict" || true)
	LOST=$(awk '/^lost/ { print $2 }' "$SCRATCH/verdict")
	GOT=$(wc -l <"$SCRATCH/got")
	expect_eq "$(uniq -d "$SCRATCH/got")" "" "ends that fired twice"
	expect_eq "$(comm -23 "$SCRATCH/got" <(awk '/^m/ { print $2 }' "$SCRATCH/verdict" | sort) | wc -l)" 0 \
		"ends that fired and were not late"
}

must_all_have_fired() {
	expect_eq "$(comm -13 "$SCRATCH/got" <(awk '/^must/ { print $2 }' "$SCRATCH/verdict" | sort) | wc -l)" 0 \
		"ends that were late and did not fire"
}

# add NAME TIME: the trigger on two events.
add() {
	perfctl trigger add "$1" --on $ON --filter "$SEE" --until $UNTIL --filter "$SEE" --key fd \
		--longer-than "$2" --hold-off 10ms -m 8M target >/dev/null
}

begin_witness() {
	perfctl create all -e $ON,$UNTIL --filter "$SEE" -m 32M >/dev/null
}

end_witness() {
	perfctl delete all "$1" >/dev/null
}

start_daemon
perfctl create target -e sched:sched_process_exec -m 64K >/dev/null

# A patient trigger does not make the daemon look more rarely for others.
perfctl trigger add patient --on $ON --filter 'fd == 6666666' --until $UNTIL --key fd --longer-than 1h -m 16K target >/dev/null
sleep 0.1

# ── a rate, beside the rest ──────────────────────────────────────────────────────────────

OVER=300 SECONDS_OVER=2
perfctl trigger add rate --on $ON --filter 'fd == 7777777' --rate "over $OVER/s for ${SECONDS_OVER}s" -m 64K target >/dev/null
perfctl trigger add high --on $ON --filter 'fd == 7777777' --rate 'over 900/s for 1s' -m 64K target >/dev/null
perfctl create steps -e $ON --filter 'fd == 7777777' -m 1M >/dev/null
spawn "$BIN/pairs" rate 7777777 450 3400
RATE=$SPAWNED

# ── every firing right, none missing ─────────────────────────────────────────────────────

# Without a daemon nobody looks for ends that are missing: each end that is late must fire.
begin_witness
add ends ${LIMIT}ms
broker=$(broker_pid)
kill -STOP "$broker"
"$BIN/pairs" $FIRST 1000 "$(length 6 100)" $((2 * LIMIT))
kill -CONT "$broker"
compare ends
must_all_have_fired
[ "$MUST" -ge "$(length 390 6500)" ] || fail "only $MUST ends were late"
# What has no end is found missing now.
wait_until 20 has_field ends overdue 20 || fail "$(trigger_field ends overdue) of 20 missing ends were found"
expect_eq "$(($(trigger_field ends fired) + $(trigger_field ends held)))" $((GOT + 20)) "fired and held"
expect_eq "$(trigger_field ends unkept)" 0 "unkept"
pairs=$(grep -c ftruncate "$SCRATCH/all")
echo "$pairs pairs: $MUST late ends fired, $((pairs - MUST - MAY - LOST)) in time did not, $MAY were at the limit, $LOST began without an end"
end_witness ends

# With a daemon each that is late fires once: by its end, or before, because that is missing. One that
# another beginning replaces when it is late already may have fired before.
begin_witness
add both ${LIMIT}ms
"$BIN/pairs" $FIRST 1000 "$(length 6 100)" $((LIMIT + 8))
compare both
open=$(awk '{ if ($2 == "lseek") delete began[$3]; else began[$3] = 1 } END { print length(began) }' "$SCRATCH/all")
replaced=$(awk -v limit=$LIMIT '
	$2 == "ftruncate" { n += $3 in began && ($1 - began[$3]) * 1000 > limit - 2; began[$3] = $1 }
	$2 == "lseek" { delete began[$3] }
	END { print n + 0 }' "$SCRATCH/all")
none_is_open() {
	sum=$(trigger_field both overdue)
	sum=$((sum + GOT))
	[ "$sum" -ge $((MUST + open)) ]
}
wait_until 20 none_is_open || fail "$sum fired of $MUST late and $open missing ends"
[ "$sum" -le $((MUST + open + MAY + replaced)) ] ||
	fail "$sum fired, and only $((MUST + open)) were late or missing, $((MAY + replaced)) at the limit or replaced"
expect_eq "$(($(trigger_field both fired) + $(trigger_field both held)))" "$sum" "fired and held"
echo "with a daemon: $GOT fired by their ends, $((sum - GOT)) before, of $((MUST + open)) late or missing and $((MAY + replaced)) at the limit or replaced"
end_witness both

# ── no room ──────────────────────────────────────────────────────────────────────────────

MANY=$(length 17000 30000)
begin_witness
add full ${LIMIT}ms
kill -STOP "$broker"
"$BIN/pairs" begin $FIRST "$MANY"
sleep 0.03
"$BIN/pairs" end $FIRST "$MANY"
"$BIN/pairs" $FIRST 1000 1 $((2 * LIMIT))
kill -CONT "$broker"
compare full
unkept=$(trigger_field full unkept)
[ "$unkept" -ge $((MANY - 16384)) ] || fail "only $unkept of $MANY found no room in a table of 16384"
unfired=$((MUST - GOT - unkept))
[ $((unfired <= 0 && unfired + MAY >= 0)) = 1 ] ||
	fail "$GOT fired, $unkept had no room, of $MUST and $MAY at the limit"
grep -qE "full .* $unkept +" < <(perfctl trigger list) || fail "the list does not show $unkept without room"
echo "$MANY at once: $GOT fired, $unkept found no room, and are counted"

end_witness full

# A pause forgets what has begun: it may end meanwhile.
perfctl trigger add paused --on $ON --filter "$SEE" --until $UNTIL --key fd --longer-than 200ms target >/dev/null
"$BIN/pairs" begin $FIRST 100
perfctl pause paused >/dev/null
before=$(trigger_field paused overdue)
sleep 0.2
perfctl resume paused >/dev/null
sleep 0.3
expect_eq "$(trigger_field paused overdue)" "$before" "missing ends of a paused trigger"
perfctl delete paused >/dev/null

# ── tasks ────────────────────────────────────────────────────────────────────────────────

# Faster recorders, and the current task as key: a call that hangs is found while it does, and its task
# is what fired. One that never returns because it ends its task is no hang.
perfctl trigger add hang --on raw_syscalls:sys_enter --until raw_syscalls:sys_exit --key tid \
	--longer-than 1s --comm "${MARK##*/}" target >/dev/null
is_armed() {
	perfctl snapshots collect --once -D "$SCRATCH/before" >>"$LOG" 2>&1
	has_field hang n_armed 1
}
mkdir "$SCRATCH/before"
wait_until 20 is_armed || fail "the target is not armed"
spawn "$MARK" 60
hanging=$SPAWNED
wait_until 20 has_field hang fired 1 || fail "a call that hangs fires nothing"
# An earlier firing's second tape, which waits until the first is saved, may still come.
mkdir "$SCRATCH/spool"
is_saved() {
	perfctl snapshots collect --once -D "$SCRATCH/spool" >>"$LOG" 2>&1
	[ -n "$(find "$SCRATCH/spool" -name "*.hang.1.overdue-$hanging.*.data")" ]
}
wait_until 20 is_saved || fail "what it froze is not saved by the name of its task: $(ls "$SCRATCH/spool")"
"$MARK" 0
"$MARK" 0
wait_until 20 has_field hang ended 2 || fail "$(trigger_field hang ended) of 2 tasks that ended were noticed"
expect_eq "$(trigger_field hang fired)" 1 "firings"
perfctl delete hang >/dev/null

# ── the rate ─────────────────────────────────────────────────────────────────────────────

wait "$RATE" || fail "the workload failed"
expect_eq "$(trigger_field high fired)" 0 "firings below the rate"
# The record that fires is the first above the rate in the last of the seconds; the witness reads its
# clock a moment later, so that one at the turn of a second may be in the next one.
records steps >"$SCRATCH/steps"
expected=$(awk -v over=$OVER -v row=$SECONDS_OVER '{
		second = int($1)
		if (second != last) { count = 0; last = second }
		if (++count == over + 1) {
			run = second == above + 1 ? run + 1 : 1
			above = second
			if (run == row) { print NR; run = 0 }
		}
	}' "$SCRATCH/steps")
got=$(records rate | awk '{ print $4 }' | while read -r number; do
	grep -n " $number\$" "$SCRATCH/steps" | cut -d: -f1
done)
[ -n "$expected" ] || fail "the workload was not above the rate"
expect_eq "$(wc -w <<<"$got")" "$(wc -w <<<"$expected")" "records of the rate"
paste <(echo "$expected") <(echo "$got") | awk '{ d = $1 - $2; if (d < -2 || d > 2) exit 1 }' ||
	fail "fired at ${got//$'\n'/ } and not at ${expected//$'\n'/ }"
echo "a rate: fired at occurrence ${got//$'\n'/ } of $(wc -l <"$SCRATCH/steps"), which is exact"

# ── what cannot be ───────────────────────────────────────────────────────────────────────

bad=(perfctl trigger add bad --on)
remember
refused 2 "key asks for the field 'nothing'.*fd, length.*tid" "${bad[@]}" $ON --until $UNTIL --key nothing --longer-than 1s target
refused 2 "key's field 'comm' of sched:sched_wakeup is text" "${bad[@]}" sched:sched_wakeup --until sched:sched_switch --key comm,next_pid --longer-than 1s target
refused 2 "key asks for the field 'pid'.*sched_switch|must be different" "${bad[@]}" $ON --until $ON --key fd --longer-than 1s target
refused 2 "is no key" "${bad[@]}" $ON --until $UNTIL --key 'a,b,c' --longer-than 1s target
refused 1 "happens no more" "${bad[@]}" $ON --rate 'under 5/s for 1s' target
refused 2 "is no rate" "${bad[@]}" $ON --rate 'over 5/s for 0s' target
refused 2 "needs --key FIELD and --longer-than" "${bad[@]}" $ON --until $UNTIL --key fd target
refused 2 "are for two events" "${bad[@]}" $ON --key fd target
refused 2 "mutually exclusive" "${bad[@]}" $ON --until $UNTIL --key fd --longer-than 1s --rate 'over 5/s for 1s' target
