#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What was different: a program that waits and then computes, one that crashes, a shell that runs a
# hundred others, and a thread that keeps another waiting are what changed, with the numbers that the records
# have. What cannot be compared is said.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"
command -v jq >/dev/null || skip "there is no jq"

tracepoints_lock --shared
start_daemon
cd "$SCRATCH"
for name in ag-burner ag-crasher ag-forker; do
	cp "$(command -v bash)" "$name"
done
cp /bin/true ag-once
cp "$(command -v perl)" ag-handler
mkfifo go
ulimit -c 0
# Its start takes a busy machine long enough to be a usual thing; it is not recorded.
spawn ./ag-burner -c 'echo >ready; read -r _ <go; while :; do :; done'
BURNER=$SPAWNED
wait_until 20 test -s ready || fail "the burner does not start"

perfctl create t/sched -e sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new -m 16M >/dev/null
# Others wait for each other, too, and then it is right that no wait stands out: here only these do.
export SCENE=$$
perfctl create lock/sched -e sched:sched_switch --filter "prev_comm ~ \"$SCENE-*\" || next_comm ~ \"$SCENE-*\"" \
	-e sched:sched_waking --filter "comm ~ \"$SCENE-*\"" -m 8M >/dev/null
perfctl create t/cpu -e cpu-clock -F 499 -g -m 4M >/dev/null
perfctl create t/life -e sched:sched_process_exit,signal:signal_generate -m 1M >/dev/null
perfctl create t/small -e sched:sched_wakeup -m 4K >/dev/null
CREATED=$(awk '{ print $1 }' /proc/uptime)

sleep "$(length 3 30)"

# However slow the machine, the time before a moment is some times as long.

# One thread keeps another waiting, in a moment of its own.
HELD=$(awk '{ print $1 }' /proc/uptime)
"$BIN/scene" mutex-sleep "$(awk -v from="$CREATED" -v to="$HELD" 'BEGIN { printf "%d", (to - from) * 250 }')" >/dev/null
HELD_UNTIL=$(awk -v from="$CREATED" -v to="$HELD" 'BEGIN { printf "%.2f", to + (to - from) / 4 }')

# The moment.
read -r SINCE MS < <(awk -v from="$CREATED" '{ printf "%s %d\n", $1, ($1 - from) * 200 }' /proc/uptime)
end=$((${EPOCHREALTIME/[.,]/} + MS * 1000))
echo >go
./ag-crasher -c 'kill -SEGV $$' 2>/dev/null || true
# shellcheck disable=SC2016
./ag-handler -Mthreads -e '$SIG{SEGV} = sub {}; kill SEGV => $$; threads->create(sub {})->join'
# shellcheck disable=SC2016
./ag-forker -c 'i=0; until [ $i -ge 20 ] && [ ${EPOCHREALTIME/[.,]/} -ge $1 ]; do ./ag-once; i=$((i + 1)); done; echo $i' sh $end >once
UNTIL=$(awk '{ printf "%.2f", $1 + 0.01 }' /proc/uptime)
MOMENT=(--since "$SINCE" --until "$UNTIL")
perfctl pause t/sched t/cpu t/life t/small >/dev/null
kill "$BURNER"
perfctl snapshot t/sched t/cpu t/life -o data >/dev/null 2>&1
# (Samples say when nothing happened.)
perfctl snapshot lock/sched t/cpu -o locks >/dev/null 2>&1

expect_ok perfctl report -i data "${MOMENT[@]}" --against 10m --json --pid "$BURNER"
jq '.changes | map(select(.kind == "cpu_time"))[0]' <<<"$OUT" >burner
expect_eq "$(jq -r .comm burner)" ag-burner "who computes"
# As often as its switches say, the last one until the end.
RAN=$(perfctl script -i data --event sched:sched_switch "${MOMENT[@]}" --json |
	jq -r 'select(.event) | [.time, .cpu, .fields.prev_pid, .fields.next_pid] | @tsv' |
	awk -v of="$BURNER" -v until="$(jq .until <<<"$OUT")" '
	$3 == of && $2 in since { sum += $1 - since[$2]; delete since[$2] }
	$4 == of { since[$2] = $1 }
	END { for (cpu in since) sum += until - since[cpu]; printf "%.0f", sum }')
expect_eq "$(jq --argjson ran "$RAN" --argjson now "$(jq .now burner)" \
	'($now * (.until - .since) / 1e9 / $ran) as $part | $part > 0.99 and $part < 1.01' <<<"$OUT")" true \
	"how much: $RAN ns, not $(jq -c "[.until - .since, $(<burner)]" <<<"$OUT")"
# Its time on the CPU is told once, by switches or by samples, whichever rose more. On a busy machine it waits longer
# for the CPU than it has it; where it hardly has it, the wait is what is told.
lines=$(jq -r '[.changes[] | select(.is_line) | .kind][:2] | join(" ")' <<<"$OUT")
if [ "$(jq --argjson ran "$RAN" '$ran * 4 > .until - .since' <<<"$OUT")" = true ]; then
	expect_eq "$(jq '.median < .now / 10 and .excess > .now / 2 and .slices >= 10' burner)" true "how unusual: $(<burner)"
	expect_match "$lines" 'cpu_time|sampled' "the first lines of the burner: $OUT"
else
	expect_match "$lines" '^waited' "the first lines of the burner, which hardly ran: $OUT"
fi
expect_eq "$(jq -r '[.changes[] | select(.kind == "function" or .kind == "function_total" or .kind == "sampled")] |
	length > 0' <<<"$OUT")" true "functions of the burner: $OUT"

expect_ok perfctl report -i data "${MOMENT[@]}" --against 10m --json
# (Another test's process may die in the same moment, and comes first or second as well.)
expect_eq "$(jq -c '[.changes[] | [.kind, .comm, .what, .is_new]] | index([["fatal","ag-crasher","SIGSEGV",true]]) as $at |
	$at != null and (.[:$at] | all(.[0] == "fatal"))' <<<"$OUT")" true "the first of all changes: $(jq -c '.changes[:3]' <<<"$OUT")"
expect_eq "$(jq -c '[.changes[] | select(.kind == "fatal" and .comm == "ag-handler")]' <<<"$OUT")" '[]' "who handles its fault, and begins a thread"
DEAD=$(jq '[.changes[] | select(.kind == "fatal")] | length' <<<"$OUT")
expect_eq "$(jq -c '.events[] | select(.event == "signal:signal_generate") | [.history_known, .slices >= 10]' <<<"$OUT")" \
	'[true,true]' "the history of a rare event: $OUT"
BEGUN=$(jq -c '((.until - .since) / 1000000000) as $s | [.changes[] | select(.kind == "begun" and .parent == "ag-forker") |
	[.comm, (.now * $s | round)]]' <<<"$OUT")
expect_eq "$BEGUN" "[[\"ag-once\",$(<once)]]" "the processes that a shell began"

# page_report FILE: what the page has of the comparison, JSON
page_report() {
	sed -n 's/.*id="against">\(.*\)<\/script>.*/\1/p' "$1" | base64 -d | perl -MCompress::Zlib -e 'undef $/; print uncompress(<>)'
}

# A thread that sleeps with a lock is told with who waited, and only where that happened. (Others may keep the
# one that waits from the CPU, too.)
expect_ok perfctl report -i locks --since "$HELD" --until "$HELD_UNTIL" --against 10m --json
expect_eq "$(jq -c '.findings[] | select(.victim.comm == env.SCENE + "-waiter" and .culprit.comm == env.SCENE + "-holder") |
	[.kind, .max_ns > 45000000, .count >= 1]' <<<"$OUT")" '["sleep",true,true]' "who held the lock: $(jq -c .findings <<<"$OUT")"
expect_ok perfctl report -i locks --since "$HELD" --until "$HELD_UNTIL" --against 10m
# (In any line: what the filter leaves out makes others look as if they had waited, or had not.)
expect_match "$OUT" "[0-9]+\\. $SCENE-holder\\[[0-9]+\\] let $SCENE-waiter\\[[0-9]+\\] wait for up to" "who held the lock, in words"
expect_ok perfctl report -i locks --since "$HELD" --until "$HELD_UNTIL" --against 10m --html page
expect_eq "$(page_report page | jq -r .findings | grep -c "$SCENE-holder.* let $SCENE-waiter")" 1 "who held the lock, on the page"
# Twice the moment does not tell what is usual.
TWICE=$(awk -v a="$HELD" -v b="$HELD_UNTIL" 'BEGIN { printf "%.0fms", (b - a) * 2000 }')
expect_ok perfctl report -i locks --since "$HELD" --until "$HELD_UNTIL" --against "$TWICE"
expect_match "$OUT" "Who kept whom waiting is not compared: that takes 3 times as long before" "a time before that is too short"
expect_ok perfctl report -i data "${MOMENT[@]}" --against 10m --json
expect_eq "$(jq -c '[.findings[] | select(.victim.comm == env.SCENE + "-waiter")]' <<<"$OUT")" '[]' "who held no lock"
expect_eq "$(jq -c '[.findings[] | select(.culprit.comm == "ag-crasher")] | map([.kind, .signal, .count])' <<<"$OUT")" \
	'[["crash","SIGSEGV",1]]' "who crashed"

# The text: what with what, then the first lines.
expect_ok perfctl report -i data "${MOMENT[@]}" --against 10m --top "$DEAD"
expect_match "$OUT" '^[0-9.]+ s, from [^ ]+ [^ ]+ to .*, compared with the [0-9.]+ s before \([0-9.]+ s are not recorded\)' "head"
expect_match "$OUT" 'never in [0-9]+ slices +ag-crasher \(of [^)]*\): SIGSEGV' "first lines"

# More time than there are slices for is recorded, and not compared.
expect_ok perfctl report -i data --last 2ms --against 1s --top 1
expect_match "$OUT" '^0\.002 s, .*, compared with the 0\.600 s before \(which is 300 times as long: more is not compared\)' \
	"a time that is too long"
expect_ok perfctl report -i data --last 2ms --against 1s --json
expect_eq "$(jq -c '[.asked == 1000000000, .recorded > .asked, .since - .before == 600000000]' <<<"$OUT")" '[true,true,true]' \
	"a time that is too long, for programs"

# A buffer that reaches back too little is told, and not compared.
perfctl snapshot t/small t/cpu -o small >/dev/null 2>&1
expect_ok perfctl report -i small "${MOMENT[@]}" --against 10m --json
expect_eq "$(jq -c '.events[] | select(.event == "sched:sched_wakeup") | .slices' <<<"$OUT")" 0 "slices of a small buffer"
expect_eq "$(jq -c '[.changes[] | select(.what == "sched:sched_wakeup")] | length' <<<"$OUT")" 0 "changes of a small buffer"

# Any number of events lack something: the first are told.
perl "$ROOT/tests/integration/histories.pl" 100 1 >many
expect_ok perfctl report -i many --since 1.00015 --against 1s --top 7
expect_eq "$(grep -c '^cpu-clock lacks 1 of' <<<"$OUT")" 7 "events that lack a record"
expect_match "$OUT" $'\n\\(93 more events lack some\\)$' "events that are not told"

# The page has the same lines and numbers. Where nothing can be compared, none is left.
for selected in "" "--pid $BURNER"; do
	# shellcheck disable=SC2086 # words
	expect_ok perfctl report -i data "${MOMENT[@]}" --against 10m --html page.html $selected
	page_report page.html >page
	# shellcheck disable=SC2086
	perfctl report -i data "${MOMENT[@]}" --against 10m $selected >text
	expect_eq "$(jq -r '.head, .findings, (select(.lines != []) | .columns | map(.[0]) | join(" ")), (.lines[].cells | join(" ")), .gaps' page |
		sed -E '/^$/d; s/^ +//; s/ {2,}/ /g')" "$(sed -E 's/^ +//; s/ {2,}/ /g; /^\([0-9]+ more\)$/d; /^nothing unusual$/d' text)" \
		"the page of '$selected'"
done
expect_exit 3 perfctl report -i data --last 1h --against 5m --html none.html
[ ! -e none.html ] || fail "a page was left of nothing"

# What cannot be.
expect_exit 3 perfctl report -i data --last 1h --against 5m
expect_match "$OUT" '^perfctl: data has too little to compare with: [^
]*$' "nothing before"
expect_exit 2 perfctl report -i data --against 5m
expect_match "$OUT" 'needs --last or --since' "no moment"
expect_exit 2 perfctl report -i data --last 1s --against soon
for other in "--perfetto x" "--folded" "--wakeups" "-g" "--about --pid 1" "--sort comm"; do
	# shellcheck disable=SC2086 # words
	expect_exit 2 perfctl report -i data --last 1s --against 5m $other
done
[ ! -e x ] || fail "a page was written"
