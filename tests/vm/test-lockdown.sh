#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2 --append lockdown=confidentiality
#
# On a kernel in confidentiality mode nothing can be recorded. The client gets one clear message,
# the log one line for each configured event, and the boot has no problem.
. "$(dirname "$0")/lib.sh"

expect_match "$(cat /sys/kernel/security/lockdown)" "\[confidentiality\]"

if [ "$PHASE" -eq 1 ]; then
	install_packages perfpersist
	expect_ok systemctl is-active perfpersistd
	reboot
fi

state=$(systemctl is-system-running --wait) || true
expect_eq "$(systemctl --failed --plain --no-legend)" "" "failed units"
expect_eq "$state" running "state of the system"
expect_ok perfctl ping
expect_eq "$(perfctl list --json)" "[]" "events"
for unit in perfpersistd perfpersist-engine; do
	expect_eq "$(systemctl show --value -p NRestarts $unit)" 0 "restarts of $unit"
done

# log: the lines of both daemons; each event has exactly one line.
log() {
	journalctl --boot --unit perfpersistd --unit perfpersist-engine --output cat --no-pager "$@"
}
log
shipped=$(grep -h '^\[event ' /usr/lib/perfpersist/events.d/*.conf | sed 's/^\[event \(.*\)\]$/\1/')
for event in $shipped; do
	expect_eq "$(log | grep -c "$event")" 1 "lines of the log about $event"
	expect_match "$(log | grep "$event")" "[Ll]ockdown \(confidentiality\)" "what the log says of $event"
done
expect_eq "$(log | grep -ci lockdown)" "$(wc -w <<<"$shipped")" "lines of the log about lockdown"

# Any kind of event.
libc=$(ldconfig -p | sed -nE 's/.*libc\.so\.6 .*x86-64.* => //p' | head -n 1)
for event in sched:sched_switch 'sched:*' cpu-clock minor-faults kprobe:do_sys_openat2 "uprobe:$libc:getppid" mem:0x1000:w; do
	expect_exit 4 perfctl create locked/down -e "$event"
	expect_match "$OUT" "^perfctl: Kernel lockdown \(confidentiality\) .*'locked/down' cannot be recorded" "what is said of $event"
	expect_eq "$(wc -l <<<"$OUT")" 1 "lines of what is said of $event: $OUT"
done
expect_exit 1 perfctl reload
expect_ok perfctl ping
find /run/perfpersist/registry -mindepth 1 -name '[a-z]*' -not -name by-id | grep . && fail "something is left in the registry"
true
