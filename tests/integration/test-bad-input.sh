#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Each wrong name, event, size, list, right and place is refused with one sentence that says
# what, why and what to do, and with the documented exit code; nothing half-made stays behind.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"

write_conf 'MaxEvents=80
MaxBuffer=64M
[namespace shared]
Mode=0660
[namespace closed]
Mode=0600'
start_daemon

warm_up
perfctl create t/taken -e sched:sched_switch >/dev/null
perfctl create closed/event -e sched:sched_switch >/dev/null
remember

# create CODE REGEX NAME OPTION…: a tracepoint, unless an option says otherwise.
create() {
	local code=$1 regex=$2
	shift 2
	case " $* " in *" -e "*) ;; *) set -- "$@" -e sched:sched_switch ;; esac
	refused "$code" "$regex" perfctl create "$@"
}

echo "names"
long=$(printf 'x%.0s' {1..64})
for name in 9lives a.b a/b/c /x x/ 'sp ace' +new-1 .. a/.. "$long" "$long/x" "t/$long" t/9 ''; do
	create 2 'not a name .*(letters, digits, _ and -, at most 63)' "$name"
done
create 2 '-n 9: not a name of a namespace' x -n 9
create 2 "No namespace can be named 'by-id'.*take another name" by-id/x
create 2 'the event needs a NAME' -e sched:sched_switch
create 2 'one event has one NAME' t/a t/b
create 2 'one namespace' t/a -n u
create 6 'already.* delete it first, or take another name' t/taken
create 6 'already.* delete it first, or take another name' t/taken -e cpu-clock

echo "events"
refused 2 'what shall t/x record\? -e EVENT is missing' perfctl create t/x
refused 2 'an event has one -e' perfctl create t/x -e cpu-clock -e task-clock
create 2 'what shall t/x record\? -e EVENT is missing' t/x -e ''
create 2 'not an event that this version knows: write SYSTEM:NAME' t/x -e bogus
create 2 "did you mean 'cpu-clock'" t/x -e cpu-clok
create 2 "'z' in 'cpu-clock:z' is not a modifier" t/x -e cpu-clock:z
create 2 'a space or an unprintable character at byte 6' t/x -e $'sched\n:x'
create 2 'write it without' t/x -e 'sched:sched switch'
create 2 'not the name of a tracepoint: write SYSTEM:NAME' t/x -e 'sched:x!'
create 1 'a PMU with terms.*use one of the named events' t/x -e sched:../../etc
create 2 'too long: .*are allowed' t/x -e "s:$(printf 'y%.0s' {1..1100})"
create 2 'not the name of a tracepoint' t/x -e "s:$(printf 'y%.0s' {1..200})"
create 1 'a tracepoint is recorded whenever it is reached; write' t/x -e sched:sched_switch:u
create 1 'create one event for each tracepoint' t/x -e 'sched:*'
create 1 'create one event for each' t/x -e sched:sched_switch,cpu-clock
create 1 'create one event for each member' t/x -e '{cpu-clock,task-clock}'
create 1 'is a probe.*use a tracepoint' t/x -e kprobe:do_exit
create 1 'raw hardware event.*use' t/x -e r1a8
create 1 'given by its numbers.*use its name' t/x -e 1:2
create 1 'a breakpoint.*use a tracepoint' t/x -e mem:0x1000
create 3 "no tracepoint 'sched:nosuch'; .perf list tracepoint. shows" t/x -e sched:nosuch
create 3 "no tracepoint 'nosuch:event'" new/x -e nosuch:event
create 2 'leave out the frequency' t/x -F 99
create 2 'leave out the period' t/x -c 1
create 1 'call chains; leave them out' t/x -g
create 2 'the generic recorder is one for tracepoints; leave it out' t/x -e cpu-clock --generic
create 2 'Hz is more than .* allows; ask for less' t/x -e cpu-clock -F 2000000000
create 2 'more than the kernel can count; ask for less' t/x -e cpu-clock -c 18446744073709551615
create 2 'an event has one of them, once' t/x -e cpu-clock -c 1 -F 1
for n in 0 -1 abc 1.5 99999999999999999999; do
	create 2 "-c $n: not a number above 0" t/x -e cpu-clock -c "$n"
done

echo "sizes"
for size in 0 -1 '' K 4T 4KB 1.5M 0x10 99999999999999999999; do
	create 2 'neither a number of pages nor a size as 512K' t/x -m "$size"
done
create 2 'more than the [0-9]+ that a ring can have; ask for less' t/x -m 2G
create 1 "over this daemon's limit of 67108864; ask for less, or have MaxBuffer= raised" t/x -m 65M
create 2 'more than a buffer of 4096 holds; give at least -m 16K' t/x -e sched:sched_process_exec --generic -m 1

echo "CPUs"
for cpus in abc '0,' ',0' '0,,1' 1-0 0- -1 '0 1' 0x0; do
	create 2 'not a list of CPUs; write one like 0-3,8' t/x -C "$cpus"
done
create 2 'the list of CPUs is empty' t/x -C ''
create 2 'not a list of CPUs that Linux can have; write' t/x -C 99999
create 2 'cannot have CPU 4000; its CPUs are' t/x -C 0,4000
create 2 'the list of CPUs ".*too long: .* 1023 are allowed' t/x -C "$(seq -s, 0 999)"
create 2 'all CPUs or some' t/x -a -C 0

echo "what is not there"
for verb in show reopen delete; do
	refused 3 "no event 'nosuch' in the namespace t" perfctl $verb t/nosuch
	refused 3 "no namespace 'nosuch'" perfctl $verb nosuch/event
	refused 3 'with (the )?id 1' perfctl $verb --id 1
	refused 2 'not a name of an event' perfctl $verb t/9
	refused 2 "not an event's id" perfctl $verb --id x
done
refused 3 "no namespace 'nosuch'" perfctl list nosuch

echo "rights"
refused 4 "no namespace 'mine', and user 65534 may not make one; ask the administrator" \
	as_member perfctl create mine/x -e cpu-clock
refused 4 'may not create or delete in the namespace t, .*ask for membership' \
	as_member perfctl create t/x -e cpu-clock
refused 4 'may not create or delete in the namespace t, ' as_member perfctl delete t/taken
refused 4 'may not create or delete in the namespace t, ' as_member perfctl delete t/nosuch
refused 4 'may not create or delete in the namespace shared, ' as_user perfctl create shared/x -e cpu-clock
for who in as_user as_member; do
	for verb in "list closed" "show closed/event" "reopen closed/event" "show closed/nosuch"; do
		# shellcheck disable=SC2086
		refused 4 'may not read the namespace closed, .*ask for membership of that group, or its owner' \
			$who perfctl $verb
	done
done
refused 4 'only root may; ask perfpersistd instead, without --direct' as_member perfctl --direct list
# An id tells as little as a name.
closed_id=$(perfctl show closed/event --json | jq .id)
refused 4 'may not read the namespace closed' as_member perfctl reopen --id "$closed_id"
refused 3 'none that you may read' as_member perfctl show --id "$closed_id"
# What may be done is done: the same user, where the group has w.
as_member perfctl create shared/x -e cpu-clock >/dev/null
as_member perfctl delete shared/x >/dev/null

echo "hardware"
if perfctl create t/cycles -e cycles >/dev/null 2>&1; then
	perfctl delete t/cycles >/dev/null
	echo "  this machine has counters: nothing to refuse"
else
	create 1 'cannot count or sample .cycles. .*cpu-clock. works everywhere' t/x -e cycles
fi

echo "the 65th program on one tracepoint"
# Shared by all who use that tracepoint: not with another run of this test beside us.
exec {lock}<"$0"
flock "$lock"
for n in {1..64}; do
	perfctl create "full/n$n" -e sched:sched_process_hang --generic -m 16K >/dev/null
done
remember
create 1 'sched:sched_process_hang. already runs 64 BPF programs, .*delete an event on it' \
	full/n65 -e sched:sched_process_hang --generic -m 16K
perfctl delete full/n7 >/dev/null
perfctl create full/n65 -e sched:sched_process_hang --generic -m 16K >/dev/null
remember
create 1 'already runs 64 BPF programs' full/n7 -e sched:sched_process_hang --generic -m 16K
expect_eq "$(perfctl list full --json | jq length)" 64 "events on one tracepoint"

echo "more events than there may be"
mapfile -t more < <(seq -f 'full/m%g' 14)
for name in "${more[@]}"; do
	perfctl create "$name" -e cpu-clock -c 1000000000000 -m 4K -C "$(online_cpu)" >/dev/null
done
remember
create 1 "80 events, which is this daemon's limit; delete some, or have MaxEvents= raised" t/x
# shellcheck disable=SC2046
perfctl delete $(perfctl list full --json | jq -r '.[] | "\(.namespace)/\(.name)"') >/dev/null
flock --unlock "$lock"

perfctl delete t/taken closed/event >/dev/null
wait_until 20 settled
expect_eq "$(standing)" "$REGISTRY/by-id" "the registry at the end"
stop_daemon
echo "$REFUSALS refusals, each one sentence, and nothing left behind by any"
