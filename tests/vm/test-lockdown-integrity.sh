#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2 --append lockdown=integrity
#
# On a kernel that protects itself from root, as with secure boot, everything works as elsewhere. If
# it is locked down further while it runs, the daemon refuses new events, and existing ones keep
# recording and stay readable.
. "$(dirname "$0")/lib.sh"

expect_match "$(cat /sys/kernel/security/lockdown)" "\[integrity\]"
if [ "$PHASE" -eq 1 ]; then
	install_packages perfpersist
	reboot
fi

state=$(systemctl is-system-running --wait) || true
expect_eq "$(systemctl --failed --plain --no-legend)" "" "failed units"
expect_eq "$state" running "state of the system"
[ "$(perfctl list --json | jq length)" -ge 4 ] || fail "what is shipped is not there: $(perfctl list)"

libc=$(ldconfig -p | sed -nE 's/.*libc\.so\.6 .*x86-64.* => //p' | head -n 1)
declare -A events=(
	[tracepoint]=sched:sched_switch
	[several]='sched:sched_process_*'
	[sampling]=cpu-clock
	[software]=minor-faults
	[kprobe]='kprobe:filename_lookup(name=+0(+0(arg2)):string)'
	[uprobe]="uprobe:$libc:getpid"
)

more_than() {
	[ "$(perfctl show "lock/$1" --json | jq .records)" -gt "$2" ]
}

# work: fires all of these events.
work() {
	perl -e 'getppid(), fork() || exit for 1..10; system "true"'
	bash -c 'true'
}

records_more() {
	work
	more_than "$@"
}

all_record() {
	local name
	for name in "${!events[@]}"; do
		wait_until 60 records_more "$name" "$(perfctl show "lock/$name" --json | jq .records)" ||
			fail "${events[$name]} does not record"
		[ "$(perfctl reopen "lock/$name" -n 5 --json 2>/dev/null | wc -l)" -eq 5 ] ||
			fail "${events[$name]} is not read"
	done
}

for name in "${!events[@]}"; do
	expect_ok perfctl create "lock/$name" -e "${events[$name]}" -m 64K
done
all_record
expect_ok perfctl change lock/tracepoint --filter 'prev_pid != 0'
all_record
echo "all ${#events[@]} kinds record"

echo confidentiality >/sys/kernel/security/lockdown
expect_exit 4 perfctl create lock/late -e sched:sched_wakeup
expect_match "$OUT" "Kernel lockdown \(confidentiality\)"
all_record
expect_ok systemctl restart perfpersistd
all_record
echo "and go on when the kernel is locked down further"
