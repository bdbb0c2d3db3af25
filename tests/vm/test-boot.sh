#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The guest itself is a sound machine: it boots, reboots, keeps its disk, matches Debian where the
# recorder depends on it, and can use QEMU's monitor.
. "$(dirname "$0")/lib.sh"

state=$(systemctl is-system-running --wait) || true
echo "boot $PHASE of Linux $(uname -r): $state after $(cut -d ' ' -f 1 /proc/uptime) s"
expect_eq "$(systemctl --failed --plain --no-legend)" "" "failed units"
expect_eq "$state" running "state of the system"

if [ "$PHASE" -eq 1 ]; then
	expect_eq "$(cat /proc/sys/kernel/perf_event_paranoid)" 3 "Debian's default"
	expect_eq "$(cat /sys/devices/system/cpu/online)" 0-1
	# Newer kernels do not count a CPU as possible if the emulated firmware does not list it.
	[[ $(uname -r) != 6.1.* ]] || expect_eq "$(cat /sys/devices/system/cpu/possible)" 0-3
	[ -r /sys/kernel/btf/vmlinux ] || fail "this kernel has no BTF"

	expect_match "$(monitor info status)" "VM status: running"
	expect_match "$(monitor info cpus)" "CPU #1"
	expect_match "$(monitor there is no such command)" "unknown command"

	echo "$(</proc/sys/kernel/random/boot_id)" >/var/tmp/first
	reboot
fi

expect_eq "$PHASE" 2
[ "$(</var/tmp/first)" != "$(</proc/sys/kernel/random/boot_id)" ] || fail "it is the same boot"
