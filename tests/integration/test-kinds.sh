#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The kinds of events that `perf list` only describes: breakpoints, probes and their arguments, raw
# events and PMUs' terms. A program that prints what it does (probe-target.c) fires each event a
# known number of times, and the event must record exactly that; or the daemon refuses the event
# with a message that says why.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"
. "$(dirname "$0")/../refused.sh"

PMUS=/sys/bus/event_source/devices
N=50 # calls
TARGET=$BIN/probe-target

start_daemon
# A processor has only a few registers for breakpoints, and test-kinds takes all of them.
alone_with breakpoints

# records_in NAME FIELD…: prints those fields of each record, oldest first, separated by spaces. (jq
# would round large numbers.)
records_in() {
	local name=$1 field expression=
	shift
	perfctl reopen "k/$name" -n all --json 2>/dev/null >"$SCRATCH/records"
	for field in "$@"; do
		expression+="s/^([^{]*)(\{.*\"$field\":\"?(-?[0-9a-zA-Z_-]+)[\",}].*)/\1\3 \2/; t $field; s/^/none /; : $field; "
	done
	sed -E "$expression s/ \{.*//" "$SCRATCH/records"
}

expect_records() {
	expect_eq "$(perfctl show "k/$1" --json | jq -r '"\(.records) \(.missed)"')" "$2 ${3:-0}" "records and missed of $1"
}

# run_target: the target makes its calls; they are in $SCRATCH/calls.
start_target() {
	coproc PIPE { exec "$TARGET" $N; }
	_spawned+=("$PIPE_PID")
	# shellcheck disable=SC2034 # usdt: whether it was built with static probes
	read -r variable function usdt <&"${PIPE[0]}"
	target=$PIPE_PID
}

run_target() {
	echo >&"${PIPE[1]}"
	cat <&"${PIPE[0]}" >"$SCRATCH/calls"
	wait "$target"
	expect_eq "$(wc -l <"$SCRATCH/calls")" $N "calls"
}

calls() {
	cut -d ' ' -f "$1" "$SCRATCH/calls"
}

# ── breakpoints and probes ───────────────────────────────────────────────────────────────

# create NAME EVENT [OPTION…]
create() {
	perfctl create "k/$1" -e "$2" -m 64K "${@:3}" >/dev/null
}

names=(write execute entry fifth return bare)
watched=(write execute)
if breakpoints_are_dead; then
	watched=()
	echo "SKIP: records of breakpoints: this machine's never fire, perf says"
fi
start_target
create write "mem:$variable/8:w"
create execute "mem:$function:x"
create entry "uprobe:$TARGET:pp_work(number=arg1:s32,text=+0(arg2):string,large=arg3:u64,byte=arg1:u8)"
perfctl create k/fifth -e "uprobe:$TARGET:pp_work(number=arg1:s32)" -m 64K \
	--filter "number < 0 && pid == $target" >/dev/null
create return "uretprobe:$TARGET:pp_work(result=retval:u64)"
create bare "uprobe:$TARGET:pp_work"
if [ "$usdt" = usdt ]; then
	names+=(static)
	create static "usdt:$TARGET:pp:step"
else
	echo "built without sys/sdt.h (systemtap-sdt-dev): no static probe to try"
fi
run_target

for name in "${watched[@]}"; do
	expect_records "$name" $N
	expect_eq "$(records_in "$name" tid period | sort | uniq -c | xargs)" "$N $target 1" "records of $name"
done
if [ ${#watched[@]} -gt 0 ]; then
	expect_eq "$(records_in write addr | uniq)" "$variable" "address of write"
	expect_eq "$(records_in execute ip | uniq)" "$function" "address of execute"
fi

expect_records entry $N
diff <(records_in entry number text large) <(calls 1-3) || fail "the uprobe's records differ from the arguments"
diff <(records_in entry byte) <(calls 1 | awk '{ print ($1 % 256 + 256) % 256 }') || fail "an argument cut to a byte"
expect_eq "$(records_in entry __probe_ip tid | uniq)" "$((function)) $target" "place of the uprobe"
expect_records fifth $((N / 2))
diff <(records_in fifth number) <(calls 1 | grep '^-') || fail "a uprobe with a filter"
expect_records bare $N
expect_eq "$(records_in bare __probe_ip | uniq -c | xargs)" "$N $((function))" "a uprobe without arguments"
diff <(records_in return result) <(calls 4) || fail "the uretprobe's records differ from the results"
expect_eq "$(perfctl show k/return --json | jq .records)" $N "records of return"
if [ "$usdt" = usdt ]; then
	expect_records static $N
	diff <(records_in static arg1 arg2) <(calls 1,3) || fail "the static probe's records differ from the arguments"
fi
echo "${watched[*]:+breakpoints (write, execute), }uprobe, uretprobe${usdt:+, $usdt}: $N calls, each as it was made"
perfctl delete "${names[@]/#/k/}" >/dev/null


# ── the kernel's functions ───────────────────────────────────────────────────────────────

comes_to_rest
warm_up
remember
if [ -e $PMUS/kprobe ]; then
	# Records only this shell: all openings together fill any ring.
	create kprobe 'kprobe:do_sys_openat2(dfd=arg1:s32,name=+0(arg2):string)' --filter "pid == $$"
	create kretprobe 'kretprobe:do_sys_openat2(fd=retval:s64)' --filter "pid == $$"
	: <"$SCRATCH/calls"
	records_in kprobe name >/dev/null
	grep -q "\"name\":\"$SCRATCH/calls\"" "$SCRATCH/records" || fail "a kprobe did not record a file's name"
	[ "$(records_of k/kretprobe)" -gt 0 ] || fail "a kretprobe recorded nothing"
	refused 3 'no function' perfctl create k/x -e kprobe:pp_no_such_function
	perfctl delete k/kprobe k/kretprobe >/dev/null
else
	refused 1 "kernel.* (k?probes|CONFIG_KPROBE)" perfctl create k/x -e kprobe:do_exit
fi

# ── raw events and PMUs' terms ───────────────────────────────────────────────────────────

# made_or_refused EVENT REGEX: an event that perf can count here can be created, or cannot
# interrupt. (perf record cannot tell: it replaces cycles by cpu-clock.)
made_or_refused() {
	if grep -q '^[0-9]' < <(perf stat -x ';' -e "$1" true 2>&1) && create x "$1"; then
		perfctl delete k/x >/dev/null
		echo "  made: $1"
	else
		refused 1 "$2" perfctl create k/x -e "$1"
	fi
}

none='cannot count or sample|can be counted and not sampled|does not accept'
made_or_refused r1a8 "$none"
made_or_refused cycles:u "$none"
made_or_refused cycles:pp "$none"
made_or_refused LLC-load-misses "$none"
made_or_refused branch-misses:k "$none"
for text in cpu-clock:u task-clock:k page-faults:u 'software/config=0/' 'software/config=2/u' cs:k; do
	create x "$text"
	perfctl delete k/x >/dev/null
	echo "  made: $text"
done
if [ -e $PMUS/cpu ]; then
	made_or_refused cpu/event=0x3c,umask=0/ "$none"
	refused 3 'nonsense' perfctl create k/x -e cpu/nonsense=1/
else
	refused 3 "PMU 'cpu', which this machine lacks" perfctl create k/x -e cpu/event=0x3c,umask=0/
fi
if [ -e $PMUS/msr/events/tsc ]; then
	refused 1 'counted and not sampled' perfctl create k/x -e msr/tsc/
	refused 1 'counted and not sampled' perfctl create k/x -e msr/event=0/
	refused 3 'nonsense.*config.*tsc' perfctl create k/x -e msr/nonsense=1/
	refused 3 'nonsense.*tsc' perfctl create k/x -e msr/nonsense/
fi

# A PMU that this machine lacks: the message names the existing ones.
refused 3 "'pp_no_such', .*lacks: it has .*software" perfctl create k/x -e pp_no_such/event=1/
for pmu in "$PMUS"/*; do
	case ${pmu##*/} in
	breakpoint | kprobe | tracepoint | uprobe) ;; # these have a syntax of their own
	*) expect_match "$SENTENCE" "${pmu##*/}" "the PMUs that there are" ;;
	esac
done

grep -q x86 <<<"$(uname -m)" && refused 1 'cannot watch' perfctl create k/x -e mem:0x1000:r

# A processor has only a few registers for breakpoints on each CPU. Those of deleted events are free
# at once, even behind hundreds of tracepoints, which the kernel releases one by one, one grace
# period each. (From Linux 6.5 to the autumn of 2025 a register may be free only later:
# pins-walk.c.)
make_watching() {
	perfctl create "$1" -e mem:0x1000:w -m 4K >/dev/null 2>"$SCRATCH/stderr"
}
registers=0
while make_watching k/b$registers; do
	registers=$((registers + 1))
	[ $registers -lt 100 ] || fail "100 breakpoints on a CPU"
done
one_sentence "$SCRATCH/stderr" 'registers.*in use' "the last breakpoint"
echo "  made: $registers breakpoints; then: $SENTENCE"
mapfile -t names < <(seq -f k/b%g 0 $((registers - 1)))
# Tracepoints of the largest subsystems; system calls would share two links.
many=$(with_tracefs find /sys/kernel/tracing/events -mindepth 2 -maxdepth 2 -type d | cut -d/ -f6 |
	sort | uniq -c | sort -rn | awk '$2 != "syscalls" && $2 != "ftrace" { print $2 ":*" }' |
	head -8 | paste -sd,)
tracepoints_lock --shared
rounds=$(length 1 5)
for ((i = 0; i < rounds; i++)); do
	perfctl create k/many -e "$many" -m 16K >/dev/null
	links=$(find "$REGISTRY/k/many/" -name 'link*' | wc -l)
	[ "$links" -ge 100 ] || fail "$links links of $many"
	perfctl delete k/many "${names[@]}" >/dev/null
	for name in "${names[@]}"; do
		make_watching "$name" || fail "a breakpoint behind another: $(<"$SCRATCH/stderr")"
	done
done
tracepoints_unlock
perfctl delete "${names[@]}" >/dev/null

# ── bad ones ─────────────────────────────────────────────────────────────────────────────

refused 3 'pp_no_such' perfctl create k/x -e "uprobe:$TARGET:pp_no_such"
refused 3 'there is no file' perfctl create k/x -e "uprobe:$SCRATCH/none:f"
refused 3 'nothing' perfctl create k/x -e "usdt:$TARGET:pp:nothing"
refused 2 'pp_work' perfctl create k/x -e "uprobe:$TARGET:pp_work+0x10000"
refused 2 'arg9' perfctl create k/x -e "uprobe:$TARGET:pp_work(arg9)"
refused 2 'multiple of the length' perfctl create k/x -e 'mem:0x1003/4:w'
refused 2 "'q' in" perfctl create k/x -e 'mem:0x1000:q'
