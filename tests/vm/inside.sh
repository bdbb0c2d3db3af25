# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For tests in a guest, after lib.sh: runs integration tests on the guest's kernel. They run from
# the build tree, as on any machine, with daemons of their own; nothing is installed.

# expect_preempt MODE: checks how the kernel preempts; the test's first lines request it.
expect_preempt() {
	mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
	expect_match "$(cat /sys/kernel/debug/sched/preempt)" "\\($1\\)" "how the kernel preempts"
}

# inside NAME…: runs tests/integration/test-NAME.sh, one after the other; all of them, even after a
# failure. Do not list a test that needs something the guest lacks.
inside() {
	local name from status failed=() log=/run/inside

	echo "Linux $(uname -r), $(cat /proc/cmdline)"
	for name in "$@"; do
		from=$SECONDS status=0
		BUILD=$BUILD PP_TEST_INSTANCE=inside \
			bash "$(dirname "${BASH_SOURCE[0]}")/../integration/test-$name.sh" >$log 2>&1 || status=$?
		echo "$name: exit $status after $((SECONDS - from)) s"
		grep -a '^SKIP: ' $log || true
		if [ $status -ne 0 ]; then
			failed+=("$name")
			sed 's/^/  | /' $log
		fi
	done
	[ ${#failed[@]} -eq 0 ] || fail "of $# tests: ${failed[*]}"
}
