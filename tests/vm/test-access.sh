#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2
#
# With Debian's perf_event_paranoid of 3 a member of the group perfpersist lists, shows and reads
# the shipped events, live and as copies, and writes nothing. The daemon, the library without the
# daemon, and the registry's files refuse any other user.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/recorder.sh"

event=mce/mce_record

install_packages perfpersist
expect_eq "$(cat /proc/sys/kernel/perf_event_paranoid)" 3
modprobe mce-inject
inject 0x9c00000000000151 0x0 0x0 0 3
make_users

names_for() {
	as "$1" perfctl list --json | jq -r '"\(.[] | .namespace + "/" + .name)"' | sort | xargs
}

# state: no user here may have changed it.
state() {
	perfctl list --json | jq -c '.[] | [.namespace, .name, .id, .state, .max_rate, .set, .records]'
}
expect_eq "$(perfctl show $event --json | jq .records)" 1 "records"
before=$(state)

echo "a member of the group"
expect_match "$(names_for member)" "$event" "what it lists"
expect_eq "$(as member perfctl show $event --json | jq -r .reads)" live
for how in '' --copy; do
	# shellcheck disable=SC2086 # an option, or none
	expect_match "$(as member perfctl reopen $event $how 2>&1)" "MC3: 9c00000000000151.*1 written" "records $how"
done
expect_match "$(as member cat "$registry"/$event/info)" "event=mce:mce_record"
expect_match "$(as member cat "$registry"/$event/stat)" "total records=1 "
expect_ok as member perfctl stat $event --interval-count 1

echo "a user outside the group"
expect_eq "$(names_for stranger)" "" "what it lists"
for verb in "show $event" "reopen $event" "reopen $event --copy" "stat $event" "list mce" "watch mce"; do
	# shellcheck disable=SC2086 # words
	refused 4 "may not read" stranger perfctl $verb
done
refused 4 "only root may" stranger perfctl --direct reopen $event
for file in info stat cpu0; do
	refused 1 "Permission denied" stranger cat "$registry"/$event/$file
done
refused 2 "Permission denied" stranger ls "$registry"/mce

# perf_event_open(2): a software event on the process itself, excluding the kernel.
open_own='my $attr = pack "LLQ5x72", 1, 120, 0, 0, 0, 0, 1 << 5; exit(syscall(298, $attr, 0, -1, -1, 0) < 0)'
perl -e "$open_own" || fail "not even root can open a perf event"

echo "both"
for user in member stranger; do
	refused 4 "may not" $user perfctl create mce/mine -e sched:sched_switch
	refused 4 "may not" $user perfctl create mine/mine -e sched:sched_switch
	for verb in "delete" "pause" "change --max-rate 1/s"; do
		# shellcheck disable=SC2086 # words
		refused 4 "may not" $user perfctl $verb $event
	done
	refused 4 "Only root may" $user perfctl reload
	refused 1 "Permission denied" $user cat "$registry"/$event/cpu0
	refused 1 "Permission denied" $user rm -f "$registry"/$event/cpu0
	refused 255 "Permission denied|Operation not permitted" $user bpftool map dump pinned "$registry"/$event/cpu0
	as $user perl -e "$open_own" && fail "$user can open perf events itself"
done
expect_eq "$(state)" "$before" "events"
