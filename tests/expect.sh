# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The vocabulary of all shell tests: skip, fail, full, wait_until, expect_….

# Root's tests lock each other out here; ordinary users have no access.
# shellcheck disable=SC2034 # the script that sources this uses it
LOCKS=/run/perfpersist-tests

# Ends the test as "skipped"; the runner shows the last line of the output.
skip() {
	echo "$*"
	exit 77
}

# The logs follow, so lib.sh shows it again behind them.
_say_failed() {
	echo "failed: $*" >&2
	[ ! -d "${SCRATCH-}" ] || echo "failed: $*" >>"$SCRATCH/failed"
}

# Ends the test as failed.
fail() {
	_say_failed "$*"
	exit 1
}

# full: whether the test runs at full length (tests/run.sh).
full() {
	[ "${TEST_LENGTH:-short}" = full ]
}

# length SHORT FULL: prints the value for this run.
length() {
	if full; then echo "$2"; else echo "$1"; fi
}

# A pipe that nobody writes to: to read from it in vain is to sleep, without a process for it.
exec {_never}<> <(:)

# wait_until SECONDS CMD…: runs CMD again and again until it succeeds.
wait_until() {
	local limit=$1 end
	shift
	end=$((SECONDS + limit + 1))
	until "$@" >/dev/null 2>&1; do
		if [ "$SECONDS" -ge "$end" ]; then
			echo "waited $limit s in vain for: $*" >&2
			return 1
		fi
		read -rt 0.05 <&"$_never" || true
	done
}

# OUT holds the output of the last of these commands, both streams.
OUT=

# expect_exit N CMD…
expect_exit() {
	local want=$1 got=0
	shift
	# lib.sh has a function of that name; in a guest it is a program.
	[[ $1 != perfctl || -z ${PERFCTL-} ]] || set -- "${PERFCTL[@]}" "${@:2}"
	if [ "$(type -t "$1")" = file ]; then # which the subshell becomes
		OUT=$(exec "$@" 2>&1) || got=$?
	else
		OUT=$("$@" 2>&1) || got=$?
	fi
	[ "$got" -eq "$want" ] && return
	[ -n "$OUT" ] && printf '%s\n' "$OUT" >&2
	fail "expected exit $want, got $got: $*"
}

expect_ok() {
	expect_exit 0 "$@"
}

# expect_eq ACTUAL EXPECTED [WHAT]
expect_eq() {
	[ "$1" = "$2" ] || fail "${3:-value}: expected '$2', got '$1'"
}

# expect_match TEXT REGEX [WHAT]: extended, as bash's =~
expect_match() {
	[[ $1 =~ $2 ]] || fail "${3:-text}: expected /$2/, got '$1'"
}
