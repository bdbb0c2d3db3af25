#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs every test: tests/run.sh [BUILD] [-k PATTERN]
#
#   unit/*            BUILD/tests/unit/test-*        one program a file of tests
#   check/*           tests/check-*.sh               what can be checked of the tree itself
#   integration/*     tests/integration/test-*.sh    daemons of their own, on this kernel
#   asan/…            unit and integration again, with ASan and UBSan (make asan), but for test-crash-*:
#                     they kill at every step, which takes sanitizers long and shows them little
#   fuzz/*            BUILD/fuzz/fuzz-*              FUZZ_SECONDS each (60), two side by side
#   vm/*              tests/vm/test-*.sh             the packages (make deb) in a booted guest, with
#                                                    each kernel that the test names; two side by
#                                                    side, but for those that say `# vm-alone`
#
# A test is a program: exit 0 is a pass, 77 a skip with its reason in the last line it wrote,
# all else a failure. What others do on the machine is no fault of ours: a test that fails on the
# running kernel, or in a guest, is run once more, and both attempts are told (TEST_ATTEMPTS=1: not).
# -k runs those whose name, as above, contains PATTERN (a glob).
# Logs are in BUILD/log. Nothing here needs a terminal. Exit 0 if nothing failed, else 1.

set -u -o pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.." || exit 1

BUILD=build
PATTERN=
TEST_TIMEOUT=${TEST_TIMEOUT:-600}
TEST_ATTEMPTS=${TEST_ATTEMPTS:-2}
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
failures=() skips=() retried=()
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

declare -A began=() name_of=()

# begin NAME LIMIT CMD…: starts it in the background, in a process group of its own.
begin() {
	local name=$1 limit=$2
	shift 2
	began[$name]=$EPOCHREALTIME
	"${as[@]}" timeout --kill-after=60 "$limit" "$@" >"$(log_of "$name")" 2>&1 </dev/null &
	running+=($!)
	name_of[$!]=$name
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
	if [ "$attempts" -gt 1 ]; then
		printf '%sAGAIN%s %-58s %6s s%s\n' "$YELLOW" "$PLAIN" "$name" "$took" "$why"
		sed 's/^/      | /' "$log"
		mv "$log" "${log%.log}.first.log"
		retried+=("$name")
		return 1
	fi
	failed=$((failed + 1))
	failures+=("$name")
	printf '%sFAIL%s  %-58s %6s s%s\n' "$RED" "$PLAIN" "$name" "$took" "$why"
	sed 's/^/      | /' "$log"
}

# How often what runs now may be tried.
attempts=1

# finish NAME [NAME…]: waits for what begin started, in the same order.
finish() {
	local i=0 name status finished=0
	for name in "$@"; do
		status=0
		wait "${running[i]}" 2>/dev/null || status=$?
		result "$name" "$status" || finished=1
		i=$((i + 1))
	done
	running=()
	return "$finished"
}

# finish_first: waits for whichever ends first of what begin started. If that is to be tried once
# more, its name is added to again.
finish_first() {
	local pid i status=0
	wait -n -p pid "${running[@]}" 2>/dev/null || status=$?
	for i in "${!running[@]}"; do
		[ "${running[i]}" != "$pid" ] || unset "running[i]"
	done
	result "${name_of[$pid]}" "$status" || again+=("${name_of[$pid]}")
}

# one NAME LIMIT CMD…
one() {
	selected "$1" || return 0
	[[ $1 == check/* ]] || attempts=$TEST_ATTEMPTS
	until begin "$@" && finish "$1"; do
		attempts=$((attempts - 1))
	done
	attempts=1
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
		[[ $name != asan/*/test-crash-* ]] || continue
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

# Their names, a line for each.
guest_tests() {
	local file kernel kernels
	echo vm/check-runner
	for file in tests/vm/test-*.sh; do
		kernels=$(sed -n 's/^# vm-kernels: //p' "$file")
		for kernel in ${kernels:-6.1}; do
			echo "vm/$(basename "$file" .sh)-$kernel"
		done
	done
}

guests_selected() {
	local name
	while read -r name; do
		selected "$name" && return
	done < <(guest_tests)
	return 1
}

# guest NAME: sets command to how that one is run.
guest() {
	local test=${1#vm/}
	command=(env BUILD="$BUILD" bash)
	if [ "$test" = check-runner ]; then
		command+=(tests/vm/check-runner.sh)
	else
		command+=(tests/vm/run.sh --kernel "${test##*-}" "tests/vm/${test%-*}.sh")
	fi
}

# Each in a guest that is booted for it, two at a time: the emulation of one leaves some of two
# CPUs. What measures, and what has failed beside another, then has the machine for itself.
guests() {
	local name command alone=() again=() from=$SECONDS

	as=("${SUDO[@]}")
	attempts=$TEST_ATTEMPTS
	while read -r name; do
		selected "$name" || continue
		guest "$name"
		if grep -q '^# vm-alone' "${command[-1]}"; then
			alone+=("$name")
			continue
		fi
		[ ${#running[@]} -lt 2 ] || finish_first
		begin "$name" 3600 "${command[@]}"
	done < <(guest_tests)
	while [ ${#running[@]} -gt 0 ]; do
		finish_first
	done
	attempts=1

	for name in "${alone[@]}"; do
		guest "$name"
		one "$name" 3600 "${command[@]}"
	done
	for name in "${again[@]}"; do
		guest "$name"
		TEST_ATTEMPTS=$((TEST_ATTEMPTS - 1)) one "$name" 3600 "${command[@]}"
	done
	as=()
	from=$((SECONDS - from))
	printf '      tests in guests took %d min %d s\n' $((from / 60)) $((from % 60))
}

# What they stand on: a guest, and our packages. Where there can be no guest, this is a skip.
guests_built() {
	local ok=0
	as=("${SUDO[@]}")
	build vm/guest env BUILD="$BUILD" bash tests/vm/build.sh || ok=1
	as=()
	[ "$ok" -eq 0 ] && build vm/packages make --no-print-directory BUILD="$BUILD" deb &&
		build vm/upgrade make --no-print-directory BUILD="$BUILD" DEB_REVISION=2 deb
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

if guests_selected; then
	guests_built && guests
fi

# ── what came of it ──────────────────────────────────────────────────────────────────────

if [ ${#retried[@]} -gt 0 ]; then
	printf '\nRun a second time, because the first failed (its log is NAME.first.log):\n'
	printf '  %s\n' "${retried[@]}"
fi
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
