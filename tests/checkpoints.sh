# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For tests of checkpoints, behind lib.sh or vm/lib.sh: which checkpoint is the newest, and what a boot
# has left. They record the calls of `numbered`, in t/calls:
#
#   NUMBERED   a copy of it, with a name that no other process has
#   PLACE      the directory of checkpoints

SLOT=4096 # bytes of a slot, on machines of few CPUs
made=0

# calls N: makes them, in the order of their numbers.
calls() {
	"$NUMBERED" $made "$1"
	made=$((made + $1))
}

create_calls() {
	perfctl create t/calls -e raw_syscalls:sys_enter --filter 'id == 3' --comm "${NUMBERED##*/}" \
		-m 256K --checkpoint 1s >/dev/null
}

# busy_calls: makes calls in the background; their numbers begin at 1.
busy_calls() {
	calls 1
	spawn sh -c 'n=1; while :; do "$1" $n 1000; n=$((n + 1000)); done' sh "$NUMBERED"
	busy=$SPAWNED
}

# boot_dir: of the present boot.
boot_dir() {
	echo "$PLACE/+boot-$(cat "${BOOT_ID:-/proc/sys/kernel/random/boot_id}")"
}

file_of() {
	echo "$(boot_dir)/$(perfctl show "$1" --json | jq .id)"
}

# sequence FILE: the numbers of the last two checkpoints in it, in any order.
sequence() {
	local slots
	slots=$((($(od -An -tu8 -j24 -N8 "$1") + 4095) / 4096 * 4096))
	od -An -tu8 -j$((slots + 8)) -N8 "$1"
	od -An -tu8 -j$((slots + SLOT + 8)) -N8 "$1"
}

sequence_is_over() {
	# Where nothing is new there is no checkpoint.
	[ -n "${busy-}" ] || calls 1
	[ "$(sequence "$1" | sort -n | tail -n 1)" -gt "$2" ]
}

# A checkpoint under way may have begun before.
next_checkpoint() {
	local file now
	file=$(file_of "$1")
	now=$(sequence "$file" | sort -n | tail -n 1)
	wait_until "${PATIENCE:-20}" sequence_is_over "$file" $((now + 1)) ||
		fail "there is no further checkpoint of $1"
}

# numbers [OPTION…]: "CPU NUMBER" of each call that is there; with --saved=previous-boot, of those that
# the last boot has left.
numbers() {
	perfctl "$@" reopen t/calls -n all 2>/dev/null |
		sed -nE 's/^ *\[([0-9]+)\].*NR 3 \(ffffffffffffffff, ([0-9a-f]+),.*/\1 \2/p' |
		while read -r cpu hex; do echo "$((10#$cpu)) $((16#$hex))"; done
}

newest() {
	awk '$2 > max { max = $2 } END { print max + 0 }'
}

# From the number where all buffers begin to that where the first one ends none is missing. Prints
# FIRST LAST COUNT.
contiguous() {
	numbers --saved=previous-boot | sort -k1,1n -k2,2n | awk '
		!($1 in low) { low[$1] = $2 }
		{ high[$1] = $2; seen[$2]++ }
		END {
			for (c in low) {
				if (low[c] > first) first = low[c]
				if (last == "" || high[c] < last) last = high[c]
			}
			for (i = first + 0; i <= last; i++)
				if (seen[i] != 1) { print "damaged: " i " is there " seen[i] + 0 " times"; exit 1 }
			print first + 0, last + 0, last - first + 1
		}'
}

# expect_calls UNTIL: what the last boot has left: up to that number at least.
expect_calls() {
	local first last count until=$1
	expect_ok contiguous
	read -r first last count <<<"$OUT"
	[ "$(numbers --saved=previous-boot | newest)" -ge "$until" ] ||
		fail "number $until was in a checkpoint, and they end at $last"
	[ "$count" -ge 1000 ] || fail "only $count of them are there: $first to $last"
	echo "$count records without a gap, up to $last; the last checkpoint began after $until"
}
