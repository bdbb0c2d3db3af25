#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Several events under one name share its rings, though the writers interrupt each other. Under load
# every record equals that of an event with this source alone, in the same order, and names its
# source; known calls are complete and in turn (several-check.c). Covers a glob of a whole system, a
# mixture of all kinds, and only generic recorders.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"

tracepoints_lock --shared
start_daemon
cpus=$(first_cpus 2)
tick="uprobe:$BIN/several-check:pp_tick(number=arg1:s64,cpu=arg2:s32)"

# several NAMESPACE EVENTS CALLS BUFFER
several() {
	echo "$2, raw_syscalls:*"
	"$BIN/several-check" "$INSTANCE" "$1" "$2" "$3" "$4" "$cpus"
}

several glob 'sched:*' "$(length 10000 30000)" $((16 << 20))
several mixed "cpu-clock,sched:sched_switch,irq_vectors:local_timer_entry,timer:*,$tick" "$(length 40000 60000)" $((32 << 20))
several generic 'syscalls:sys_enter_close,syscalls:sys_exit_close,irq:*,page-faults,cpu-clock' 30000 $((16 << 20))

# ── as people see it ─────────────────────────────────────────────────────────────────────

perfctl create t/all -e 'sched:sched_process_*' -e "task:task_newtask,$tick" -m 4M >/dev/null
cp /bin/true "$BIN/pp-several-true"
"$BIN/pp-several-true"
tracepoints=$(with_tracefs sh -c 'ls -d /sys/kernel/tracing/events/sched/sched_process_* | wc -l')
expect_eq "$(perfctl show t/all --json | jq .sources)" $((tracepoints + 2)) "sources"
expect_ok perfctl reopen t/all -n all
expect_match "$OUT" 'task:task_newtask: ' "records as text"
expect_match "$OUT" 'sched:sched_process_exec: filename=[^ ]*/pp-several-true' "records as text"
perfctl reopen t/all -n all --json >"$SCRATCH/json"
expect_eq "$(jq -r 'select(.fields.filename // "" | endswith("/pp-several-true")) | .event' "$SCRATCH/json")" \
	sched:sched_process_exec "its name"
