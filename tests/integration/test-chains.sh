#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Call chains of every kind of event are those of a `perf record -g` that ran at the same time, address for
# address, record for record: tracepoints, system calls, a probe and its return, a breakpoint, counters.
# --max-stack limits them as perf's max-stack= does. --call-graph takes one half or both. All programs read
# them: perf, script, report, flame graphs.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"
. "$(dirname "$0")/../collector.sh"
command -v perf >/dev/null || skip "there is no perf"
alone_with breakpoints
alone_with probes # test-payload has ftrace enable all there are, which perf then cannot open

PROGRAM=$BIN/chained
GROUP=ppchains$$ # perf takes each name of a probe once, whatever its group
ADDRESS=$(setarch -R "$PROGRAM" --address)
ROUNDS=3
full && ROUNDS=20

# as we name it, and as perf does where that differs
EVENTS=(raw_syscalls:sys_enter syscalls:sys_enter_write sched:sched_process_fork signal:signal_deliver
	exceptions:page_fault_user sched:sched_process_wait page-faults
	"uprobe:$PROGRAM:inner" "uretprobe:$PROGRAM:inner")
if breakpoints_are_dead; then
	echo "SKIP: chains of a breakpoint: this machine's never fire, perf says"
else
	EVENTS+=("mem:$ADDRESS:w")
fi
if full; then
	EVENTS+=(raw_syscalls:sys_exit syscalls:sys_exit_write syscalls:sys_enter_clone sched:sched_process_exit
		signal:signal_generate task:task_newtask syscalls:sys_enter_clock_nanosleep kmem:mm_page_alloc
		sched:sched_switch minor-faults mmap:vm_unmapped_area)
fi
# Some for each recorder, with frames of the kernel, of user space, of both. None of them is above: perf's file
# cannot tell two of one tracepoint apart, the kernel gives two of perf's software events of one kind the same
# sample (Linux 6.18, do_perf_sw_event()), and perf's breakpoints take no terms.
SHORTENED=(sched:sched_wakeup_new syscalls:sys_enter_wait4 context-switches "uprobe:$PROGRAM:middle")
declare -A PERF_NAME=([uprobe:$PROGRAM:inner]=$GROUP:inner$$ [uretprobe:$PROGRAM:inner]=$GROUP:back$$__return
	[uprobe:$PROGRAM:middle]=$GROUP:middle$$)

# record OPTION…: perf record of the program. perf's probes are the machine's: they go with this shell.
record() (
	trap 'perf probe -q -d "$GROUP:*" 2>/dev/null' EXIT
	trap - ERR
	perf probe -x "$PROGRAM" -a "$GROUP:inner$$=inner" -a "$GROUP:middle$$=middle" -a "$GROUP:back$$=inner%return" &&
		perf record -q -c 1 -g -m 8M "$@" -o "$SCRATCH/perf.data" -- setarch -R "$PROGRAM" $ROUNDS
)

# chains FILE: FILE.chains has a line for each of the program's records: its event, and its chain.
chains() {
	perfctl script -i "$1" --json 2>/dev/null | jq -r 'select(.comm == "chained") | .event + "\t" +
		(.callchain | map(.space + " " + .ip + (if .sym == "do_exit" then " ends" else "" end)) | join(", "))' |
		sort >"$1.chains"
}

# compare FILE EVENT NAME [TERMS]: perf leaves a task at the beginning of its exit, and we do not. A short chain may
# not reach do_exit(). What perf alone has was missed, and counted: another test's task that was preempted inside
# bpf(2) keeps programs at counters from running on its CPU.
compare() {
	local event=$2 theirs=${PERF_NAME[$2]-$2} more='^>.* ends' n missed
	[ -z "${4-}" ] || more='^>'
	[[ $event == *:* ]] || theirs+=${4-} # so perf calls them
	awk -F'\t' -v event="$theirs" '$1 == event { print $2 }' "$SCRATCH/perf.data.chains" >"$SCRATCH/theirs"
	awk -F'\t' -v event="$event" '$1 == event { print $2 }' "$1.chains" >"$SCRATCH/ours"
	n=$(wc -l <"$SCRATCH/theirs")
	[ "$n" -ge $ROUNDS ] || fail "perf has only $n records of $theirs"
	diff "$SCRATCH/theirs" "$SCRATCH/ours" | grep '^[<>]' | grep -v "$more" >"$SCRATCH/different" || true
	missed=$(perfctl show "$3" --json | jq .missed)
	if grep -q '^>' "$SCRATCH/different" || [ "$(wc -l <"$SCRATCH/different")" -gt "$missed" ]; then
		fail "$event: chains of perf (<) and ours (>) differ, and $missed were missed:" "$(head -4 "$SCRATCH/different")"
	fi
	FRAMES=$(awk -F, 'NF > n { n = NF } END { print n }' "$SCRATCH/ours")
	echo "  $event: $n records with perf's chains, up to $FRAMES frames"
}

# create NAME EVENT TERMS OPTION…: ours, and an option for perf with these terms.
perf_options=()
create() {
	local name=$1 event=$2 terms=$3 rate=()
	shift 3
	[[ $event == *faults || $event == context-switches ]] && rate=(-c 1)
	perfctl create "$name" -e "$event" "${rate[@]}" -g "$@" --comm chained -m 4M >/dev/null
	perf_options+=(-e "${PERF_NAME[$event]-$event}$terms")
}

start_daemon
echo "the same as perf's"
for i in "${!EVENTS[@]}"; do
	create "t/e$i" "${EVENTS[i]}" ''
done
for i in "${!SHORTENED[@]}"; do
	create "s/e$i" "${SHORTENED[i]}" /max-stack=5/ --max-stack 5
done
record "${perf_options[@]}" 2>"$SCRATCH/said" || fail "perf record failed: $(cat "$SCRATCH/said")"
perfctl snapshot t/ -o "$SCRATCH/our.data" >/dev/null 2>&1
perfctl snapshot s/ -o "$SCRATCH/short.data" >/dev/null 2>&1
chains "$SCRATCH/perf.data"
chains "$SCRATCH/our.data"
chains "$SCRATCH/short.data"
for i in "${!EVENTS[@]}"; do
	compare "$SCRATCH/our.data" "${EVENTS[i]}" "t/e$i"
done

echo "no more entries than were asked for"
for i in "${!SHORTENED[@]}"; do
	compare "$SCRATCH/short.data" "${SHORTENED[i]}" "s/e$i" /max-stack=5/
	[ "$FRAMES" -le 5 ] || fail "${SHORTENED[i]}: $FRAMES entries"
done
expect_eq "$(awk -F, 'NF > n { n = NF } END { print n }' "$SCRATCH/short.data.chains")" 5 "the most entries of a chain"
expect_eq "$(perfctl show s/e0 --json | jq .max_stack)" 5 "show"
expect_match "$(perfctl show s/e0)" 'max stack +5' "show"
expect_match "$(perf evlist -v -i "$SCRATCH/short.data" 2>/dev/null)" 'sample_max_stack: 5' "the attributes in perf.data"
perfctl save s/e0 -o "$SCRATCH/saved" >/dev/null
expect_eq "$(perfctl --saved="$SCRATCH/saved" show s/e0 --json | jq .max_stack)" 5 "show of a save"

echo "the stack is the program's"
perfctl report -i "$SCRATCH/our.data" --folded >"$SCRATCH/folded"
grep -qE 'chained;.*main;outer;middle;inner' "$SCRATCH/folded" || fail "no such stack in report --folded"
perf script -i "$SCRATCH/our.data" >"$SCRATCH/script" 2>&1
for function in inner middle outer main; do
	grep -qE "^\s+[0-9a-f]+ $function\+0x" "$SCRATCH/script" || fail "perf script shows no $function()"
done
perfctl reopen t/e0 -n 1 >"$SCRATCH/script" 2>/dev/null
expect_match "$(cat "$SCRATCH/script")" '\[kernel\].*\[user\]' "reopen"

echo "one half, or both"
for i in "${!EVENTS[@]}"; do
	perfctl delete "t/e$i" >/dev/null
done
for i in "${!SHORTENED[@]}"; do
	perfctl delete "s/e$i" >/dev/null
done
for half in kernel user both; do
	perfctl create "h/$half" -e raw_syscalls:sys_enter --call-graph $half --comm chained -m 1M >/dev/null
done
perfctl create h/samples -e page-faults -c 1 --call-graph user --comm chained -m 1M >/dev/null
perfctl create h/probe -e "uprobe:$PROGRAM:inner" -e sched:sched_process_fork --call-graph user -m 1M >/dev/null
expect_eq "$(perfctl show h/user --json | jq -c '[.callchain, .callchain_kernel, .callchain_user]')" "[true,false,true]" "show"
setarch -R "$PROGRAM" $ROUNDS
# halves NAME SPACE: the chains of h/NAME, of that space only.
halves() {
	perfctl snapshot "h/$1" -o "$SCRATCH/$1.data" >/dev/null 2>&1
	perfctl script -i "$SCRATCH/$1.data" --json |
		jq -c "select(.comm == \"chained\") | [.callchain[] | select(.space | test(\"$2\")) | .ip]"
}
for half in kernel user; do
	[ "$(halves $half . | wc -l)" -gt $ROUNDS ] || fail "h/$half has no records"
	diff <(halves $half .) <(halves both $half) >"$SCRATCH/different" ||
		fail "--call-graph $half is not that half of both:" "$(head -4 "$SCRATCH/different")"
done
expect_eq "$(halves samples kernel | sort -u)" "[]" "the kernel's half of samples"
expect_eq "$(halves probe kernel | sort -u)" "[]" "the kernel's half of two events in one"
expect_eq "$(halves probe user | grep -c '^\["')" $((2 * ROUNDS)) "chains of two events in one"

echo "of triggers, and while one lets its targets go on"
perfctl create w/probe -e "uprobe:$PROGRAM:inner" -g -m 1M >/dev/null
perfctl trigger add w/fires --on sched:sched_process_exec --filter "filename == \"$PROGRAM\"" -g --after 30s --hold-off 1m probe >/dev/null
armed w/fires 1
setarch -R "$PROGRAM" $ROUNDS # its exec fires
perfctl reopen w/fires -n all 2>/dev/null >"$SCRATCH/script"
expect_eq "$(grep -c 'sched_process_exec' "$SCRATCH/script")" 1 "records of the trigger"
grep -q '^\s*[0-9a-f]* \[kernel\]' "$SCRATCH/script" || fail "the trigger has no chain"
perfctl reopen w/probe -n all 2>/dev/null >"$SCRATCH/script"
expect_eq "$(grep -c inner "$SCRATCH/script")" $ROUNDS "records while the window is open"
[ "$(grep -cE '^\s+[0-9a-f]{6,} \[user\]' "$SCRATCH/script")" -ge $((3 * ROUNDS)) ] ||
	fail "its chains are not there:" "$(tail -4 "$SCRATCH/script")"

said 2 'neither kernel, user, both nor dwarf' perfctl create h/x -e sched:sched_switch --call-graph lbr
echo "${#EVENTS[@]} kinds of event"
