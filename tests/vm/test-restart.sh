#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --timeout 900
#
# Whatever happens to the daemons, their events keep recording, lose no record and keep their ids,
# and the daemons return: SIGKILL, the watchdog, a restart, a stop, an upgrade of the package.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/recorder.sh"

install_packages perfpersist
# The engine's default watchdog allows for kernels that are busy for minutes.
mkdir -p /run/systemd/system/perfpersist-engine.service.d
printf '[Service]\nWatchdogSec=10s\n' >/run/systemd/system/perfpersist-engine.service.d/test.conf
systemctl daemon-reload
systemctl restart perfpersistd

expect_ok perfctl create load/switches -e sched:sched_switch -m 64K
expect_ok perfctl create load/forks -e 'sched:sched_process_*' -m 64K
expect_ok perfctl create load/clock -e cpu-clock -F 100 -m 64K

# Makes countable calls, from here to the end of the test.
load counted
# shellcheck disable=SC2064 # that process
trap "kill ${maker[counted]} 2>/dev/null || true" EXIT
expect_ok perfctl create load/exact -e syscalls:sys_enter_umask --pid "${maker[counted]}" -m 64K
expect_ok perfctl create load/several -e 'syscalls:sys_*_umask' --pid "${maker[counted]}" -m 64K
begin_load counted
ids=$(ids)

# go_on WHAT: the events do, under the same ids.
go_on() {
	goes_on "$1" load "$ids"
}

# more_than LINES: each has more records by now.
more_than() {
	have_more load "$1"
}
lasting=$(lasting)

go_on "at first"
before=$(records load)

expect_told load/switches

for unit in perfpersistd perfpersist-engine; do
	kill_daemon $unit
	go_on "SIGKILL of $unit"
	more_than "$before" || fail "counts went back"

	pid=$(main_pid $unit)
	kill -STOP "$pid"
	wait_until 200 is_new $unit "$pid" || fail "no watchdog has acted for $unit"
	expect_match "$(journalctl --unit $unit --output cat)" "Watchdog timeout" "what systemd says of $unit"
	go_on "SIGSTOP of $unit"
done

renewed systemctl restart perfpersistd
go_on "systemctl restart"

systemctl daemon-reload
expect_ok systemctl reload perfpersistd
go_on "daemon-reload and reload"

expect_ok systemctl stop perfpersistd
expect_eq "$(systemctl is-active perfpersistd.service perfpersist-engine.service | xargs || true)" "inactive inactive"
before=$(records load)
wait_until 60 more_than "$before" || fail "events stopped with the daemon"
go_on "systemctl stop, and a client that starts it again"

expect_ok systemctl stop perfpersistd.socket
expect_eq "$(systemctl is-active perfpersistd.service perfpersistd.socket | xargs || true)" "inactive inactive"
expect_exit 5 perfctl ping
before=$(records load)
wait_until 60 more_than "$before" || fail "events stopped with the socket"
expect_ok systemctl start perfpersistd
go_on "systemctl stop of the socket, and start"
lasting=$(lasting)

before=$(records load)
upgrade apt-get -qq -y install
go_on "upgrade"
more_than "$before" || fail "counts went back"
end_load counted
made=$(made counted)
expect_records load/exact "$made"
expect_records load/several $((2 * made))
echo "$made system calls meanwhile: each is recorded, or counted as missed where the kernel may"
expect_eq "$(lasting)" "$lasting" "since when sockets and registry are there"
expect_eq "$(systemctl --failed --plain --no-legend)" "" "failed units"
