#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Accounts for every record of a burst at full speed on every CPU, with both recorders of
# tracepoints, in large and small rings:
#
#   in snapshots nothing is torn, duplicate, missing or out of order, and the writers do not notice;
#   followers report every loss: each record is read, or counted as overwritten, or
#   counted as missed, even while the buffer or the filter changes again and again.
#
# Then the same through perfctl: reopen -n, in order under load; reopen -f, --wakeup, a resize, the
# event's end.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"

start_daemon

worker=f-$INSTANCE
ours="id == 3 && COMM == \"${worker:0:15}\""

# check MODE N OPTION…: follow-check of an event that is made for it.
check() {
	local mode=$1 n=$2
	shift 2
	perfctl create "t/$mode" -e raw_syscalls:sys_enter --filter "$ours" "$@" >/dev/null
	expect_eq "$(perfctl show --json "t/$mode" | jq -r .recorder)" "$recorder" "recorder"
	"$BIN/follow-check" "$INSTANCE" "t/$mode" "$mode" "$n"
	perfctl delete "t/$mode" >/dev/null
}

recorders=(tp_btf generic)
hot_calls || recorders=(generic)
for recorder in "${recorders[@]}"; do
	option=()
	[ "$recorder" = generic ] && option=(--generic)
	full && check snapshot 1000 -m 512K "${option[@]}"
	for size in 64K 4K; do
		check snapshot "$(length 300 3000)" -m $size "${option[@]}"
	done
	for size in 8K 1M; do
		check burst "$(length 50000 200000)" -m $size "${option[@]}"
	done
	check resize "$(length 5 20)" -m 16M "${option[@]}"
	check filter "$(length 40 200)" -m 16M "${option[@]}"
done

# ── what perfctl prints under load ───────────────────────────────────────────────────────

# check_printed FILE PID…: time never runs backward, and each writer's numbers follow each other.
# Prints how many records it saw.
check_printed() {
	local file=$1
	shift
	awk -v pids="$*" '
		function hex(text,    i, value) {
			for (i = 1; i <= length(text); i++)
				value = value * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
			return value
		}
		function bad(why) {
			print "record " NR ", " why ": " $0 > "/dev/stderr"
			failed = 1
			exit
		}
		BEGIN {
			n = split(pids, list, " ")
			for (i = 1; i <= n; i++)
				ours[list[i]] = 1
		}
		{
			if (length($2) == length(time) ? $2 "" < time "" : length($2) < length(time))
				bad("not in order of time")
			time = $2
			split($3, who, "/")
			if (!(who[1] in ours) || !match($0, /ffffffffffffffff, [0-9a-f]+,/))
				next
			number = hex(substr($0, RSTART + 18, RLENGTH - 19))
			if (who[1] in last && number != last[who[1]] + 1)
				bad("not the one behind " last[who[1]])
			last[who[1]] = number
			seen++
		}
		END {
			if (failed)
				exit 1
			print seen + 0
		}' "$file"
}

perfctl create t/printed -e raw_syscalls:sys_enter -m 128K >/dev/null
writers=()
while read -r cpu; do
	spawn "$BIN/close-loop" "$cpu"
	writers+=("$SPAWNED")
done < <(sed -nE "s/^cpu([0-9]+) .*/\1/p" "$REGISTRY/t/printed/stat")
wait_until 20 more_records_than 100000 t/printed
seen=0
rounds=$(length 5 20)
for ((i = 0; i < rounds; i++)); do
	perfctl reopen t/printed -n 0 >"$SCRATCH/printed" 2>/dev/null
	more=$(check_printed "$SCRATCH/printed" "${writers[@]}") || fail "reopen's output is wrong"
	seen=$((seen + more))
done
[ "$seen" -gt 500 ] || fail "reopen printed but $seen of the writers' records"
kill "${writers[@]}"
echo "$rounds x perfctl reopen -n 0 under load: $seen records of ${#writers[@]} writers, all in order"
perfctl delete t/printed >/dev/null

# ── perfctl reopen -f ────────────────────────────────────────────────────────────────────

lines() {
	[ "$(wc -l <"$1")" -ge "$2" ]
}

# A process name that nothing else on the machine has.
cp /bin/true "$BIN/pp-rare"

# follow FILE OPTION…: a follower in the background that writes to FILE.
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
	wait_until 20 lines "$out" 1 || fail "$option does not print the earlier records"
	"$BIN/pp-rare"
	wait_until 20 lines "$out" 2 || fail "$option does not print new records"
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

# A follower with --wakeup sleeps until an event wakes it: the kernel counts how often it slept.
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

# Only events with --wakeup wake readers.
perfctl create t/quiet -e sched:sched_process_exec >/dev/null
expect_exit 2 perfctl reopen t/quiet --wakeup
expect_match "$OUT" 'wakeup' "the sentence"
