# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For tests in a guest, after lib.sh: runs other tests on the guest's kernel. They run from the build
# tree, as on any machine, with daemons of their own; nothing is installed.

# expect_preempt MODE: checks how the kernel preempts; the test's first lines request it.
expect_preempt() {
	mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
	expect_match "$(cat /sys/kernel/debug/sched/preempt)" "\\($1\\)" "how the kernel preempts"
}

# run_each NAME COMMAND, for each line of the input: all of them, even after a failure.
run_each() {
	local name command from status n=0 failed=() log=/run/inside

	echo "Linux $(uname -r), $(cat /proc/cmdline)"
	while read -r name command; do
		from=$SECONDS status=0 n=$((n + 1))
		BUILD=$BUILD PP_TEST_INSTANCE=inside PP_TEST_EMULATED=1 $command >$log 2>&1 </dev/null || status=$?
		echo "$name: exit $status after $((SECONDS - from)) s"
		grep -a '^SKIP: ' $log || true
		if [ $status -ne 0 ]; then
			failed+=("$name")
			sed 's/^/  | /' $log
		fi
	done
	[ ${#failed[@]} -eq 0 ] || fail "of $n tests: ${failed[*]}"
}

# inside NAME…: runs tests/integration/test-NAME.sh, one after the other. Do not list a test that needs
# something the guest lacks.
inside() {
	local name

	for name in "$@"; do
		echo "$name bash $(dirname "${BASH_SOURCE[0]}")/../integration/test-$name.sh"
	done | run_each
}

# inside_unit NAME…: the same for unit tests.
inside_unit() {
	local name

	for name in "$@"; do
		echo "$name $BUILD/tests/unit/test-$name"
	done | run_each
}
