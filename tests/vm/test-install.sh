#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm-kernels: 6.1 6.12
#
# The packages are installed, the daemon is enabled, the machine is booted: it runs with nothing
# failed, and what is configured has recorded since before basic.target.
. "$(dirname "$0")/lib.sh"

shipped="mce/mce_record mce/ras oom/kills tasks/hung"

# is_sound: as a machine is to be where nothing is wrong.
is_sound() {
	local state
	state=$(systemctl is-system-running --wait) || true
	expect_eq "$(systemctl --failed --plain --no-legend)" "" "failed units"
	expect_eq "$state" running "state of the system"
}

names() {
	perfctl list --json | jq -r '"\(.[] | .namespace + "/" + .name)"' | sort | xargs
}

if [ "$PHASE" -eq 1 ]; then
	install_packages perfpersist libperfpersist0 libperfpersist-dev
	expect_eq "$(dpkg --audit)" ""
	expect_ok systemctl is-active perfpersistd.service perfpersistd.socket run-perfpersist-registry.mount
	expect_ok systemctl enable --now perfpersistd
	expect_match "$(names)" "${shipped// /.*}" "what is shipped"
	echo "after the installation: $(names)"

	echo "reload"
	cat >/etc/perfpersist/events.d/50-boot.conf <<-END
		[event boot/systemd]
		Event=sched:sched_wakeup
		Filter=comm == "systemd"
		Buffer=4M
	END
	expect_ok systemctl reload perfpersistd
	# It has waited.
	expect_match "$(names)" "boot/systemd" "what is there once reload has returned"
	expect_ok systemctl is-active perfpersistd

	printf '[event boot/wrong]\nEvent=no:such_event\n' >/etc/perfpersist/events.d/60-wrong.conf
	expect_exit 1 systemctl reload perfpersistd
	expect_match "$(journalctl --unit perfpersistd --output cat)" "60-wrong.conf.*no:such_event" "what is told of a fault"
	expect_match "$(names)" "boot/systemd" "what is there after a reload with a fault"
	rm /etc/perfpersist/events.d/60-wrong.conf
	expect_ok systemctl reload perfpersistd
	expect_ok perfctl create kept/switches -e sched:sched_switch -m 64K --boot
	reboot
fi

is_sound
expect_eq "$(cat /proc/sys/kernel/perf_event_paranoid)" 3
echo "after a boot: $(names)"
expect_match "$(names)" "boot/systemd.*kept/switches.*${shipped// /.*}" "what records"
for unit in perfpersistd perfpersist-engine; do
	expect_eq "$(systemctl show --value -p NRestarts $unit)" 0 "restarts of $unit"
done

# Times are those of CLOCK_MONOTONIC, systemd's are the same. Systemd itself is woken by READY=1, if
# by nothing before.
basic=$(systemctl show --value -p ActiveEnterTimestampMonotonic basic.target)
start=$(systemctl show --value -p ExecMainStartTimestampMonotonic perfpersistd.service)
ready=$(systemctl show --value -p ActiveEnterTimestampMonotonic perfpersistd.service)
first=$(perfctl reopen boot/systemd -n all --json | jq -s 'map(.time) | min / 1000 | floor')
older=$(perfctl reopen boot/systemd -n all --json | jq -s --argjson basic "$basic" 'map(select(.time / 1000 < $basic)) | length')
echo "started at $((start / 1000)) ms, first record at $((first / 1000)) ms, ready at $((ready / 1000)) ms, basic.target at $((basic / 1000)) ms; $older records are older"
[ "$first" -lt "$basic" ] || fail "no record is older than basic.target"
[ "$ready" -lt "$basic" ] || fail "basic.target did not wait for what is configured"
systemd-analyze critical-chain --no-pager sysinit.target
