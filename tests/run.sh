#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs tests: tests/run.sh [--tier quick|check|all] [-k PATTERN] [--list] [BUILD]
#
# tests/list names every test, its tier, and whether it may run beside another:
#
#   unit/*            BUILD/tests/unit/test-*        one program for each file of tests
#   check/*           tests/check-*.sh               what can be checked of the tree itself
#   integration/*     tests/integration/test-*.sh    daemons of their own, on this kernel
#   asan/…            unit and integration tests again, with ASan and UBSan
#   fuzz/*            BUILD/fuzz/fuzz-*              libFuzzer with ASan and UBSan
#   vm/*              tests/vm/*.sh                  the packages (make deb) in a booted guest
#
# --tier selects that tier and the ones below it; but check runs no unit test that it runs with ASan, too.
# quick and check run each test at its short length, all at full length (TEST_LENGTH=short|full overrides
# this). -k selects by name: a glob
# that must match the whole name, or a folder with everything in it (`-k unit/`); without --tier it
# looks in all tiers, at the short length. --list prints what would run, and why.
#
# A test is a program. Exit 0 is a pass. Exit 77 is a skip, and the last line of the output is the
# reason. Everything else is a failure. A test that passed but left something out says so in a line
# `SKIP: what and why`; each such line counts as a skip, too.
#
# A test runs once. Only an emulated guest that crashed, hung or did not boot gets a second attempt;
# the closing line counts that as flaky. (TEST_ATTEMPTS=1 forbids it.)
#
# One test more than there are CPUs run side by side, since many wait for the kernel; or TEST_JOBS. Logs
# are in BUILD/log.
# Nothing here needs a terminal. Exit 0 if nothing failed, else 1; 2 for a wrong call.

set -u -o pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.." || exit 1

BUILD=build TIER='' PATTERN='' LIST=''
TEST_ATTEMPTS=${TEST_ATTEMPTS:-2}
TEST_JOBS=${TEST_JOBS:-$(($(nproc) + 1))}

usage() {
	[ $# -eq 0 ] || echo "run.sh: $*" >&2
	echo "usage: tests/run.sh [--tier quick|check|all] [-k PATTERN] [--list] [BUILD]" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	case $1 in
	--tier | -k)
		[ $# -gt 1 ] || usage "$1 needs a value"
		if [ "$1" = -k ]; then PATTERN=$2; else TIER=$2; fi
		shift
		;;
	--list) LIST=1 ;;
	-*) usage "there is no option $1" ;;
	*) BUILD=$1 ;;
	esac
	shift
done
[ -n "$TIER" ] || { [ -n "$PATTERN" ] && TIER=all TEST_LENGTH=${TEST_LENGTH:-short}; } || TIER=check
case $TIER in
quick) tiers=" quick " ;;
check) tiers=" quick check " ;;
all) tiers=" quick check all " ;;
*) usage "there is no tier '$TIER'" ;;
esac
if [ -z "${TEST_LENGTH-}" ]; then
	TEST_LENGTH=short
	[ "$TIER" != all ] || TEST_LENGTH=full
fi
export TEST_LENGTH
# In seconds: the time of each fuzzer, and the time after which a test counts as hanging, on a
# machine however busy.
LIMIT=900 FUZZ_SECONDS=${FUZZ_SECONDS:-3}
if [ "$TEST_LENGTH" = full ]; then
	LIMIT=1800 FUZZ_SECONDS=60
fi

# ── the list ─────────────────────────────────────────────────────────────────────────────

selected() {
	# shellcheck disable=SC2053 # a glob
	[[ $tiers == *" $2 "* && ( -z $PATTERN || $1 == $PATTERN || ( $PATTERN == */ && $1 == $PATTERN* ) ) ]]
}

names=() # selected tests, in the list's order
declare -A tier_of=() how_of=() why_of=()
known=()

# take TIER HOW NAME WHY: takes one row of the list, or one test of a row that stands for many.
take() {
	local tier=$1 how=$2 name=$3
	[ -z "${tier_of[$name]-}" ] || return 0
	tier_of[$name]=$tier
	how_of[$name]=$how
	why_of[$name]=${*:4}
	known+=("$name")
	selected "$name" "$tier" || return 0
	names+=("$name")
}

while read -r tier how name why; do
	case $tier in
	'' | \#*) continue ;;
	esac
	if [[ $name == asan/*/\* ]]; then
		for one in "${known[@]}"; do
			# shellcheck disable=SC2053 # a glob
			[[ asan/$one != $name ]] || take "$tier" "$how" "asan/$one" "$why"
		done
	else
		take "$tier" "$how" "$name" "$why"
	fi
done <tests/list
if [ "$TIER" = check ] && [ -z "$PATTERN" ]; then
	for i in "${!names[@]}"; do
		[[ ${names[i]} != unit/* || ${tier_of[asan/${names[i]}]-} != check ]] || unset "names[i]"
	done
fi
[ ${#names[@]} -gt 0 ] || usage "tests/list has no test '$PATTERN' in tier $TIER"
if [ -n "$LIST" ]; then
	for name in "${names[@]}"; do
		printf '%-6s %-7s %-40s %s\n' "${tier_of[$name]}" "${how_of[$name]}" "$name" "${why_of[$name]}"
	done
	exit
fi

# ── surroundings ─────────────────────────────────────────────────────────────────────────

LOG=$BUILD/log
rm -rf "$LOG" 2>/dev/null
if ! mkdir -p "$LOG"; then
	echo "run.sh: logs go to $LOG, which you may not write; name a BUILD of your own" >&2
	exit 2
fi
FUZZ_DIR=$(mktemp -d "${TMPDIR:-/tmp}/perfpersist-fuzz-XXXXXX") || exit 1

# Tests of the running kernel need root: an ordinary user gets it from sudo, or they skip. make
# check-quick needs no root.
SUDO=()
if [ "$(id -u)" -ne 0 ] && [ "$TIER" != quick ] && command -v sudo >/dev/null; then
	if sudo -n true 2>/dev/null || { [ -t 0 ] && sudo true; }; then
		SUDO=(sudo -n)
	fi
fi

# The outer make's job server is not for our builds.
MAKEFLAGS=$(sed -E 's/ ?(-j[0-9]*|--jobserver-[a-z]+=[^ ]+)//g' <<<"${MAKEFLAGS-}")
export MAKEFLAGS

export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:exitcode=99
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

if [ -t 1 ]; then
	RED=$'\e[31m' GREEN=$'\e[32m' YELLOW=$'\e[33m' PLAIN=$'\e[0m'
else
	RED='' GREEN='' YELLOW='' PLAIN=''
fi

log_of() {
	echo "$LOG/${1//\//-}.log"
}

# ── one job: a test, or a build that tests stand on ──────────────────────────────────────

# command_of NAME: sets command, which ends after some time at the latest. A name without a folder
# here is a build.
command_of() {
	local name=$1 file=${1##*/} build=$BUILD limit=$LIMIT
	[[ $name != build/* ]] || limit=1800
	[[ $name != asan/* ]] || build=$BUILD/asan
	case $name in
	build/asan-unit)
		command=(make --no-print-directory -j"$TEST_JOBS" BUILD="$BUILD" asan-unit)
		;;
	build/asan)
		command=(make --no-print-directory -j"$TEST_JOBS" BUILD="$BUILD" asan)
		;;
	build/fuzzers)
		command=(make --no-print-directory -j"$TEST_JOBS" BUILD="$BUILD" fuzzers)
		;;
	build/guest)
		command=("${SUDO[@]}" env BUILD="$BUILD" PERFPERSIST_CACHE="${PERFPERSIST_CACHE-}" bash tests/vm/build.sh)
		;;
	build/guest-newest)
		command=("${SUDO[@]}" env BUILD="$BUILD" PERFPERSIST_CACHE="${PERFPERSIST_CACHE-}"
			bash tests/vm/build.sh --newest)
		;;
	build/packages)
		command=(bash -c "make --no-print-directory BUILD='$BUILD' deb &&
			make --no-print-directory BUILD='$BUILD' DEB_REVISION=2 deb")
		;;
	build/packages-before)
		command=(bash tests/vm/before.sh "$BUILD")
		;;
	unit/* | asan/unit/*)
		command=("${SUDO[@]}" bash tests/one-at-a-time.sh "$file" "$LIMIT"
			env BUILD="$build" TEST_LENGTH="$TEST_LENGTH"
			ASAN_OPTIONS="$ASAN_OPTIONS" UBSAN_OPTIONS="$UBSAN_OPTIONS" "$build/tests/unit/$file")
		;;
	check/*)
		command=(env BUILD="$BUILD" bash "tests/$file.sh")
		;;
	integration/* | asan/integration/*)
		command=("${SUDO[@]}" bash tests/one-at-a-time.sh "$file" "$LIMIT"
			env BUILD="$build" TEST_LENGTH="$TEST_LENGTH"
			PP_TEST_INSTANCE="${instance_of[$name]}" ASAN_OPTIONS="$ASAN_OPTIONS"
			UBSAN_OPTIONS="$UBSAN_OPTIONS" bash "tests/integration/$file.sh")
		;;
	fuzz/*)
		# Runs in a directory of its own for the inputs that the fuzzer adds.
		mkdir -p "$FUZZ_DIR/$file" "$LOG/fuzz"
		command=("$BUILD/fuzz/$file" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=1024
			-print_final_stats=1 -verbosity=1 -artifact_prefix="$LOG/fuzz/$file-" "$FUZZ_DIR/$file")
		[ ! -d "tests/fuzz/seeds/$file" ] || command+=("tests/fuzz/seeds/$file")
		;;
	vm/check-runner)
		limit=3600
		command=("${SUDO[@]}" env BUILD="$BUILD" bash tests/vm/check-runner.sh)
		;;
	vm/*)
		limit=3600
		command=("${SUDO[@]}" env BUILD="$BUILD" TEST_LENGTH="$TEST_LENGTH"
			bash tests/vm/run.sh --kernel "${file##*-}" "tests/vm/${file%-*}.sh")
		;;
	esac
	# Those that wait for another run of the same test count their time from then on.
	[[ $name == *unit/* || $name == *integration/* ]] ||
		command=(timeout --kill-after=60 "$limit" "${command[@]}")
}

# The builds that a test needs.
needs_of() {
	case $1 in
	asan/unit/* | build/asan) echo build/asan-unit ;;
	asan/integration/*) echo build/asan-unit build/asan ;;
	fuzz/*) echo build/fuzzers ;;
	vm/*-newest) echo build/packages build/guest build/guest-newest ;;
	vm/test-upgrade-*) echo build/packages build/packages-before build/guest ;;
	build/guest-newest) echo build/guest ;;
	vm/*) echo build/packages build/guest ;;
	esac
}

declare -A began=() instance_of=() attempts=() name_of=()
instances=0
running=() # pids of what runs now: timeouts, or what becomes one or has one (sudo)

# begin NAME: starts it in the background. Its timeout makes a process group of its own.
begin() {
	local name=$1 command
	# Each test has an instance of its own, so that run.sh can clean up after a killed test.
	instances=$((instances + 1))
	instance_of[$name]=t$$x$instances
	attempts[$name]=$((${attempts[$name]:-0} + 1))
	command_of "$name"
	began[$name]=$EPOCHREALTIME
	"${command[@]}" >"$(log_of "$name")" 2>&1 </dev/null &
	running+=($!)
	name_of[$!]=$name
}

# The guest crashed, hung, panicked or did not boot: see tests/vm/run.sh.
may_try_again() {
	[[ $1 == vm/* && $2 -ge 3 && $2 -le 6 && ${attempts[$1]} -lt $TEST_ATTEMPTS ]]
}

passed=0 failed=0
failures=() skips=() retried=()
declare -A seconds=() count=()

tell() {
	local color=$1 word=$2 name=$3 took=$4
	printf '%s%-5s%s %-52s %7s s  %s\n' "$color" "$word" "$PLAIN" "$name" "$took" "$5"
}

# end NAME STATUS: counts the result and prints it, with the whole output after a failure. Returns 1
# if the test gets another attempt.
end() {
	local name=$1 status=$2 log took why line
	log=$(log_of "$name")
	took=$(awk -v a="${began[$name]}" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
	line=${tier_of[$name]:-build}
	seconds[$line]=$(awk -v a="${seconds[$line]:-0}" -v b="$took" 'BEGIN { printf "%.1f", a + b }')
	count[$line]=$((${count[$line]:-0} + 1))

	case $status in
	0)
		[[ $name == build/* ]] || passed=$((passed + 1))
		tell "$GREEN" PASS "$name" "$took" ""
		while IFS= read -r line; do
			skips+=("$name: ${line#SKIP: }")
			tell "$YELLOW" SKIP "$name, a part" "$took" "${line#SKIP: }"
		done < <(grep -a '^SKIP: ' "$log")
		return 0
		;;
	77)
		why=$(grep -av '^[[:space:]]*$' "$log" | tail -n 1)
		why=${why#SKIP: }
		[[ $name == build/* ]] || skips+=("$name: ${why:-no reason given}")
		tell "$YELLOW" SKIP "$name" "$took" "$why"
		return 0
		;;
	124 | 137) why="did not end in time" ;;
	*)
		why="exit $status"
		[ "$status" -le 128 ] || why="signal $((status - 128))"
		;;
	esac
	if may_try_again "$name" "$status"; then
		tell "$YELLOW" AGAIN "$name" "$took" "$why"
		end_of "$log" 60
		mv "$log" "${log%.log}.first.log"
		retried+=("$name")
		return 1
	fi
	failed=$((failed + 1))
	failures+=("$name")
	tell "$RED" FAIL "$name" "$took" "$why"
	end_of "$log" 60
	return 0
}

# end_of LOG LINES: a test says last what failed.
end_of() {
	tail -n "$2" "$1" | sed 's/^/      | /'
}

# Removes what a killed test left behind, in its instance and in those that it named INSTANCE-X.
clean_up_after() {
	local run
	[[ $1 == *integration/* ]] || return 0
	for run in "/run/perfpersist-${instance_of[$1]}" "/run/perfpersist-${instance_of[$1]}"-*; do
		[ -e "$run" ] || continue
		echo "      cleaning up after $1"
		"${SUDO[@]}" env BUILD="$BUILD" PP_TEST_INSTANCE="${run#*perfpersist-}" \
			bash -c '. tests/lib.sh' </dev/null
	done
}

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

# ── all of them ──────────────────────────────────────────────────────────────────────────

declare -A state=() # of a build: absent is not begun, then begun, done, or why it cannot be had

# can_begin NAME: 0 yes, 1 not yet, 2 never; begins the builds that it needs.
can_begin() {
	local need
	for need in $(needs_of "$1"); do
		case ${state[$need]-} in
		"done") ;;
		begun) return 1 ;;
		*) return 2 ;;
		esac
	done
}

# A test whose needs are not met cannot run.
left_out() {
	local need
	for need in $(needs_of "$1"); do
		[ "${state[$need]}" = "done" ] || skips+=("$1: ${state[$need]}")
		[ "${state[$need]}" = "done" ] || break
	done
}

# finish_one: waits for the next job that ends.
finish_one() {
	local pid i name status=0
	wait -n -p pid "${running[@]}" 2>/dev/null || status=$?
	for i in "${!running[@]}"; do
		[ "${running[i]}" != "$pid" ] || unset "running[i]"
	done
	name=${name_of[$pid]}
	end "$name" "$status" || queue=("$name" "${queue[@]}")
	clean_up_after "$name"
	[[ $name == build/* ]] || return
	case $status in
	0) state[$name]='done' ;;
	77) state[$name]=$(tail -n 1 "$(log_of "$name")") ;;
	*) state[$name]="$name failed" ;;
	esac
}

# begin_next: begins the first test of the queue that can begin now; 1 if there is none.
begin_next() {
	local i name can
	for i in "${!queue[@]}"; do
		name=${queue[i]} can=0
		can_begin "$name" || can=$?
		[ $can -ne 1 ] || continue
		unset "queue[i]"
		if [ $can -eq 0 ]; then
			begin "$name"
			return
		fi
		left_out "$name"
	done
	return 1
}

# run JOBS: runs everything in the queue, at most JOBS at a time.
run() {
	while [ ${#queue[@]} -gt 0 ] || [ ${#running[@]} -gt 0 ]; do
		while [ ${#running[@]} -lt "$1" ] && begin_next; do :; done
		[ ${#running[@]} -eq 0 ] || finish_one
	done
}

echo "perfpersist on Linux $(uname -r), $(nproc) CPUs: ${#names[@]} tests of tier $TIER, at $TEST_LENGTH length; logs in $LOG"
from=$SECONDS

# Builds come first: most of them use all CPUs.
queue=()
for name in "${names[@]}"; do
	for need in $(needs_of "$name"); do
		[ -z "${state[$need]-}" ] || continue
		state[$need]=begun
		queue+=("$need")
	done
done
for name in "${names[@]}"; do
	[ "${how_of[$name]}" = alone ] || queue+=("$name")
done
run "$TEST_JOBS"
for name in "${names[@]}"; do
	[ "${how_of[$name]}" != alone ] || queue+=("$name")
done
run 1

# ── what came of it ──────────────────────────────────────────────────────────────────────

if [ ${#retried[@]} -gt 0 ]; then
	printf '\nFlaky: passed or failed at the second attempt only (the log of the first is NAME.first.log):\n'
	printf '  %s\n' "${retried[@]}"
fi
if [ ${#failures[@]} -gt 0 ]; then
	printf '\nFailed; each with its log in %s:\n' "$LOG"
	for name in "${failures[@]}"; do
		printf '  %s\n' "$name"
		end_of "$(log_of "$name")" 5
	done
fi
if [ ${#skips[@]} -gt 0 ]; then
	printf '\nSkipped, and why:\n'
	printf '  %s\n' "${skips[@]}"
fi
echo
for tier in build quick check all; do
	[ -z "${count[$tier]-}" ] || printf '%-6s %3d jobs, %7.1f s\n' "$tier" "${count[$tier]}" "${seconds[$tier]}"
done
printf 'took   %d min %d s, up to %d at a time\n' $(((SECONDS - from) / 60)) $(((SECONDS - from) % 60)) "$TEST_JOBS"
printf '\n%d passed, %d failed, %d skipped%s\n' "$passed" "$failed" "${#skips[@]}" \
	"$([ ${#retried[@]} -eq 0 ] || printf ', %d flaky' ${#retried[@]})"
[ "$failed" -eq 0 ]
