#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# With --call-graph dwarf records have the registers and the stack of user space: those that a `perf record
# --call-graph dwarf` of the same run has, to the byte where a page is missing, and perf unwinds them to
# the same functions, of a program without frame pointers. Tracepoints, system calls, a probe, samples, in
# user mode and in the kernel, of 64 and 32 bits. Only root records them, unless UserStacks= says more.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"
. "$(dirname "$0")/../collector.sh"
command -v perf >/dev/null || skip "there is no perf"
alone_with probes # test-payload has ftrace enable all there are, which perf then cannot open

PROGRAM=$BIN/unwound
GROUP=ppunwound$$ # perf takes each name of a probe once, whatever its group
ROUNDS=3
full && ROUNDS=20
SPINS=50000000 # of a round: about 30 ms
# as we name it, and as perf does where that differs
declare -A PERF_NAME=([uprobe:$PROGRAM:act]=$GROUP:act$$)
EVENTS=(syscalls:sys_enter_write signal:signal_generate page-faults "uprobe:$PROGRAM:act")

# record OPTION… -- ARG…: perf record of the program. perf's probe is the machine's: it goes with this shell.
record() (
	trap 'perf probe -q -d "$GROUP:*" 2>/dev/null' EXIT
	trap - ERR
	perf probe -x "$PROGRAM" -a "$GROUP:act$$=act" &&
		perf record -q --call-graph dwarf -m 16M -o "$SCRATCH/perf.data" "$@"
)

# chains FILE >LINES: of each of the program's records the event, and its functions, the innermost first.
chains() {
	perf script --no-inline --comm unwound -F comm,event,ip,sym -i "$1" 2>/dev/null | awk '
		/^[^ \t]/ || /^ *unwound/ { sub(/:$/, "", $2); sub(/: *$/, "", $0); event = $2; line = "" }
		/^\t/ { line = line " " ($2 == "" ? "?" : $2) }
		/^$/ && event { print event "\t" line; event = "" }'
}

# dumps FILE [COMM] >LINES: of each record but the samples the ABI, the registers, and the bytes of its stack,
# of which ours has a multiple of 8.
dumps() {
	perf script -D --no-inline -i "$1" 2>/dev/null | awk -v comm="${2-unwound}" '
		/PERF_RECORD_SAMPLE/ { line = "" }
		/user regs: mask/ { line = $(NF - 1) " " $NF }
		/^\.\.\.\. [A-Z0-9]+ +0x/ { line = line " " $2 "=" $3 }
		/ustack: size/ { line = line " stack=" $4 - $4 % 8 }
		$1 == comm && line && !/ samples: / { print line }' | sort
}

# among FILE OTHER WHAT: each line of FILE is one of OTHER.
among() {
	comm -23 <(sort "$1") <(sort "$2") >"$SCRATCH/different"
	[ ! -s "$SCRATCH/different" ] ||
		fail "$3: perf has $(wc -l <"$SCRATCH/different") that we have not:" "$(head -2 "$SCRATCH/different")" \
			"ours are:" "$(head -2 "$2")"
}

# stacks NAME OPTION…: creates an event that records them.
stacks() {
	perfctl create "$@" >/dev/null 2>"$SCRATCH/said" || fail "perfctl create $*: $(cat "$SCRATCH/said")"
}

write_conf "CreateNamespaces=all"
start_daemon

echo "every record has perf's registers, and perf's stack"
options=()
for i in "${!EVENTS[@]}"; do
	event=${EVENTS[i]} rate=()
	[ "$event" != page-faults ] || rate=(-c 1)
	stacks "t/e$i" -e "$event" "${rate[@]}" --call-graph dwarf --comm unwound -m 8M
	options+=(-e "${PERF_NAME[$event]-$event}")
done
stacks t/samples -e cpu-clock -c 1000000 --call-graph dwarf,16384 --comm unwound -m 8M
record -c 1 "${options[@]}" -e cpu-clock/period=1000000,name=samples/ -- setarch -R "$PROGRAM" $ROUNDS $SPINS \
	2>"$SCRATCH/said" || fail "perf record failed: $(cat "$SCRATCH/said")"
perfctl snapshot t/samples -o "$SCRATCH/samples.data" >/dev/null 2>&1
perfctl delete t/samples >/dev/null
perfctl snapshot t/ -o "$SCRATCH/our.data" >/dev/null 2>&1
for file in perf our; do
	dumps "$SCRATCH/$file.data" >"$SCRATCH/$file.dumps"
	chains "$SCRATCH/$file.data" | sed "s|$GROUP:act$$|uprobe:$PROGRAM:act|" >"$SCRATCH/$file.chains"
done
n=$(wc -l <"$SCRATCH/perf.dumps")
[ "$n" -ge $((4 * 3 * ROUNDS)) ] || fail "perf has only $n records"
among "$SCRATCH/perf.dumps" "$SCRATCH/our.dumps" "registers and sizes of stacks"
# The program's stacks that end soon.
short=$(sed 's/.*stack=//' "$SCRATCH/our.dumps" | awk '$1 < 2000' | wc -l)
[ "$short" -ge $((3 * 3 * ROUNDS)) ] || fail "only $short stacks are short"
echo "  $n records with perf's registers and sizes, $short of them with less than 2000 bytes of stack"

echo "perf unwinds them as its own"
for event in "${EVENTS[@]}"; do
	for file in perf our; do
		awk -F'\t' -v event="$event" '$1 == event { print $2 }' "$SCRATCH/$file.chains" >"$SCRATCH/$file.one"
	done
	among "$SCRATCH/perf.one" "$SCRATCH/our.one" "$event"
	n=$(grep -c 'act seventh sixth fifth fourth third second first main' "$SCRATCH/our.one") || true
	[ "$n" -ge "$ROUNDS" ] ||
		fail "$event: only $n of $ROUNDS chains reach main():" "$(head -3 "$SCRATCH/our.one")"
	echo "  $event: $(wc -l <"$SCRATCH/perf.one") records with perf's functions, $n through all of the program's"
done
grep -qE '^signal:.* do_syscall_64 .* act seventh ' "$SCRATCH/our.chains" ||
	fail "no chain from the kernel to user space:" "$(grep ^signal: "$SCRATCH/our.chains" | head -2)"

echo "our own programs count them"
expect_eq "$(perfctl show t/e0 --json | jq -c '[.stack_user, .callchain_kernel, .callchain_user]')" "[8192,true,false]" "show"
expect_match "$(perfctl show t/e0)" 'user stack +8192 bytes.* regs_user stack_user' "show"
n=$(perfctl reopen t/e0 -n all --json 2>/dev/null | wc -l)
[ "$n" -ge $((4 * ROUNDS)) ] || fail "reopen has $n records"
expect_eq "$(perfctl script -i "$SCRATCH/our.data" 2>/dev/null | grep -c 'syscalls:sys_enter_write')" "$n" "script"
expect_eq "$(perfctl script -i "$SCRATCH/perf.data" 2>/dev/null | grep -c 'syscalls:sys_enter_write')" "$n" "script of perf's"
perfctl reopen t/e0 -n 1 >"$SCRATCH/said" 2>/dev/null
expect_match "$(cat "$SCRATCH/said")" 'bytes of user stack' "reopen"
expect_ok perfctl report -i "$SCRATCH/our.data"
perfctl save t/e0 -o "$SCRATCH/saved" >/dev/null
expect_eq "$(perfctl --saved="$SCRATCH/saved" show t/e0 --json | jq .stack_user)" 8192 "show of a save"
for i in "${!EVENTS[@]}"; do
	perfctl delete "t/e$i" >/dev/null
done

echo "samples of a running program"
chains "$SCRATCH/samples.data" >"$SCRATCH/our.chains"
for file in perf our; do
	sed -n 's/^\(samples\|cpu-clock\)\t seventh/seventh/p' "$SCRATCH/$file.chains" >"$SCRATCH/$file.one"
	[ "$(wc -l <"$SCRATCH/$file.one")" -ge 5 ] || fail "$file.data: few samples hit the program"
done
expect_eq "$(sort -u "$SCRATCH/our.one")" "$(sort -u "$SCRATCH/perf.one")" "the functions"
expect_match "$(head -1 "$SCRATCH/our.one")" '^seventh sixth fifth fourth third second first main '
top=$(perf report --no-inline --children --stdio -g none -F overhead_children,sym -i "$SCRATCH/samples.data" 2>/dev/null |
	awk '$NF == "first" { print int($1) }')
[ "${top:-0}" -ge 20 ] || fail "perf report gives first() ${top:-nothing}"
echo "  $(wc -l <"$SCRATCH/our.one") samples in seventh(), $top% below first() in perf report"

echo "several events in one, and while a trigger lets them go on"
stacks t/both -e signal:signal_generate -e "uprobe:$PROGRAM:act" --call-graph dwarf,65528 -m 8M
perfctl trigger add t/fires --on sched:sched_process_exec --filter "filename == \"$PROGRAM\"" --call-graph dwarf \
	--after 60s --hold-off 1m both >/dev/null
armed t/fires 1
setarch -R "$PROGRAM" $ROUNDS # its exec fires; the snapshot is taken in the longest window there is
perfctl snapshot t/both -o "$SCRATCH/both.data" >/dev/null 2>&1
chains "$SCRATCH/both.data" >"$SCRATCH/our.chains"
n=$(grep -c 'act seventh sixth fifth fourth third second first main' "$SCRATCH/our.chains") || true
expect_eq "$n" $((2 * ROUNDS)) "chains through all functions while the window is open"
perfctl snapshot t/fires -o "$SCRATCH/fires.data" >/dev/null 2>&1
expect_match "$(dumps "$SCRATCH/fires.data")" '^ABI 64-bit .* stack=[1-9]' "the trigger's own record"
perfctl trigger remove t/fires >/dev/null
perfctl delete t/both >/dev/null

echo "threads of the kernel have none, and tasks at their end"
stacks t/kernel -e sched:sched_switch --filter 'prev_pid == 0 || prev_comm ~ "kworker*" || prev_comm == sleep' \
	--call-graph dwarf -m 2M
# Its last switch, when its memory has gone.
stacks t/ended -e sched:sched_switch --filter 'prev_comm == sleep && prev_state & 0x30' --call-graph dwarf -m 2M
# has_both: SCRATCH/kinds has a line for each kind of task, with whether it has registers, and there are both.
has_both() {
	rm -f "$SCRATCH/kernel.data"
	sleep 0.02
	perfctl snapshot t/kernel -o "$SCRATCH/kernel.data" >/dev/null 2>&1
	perf script -D --no-inline -i "$SCRATCH/kernel.data" 2>/dev/null | awk '
		/PERF_RECORD_SAMPLE/ { has = 0 }
		/user regs: mask .* ABI/ { has = 1 }
		/\.\.\. thread: / { kind = /swapper|kworker/ ? "kernel" : "program"; n[kind " " has]++ }
		END { for (i in n) print i, n[i] }' >"$SCRATCH/kinds"
	grep -q '^kernel' "$SCRATCH/kinds" && grep -q '^program 1' "$SCRATCH/kinds"
}
wait_until 20 has_both || fail "there are not both:" "$(cat "$SCRATCH/kinds")"
! grep '^kernel 1' "$SCRATCH/kinds" || fail "threads of the kernel have registers of user space"
has_ended() {
	rm -f "$SCRATCH/ended.data"
	sleep 0.02
	perfctl snapshot t/ended -o "$SCRATCH/ended.data" >/dev/null 2>&1
	[ "$(perf script -i "$SCRATCH/ended.data" 2>/dev/null | grep -c 'prev_comm=sleep .* prev_state=[XZ] ')" -gt 0 ]
}
wait_until 20 has_ended || fail "no task ended"
! perf script -D -i "$SCRATCH/ended.data" 2>/dev/null | grep 'user regs: mask' ||
	fail "tasks that have ended have registers of user space"
perfctl delete t/kernel t/ended >/dev/null

# A program of 32 bits, which its own few instructions make.
small() {
	cat >"$SCRATCH/small.c" <<-'END'
		#define FUNCTION __attribute__((noinline, noclone))
		static int call(int n, int a) { int r; asm volatile("int $0x80" : "=a"(r) : "a"(n), "b"(a) : "memory"); return r; }
		FUNCTION int inner(int n) { volatile char some[300]; some[n] = 1; return call(64, 0x5a5a) + some[n]; }
		FUNCTION int outer(int n) { return inner(n) + 1; }
		void _start(void) { outer(3); outer(4); call(1, 0); }
	END
	if ! cc -m32 -O2 -ffreestanding -fno-pic -fno-stack-protector -nostdlib -static -o "$BIN/unwound32" \
		"$SCRATCH/small.c" 2>"$SCRATCH/said" || ! "$BIN/unwound32"; then
		echo "  (cannot be built or run here)"
		return
	fi
	stacks t/small -e raw_syscalls:sys_enter --call-graph dwarf --comm unwound32 -m 1M
	perf record -q -c 1 --call-graph dwarf -e raw_syscalls:sys_enter -o "$SCRATCH/perf.data" "$BIN/unwound32" 2>/dev/null
	perfctl snapshot t/small -o "$SCRATCH/our.data" >/dev/null 2>&1
	for file in perf our; do
		dumps "$SCRATCH/$file.data" unwound32 | grep 'BX=0x0*5a5a ' >"$SCRATCH/$file.dumps" || true
	done
	expect_eq "$(cat "$SCRATCH/our.dumps")" "$(cat "$SCRATCH/perf.dumps")" "registers and sizes of stacks"
	expect_match "$(head -1 "$SCRATCH/our.dumps")" '^ABI 32-bit .* BX=0x0*5a5a .*CS=0x0*23 .* stack=[1-9]' "what there is"
	expect_eq "$(wc -l <"$SCRATCH/our.dumps")" 2 "records"
	perfctl delete t/small >/dev/null
}
if full; then
	echo "a 32-bit program"
	small
fi

echo "who may record them"
said 4 'User 65534 may not record user stacks, because .* UserStacks= in perfpersistd.conf' \
	as_user perfctl create nobody/x -e cpu-clock --call-graph dwarf
stacks t/x -e cpu-clock --call-graph dwarf -m 1M
readers='user stacks hold passwords and keys of all programs: .* namespace t .*mode 0640'
expect_match "$(cat "$SCRATCH/said")" "$readers" "create"
expect_match "$(perfctl record -P t -e page-faults --call-graph dwarf -m 1M 2>&1)" "$readers" "record -P"
expect_match "$(perfctl trigger add t/z --on sched:sched_process_exec --call-graph dwarf -m 1M --action notify 2>&1)" "$readers" \
	"trigger add"
said 2 'may take [0-9]* bytes, more than a buffer of 8192 holds' perfctl create t/y -e cpu-clock --call-graph dwarf -m 8K
said 2 'a stack of more than 65528 bytes' perfctl create t/y -e cpu-clock --call-graph dwarf,65529
said 2 'neither kernel, user, both nor dwarf' perfctl create t/y -e cpu-clock --call-graph dwarf,
said 2 'neither kernel, user, both nor dwarf' perfctl create t/y -e cpu-clock --call-graph dwarf,0
said 2 'neither kernel, user, both nor dwarf' perfctl create t/y -e cpu-clock --call-graph dwarfs
