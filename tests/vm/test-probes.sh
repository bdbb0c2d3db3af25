#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2
#
# Probes on a complete kernel: at the entry and return of functions, with arguments, strings and
# filters, they record exactly the calls that were made; the daemon refuses other places with one
# message. Also call chains, which kernels report in different ways.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/recorder.sh"

install_packages perfpersist

calls=500

# create NAME ARGS…
create() {
	local name=$1
	shift
	expect_ok perfctl create "p/$name" -m 256K "$@"
}

recorded() {
	perfctl show "p/$1" --json | jq .records
}

echo "where a function begins, and where it returns"
create begin -e 'kprobe:__x64_sys_getppid' --filter 'comm == "prober"'
create return -e 'kretprobe:__x64_sys_getppid(parent=retval:s32)' --filter 'comm == "prober"'
create others -e 'kprobe:__x64_sys_getppid' --filter 'comm == "nobody"'
calls_of $calls 'getppid()'
expect_eq "$(recorded begin) $(recorded return) $(recorded others)" "$calls $calls 0" "records of $calls calls"
expect_eq "$(fields p/return .parent | sort | uniq -c | xargs)" "$calls $$" "what was returned"
expect_eq "$(perfctl show p/begin --json | jq -r .recorder)" probe

echo "arguments, also as strings, and filters on them"
create names -e "$lookups" --filter 'name ~ "/nowhere/*"'
create one -e "$lookups" --filter 'name == "/nowhere/7" && dfd == -100'
create none -e "$lookups" --filter 'name == "/nowhere/7" && dfd != -100'
create failed -e 'kretprobe:filename_lookup(error=retval:s32)' --filter 'comm == "prober" && error == -2'
look_nowhere $calls
expect_eq "$(recorded names) $(recorded one) $(recorded none)" "$calls $((calls / 10)) 0" "records of $calls files"
expect_nowhere p/names $calls
[ "$(recorded failed)" -ge $calls ] || fail "of $calls files that are not there $(recorded failed) were not found"

echo "in a program, and several under one name"
libc=$(ldconfig -p | sed -nE 's/.*libc\.so\.6 .*x86-64.* => //p' | head -n 1)
create several -e "uprobe:$libc:getppid,uretprobe:$libc:getppid(parent=retval:s32),kprobe:__x64_sys_getppid" --comm prober
calls_of $calls 'getppid()'
expect_eq "$(perfctl reopen p/several -n all --json 2>/dev/null | jq -r .event | cut -d : -f 1 | sort | uniq -c | xargs)" \
	"$calls kprobe $calls uprobe $calls uretprobe" "records of $calls calls"

echo "call chains, of kernel and user"
create chain -e cpu-clock -F 500 -g --comm prober
# chains SPACE: how many samples have addresses there.
chains() {
	perfctl reopen p/chain -n all --json 2>/dev/null |
		jq -s --arg space "$1" 'map(select(any(.callchain[]; .space == $space))) | length'
}
has_chains() {
	calls_of $calls 'getppid()'
	[ "$(chains kernel)" -gt 0 ] && [ "$(chains user)" -gt 0 ]
}
wait_until 60 has_chains || fail "no call chains: $(perfctl reopen p/chain -n 2)"

echo "no other event sees them"
expect_eq "$(cat /sys/kernel/tracing/kprobe_events /sys/kernel/tracing/uprobe_events)" "" "probes in tracefs"
paused=$(recorded begin)
expect_ok perfctl pause p/begin
calls_of $calls 'getppid()'
expect_eq "$(recorded begin)" "$paused" "records of an event that is paused"
expect_ok perfctl resume p/begin
calls_of $calls 'getppid()'
expect_eq "$(recorded begin)" $((paused + calls)) "records after that"

echo "impossible probes"
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
