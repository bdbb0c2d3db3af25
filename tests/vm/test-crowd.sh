#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2 --memory 2048 --timeout 1200
#
# Sixteen tasks on two CPUs make numbered system calls, in each of the kernel's preemption modes;
# each call is recorded or counted as missed (calls-crowd.c). Events on all system calls, on one, on
# several under one name, and on sched_switch miss at most 1 %. Emulation makes it likely that a
# task is preempted inside a recorder; on hardware that is rare.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/recorder.sh"

install_packages perfpersist
expect_ok systemctl start perfpersistd
preempt=/sys/kernel/debug/sched/preempt
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
tasks=16 rounds=$(length 2000 5000)

# crowd NAME CALLS [fifo]: sets made and present.
crowd() {
	local name=$1
	expect_ok "$BUILD/tests/calls-crowd" "" c "$name" $tasks "$rounds" "${@:2}"
	read -r _ made _ present _ <<<"$OUT"
	printf '  %-28s %s, by %s\n' "$mode, $name${3:+ ($3)}" "$OUT" "$(perfctl show "c/$name" --json | jq -r .recorder)"
}

# counted NAME: that event missed at most 1 %, by its own count.
counted() {
	local records missed
	read -r records missed < <(perfctl show "c/$1" --json | jq -r '"\(.records) \(.missed)"')
	printf '  %-28s records %s missed %s\n' "$mode, $1" "$records" "$missed"
	[ "$missed" -le $(((records + missed) / 100)) ] || fail "of $1 $missed are missed beside $records ($mode)"
}

# whole: at most 1 % of the calls is absent.
whole() {
	[ $((made - present)) -le $((made / 100)) ] || fail "of $made calls only $present are there ($mode)"
}

events=(close dup fsync fchdir getpgid syncfs fdatasync getsid)
# of N: their tracepoints, as an argument of -e.
of() {
	local joined
	printf -v joined 'syscalls:sys_enter_%s,' "${events[@]:0:$1}"
	echo "${joined%,}"
}

# crowds [fifo]
crowds() {
	local ours='comm ~ "calls-crowd*"'
	expect_ok perfctl create c/raw -e raw_syscalls:sys_enter --filter "$ours" -m 32M
	expect_ok perfctl create c/switches -e sched:sched_switch -m 1M
	crowd raw 1 "$@"
	whole
	expect_ok perfctl create c/one -e syscalls:sys_enter_close --filter "$ours" -m 32M
	crowd one 1 "$@"
	whole
	counted switches
	expect_ok perfctl delete c/raw c/one c/switches
	expect_ok perfctl create c/four -e "$(of 4)" --filter "$ours" -m 32M
	crowd four 4 "$@"
	whole
	expect_ok perfctl delete c/four
	expect_ok perfctl create c/eight -e "$(of 8)" --filter "$ours" -m 64M
	crowd eight 8 "$@"
	whole
	expect_ok perfctl delete c/eight
}

echo "Linux $(uname -r)"
# The file lists the modes that this kernel supports.
read -r -a modes < <(grep -owE 'lazy|full' $preempt 2>/dev/null | xargs)
for mode in "${modes[@]:-as built}"; do
	[ "$mode" = "as built" ] || echo "$mode" >$preempt
	crowds
	crowds fifo
done
