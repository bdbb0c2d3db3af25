#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --timeout 900
#
# Whatever befalls the daemons, their events go on recording, none loses a record or becomes another
# one, and the daemons come back: SIGKILL, the watchdog, a restart, a stop, an upgrade of the package.
. "$(dirname "$0")/lib.sh"

install_packages perfpersist
# The engine's watchdog is made for kernels that are busy for minutes.
mkdir -p /run/systemd/system/perfpersist-engine.service.d
printf '[Service]\nWatchdogSec=10s\n' >/run/systemd/system/perfpersist-engine.service.d/test.conf
systemctl daemon-reload
systemctl restart perfpersistd

expect_ok perfctl create load/switches -e sched:sched_switch -m 64K
expect_ok perfctl create load/forks -e 'sched:sched_process_*' -m 64K
expect_ok perfctl create load/clock -e cpu-clock -F 100 -m 64K

# It does what can be counted, from here to the end of all this.
(
	wait_until 60 test -e /run/go
	exec perl "$(dirname "$0")/sequence.pl" make
) >/run/made &
maker=$!
# shellcheck disable=SC2064 # that process
trap "kill $maker 2>/dev/null || true" EXIT
expect_ok perfctl create load/exact -e syscalls:sys_enter_umask --pid $maker -m 64K
expect_ok perfctl create load/several -e 'syscalls:sys_*_umask' --pid $maker -m 64K
touch /run/go
events=5

ids=$(perfctl list --json | jq -r '.[] | "\(.id) \(.namespace)/\(.name)"' | sort)

# records: of each event of the load, a line of its id and how much it has recorded. It asks no
# daemon.
records() {
	perfctl list --direct --json | jq -r '.[] | select(.namespace == "load") | "\(.id) \(.records)"' | sort
}

# more_than LINES: each of these events has recorded more by now, and is who it was.
more_than() {
	join <(echo "$1") <(records) | awk -v events=$events '$3 > $2 { n++ } END { exit n != events }'
}

main_pid() {
	systemctl show --value -p MainPID "$1"
}

# is_new UNIT PID: it runs, and is another process than that.
is_new() {
	[ "$(systemctl is-active "$1")" = active ] && [ "$(main_pid "$1")" != "$2" ] && [ "$(main_pid "$1")" != 0 ]
}

# goes_on WHAT: events record, the daemon answers and knows them by the same ids.
goes_on() {
	local before
	before=$(records)
	wait_until 60 more_than "$before" || fail "$1: events do not record any more: $before, $(records)"
	expect_eq "$(perfctl list --json | jq -r '.[] | "\(.id) \(.namespace)/\(.name)"' | sort)" "$ids" "$1: events"
	expect_ok perfctl create load/new -e sched:sched_wakeup -m 16K
	expect_ok perfctl delete load/new
	echo "$1: all go on"
}

sockets() {
	systemctl show -p ActiveEnterTimestampMonotonic perfpersistd.socket perfpersist-engine.socket \
		perfpersist-dumper.socket run-perfpersist-registry.mount
}
lasting=$(sockets)

goes_on "at first"
before=$(records)

for unit in perfpersistd perfpersist-engine; do
	pid=$(main_pid $unit)
	kill -KILL "$pid"
	wait_until 60 is_new $unit "$pid" || fail "$unit is not back after SIGKILL"
	goes_on "SIGKILL of $unit"
	more_than "$before" || fail "counts went back"

	pid=$(main_pid $unit)
	kill -STOP "$pid"
	wait_until 200 is_new $unit "$pid" || fail "no watchdog has acted for $unit"
	expect_match "$(journalctl --unit $unit --output cat)" "Watchdog timeout" "what systemd says of $unit"
	goes_on "SIGSTOP of $unit"
done

pid=$(main_pid perfpersistd) engine=$(main_pid perfpersist-engine)
expect_ok systemctl restart perfpersistd
is_new perfpersistd "$pid" || fail "perfpersistd was not restarted"
wait_until 60 is_new perfpersist-engine "$engine" || fail "its engine was not restarted"
goes_on "systemctl restart"

systemctl daemon-reload
expect_ok systemctl reload perfpersistd
goes_on "daemon-reload and reload"

expect_ok systemctl stop perfpersistd
expect_eq "$(systemctl is-active perfpersistd.service perfpersist-engine.service | xargs || true)" "inactive inactive"
before=$(records)
wait_until 60 more_than "$before" || fail "events stopped with the daemon"
goes_on "systemctl stop, and a client that starts it again"

expect_ok systemctl stop perfpersistd.socket
expect_eq "$(systemctl is-active perfpersistd.service perfpersistd.socket | xargs || true)" "inactive inactive"
expect_exit 5 perfctl ping
before=$(records)
wait_until 60 more_than "$before" || fail "events stopped with the socket"
expect_ok systemctl start perfpersistd
goes_on "systemctl stop of the socket, and start"
lasting=$(sockets)

pid=$(main_pid perfpersistd) engine=$(main_pid perfpersist-engine)
before=$(records)
DEBIAN_FRONTEND=noninteractive apt-get -qq -y install "$BUILD"/deb/2/perfpersist_*.deb >/dev/null
expect_match "$(dpkg-query -W -f '${Version}' perfpersist)" "-2$" "version after the upgrade"
wait_until 60 is_new perfpersistd "$pid" || fail "perfpersistd was not restarted by the upgrade"
wait_until 60 is_new perfpersist-engine "$engine" || fail "its engine was not restarted by the upgrade"
goes_on "upgrade"
more_than "$before" || fail "counts went back"
kill -TERM $maker
wait $maker
count_of() {
	perfctl list --direct --json | jq --arg name "$1" '.[] | select(.name == $name).records'
}
expect_eq "$(count_of exact) $(count_of several)" "$(</run/made) $((2 * $(</run/made)))" "records of what was counted"
echo "$(</run/made) system calls meanwhile: each is recorded"
expect_eq "$(sockets)" "$lasting" "since when sockets and registry are there"
expect_eq "$(systemctl --failed --plain --no-legend)" "" "failed units"
