#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The daemon and perfctl refuse each wrong name, event, size, list, right and place with one message
# that says what, why and what to do, and with the documented exit code. Nothing half-made remains.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"
. "$(dirname "$0")/tracepoints.sh"

write_conf 'MaxEvents=80
MaxBuffer=64M
[namespace shared]
Mode=0660
[namespace closed]
Mode=0600
[namespace small]
MaxMemory=256K
MaxEvents=1'
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
	create 2 'not a valid name .*(letters, digits, _ and -, at most 63)' "$name"
done
create 2 '-n 9: not a valid namespace name' x -n 9
create 2 "No namespace can be named 'by-id'.*take another name" by-id/x
create 2 'the event needs a NAME' -e sched:sched_switch
create 2 'a second NAME; create takes one' t/a t/b
create 2 'give one namespace' t/a -n u
create 6 'already.* delete it first, or take another name' t/taken
create 6 'already.* delete it first, or take another name' t/taken -e cpu-clock

echo "events"
refused 2 't/x has nothing to record: -e EVENT is missing' perfctl create t/x
events=()
for ((i = 0; i < 17; i++)); do
	events+=(-e cpu-clock)
done
refused 2 'create takes -e at most 16 times; one -e can have several events' \
	perfctl create t/x "${events[@]}"
create 2 'the event is empty' t/x -e ''
create 2 'not an event that this version knows: write SYSTEM:NAME' t/x -e bogus
create 2 "did you mean 'cpu-clock'" t/x -e cpu-clok
create 2 "'z' in 'cpu-clock:z' is not a modifier" t/x -e cpu-clock:z
create 2 'control character in it, at byte 6; leave it out' t/x -e $'sched\n:x'
create 2 'write it without' t/x -e 'sched:sched switch'
# The message does not repeat control characters that a terminal would obey.
refused 3 'cannot open a  31m b: No such file' perfctl script -i $'a\xc2\x9b31m\x9bb'
create 2 'not the name of a tracepoint: write SYSTEM:NAME' t/x -e 'sched:x!'
create 2 'is no term of a tracepoint: it has aux-action and aux-sample-size' t/x -e sched:../../etc
create 2 'too long: .*are allowed' t/x -e "s:$(printf 'y%.0s' {1..1100})"
create 2 'not the name of a tracepoint' t/x -e "s:$(printf 'y%.0s' {1..200})"
create 1 'a tracepoint is recorded whenever it is reached; write' t/x -e sched:sched_switch:u
create 1 'a group of events .* not recorded: write them without, with commas' t/x -e '{cpu-clock,task-clock}'
create 1 'given by its numbers.*use its name' t/x -e 1:2
create 2 'too large: r has at most 16 digits' t/x -e r12345678901234567
create 1 "no event of this kernel: write SYSTEM:NAME" t/x -e sched_switch
create 3 "no tracepoint 'sched:nosuch'; .perfctl events. shows" t/x -e sched:nosuch
create 3 "no tracepoint 'nosuch:event'" new/x -e nosuch:event
create 1 "does not let programs run on 'ftrace:print' .*; use another" t/x -e ftrace:print
create 2 'leave out the frequency' t/x -F 99
create 2 'leave out the period' t/x -c 1
create 2 'neither kernel, user, both nor dwarf' t/x --call-graph lbr
create 2 'none are recorded; add -g' t/x --max-stack 5
create 2 'longer than the .* that can be recorded here' t/x -g --max-stack 128
create 2 'max-stack 0: not a number above 0' t/x -g --max-stack 0
create 2 'the generic recorder is one for tracepoints; leave it out' t/x -e cpu-clock --generic
create 2 'Hz is more than .* allows; ask for less' t/x -e cpu-clock -F 2000000000
create 2 'more than the kernel can count; ask for less' t/x -e cpu-clock -c 18446744073709551615
create 2 '-c and -F are mutually exclusive; give one of them once' t/x -e cpu-clock -c 1 -F 1
for n in 0 -1 abc 1.5 99999999999999999999; do
	create 2 "-c $n: not a number above 0" t/x -e cpu-clock -c "$n"
done
for n in 0 -1 x 1/m 99999999999999999999; do
	create 2 "max-rate $n: not a number of records a second" t/x --max-rate "$n"
done
create 2 'share and --no-share are mutually exclusive' t/x --share --no-share

echo "several events in one"
create 2 "did you mean 'cpu-clock'" t/x -e cpu-clock,cpu-clok
create 3 "no tracepoint 'sched:nosuch'" t/x -e sched:sched_switch,sched:nosuch
create 2 'an event is missing at byte 11: .*one comma' t/x -e cpu-clock,,cpu-clock
create 2 'an event is missing at byte 1' t/x -e ,cpu-clock
create 1 "too long at 'cpu-clock': one name has at most 16 events" t/x -e "cpu-clock$(printf ',cpu-clock%.0s' {1..17})"
for glob in 'nosuch:*' 'sched:nosuch*' 'sched:[' 'ftrace:*'; do
	create 3 "no tracepoint that matches .*; .perfctl events. shows those" t/x -e "$glob"
done
create 2 'more than a buffer of 4096 holds; give at least -m' t/x -e '*:*' -m 4K

echo "PMUs"
create 3 "needs PMU 'nopmu', which this machine lacks: it has .*software" t/x -e nopmu/event=1/
create 2 'lacks the slash behind its terms: write PMU/TERM=VALUE/' t/x -e software/config=1
create 3 "PMU 'software' has no event or term 'nosuch'" t/x -e software/nosuch=1/
for kind in tracepoint:SYSTEM:NAME breakpoint:mem:ADDRESS kprobe:kprobe:FUNCTION uprobe:uprobe:PATH; do
	[ -d "/sys/bus/event_source/devices/${kind%%:*}" ] || continue
	create 1 "by terms, which is not recorded: write ${kind#*:}" t/x -e "${kind%%:*}/config=1/"
done

echo "breakpoints"
create 2 "has no address: write mem:ADDRESS" t/x -e mem:x
create 2 "'q' in 'mem:0x1000:q' is not a modifier" t/x -e mem:0x1000:q
create 2 'is a breakpoint, which has no frequency' t/x -e mem:0x1000:rw -F 99
create 2 'the name is empty' t/x -e sched:sched_switch --comm ''
create 2 'the length in .* is none: 1, 2, 4 and 8 are' t/x -e mem:0x1000/3
create 2 'not a multiple of the length.*use more, shorter' t/x -e mem:0x1001/8:w

echo "probes"
libc=$(ldd "$BIN/perfctl" | sed -nE 's/.*libc\.so[^ ]* => ([^ ]+).*/\1/p')
malloc=uprobe:$libc:malloc
create 3 'no file /no/such that the daemon can see: write its absolute path' t/x -e uprobe:/no/such:f
create 2 'has no absolute path: write the whole of it' t/x -e uprobe:relative:f
create 2 'no regular file: name a program or library' t/x -e uprobe:/dev/zero:x
create 2 'no regular file: name a program or library' t/x -e uprobe:/etc:x
create 2 'no 64-bit ELF program or library of this machine' t/x -e uprobe:/etc/passwd:x
create 3 "has no function 'nosuch': see .nm" t/x -e "uprobe:$libc:nosuch"
create 2 "behind the function's end" t/x -e "$malloc+0x99999999"
create 2 'no place of an argument: argN, retval, %REGISTER' t/x -e "$malloc(x)"
create 2 'no argument: arg1 to arg6 are in registers' t/x -e "$malloc(arg9)"
create 2 "'u7' in .* no type of an argument" t/x -e "$malloc(a=arg1:u7)"
create 2 'no register of this machine' t/x -e "$malloc(a=%nosuch)"
create 2 'two arguments of .* are called a' t/x -e "$malloc(a=arg1,a=arg2)"
create 2 'retval where the function begins: use kretprobe or uretprobe' t/x -e "$malloc(a=retval)"
create 2 'lacks a part or has too many: write usdt:PATH' t/x -e "usdt:$libc"
create 3 "no static probe that $libc has" t/x -e "usdt:$libc:nosuch"
create 2 'does not name a function' t/x -e kprobe:
create 2 'lacks the bracket behind its arguments' t/x -e 'kprobe:do_exit('
if [ -e /sys/bus/event_source/devices/kprobe ]; then
	echo "  this kernel has kprobes: not tested that it may have none"
else
	create 1 'this kernel has no kprobes .*CONFIG_KPROBES.*; use a tracepoint instead' t/x -e kprobe:do_exit
fi

echo "filters"
# filter CODE REGEX FILTER [OPTION…]
filter() {
	create "$1" "$2" t/x -e "${4:-sched:sched_switch}" --filter "$3"
}
filter 2 'at its end \(byte 9\): behind the field prev_pid one of == ' prev_pid
filter 2 'at its end \(byte 12\): a value is expected' 'prev_pid =='
filter 2 'at its end .*: a field is missing' 'prev_pid == 1 &&'
filter 2 'at its end .*: a field is missing' '! '
filter 2 'at its end .*: a field is missing' ' '
filter 2 'the bracket opened at byte 1 is not closed' '(prev_pid == 1'
filter 2 'at byte 14 .*: no bracket is open' 'prev_pid == 1)'
filter 2 "'=' compares nothing: write ==" 'prev_pid = 1'
filter 2 'the name of a field is expected' '&& prev_pid == 1'
filter 2 'has no end: close it with the same quote' 'comm == "x'
filter 2 'the number is too large' 'prev_pid == 99999999999999999999'
filter 2 'this is no number' 'prev_pid == 0xzz'
filter 2 'text is compared by == != ~ !~ only' 'prev_comm < "x"'
filter 2 'control character in it, at byte 14; leave it out' $'prev_pid == 1\n'
filter 2 'control character in it, at byte 15; leave it out' $'prev_comm == "\xc2\x9b31m"'
filter 2 'a byte in it that is no UTF-8, at byte 15; leave it out, or let a ?' $'prev_comm == "\x9b"'
filter 1 'at most 32 deep' "$(printf '(%.0s' {1..40})prev_pid==1$(printf ')%.0s' {1..40})"
filter 1 'at most 128 ' "$(printf 'pid==1||%.0s' {1..99})pid==1"
filter 1 'at most 255 bytes' "comm == \"$(printf 'y%.0s' {1..300})\""
filter 2 'too long: it has 1[0-9]* bytes, 1023 are allowed' "$(printf 'prev_pid==1||%.0s' {1..100})pid==1"
filter 2 "field 'nosuch', which sched:sched_switch does not have; it can ask for prev_comm, " 'nosuch == 1'
filter 2 "field 'ip', which sched:sched_switch does not have" 'ip == 1'
filter 2 "field 'prev_pid', which .* does not have; it can ask for ip, comm" 'prev_pid == 1' cpu-clock
filter 2 "field 'prev_pid', which " 'prev_pid == 1' sched:sched_switch,sched:sched_waking
filter 2 "'prev_pid' of sched:sched_switch is a number; compare it with a number" 'prev_pid == "x"'
filter 2 "'prev_pid' of sched:sched_switch is a number; compare it with a number" 'prev_pid ~ "x"'
filter 2 "'prev_comm' of sched:sched_switch is text; compare it with text" 'prev_comm == 5'
filter 3 "cgroup '/nosuch' cannot be found under /sys/fs/cgroup.*; see /proc/PID/cgroup" 'cgroup == "/nosuch"'
create 3 "cgroup '/nosuch' cannot be found" t/x --cgroup /nosuch
create 3 "cgroup 'nosuch.service' cannot be found: no slice" t/x --cgroup nosuch.service
create 2 'is neither the name of a unit nor a path from the root of the cgroups' t/x --cgroup a/b
refused 2 'the event that it is for must precede it: -e EVENT' perfctl create t/x --filter 'prev_pid == 1' -e sched:sched_switch
create 2 'an -e has one filter; write \(A\) && \(B\)' t/x -e sched:sched_switch --filter 'prev_pid == 1' --filter 'prev_pid == 2'
for pids in '' abc -1 '1,' '1,,2' 99999999999; do
	create 2 'not a list of process ids such as 12,34' t/x -p "$pids"
done

echo "changing an event"
perfctl create t/second -e sched:sched_switch --share >/dev/null
perfctl create t/clock -e cpu-clock -m 16K >/dev/null
remember
# what_it_is: the whole event except its counts.
what_it_is() {
	perfctl show t/clock --json | jq -S 'del(.records, .bytes, .missed, .limited)'
}
before=$(what_it_is)
refused 2 'nothing to change: --filter, --max-rate, --checkpoint, -c, -F or -m is missing' perfctl change t/clock
refused 2 'change takes one NAME' perfctl change t/clock t/taken --max-rate 5
refused 3 "no event 'nosuch' in the namespace t" perfctl change t/nosuch --max-rate 5
refused 3 "no namespace 'nosuch'" perfctl change nosuch/event --max-rate 5
refused 2 'not a number of records a second' perfctl change t/clock --max-rate x
refused 2 'neither a number of pages nor a size such as 512K' perfctl change t/clock -m x
refused 2 'more than the [0-9]+ that a ring can have; ask for less' perfctl change t/clock -m 2G
refused 1 "over this daemon's limit of 67108864; ask for less" perfctl change t/clock -m 65M
refused 2 'at its end .*: a value is expected' perfctl change t/clock --filter 'pid =='
refused 2 "field 'prev_pid', which " perfctl change t/clock --filter 'prev_pid == 1'
# A change happens completely or not at all.
refused 2 "field 'prev_pid', which " perfctl change t/clock --filter 'prev_pid == 1' -m 64K --max-rate 7
refused 3 "cgroup '/nosuch' cannot be found" perfctl change t/clock --cgroup /nosuch -m 64K
refused 1 'shares its rings with other names, .* delete these, or create it anew' perfctl change t/second --max-rate 5
refused 1 'shares its rings with other names, .* delete these, or create it anew' perfctl change t/taken --max-rate 5
refused 1 'shares its rings with other names, .* delete these, or create it anew' perfctl pause t/second
refused 3 "no event 'nosuch' in the namespace t" perfctl pause t/nosuch
refused 3 "no namespace 'nosuch'" perfctl pause nosuch/
refused 3 "no namespace 'nosuch'" perfctl resume nosuch/event
refused 2 'neither an event name nor NAMESPACE/' perfctl pause 9
refused 2 'no event given: NAME, or NAMESPACE/ for all of one' perfctl resume
refused 2 't/clock wakes no readers; create an event with --wakeup' perfctl reopen t/clock --wakeup
expect_eq "$(what_it_is)" "$before" "the event that was not changed"
perfctl delete t/second t/clock >/dev/null
remember

echo "sizes"
for size in 0 -1 '' K 4T 4KB 1.5M 0x10 99999999999999999999; do
	create 2 'neither a number of pages nor a size such as 512K' t/x -m "$size"
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
create 2 '-a and -C are mutually exclusive' t/x -a -C 0

echo "things that do not exist"
for verb in show reopen delete; do
	refused 3 "no event 'nosuch' in the namespace t" perfctl $verb t/nosuch
	refused 3 "no namespace 'nosuch'" perfctl $verb nosuch/event
	refused 3 'with (the )?id 1' perfctl $verb --id 1
	refused 2 'not a valid event name' perfctl $verb t/9
	refused 2 "not an event's id" perfctl $verb --id x
done
refused 3 "no namespace 'nosuch'" perfctl list nosuch
refused 3 "no namespace 'nosuch'" perfctl top nosuch -n 1
refused 3 "no namespace 'nosuch'" perfctl stat nosuch/event

echo "rights"
refused 4 "no namespace 'mine', and user 65534 may not make one; ask the administrator" \
	as_member perfctl create mine/x -e cpu-clock
refused 4 'may not create, change or delete in the namespace t, .*ask for membership' \
	as_member perfctl create t/x -e cpu-clock
refused 4 'may not create, change or delete in the namespace t, ' as_member perfctl delete t/taken
refused 4 'may not create, change or delete in the namespace t, ' as_member perfctl delete t/nosuch
refused 4 'may not create, change or delete in the namespace shared, ' as_user perfctl create shared/x -e cpu-clock
for who in as_user as_member; do
	for verb in "list closed" "show closed/event" "reopen closed/event" "show closed/nosuch"; do
		# shellcheck disable=SC2086
		refused 4 'may not read the namespace closed, .*ask for membership of that group, or its owner' \
			$who perfctl $verb
	done
done
for verb in "change t/taken --max-rate 5" "pause t/taken" "resume t/taken" "pause t/"; do
	# shellcheck disable=SC2086
	refused 4 'may not create, change or delete in the namespace t, ' as_member perfctl $verb
done
refused 4 'Only root may reload the configuration' as_member perfctl reload
refused 4 "has a probe or a breakpoint, which user 65534 may not set.* Probes= in perfpersistd.conf" \
	as_member perfctl create shared/x -e mem:0x1000
refused 4 'only root may; ask perfpersistd instead, without --direct' as_member perfctl --direct list
# An id reveals as little as a name.
closed_id=$(perfctl show closed/event --json | jq .id)
refused 3 'no event with the id [0-9]+ that you may read' as_member perfctl reopen --id "$closed_id"
refused 3 'none that you may read' as_member perfctl show --id "$closed_id"
# Permitted requests succeed: the same user, where the group has w.
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
# As many as fit beside those of other instances.
tracepoints_lock
full_at=0
while [ $full_at -lt 64 ] &&
	perfctl create "full/n$((full_at + 1))" -e sched:sched_kthread_stop --generic -m 16K >/dev/null 2>&1; do
	full_at=$((full_at + 1))
done
[ $full_at -ge 7 ] || fail "others have the tracepoint for themselves"
remember
create 1 'sched:sched_kthread_stop. already runs 64 BPF programs, .*share an existing event .*delete one on it' \
	full/n65 -e sched:sched_kthread_stop --generic -m 16K
perfctl delete full/n7 >/dev/null
perfctl create full/n65 -e sched:sched_kthread_stop --generic -m 16K >/dev/null
remember
create 1 'already runs 64 BPF programs' full/n7 -e sched:sched_kthread_stop --generic -m 16K
expect_eq "$(perfctl list full --json | jq length)" $full_at "events on one tracepoint"

echo "more than there may be"
create 1 'over the limit of 256 KiB; .*MaxMemory= of its section raised' small/x -m 1M
perfctl create small/one -e sched:sched_switch -m 4K >/dev/null
remember
create 1 'MaxEvents= of its section raised' small/x -m 4K
refused 1 'over the limit of 256 KiB; .*MaxMemory= of its section raised' perfctl change small/one -m 1M
perfctl delete small/one >/dev/null
mapfile -t more < <(seq -f 'full/m%g' $((78 - full_at)))
for name in "${more[@]}"; do
	perfctl create "$name" -e cpu-clock -c 1000000000000 -m 4K -C "$(online_cpu)" >/dev/null
done
remember
create 1 'has 80 events, and 1 more would be over the limit of 80; delete some, or have MaxEvents= raised' t/x
# shellcheck disable=SC2046
perfctl delete $(perfctl list full --json | jq -r '.[] | "\(.namespace)/\(.name)"') >/dev/null
tracepoints_unlock

echo "less memory than it takes"
for ((i = 0; i < 16; i++)); do
	[[ $BUILD != */asan ]] || break # its runtime is what allocates there
	code=0
	NO_MEMORY_AFTER=$i LD_PRELOAD=$BIN/no-memory.so "$BIN/perfctl" --instance "$INSTANCE" pause t/taken 2>"$SCRATCH/stderr" || code=$?
	[ $code -eq 0 ] || one_sentence "$SCRATCH/stderr" "^perfctl: " "pause after $i allocations"
	[ $code -le 6 ] || fail "pause after $i allocations ends with $code"
done
expect_ok perfctl resume t/taken

perfctl delete t/taken closed/event >/dev/null
comes_to_rest
expect_eq "$(standing)" "$REGISTRY/by-id" "the registry at the end"
stop_daemon
echo "$REFUSALS refusals, each one sentence, and nothing left behind by any"
