# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What tests in shell have to say, wherever they run: skip, fail, full, wait_until, expect_….

# Where root's tests wait for each other; out of strangers' reach.
# shellcheck disable=SC2034 # it is for whoever reads this
LOCKS=/run/perfpersist-tests

# Ends the test as "skipped"; the runner shows the last line of what it wrote.
skip() {
	echo "$*"
	exit 77
}

# Ends the test as failed.
fail() {
	echo "failed: $*" >&2
	exit 1
}

# full: whether the test is to run at full length (tests/run.sh).
full() {
	[ "${TEST_LENGTH:-short}" = full ]
}

# length SHORT FULL: the one that applies.
length() {
	if full; then echo "$2"; else echo "$1"; fi
}

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
		sleep 0.05
	done
}

# OUT holds what the last of these wrote, on both streams.
OUT=

# expect_exit N CMD…
expect_exit() {
	local want=$1 got=0
	shift
	OUT=$("$@" 2>&1) || got=$?
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
