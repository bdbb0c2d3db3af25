#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Does run.sh tell a failed test, a hang, a crash, a panic and a failed boot from each other, and
# does it leave nothing behind? The guests here do all of that.

set -u -o pipefail
BUILD=$(realpath -m "${BUILD:-$(dirname "$0")/../../build}")
export BUILD
cd "$(dirname "$0")" || exit
. ../expect.sh
trap 'rm -f "$output"' EXIT
output=$(mktemp)

# told EXIT LAST-LINE TEST: checks both, and sets the output for further checks.
told() {
	local status=0
	./run.sh "runner/$3.sh" >"$output" 2>&1 || status=$?
	expect_eq "$status" "$1" "exit of run.sh with a test that $3"
	expect_match "$(tail -n 1 "$output")" "$2" "last line of run.sh with a test that $3"
	[ ! -e "$BUILD/vm/results/$3-6.1/root.qcow2" ] || fail "$3: its disk is left behind"
	echo "$3: $(tail -n 1 "$output")"
}

says() {
	grep -q -e "$1" "$output" || fail "no '$1' in run.sh's output"
}

# Any signal that ends the runner ends the guest.
killed() {
	local signal=$1 runner qemu
	./run.sh runner/hangs.sh >"$output" 2>&1 &
	runner=$!
	wait_until 60 pgrep -f "^[^ ]*qemu-system.*=perfpersist-vm-$runner," || fail "no QEMU of runner $runner"
	qemu=$(pgrep -f "^[^ ]*qemu-system.*=perfpersist-vm-$runner,")
	kill "-$signal" "$runner"
	wait "$runner"
	wait_until 20 test ! -e "/proc/$qemu" || fail "QEMU survives its runner's SIG$signal"
	echo "SIG$signal: QEMU is gone with its runner"
}

told 1 "the test failed, exit 1" fails
says "so far so good"
says "the sum: expected '2', got '1'"
told 77 "not on a Tuesday" skips
told 3 "gone in the middle of the test" crashes
told 4 "hangs: no end within 20 s" hangs
says "and waits"
told 5 "panicked: .*sysrq triggered crash" panics
says "boot 2"
told 6 "systemd gave up" stays-down
says "the end of its console"
killed TERM
killed KILL
rm -rf "$BUILD/vm/results/hangs-6.1"*
