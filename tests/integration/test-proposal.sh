#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The command lines of the kernel's proposal of persistent events, line by line (proposal.txt).
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/adopter.sh"

command -v jq >/dev/null || skip "needs jq"

start_daemon
cd "$SCRATCH"
open_events clock
cp "$ADOPTER" pr-caller # which calls sched_getattr(2)

# compare COMMAND: its output OUT with the patterns WANT.
compare() {
	local got=() i=0 pattern any=
	[ -z "$OUT" ] || mapfile -t got <<<"$OUT"
	for pattern in "${WANT[@]}"; do
		if [ "$pattern" = ... ]; then
			any=1
			continue
		fi
		while [ "$any" ] && ((i < ${#got[@]})) && ! [[ ${got[i]} =~ ^$pattern$ ]]; do
			i=$((i + 1))
		done
		any=
		((i < ${#got[@]})) && [[ ${got[i]} =~ ^$pattern$ ]] || fail "$1"$'\n'"line $((i + 1)) is not '$pattern':"$'\n'"$OUT"
		i=$((i + 1))
	done
	[ "$any" ] || [ "$i" -eq "${#got[@]}" ] || fail "$1"$'\n'"has more lines than $i:"$'\n'"$OUT"
}

run() {
	[ "$COMMAND" ] || return 0
	OUT=$(eval "$COMMAND" 2>&1) || fail "$COMMAND"$'\n'"exits with $?: $OUT"
	compare "$COMMAND"
	lines=$((lines + 1))
}

lines=0 COMMAND='' WANT=()
while IFS= read -r line; do
	case $line in
	'$ '*)
		run
		COMMAND=${line#'$ '} WANT=()
		;;
	'#'*)
		run
		COMMAND='' WANT=()
		;;
	?*) WANT+=("$line") ;;
	esac
done <"$ROOT/tests/integration/proposal.txt"
run
echo "$lines command lines of the proposal print what they are to print"
