#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Where policy forbids it the installation starts nothing. Removal ends daemons, registry and
# events, even with a shell in the registry, and keeps the configuration; purging leaves only the
# user.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/recorder.sh"

export DEBIAN_FRONTEND=noninteractive

before=$(programs)

echo "where policy forbids to start anything"
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod +x /usr/sbin/policy-rc.d
install_packages perfpersist
expect_exit 3 systemctl is-active perfpersistd.service
expect_ok systemctl is-enabled perfpersistd.service
rm /usr/sbin/policy-rc.d
expect_ok systemctl enable --now perfpersistd
expect_ok perfctl create load/switches -e sched:sched_switch -m 64K
expect_ok perfctl create kept/switches -e sched:sched_switch -m 64K --boot
[ "$(programs)" -gt "$before" ] || fail "there are no programs: $(bpftool prog list)"

echo "removal"
stay_inside "$registry"/load
apt-get -qq -y remove perfpersist >/dev/null
expect_ended "$before"
expect_kept kept.switches
kill "$inside"

echo "once more"
install_packages perfpersist
expect_ok perfctl show kept/switches

# Another that an administrator may enable.
expect_ok systemctl enable perfpersist-save

echo "purge"
apt-get -qq -y purge perfpersist >/dev/null
expect_purged
