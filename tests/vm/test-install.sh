#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Installs the packages, enables the daemon and boots: the machine runs with nothing failed, and the
# configured events record since before basic.target.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/recorder.sh"

if [ "$PHASE" -eq 1 ]; then
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y install \
		"$BUILD"/deb/{perfpersist,libperfpersist0,libperfpersist-dev}_*.deb >/dev/null
	expect_eq "$(dpkg --audit)" ""
	expect_ok systemctl is-active perfpersistd.service perfpersistd.socket run-perfpersist-registry.mount
	expect_ok systemctl enable --now perfpersistd
	expect_match "$(names)" "${shipped// /.*}" "what is shipped"
	echo "after the installation: $(names)"

	echo "reload"
	configure_early
	expect_ok systemctl reload perfpersistd
	# reload waits.
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

expect_early
systemd-analyze critical-chain --no-pager sysinit.target
