#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# perf stat, perf record and bpftrace count a fixed amount of work, and get the same counts beside
# our events as without them, whichever recorders are on the same tracepoints; our events count the
# same, too. The short check runs both kinds of recorders at once.
. "$(dirname "$0")/../lib.sh"

for tool in perf bpftrace; do
	command -v $tool >/dev/null || skip "$tool is not installed"
done
perf --version >/dev/null 2>&1 || skip "perf does not run here"

N=5000
EVENTS=(raw_syscalls:sys_enter raw_syscalls:sys_exit task:task_rename signal:signal_generate)
WORK=$BIN/coexist-calls
# The number of sched_get_priority_max on this system; only our work calls it.
case $(uname -m) in
x86_64) NUMBER=146 ;;
*) NUMBER=125 ;;
esac

# Tools find tracefs at its usual place, even where the machine has not mounted it.
with_tracefs() {
	unshare --mount --propagation private sh -c \
		'[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"' sh "$@"
}

# Only our system calls and signals; a timer may send a signal while our work runs.
declare -A only=(
	[raw_syscalls:sys_enter]="id == $NUMBER"
	[raw_syscalls:sys_exit]="id == $NUMBER"
	[signal:signal_generate]='sig == 10' # SIGUSR1
)
options=()
for event in "${EVENTS[@]}"; do
	options+=(-e "$event")
	[ -z "${only[$event]-}" ] || options+=(--filter "${only[$event]}")
done

# Each of these runs its arguments and sets COUNTS: how often it saw each of EVENTS.

by_stat() {
	local event
	with_tracefs perf stat -x, -o "$SCRATCH/stat" "${options[@]}" -- "$@"
	COUNTS=
	for event in "${EVENTS[@]}"; do
		COUNTS+="$(awk -F, -v e="$event" '$3 == e { print $1 }' "$SCRATCH/stat") "
	done
}

by_record() {
	local event
	with_tracefs perf record -q --no-bpf-event -m 1024 -o "$SCRATCH/data" "${options[@]}" -- "$@"
	# perf 6.1 writes a record twice now and then; the nanosecond tells.
	with_tracefs perf script --ns -i "$SCRATCH/data" -F tid,cpu,time,event 2>/dev/null |
		sort -u >"$SCRATCH/seen"
	COUNTS=
	for event in "${EVENTS[@]}"; do
		COUNTS+="$(grep -cF "$event: " "$SCRATCH/seen" || true) "
	done
}

by_bpftrace() {
	local event program=
	for event in "${EVENTS[@]}"; do
		program+="tracepoint:$event /pid == cpid"
		[ -z "${only[$event]-}" ] || program+=" && args->${only[$event]}"
		program+="/ { @[\"$event\"] = count(); } "
	done
	# bpftrace cannot pass arguments with spaces to a command; these have none.
	with_tracefs bpftrace -q -e "$program" -c "$*" >"$SCRATCH/seen" 2>"$SCRATCH/errors" ||
		fail "bpftrace: $(<"$SCRATCH/errors")"
	grep "^t/" "$SCRATCH/seen" || true # what the work wrote
	COUNTS=
	for event in "${EVENTS[@]}"; do
		COUNTS+="$(sed -nE "s/^@\[$event\]: //p" "$SCRATCH/seen") "
	done
}

declare -A without=()

echo "of $N each: ${EVENTS[*]}"
for tool in stat record bpftrace; do
	by_$tool "$WORK" $N
	without[$tool]=$COUNTS
	echo "without us: $tool counts $COUNTS"
	# execve renames the work once more.
	expect_match "$COUNTS" "^$N $N $((N + 1)) $N $" "$tool without us"
done

start_daemon

# create NAME-PREFIX OPTION…: an event on each of EVENTS; of system calls only those of the work,
# because all calls could fill any ring before it is read.
create() {
	local prefix=$1 event name filter
	shift
	for event in "${EVENTS[@]}"; do
		filter=()
		[[ $event != raw_syscalls:* ]] || filter=(--filter "${only[$event]}")
		name=t/$prefix-${event#*:}
		perfctl create "$name" -e "$event" -m 4M "${filter[@]}" "$@" >/dev/null
		NAMES+=("$name")
	done
}

# beside WHAT: runs all three tools, while the work reads our events as well.
beside() {
	local tool name
	for tool in stat record bpftrace; do
		by_$tool "$WORK" $N "$INSTANCE" "${NAMES[@]}" >"$SCRATCH/ours" ||
			fail "our events have not recorded it"
		expect_eq "$COUNTS" "${without[$tool]}" "$tool beside $1"
		for name in "${NAMES[@]}"; do
			grep -qE "(^| )$name=$N( |$)" "$SCRATCH/ours" || fail "$name has not recorded $N"
		done
		echo "beside $1: $tool counts $COUNTS, ${#NAMES[@]} events of ours $N each"
	done
}

NAMES=()
create fast
expect_eq "$(perfctl show --json t/fast-sys_enter | jq -r .recorder)" tp_btf "recorder"
! full || beside "tp_btf recorders where there are some"
create generic --generic
expect_eq "$(perfctl show --json t/generic-sys_enter | jq -r .recorder)" generic "recorder"
beside "both recorders"
perfctl delete "${NAMES[@]:0:${#EVENTS[@]}}" >/dev/null
NAMES=("${NAMES[@]:${#EVENTS[@]}}")
! full || beside "generic recorders"

# ── what perf hides ──────────────────────────────────────────────────────────────────────

# When a task that polls a perf event is woken, perf's tracepoints, including ours on them, do not
# see the wakeup, and the kernel does not count it. So the missed count is a lower bound, and says
# so.
field() {
	perfctl show "$1" --json | jq -r ".$2"
}
mkfifo "$SCRATCH/go"
exec {go}<>"$SCRATCH/go" # both ends: to open one waits for the other
spawn sh -c 'exec "$0" 300 <"$1"' "$BIN/polled-wakeups" "$SCRATCH/go" >"$SCRATCH/tid"
wait_until 10 test -s "$SCRATCH/tid"
woken=(-e sched:sched_waking --filter "pid == $(<"$SCRATCH/tid")")
calls=(-e raw_syscalls:sys_enter --comm polled-wakeups)
perfctl create h/truth "${woken[@]}" >/dev/null
perfctl create h/woken "${woken[@]}" --generic >/dev/null
perfctl create h/all-calls "${calls[@]}" >/dev/null
perfctl create h/calls "${calls[@]}" --generic >/dev/null
expect_eq "$(field h/truth recorder) $(field h/woken recorder)" "tp_btf generic" "recorders"
echo >&"$go"
wait "$SPAWNED" || fail "polled-wakeups ended with $?"
truth=$(records_of h/truth) seen=$(records_of h/woken)
echo "a task that polls a perf event was woken $truth times: perf can see $seen, and $(field h/woken missed)+ are counted as missed"
[ "$truth" -ge 150 ] || fail "no task was woken"
[ "$seen" -lt "$truth" ] || fail "perf hides nothing here: this test says nothing"
expect_eq "$(field h/woken missed_at_least) $(field h/truth missed_at_least)" "true false" "a lower bound"
expect_match "$(stat_of h/woken missed)" '^[0-9]+\+$' "missed, in the registry"
expect_match "$(perfctl list h | awk '$2 == "woken" { print $(NF - 1) }')" '^[0-9]+\+$' "missed, in the list"
# System calls are never hidden.
expect_eq "$(field h/calls missed_at_least)" false "system calls"
[ "$(($(records_of h/calls) + $(stat_of h/calls missed)))" -ge "$(records_of h/all-calls)" ] ||
	fail "system calls: $(records_of h/calls) of $(records_of h/all-calls), missed $(stat_of h/calls missed)"
