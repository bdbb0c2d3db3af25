#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Where policy forbids it nothing is started. Removal ends daemons, registry and events, also with a
# shell in there, and leaves what was configured; purging leaves nothing but the user.
. "$(dirname "$0")/lib.sh"

export DEBIAN_FRONTEND=noninteractive

programs() {
	bpftool prog list | grep -c 'tracing\|tracepoint\|perf_event' || true
}
before=$(programs)

as_before() {
	[ "$(programs)" -eq "$before" ]
}

# left FOLDER…: files of that name which are not the test's, and of which no log tells.
left() {
	find "$@" -xdev -name '*perfpersist*' -not -path '/run/vm/*' -not -path '/run/systemd/*' -not -path '/var/log/*'
}

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
(cd /run/perfpersist/registry/load && exec sleep 1000) &
shell=$!
wait_until 20 test /proc/$shell/cwd -ef /run/perfpersist/registry/load
apt-get -qq -y remove perfpersist >/dev/null
expect_eq "$(findmnt -n -o TARGET -t bpf | grep perfpersist || true)" "" "mounts"
wait_until 60 as_before || fail "events go on: $(bpftool prog list)"
expect_eq "$(pgrep -l perfpersist || true)" "" "processes"
expect_eq "$(systemctl list-units --all --plain --no-legend 'perfpersist*' 'run-perfpersist*' | grep -v not-found || true)" "" "units"
expect_eq "$(systemctl --failed --plain --no-legend)" "" "failed units"
[ -e /etc/perfpersist/perfpersistd.conf ] || fail "configuration went with the package"
[ -e /var/lib/perfpersist/events.d/kept.switches.conf ] || fail "what is to be after a reboot went with the package"
kill $shell

echo "once more"
install_packages perfpersist
expect_ok perfctl show kept/switches

echo "purge"
apt-get -qq -y purge perfpersist >/dev/null
expect_eq "$(left / /run)" "" "what is left"
expect_ok getent passwd perfpersist # as Debian's users do
