#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs every test: tests/run.sh [BUILD] [-k PATTERN]
#
#   unit/*            BUILD/tests/unit/test-*        one program a file of tests
#   check/*           tests/check-*.sh               what can be checked of the tree itself
#   integration/*     tests/integration/test-*.sh    daemons of their own, on this kernel
#   asan/…            unit and integration again, with ASan and UBSan (make asan)
#   fuzz/*            BUILD/fuzz/fuzz-*              FUZZ_SECONDS each (60), two side by side
#
# A test is a program: exit 0 is a pass, 77 a skip with its reason in the last line it wrote,
# all else a failure. -k runs those whose name, as above, contains PATTERN (a glob).
# Logs are in BUILD/log. Nothing here needs a terminal. Exit 0 if nothing failed, else 1.

set -u -o pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.." || exit 1

BUILD=build
PATTERN=
TEST_TIMEOUT=${TEST_TIMEOUT:-300}
FUZZ_SECONDS=${FUZZ_SECONDS:-60}

while [ $# -gt 0 ]; do
	case $1 in
	-k)
		[ $# -gt 1 ] || { echo "run.sh: -k needs a pattern" >&2; exit 2; }
		PATTERN=$2
		shift
		;;
	-*)
		echo "usage: tests/run.sh [BUILD] [-k PATTERN]" >&2
		exit 2
		;;
	*)
		BUILD=$1
		;;
	esac
	shift
done

LOG=$BUILD/log
rm -rf "$LOG"
mkdir -p "$LOG" || exit 1
FUZZ_DIR=$(mktemp -d "${TMPDIR:-/tmp}/perfpersist-fuzz-XXXXXX") || exit 1

# Tests of the running kernel need root. As a user who may use sudo: those tests through it.
SUDO=()
if [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null; then
	if sudo -n true 2>/dev/null || { [ -t 0 ] && sudo true; }; then
		SUDO=(sudo -n)
	fi
fi

# The outer make's job server is not ours.
MAKEFLAGS=$(sed -E 's/ ?(-j[0-9]*|--jobserver-[a-z]+=[^ ]+)//g' <<<"${MAKEFLAGS-}")
export MAKEFLAGS

export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:exitcode=99
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

if [ -t 1 ]; then
	RED=$'\e[31m' GREEN=$'\e[32m' YELLOW=$'\e[33m' PLAIN=$'\e[0m'
else
	RED='' GREEN='' YELLOW='' PLAIN=''
fi

passed=0 failed=0
failures=() skips=()
running=() # pids of the timeouts that watch over what runs now
as=()      # how to become who the test needs to be

interrupted() {
	trap '' INT TERM
	for pid in "${running[@]}"; do
		kill -TERM "$pid" 2>/dev/null || "${SUDO[@]}" kill -TERM "$pid" 2>/dev/null
	done
	wait
	rm -rf "$FUZZ_DIR"
	echo "interrupted" >&2
	exit 130
}
trap interrupted INT TERM
trap 'rm -rf "$FUZZ_DIR"' EXIT

selected() {
	# shellcheck disable=SC2053
	[[ $1 == *$PATTERN* ]]
}

# any_selected PREFIX FILE…
any_selected() {
	local prefix=$1 file
	shift
	for file in "$@"; do
		file=${file##*/}
		file=${file%.*}
		selected "$prefix/$file" && return
	done
	return 1
}

log_of() {
	echo "$LOG/${1//\//-}.log"
}

# ── one test ─────────────────────────────────────────────────────────────────────────────

declare -A began=()

# begin NAME LIMIT CMD…: starts it in the background, in a process group of its own.
begin() {
	local name=$1 limit=$2
	shift 2
	began[$name]=$EPOCHREALTIME
	"${as[@]}" timeout --kill-after=60 "$limit" "$@" >"$(log_of "$name")" 2>&1 </dev/null &
	running+=($!)
}

# result NAME STATUS: counts it and tells, with all that it wrote if it failed.
result() {
	local name=$1 status=$2 log took why
	log=$(log_of "$name")
	took=$(awk -v a="${began[$name]}" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')

	case $status in
	0)
		passed=$((passed + 1))
		printf '%sPASS%s  %-58s %6s s\n' "$GREEN" "$PLAIN" "$name" "$took"
		return
		;;
	77)
		why=$(grep -v '^[[:space:]]*$' "$log" | tail -n 1)
		skips+=("$name: ${why:-no reason given}")
		printf '%sSKIP%s  %-58s %6s s  %s\n' "$YELLOW" "$PLAIN" "$name" "$took" "$why"
		return
		;;
	124 | 137)
		why="  did not end in time"
		;;
	*)
		why="  exit $status"
		[ "$status" -gt 128 ] && why="  signal $((status - 128))"
		;;
	esac
	failed=$((failed + 1))
	failures+=("$name")
	printf '%sFAIL%s  %-58s %6s s%s\n' "$RED" "$PLAIN" "$name" "$took" "$why"
	sed 's/^/      | /' "$log"
}

# finish NAME [NAME…]: waits for what begin started, in the same order.
finish() {
	local i=0 name status
	for name in "$@"; do
		status=0
		wait "${running[i]}" 2>/dev/null || status=$?
		result "$name" "$status"
		i=$((i + 1))
	done
	running=()
}

# one NAME LIMIT CMD…
one() {
	selected "$1" || return 0
	begin "$@"
	finish "$1"
}

# Never filtered, counted only when it fails: what later tests stand on.
# build NAME CMD…
build() {
	local status=0
	begin "$1" 900 "${@:2}"
	wait "${running[0]}" 2>/dev/null || status=$?
	running=()
	[ "$status" -eq 0 ] || result "$1" "$status"
	return "$status"
}

# ── all tests ────────────────────────────────────────────────────────────────────────────

# unit PREFIX BUILD
unit() {
	local file name
	for file in tests/unit/test-*.c; do
		[ -e "$file" ] || continue
		name=${file##*/}
		name=${name%.c}
		one "$1/$name" "$TEST_TIMEOUT" env BUILD="$2" "$2/tests/unit/$name"
	done
}

# An instance's name for each test, so that one that had to be killed can be cleaned up after.
instance_count=0

# integration PREFIX BUILD
integration() {
	local file name instance
	for file in tests/integration/test-*.sh; do
		[ -e "$file" ] || continue
		name=$1/$(basename "$file" .sh)
		selected "$name" || continue
		instance_count=$((instance_count + 1))
		instance=t$$x$instance_count
		as=("${SUDO[@]}")
		one "$name" "$TEST_TIMEOUT" env BUILD="$2" PP_TEST_INSTANCE="$instance" \
			ASAN_OPTIONS="$ASAN_OPTIONS" UBSAN_OPTIONS="$UBSAN_OPTIONS" bash "$file"
		as=()
		if [ -e "/run/perfpersist-$instance" ]; then
			echo "      cleaning up after $name"
			"${SUDO[@]}" env BUILD="$2" PP_TEST_INSTANCE="$instance" \
				bash -c '. tests/lib.sh' </dev/null
		fi
	done
}

checks() {
	local file
	for file in tests/check-*.sh; do
		[ -e "$file" ] || continue
		one "check/$(basename "$file" .sh)" 900 env BUILD="$BUILD" bash "$file"
	done
}

# fuzz NAME: one fuzzer, in a directory of its own for what it finds interesting.
fuzz() {
	local name=$1 seeds=()
	[ -d "tests/fuzz/seeds/$name" ] && seeds=("tests/fuzz/seeds/$name")
	mkdir -p "$FUZZ_DIR/$name" "$LOG/fuzz"
	begin "fuzz/$name" $((FUZZ_SECONDS + 120)) "$BUILD/fuzz/$name" \
		-max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
		-verbosity=1 -artifact_prefix="$LOG/fuzz/$name-" "$FUZZ_DIR/$name" "${seeds[@]}"
}

fuzzers() {
	local file name pair=()
	for file in tests/fuzz/fuzz-*.c; do
		[ -e "$file" ] || continue
		name=$(basename "$file" .c)
		selected "fuzz/$name" || continue
		fuzz "$name"
		pair+=("fuzz/$name")
		[ ${#pair[@]} -lt 2 ] && continue
		finish "${pair[@]}"
		pair=()
	done
	[ ${#pair[@]} -eq 0 ] || finish "${pair[@]}"
}

echo "perfpersist on Linux $(uname -r), $(nproc) CPUs; logs in $LOG"

unit unit "$BUILD"
checks
integration integration "$BUILD"

if any_selected asan/unit tests/unit/test-*.c || any_selected asan/integration tests/integration/test-*.sh; then
	if build asan/build make --no-print-directory -j2 BUILD="$BUILD" asan; then
		unit asan/unit "$BUILD/asan"
		integration asan/integration "$BUILD/asan"
	fi
fi

if any_selected fuzz tests/fuzz/fuzz-*.c; then
	build fuzz/build make --no-print-directory -j2 BUILD="$BUILD" fuzzers && fuzzers
fi

# ── what came of it ──────────────────────────────────────────────────────────────────────

if [ ${#failures[@]} -gt 0 ]; then
	printf '\nFailed; each with its log in %s:\n' "$LOG"
	printf '  %s\n' "${failures[@]}"
fi
if [ ${#skips[@]} -gt 0 ]; then
	printf '\nSkipped, and why:\n'
	printf '  %s\n' "${skips[@]}"
fi
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "${#skips[@]}"
[ "$failed" -eq 0 ]
