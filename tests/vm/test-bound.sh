#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2 --timeout 900
#
# On this kernel: the stacks of user space are in records of all recorders, the largest, too; and the
# integration test of what counts in tasks and cgroups.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/inside.sh"
. "$(dirname "$0")/recorder.sh"

install_packages perfpersist
program=$BUILD/tests/unwound

# stacks NAME N OPTION…: an event; N records at least, all of them with a stack, are of the program that stacks_of runs.
declare -A wanted
stacks() {
	local name=$1
	wanted[$name]=$2
	shift 2
	expect_ok perfctl create "s/$name" --call-graph dwarf --comm unwound -m 4M "$@"
}
stacks call 3 -e syscalls:sys_enter_write
stacks calls 6 -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit
stacks signal 3 -e signal:signal_generate
stacks faults 3 -e page-faults -c 1
stacks kernel 3 -e kprobe:__x64_sys_write
stacks back 3 -e kretprobe:__x64_sys_write
stacks user 3 -e "uprobe:$program:act"
stacks both 6 -e signal:signal_generate -e "uprobe:$program:act" --call-graph dwarf,65528
stacks clock 20 -e cpu-clock -c 1000000
expect_ok "$program" 3 50000000
for name in "${!wanted[@]}"; do
	perfctl reopen "s/$name" -n all >/run/records 2>/dev/null
	all=$(wc -l </run/records)
	n=$(grep -cE '[1-9][0-9]* bytes of user stack' /run/records) || true
	[ "$n" -ge "${wanted[$name]}" ] || fail "$name: $n of $all records have a stack: $(head -n 3 /run/records)"
	echo "$name: $n of $all records have a stack"
	expect_ok perfctl delete "s/$name"
done

inside task
