#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Snapshots of rings that are written at full speed, on all CPUs: nothing in them is torn,
# twice, missing or out of order, and the writers do not notice. Large and small rings, both
# recorders of tracepoints; at last the same of what `perfctl reopen` prints.
. "$(dirname "$0")/../lib.sh"

start_daemon

for recorder in tp_btf generic; do
	option=()
	[ $recorder = generic ] && option=(--generic)
	for size in 512K 64K 4K; do
		name=$recorder/of-$size
		n=3000
		[ $size = 512K ] && n=1000
		perfctl create "$name" -e raw_syscalls:sys_enter -m $size "${option[@]}" >/dev/null
		expect_eq "$(perfctl show --json "$name" | jq -r .recorder)" $recorder "recorder"
		"$BIN/snapshot-check" "$INSTANCE" "$name" $n
		perfctl delete "$name" >/dev/null
	done
done

# ── what perfctl prints under load ───────────────────────────────────────────────────────

# Time never runs backward, and each writer's numbers follow each other.
# check_printed FILE PID…: tells how many records it saw.
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
for ((i = 0; i < 20; i++)); do
	perfctl reopen t/printed -n 0 >"$SCRATCH/printed" 2>/dev/null
	more=$(check_printed "$SCRATCH/printed" "${writers[@]}") || fail "what reopen printed is wrong"
	seen=$((seen + more))
done
[ "$seen" -gt 1000 ] || fail "reopen printed but $seen of the writers' records"
echo "20 x perfctl reopen -n 0 under load: $seen records of ${#writers[@]} writers, all in order"
