#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2,maxcpus=4 --timeout 900
#
# A CPU is added to the running machine, as a hypervisor does it: all-CPUs events record on it,
# under the same ids, without any restart. Events that fire there before the CPU has a ring are
# counted. Every watcher gets a notice.
. "$(dirname "$0")/lib.sh"

registry=/run/perfpersist/registry
here=$(dirname "$0")
cpu2=/sys/devices/system/cpu/cpu2/online

# The watchdog must not restart a broker that has to wait.
mkdir -p /run/systemd/system/perfpersistd.service.d
printf '[Service]\nWatchdogSec=0\n' >/run/systemd/system/perfpersistd.service.d/test.conf
install_packages perfpersist
expect_ok systemctl start perfpersistd
expect_ok perfctl create add/clock -e cpu-clock -F 1000 -m 64K
expect_ok perfctl create add/switches -e sched:sched_switch -m 64K
expect_ok perfctl create add/wakeups -e 'sched:sched_wak*' -m 64K
expect_ok perfctl create add/umask -e syscalls:sys_enter_umask -m 256K
expect_ok perfctl create add/probe -e kprobe:__x64_sys_umask -m 64K
expect_ok perfctl create add/both -e syscalls:sys_exit_umask,cpu-clock -F 100 -m 256K
expect_ok perfctl create add/first -e cpu-clock -F 100 -m 64K -C 0
everywhere="clock switches wakeups umask probe both"

state() {
	systemctl show -p MainPID perfpersistd perfpersist-engine
	perfctl list --json | jq -r '.[] | "\(.namespace)/\(.name)=\(.id)"' | sort
}

# of_cpu CPU NAME FIELD: reads the CPU's line in the registry's own file.
of_cpu() {
	sed -nE "s/^cpu$1 (.* )?$3=([^ ]+).*/\2/p" "$registry/add/$2/stat"
}

# more_than COUNT NAME: on CPU 2.
more_than() {
	[ "$(of_cpu 2 "$2" records)" -gt "$1" ]
}

# shows NAME FIELD VALUE: as clients see it.
shows() {
	[ "$(perfctl show "add/$1" --json | jq -r ".$2 // \"\"")" = "$3" ]
}

told() {
	jq -r "$1" /run/watched | sort | xargs
}

umasks() {
	taskset -c 2 perl "$here/sequence.pl" make "$1" >/dev/null
}

perfctl watch --json >/run/watched &
watcher=$!
trap 'kill $watcher' EXIT
wait_until 60 grep -q started /run/watched
before=$(state)

echo "a CPU that is added, and not online, changes nothing yet"
shows switches cpus 0-1 || fail "it is on $(perfctl show add/switches)"
expect_eq "$(monitor device_add max-x86_64-cpu,id=cpu-2,socket-id=0,core-id=2,thread-id=0)" ""
wait_until 60 test -e $cpu2
expect_eq "$(<$cpu2)" 0
expect_eq "$(of_cpu 2 switches records)" ""
shows switches away "" || fail "a CPU that never recorded is reported as offline: $(perfctl show add/switches)"

echo "it is online before it has rings: its events are counted"
broker=$(systemctl show --value -p MainPID perfpersistd)
kill -STOP "$broker"
echo 1 >$cpu2
before_that=$(of_cpu 2 umask ringless)
umasks 1000
expect_eq "$(of_cpu 2 umask records)" 0 "records without a ring"
expect_eq "$(of_cpu 2 probe records)" 0 "records without a ring"
lost=$(of_cpu 2 umask ringless)
# Hardly any other process calls it.
expect_match "$((lost - ${before_that:-0}))" '^100[0-9]$' "counted of 1000 calls"
[ "$(of_cpu 2 probe ringless)" -ge 1000 ] || fail "add/probe has counted $(of_cpu 2 probe ringless)"
# Read at once, because it keeps counting.
sed -nE 's/^cpu2 .* missed=([0-9]+) ringless=([0-9]+).*/\1 \2/p' "$registry/add/switches/stat" | awk '$1 >= $2 && $2 { n++ } END { exit n != 1 }' ||
	fail "ringless events are not counted as missed: $(cat "$registry/add/switches/stat")"
kill -CONT "$broker"

echo "and then it records"
for name in $everywhere; do
	wait_until 60 shows "$name" cpus 0-2 || fail "add/$name has no ring there: $(perfctl show "add/$name")"
	shows "$name" lacking "" || fail "add/$name: $(perfctl show "add/$name")"
done
umasks 1000
for name in $everywhere; do
	wait_until 60 more_than 0 "$name" || fail "add/$name does not record on the new CPU"
	now=$(of_cpu 2 "$name" records)
	case $name in umask | probe) umasks 10 ;; esac
	wait_until 60 more_than "$now" "$name" || fail "add/$name has stopped recording there"
	printf 'add/%s: ' "$name" && grep '^cpu2 ' "$registry/add/$name/stat"
done
expect_eq "$(of_cpu 2 umask ringless)" "$lost" "what found no ring, once there is one"
[ "$(of_cpu 2 umask records)" -ge 1010 ] || fail "add/umask has recorded $(of_cpu 2 umask records) of 1010 calls"
shows first cpus 0 || fail "an event that is for CPU 0 is elsewhere: $(perfctl show add/first)"
expect_eq "$(state)" "$before" "daemons and ids"
perfctl reopen add/switches -n all 2>/dev/null | grep '^ *\[002\]' >/dev/null || fail "no record of the new CPU is read"

echo "it goes offline, and comes back"
echo 0 >$cpu2
wait_until 60 shows clock away 2 || fail "CPU 2 is offline, and show does not say so: $(perfctl show add/clock)"
expect_match "$(perfctl show add/clock)" "away +CPU 2, since .* ago" "show"
[ -n "$(of_cpu 2 clock away)" ] || fail "the registry does not say that CPU 2 is offline"
shows first away "" || fail "an event of CPU 0 says that CPU 2 is offline"
now=$(of_cpu 2 clock records)
echo 1 >$cpu2
wait_until 60 more_than "$now" clock || fail "add/clock does not record on it again"
shows clock away "" || fail "CPU 2 is online again, and reported as offline"
expect_eq "$(state)" "$before" "daemons and ids"

told_of_cpu() {
	[ "$(told 'select(.cpu == 2).notice')" = "cpu-offline cpu-online cpu-online" ]
}
wait_until 60 told_of_cpu || fail "of CPU 2 was told: $(told 'select(.cpu == 2).notice')"
for name in $everywhere; do
	[[ " $(told 'select(.notice == "changed" and .event.cpus == "0-2").event.name') " == *" $name "* ]] ||
		fail "a watcher was not told that add/$name has changed: $(</run/watched)"
done
