#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A tp_btf recorder records what the generic one of the same tracepoint does, record by record
# and byte for byte. For each hot tracepoint an event of either kind, side by side, under a
# workload (tp-btf-compare.c).
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"

[ -e /sys/kernel/btf/vmlinux ] || skip "this kernel has no BTF, so that there are no tp_btf recorders"

BUFFER=$((512 * 1024))
CPUS=$(first_cpus 4)
HOT=(raw_syscalls:sys_enter raw_syscalls:sys_exit
	sched:sched_switch sched:sched_waking sched:sched_wakeup
	sched:sched_process_fork sched:sched_process_exec sched:sched_process_exit
	irq:irq_handler_entry irq:irq_handler_exit irq:softirq_entry irq:softirq_exit irq:softirq_raise
	timer:hrtimer_init timer:hrtimer_setup timer:hrtimer_start timer:hrtimer_expire_entry
	timer:hrtimer_expire_exit timer:hrtimer_cancel)

# Those of HOT that this kernel has.
hot_tracepoints() {
	# shellcheck disable=SC2016
	with_tracefs bash -c 'for tp; do
		[ ! -e "/sys/kernel/tracing/events/${tp/://}/id" ] || echo "$tp"
	done' bash "${HOT[@]}"
}

mkdir "$SCRATCH/work"
start_daemon
hot_tracepoints >"$SCRATCH/hot"
"$BIN/many-events" "$INSTANCE" plain "$BUFFER" "$CPUS" generic <"$SCRATCH/hot" >/dev/null
"$BIN/many-events" "$INSTANCE" hot "$BUFFER" "$CPUS" <"$SCRATCH/hot" >/dev/null
taskset -c "$CPUS" "$BIN/tp-workload" "$SCRATCH/work" 3
"$BIN/tp-btf-compare" "$INSTANCE" hot plain | tee "$SCRATCH/compared"

awk -v tracepoints="$(wc -l <"$SCRATCH/hot")" '{
	split($2, equal, "="); split($3, hot, "="); split($4, plain, "=")
	records += equal[2]; only += hot[2]; missed += plain[2]
	fired += equal[2] > 0
}
END {
	printf "%d of %d hot tracepoints fired: %d records are the same, byte for byte; ", fired, tracepoints, records
	printf "%d only tp_btf has, %d only generic, and the other one counts each as missed\n", only, missed
	exit fired < tracepoints - 2 # there may be a machine without interrupts
}' "$SCRATCH/compared" || fail "too few of them fired"
