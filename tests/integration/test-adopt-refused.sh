#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What cannot be adopted or claimed, or not by this user, is refused with the reason, and nothing of it stays,
# in no daemon and not in the registry.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"
. "$(dirname "$0")/adopter.sh"

# library REGEX WHAT…: the library refuses to adopt it.
library() {
	local regex=$1
	shift
	said 1 "$regex" "$ADOPTER" adopt "$SOCKET" no "$@"
	nothing_left "$WHAT"
}

# adopt CODE REGEX EVENT FDS: perfctl does, of the process that has opened perf events.
adopt() {
	refused "$1" "$2" "${AS[@]}" perfctl adopt t/no -e "$3" --pid "$OPENER" --fd "$4"
}
AS=()

start_daemon
perfctl create t/anchor -e sched:sched_process_exec -C 0 -m 64K
perfctl trigger add t/fires --on sched:sched_process_exec --action notify >/dev/null
expect_ok "$ADOPTER" task "$SOCKET" task 1
perfctl reopen --copy t/anchor -n 1 >/dev/null
open_events clock
warm_up
remember

echo "== by the library"
library "perf event 1 of those given: it is not a perf event" file
library "perf event 1 of those given: a BPF program is attached to this perf event already" taken
library "perf events are the most that one event can adopt" many
library "Perf event 0 is dead: its task has ended" dead
library "Perf event 0 has been inherited by a thread or child of its task already" inherited

echo "== of another process"
adopt 2 "is of another kind" sched:sched_process_fork "$FDS"
adopt 2 "'sched:\*' stands for [0-9]+ events" 'sched:*' "$FDS"
adopt 2 "are 2 events" cpu-clock,page-faults "$FDS"
adopt 1 "is a probe" "uprobe:$BIN/adopter:main" "$FDS"
adopt 1 "has no descriptor 999" cpu-clock 999
adopt 1 "it is not a perf event" cpu-clock 1
adopt 1 "it is not a perf event" cpu-clock "$FDS,1"
adopt 2 "not a list of descriptors" cpu-clock 3,x
if "$BIN/adopter" tells; then
	adopt 2 "Perf event 0 counts type [0-9]+, config" page-faults "$FDS"
else
	echo "SKIP: this kernel does not tell what a perf event counts (before 6.6)"
fi
refused 6 "t/task already" perfctl adopt t/task -e cpu-clock --pid "$OPENER" --fd "$FDS"

echo "== by others"
AS=(as_member)
adopt 4 "you may not trace it" cpu-clock "$FDS"
AS=()
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
	said 1 "may not create" as_user "$ADOPTER" adopt "$SOCKET" no faults
	nothing_left "a stranger's"
fi
ended "$OPENER"
adopt 1 "cannot take descriptors from process" cpu-clock "$FDS"

echo "== claims"
refused 4 "may not create, change or delete" as_user perfctl claim t/task -- true
refused 4 "may not create, change or delete" as_member perfctl claim t/anchor -- true
refused 1 "is a trigger" perfctl claim t/fires -- true
refused 3 "no event" perfctl claim t/none -- true
refused 127 "cannot run" perfctl claim t/task -- "$SCRATCH/none"
refused 126 "cannot run" perfctl claim t/task -- "$SCRATCH"
refused 126 "cannot run" env PATH="${SCRATCH%/*}:/proc" "$BIN/perfctl" --instance "$INSTANCE" claim t/task -- "${SCRATCH##*/}"
expect_ok perfctl pause t/task
refused 1 "nobody could resume it" perfctl claim t/task -- true
expect_ok perfctl resume t/task
refused 1 "perf events that its creator opened" perfctl change t/task -c 5
refused 2 "needs a command" perfctl claim t/task
perfctl create t/again -e sched:sched_process_exec -C 0 -m 64K --share >/dev/null
perfctl claim t/anchor -- true 2>"$SCRATCH/shared" && fail "an event with two names is claimed"
expect_match "$(<"$SCRATCH/shared")" "shares its rings with other names"
expect_ok perfctl show t/anchor
echo "$REFUSALS refusals"
