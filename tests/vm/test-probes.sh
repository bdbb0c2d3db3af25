#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2
# vm-kernels: 6.1
#
# Probes of a whole kernel: functions where they begin and return, with arguments, strings and
# filters, record exactly the calls that were made; what cannot be probed is told in a sentence.
# And call chains, which kernels hand out in different ways.
. "$(dirname "$0")/lib.sh"

install_packages perfpersist

# A program that makes N calls of a kind, under a name of its own.
calls=500
cp /usr/bin/perl /usr/local/bin/prober
calls_of() {
	/usr/local/bin/prober -e "$1 for 1..$calls"
}

# create NAME ARGS…
create() {
	local name=$1
	shift
	expect_ok perfctl create "p/$name" -m 256K "$@"
}

records() {
	perfctl show "p/$1" --json | jq .records
}

# fields NAME JQ…: of each of its records.
fields() {
	perfctl reopen "p/$1" -n all --json 2>/dev/null | jq -r ".fields | $2"
}

echo "where a function begins, and where it returns"
create begin -e 'kprobe:__x64_sys_getppid' --filter 'comm == "prober"'
create return -e 'kretprobe:__x64_sys_getppid(parent=retval:s32)' --filter 'comm == "prober"'
create others -e 'kprobe:__x64_sys_getppid' --filter 'comm == "nobody"'
calls_of 'getppid()'
expect_eq "$(records begin) $(records return) $(records others)" "$calls $calls 0" "records of $calls calls"
expect_eq "$(fields return .parent | sort | uniq -c | xargs)" "$calls $$" "what was returned"
expect_eq "$(perfctl show p/begin --json | jq -r .recorder)" probe

echo "arguments, also as strings, and filters on them"
# int do_filp_open(int dfd, struct filename *pathname, …), whose first member is the name.
file='kprobe:do_filp_open(dfd=arg1:s32,name=+0(+0(arg2)):string)'
create names -e "$file" --filter 'name ~ "/nowhere/*"'
create one -e "$file" --filter 'name == "/nowhere/7" && dfd == -100'
create none -e "$file" --filter 'name == "/nowhere/7" && dfd != -100'
create failed -e 'kretprobe:do_filp_open(error=retval:s64)' --filter 'comm == "prober" && error == -2'
# shellcheck disable=SC2016 # perl's variable
calls_of 'open(my $f, "<", "/nowhere/" . ($_ % 10))'
expect_eq "$(records names) $(records one) $(records none)" "$calls $((calls / 10)) 0" "records of $calls files"
expect_eq "$(fields names .name | sort | uniq -c | awk '{ print $1, $2 }' | xargs)" \
	"$(for i in {0..9}; do echo $((calls / 10)) "/nowhere/$i"; done | xargs)" "names"
[ "$(records failed)" -ge $calls ] || fail "of $calls files that are not there $(records failed) were not found"

echo "in a program, and several under one name"
libc=$(ldconfig -p | sed -nE 's/.*libc\.so\.6 .*x86-64.* => //p' | head -n 1)
create several -e "uprobe:$libc:getppid,uretprobe:$libc:getppid(parent=retval:s32),kprobe:__x64_sys_getppid" --comm prober
calls_of 'getppid()'
expect_eq "$(perfctl reopen p/several -n all --json 2>/dev/null | jq -r .event | cut -d : -f 1 | sort | uniq -c | xargs)" \
	"$calls kprobe $calls uprobe $calls uretprobe" "records of $calls calls"

echo "call chains, of kernel and user"
create chain -e cpu-clock -F 500 -g --comm prober
# chains SPACE: how many samples have some of it.
chains() {
	perfctl reopen p/chain -n all --json 2>/dev/null |
		jq -s --arg space "$1" 'map(select(any(.callchain[]; .space == $space))) | length'
}
has_chains() {
	calls_of 'getppid()'
	[ "$(chains kernel)" -gt 0 ] && [ "$(chains user)" -gt 0 ]
}
wait_until 60 has_chains || fail "no call chains: $(perfctl reopen p/chain -n 2)"

echo "nobody else sees them"
expect_eq "$(cat /sys/kernel/tracing/kprobe_events /sys/kernel/tracing/uprobe_events)" "" "probes in tracefs"
paused=$(records begin)
expect_ok perfctl pause p/begin
calls_of 'getppid()'
expect_eq "$(records begin)" "$paused" "records of an event that is paused"
expect_ok perfctl resume p/begin
calls_of 'getppid()'
expect_eq "$(records begin)" $((paused + calls)) "records after that"

echo "what cannot be"
# refused EXIT SENTENCE EVENT
refused() {
	expect_exit "$1" perfctl create p/refused -e "$3"
	expect_match "$OUT" "$2" "what is said of $3"
	expect_eq "$(wc -l <<<"$OUT")" 1 "lines of what is said of $3: $OUT"
}
refused 3 "no function 'no_such_function'" kprobe:no_such_function
refused 3 "no function 'no_such_function'" kretprobe:no_such_function
blacklisted=$(sed -nE 's/^0x[0-9a-f]+-0x[0-9a-f]+\t(asm_exc_[a-z_]+)$/\1/p' /sys/kernel/debug/kprobes/blacklist | head -n 1)
refused 1 "allows no probe at 'kprobe:$blacklisted'.*blacklist" "kprobe:$blacklisted"
refused 2 "No instruction begins at" kprobe:do_sys_openat2+2
expect_exit 3 perfctl show p/refused

expect_ok perfctl delete --all p
no_probes() {
	[ -z "$(cat /sys/kernel/debug/kprobes/list)" ]
}
wait_until 60 no_probes || fail "probes are left: $(cat /sys/kernel/debug/kprobes/list)"
