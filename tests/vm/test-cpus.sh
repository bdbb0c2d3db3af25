#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 4 --timeout 900
#
# CPUs that are offline when the daemon starts, that leave gaps in the numbers, that carry the link
# of a tracepoint; and that go offline and online unnoticed: while daemons are stopped, hang or die,
# and while the kernel's notices are lost or unavailable. In the end the events match sysfs.
. "$(dirname "$0")/lib.sh"

registry=/run/perfpersist/registry
here=$(dirname "$0")
events="clock switches umask exit both probe"

put() {
	echo "$2" >"/sys/devices/system/cpu/cpu$1/online"
}

# of_cpu CPU NAME FIELD: reads the CPU's line in the registry's text.
of_cpu() {
	sed -nE "s/^cpu$1 (.* )?$3=([^ ]+).*/\2/p" "$registry/c/$2/stat"
}

more_than() {
	[ "$(of_cpu "$1" "$2" records)" -gt "$3" ]
}

# umasks CPU N: calls umask N times there.
umasks() {
	taskset -c "$1" perl "$here/sequence.pl" make "$2" >/dev/null
}

create() {
	expect_ok perfctl create c/clock -e cpu-clock -F 200 -m 256K
	expect_ok perfctl create c/switches -e sched:sched_switch -m 64K
	expect_ok perfctl create c/umask -e syscalls:sys_enter_umask -m 256K
	expect_ok perfctl create c/exit -e 'syscalls:sys_exit_uma*' -m 64K
	expect_ok perfctl create c/both -e syscalls:sys_enter_umask,cpu-clock -F 50 -m 256K
	expect_ok perfctl create c/probe -e kprobe:__x64_sys_umask -m 64K
}

# shows NAME FIELD VALUE: as clients see it.
shows() {
	[ "$(perfctl show "c/$1" --json | jq -r ".$2 // \"\"")" = "$3" ]
}

# records_on CPU: each event does, from now on, and loses no call made there.
records_on() {
	local name records
	wait_until 60 shows clock lacking "" || fail "c/clock lacks CPUs: $(perfctl show c/clock)"
	for name in $events; do
		records=$(of_cpu "$1" "$name" records)
		umasks "$1" 10
		wait_until 60 more_than "$1" "$name" $((records + 9)) || fail "c/$name does not record on CPU $1: $(cat "$registry/c/$name/stat")"
	done
	records=$(of_cpu "$1" umask records)
	umasks "$1" 500
	[ $(($(of_cpu "$1" umask records) - records)) -ge 500 ] || fail "c/umask lacks some of 500 calls on CPU $1: $records, $(cat "$registry/c/umask/stat")"
}

# is_dead CPU: c/clock does not count there, because no daemon has handled the CPU yet.
is_dead() {
	local records
	records=$(of_cpu "$1" clock records)
	umasks "$1" 10000
	[ "$(of_cpu "$1" clock records)" = "$records" ] || fail "c/clock records on CPU $1 by itself"
}

pid_of() {
	systemctl show --value -p MainPID "$1"
}

# restarted UNIT PID: systemd restarted it after that process was killed.
restarted() {
	[ "$(systemctl is-active "$1")" = active ] && [ "$(pid_of "$1")" != "$2" ] && [ "$(pid_of "$1")" != 0 ]
}

logged() {
	grep -q "$1" < <(journalctl --unit perfpersistd --output cat)
}

ids() {
	perfctl list --direct --json | jq -r '.[] | "\(.namespace)/\(.name)=\(.id)"' | sort
}

# drop_in UNIT LINE…
drop_in() {
	mkdir -p "/run/systemd/system/$1.service.d"
	printf '%s\n' '[Service]' "${@:2}" >"/run/systemd/system/$1.service.d/test.conf"
	systemctl daemon-reload
}

# ── offline at the start, and holes ──────────────────────────────────────────────────────

put 1 0
put 3 0
# The watchdog must not restart a daemon that has to wait here.
drop_in perfpersistd WatchdogSec=0
drop_in perfpersist-engine WatchdogSec=0
install_packages perfpersist
expect_ok systemctl start perfpersistd
create
echo "CPUs 1 and 3 are offline at the start"
for name in $events; do
	shows "$name" cpus 0,2 || fail "c/$name: $(perfctl show "c/$name")"
	shows "$name" away "" || fail "c/$name: CPUs that never recorded are reported as offline: $(perfctl show "c/$name")"
done
expect_exit 1 perfctl create c/none -e cpu-clock -C 1
expect_match "$OUT" "CPU 1 is offline" "what is said of a CPU that is offline"
records_on 0
records_on 2

echo "CPU 3 comes, and leaves a hole"
put 3 1
for name in $events; do
	wait_until 60 shows "$name" cpus 0,2-3 || fail "c/$name: $(perfctl show "c/$name")"
done
records_on 3
expect_eq "$(perfctl reopen c/umask -n all 2>/dev/null | awk '{ print $1 }' | sort -u | xargs)" "[000] [002] [003]" "CPUs of what is read"
put 1 1
for name in $events; do
	wait_until 60 shows "$name" cpus 0-3 || fail "c/$name: $(perfctl show "c/$name")"
done
for cpu in 0 1 2 3; do records_on $cpu; done
ids=$(ids)

# ── a link's CPU ─────────────────────────────────────────────────────────────────────────

echo "the CPU that carries a tracepoint's and a probe's link goes offline"
expect_ok perfctl create link/umask -e syscalls:sys_enter_umask -C 1-2 -m 256K
expect_ok perfctl create link/several -e 'syscalls:sys_*_umask' -C 1-2 -m 256K
expect_ok perfctl create link/probe -e kprobe:__x64_sys_umask -C 1-2 -m 256K
expect_ok perfctl create link/hot -e sched:sched_switch -C 1-2 -m 256K

# linked: how many records each has on CPUs 1 and 2.
linked() {
	local name
	for name in umask several probe; do
		sed -nE 's/^cpu([12]) records=([0-9]+) .*/\1 \2/p' "$registry/link/$name/stat"
	done | awk '{ n[$1] += $2 } END { print n[1] + 0, n[2] + 0 }'
}

# calls_on CPU N: N calls there give N records of the single event, N of the probe, and 2 N of the
# event with several sources.
calls_on() {
	local before after
	read -r -a before < <(linked)
	umasks "$1" "$2"
	read -r -a after < <(linked)
	expect_match "$((after[$1 - 1] - before[$1 - 1] - 4 * $2))" '^[0-9]$' "records beyond those of $2 calls on CPU $1"
}

hot_on_2() {
	sed -nE 's/^cpu2 records=([0-9]+) .*/\1/p' "$registry/link/hot/stat"
}

hot_goes_on() {
	[ "$(hot_on_2)" -gt "$1" ]
}
calls_on 1 200
calls_on 2 200
put 1 0
calls_on 2 200
wait_until 60 hot_goes_on "$(hot_on_2)" || fail "link/hot has stopped on CPU 2"
put 1 1
calls_on 1 200
calls_on 2 200
expect_ok perfctl delete link/umask link/several link/probe link/hot
records_on 1

# ── nobody is there ──────────────────────────────────────────────────────────────────────

echo "it goes and comes while no daemon runs"
expect_ok systemctl stop perfpersistd.socket perfpersistd
put 2 0
put 2 1
is_dead 2
expect_ok systemctl start perfpersistd
records_on 2

echo "it goes while no daemon runs"
expect_ok systemctl stop perfpersistd.socket perfpersistd
put 2 0
expect_ok systemctl start perfpersistd
shows clock away 2 || fail "CPU 2 is not away: $(perfctl show c/clock)"
expect_match "$(perfctl show c/clock)" "away +CPU 2, since .* ago" "show"

echo "it comes while no daemon runs"
expect_ok systemctl stop perfpersistd.socket perfpersistd
put 2 1
expect_ok systemctl start perfpersistd
shows clock away "" || fail "CPU 2 is away: $(perfctl show c/clock)"
records_on 2

for unit in perfpersistd perfpersist-engine; do
	echo "it goes and comes while $unit hangs"
	pid=$(pid_of $unit)
	kill -STOP "$pid"
	put 3 0
	put 3 1
	is_dead 3
	kill -CONT "$pid"
	records_on 3

	echo "it goes, $unit is killed, it comes"
	put 3 0
	kill -KILL "$pid"
	put 3 1
	wait_until 60 restarted $unit "$pid" || fail "$unit is not back"
	records_on 3
done

# ── nobody tells ─────────────────────────────────────────────────────────────────────────

echo "more is told than a broker that hangs can be told"
pid=$(pid_of perfpersistd)
kill -STOP "$pid"
for ((i = 0; i < 2000; i++)); do
	echo online >/sys/devices/system/cpu/cpu0/uevent
done
put 2 0
put 2 1
is_dead 2
kill -CONT "$pid"
records_on 2
logged "notices about CPUs overflowed" || fail "it was not lost on the way"

echo "the kernel's word cannot be had"
drop_in perfpersistd WatchdogSec=0 RestrictAddressFamilies= RestrictAddressFamilies=AF_UNIX
expect_ok systemctl restart perfpersistd
logged "notices about CPUs are not available" || fail "the broker has it: $(journalctl --unit perfpersistd --output cat | tail -n 20)"
put 2 0
wait_until 60 shows clock away 2 || fail "CPU 2 is not away: $(perfctl show c/clock)"
put 2 1
wait_until 60 shows clock away "" || fail "CPU 2 is away: $(perfctl show c/clock)"
records_on 2

echo "and it goes and comes before anybody looks"
put 2 0
put 2 1
records_on 2

for cpu in 0 1 2 3; do records_on $cpu; done
expect_eq "$(ids)" "$ids" "ids"
expect_eq "$(systemctl --failed --plain --no-legend)" "" "failed units"
