#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# BPF programs of users that decide on records: what they count as kept is what is recorded, whatever
# is changed, paused, armed or restarted meanwhile; a program that the kernel, the daemon or a right
# refuses is one clear error, and nothing of it stays behind.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"

command -v jq >/dev/null || skip "needs jq"
BPFTOOL=$(command -v bpftool || true)
[ -n "$BPFTOOL" ] || skip "needs bpftool"
command -v perl >/dev/null || skip "needs perl"

# Compiled when the tests were built: a test is read from wherever BUILD is.
for object in decide broken huge alone off-cpu ratio; do
	[ -e "$BUILD/tests/$object.bpf.o" ] || fail "$object.bpf.o is not built: make tests"
	install -m 0644 "$BUILD/tests/$object.bpf.o" "$BIN/$object.o"
done
DECIDE=$BIN/decide.o

# count EVENT KEY: what its program has counted.
count() {
	"$BPFTOOL" map lookup pinned "$REGISTRY/$1/map-pt_counts" key "$2" 0 0 0 -j | jq '.formatted.value // .value'
}

# le NUMBER: as bpftool takes 8 bytes.
le() {
	local i
	for i in 0 8 16 24 32 40 48 56; do echo $(($1 >> i & 255)); done
}

# calls EVENT PID KEEP FIRE: which calls the program keeps, and which fire; the process last.
calls() {
	local event=$1 values=("${@:2}") key
	for key in 2 1 0; do
		# shellcheck disable=SC2046
		"$BPFTOOL" map update pinned "$REGISTRY/$event/map-pt_calls" key $key 0 0 0 value $(le "${values[key]}")
	done
}

records() {
	perfctl show "$1" --json | jq .records
}

# same EVENT WHAT: kept as often as recorded; the event is at rest.
same() {
	expect_eq "$(records "$1")" "$(($(count "$1" 1) + $(count "$1" 2)))" "records of $1, $2"
}

# A process that makes the calls that it is told: "NUMBER HOW-OFTEN" on its stdin.
mkfifo "$SCRATCH/orders" "$SCRATCH/done"
spawn sh -c 'exec perl -e "$1" <"$2/orders" >"$2/done"' caller \
	'$| = 1; while (<STDIN>) { my ($call, $n) = split; syscall($call + 0) for 1 .. $n; print "done\n" }' "$SCRATCH"
CALLER=$SPAWNED
exec {orders}>"$SCRATCH/orders" {answers}<"$SCRATCH/done"
GETPPID=110 GETUID=102
[ "$(uname -m)" = x86_64 ] || GETPPID=173 GETUID=174

call() {
	local line
	echo "$1 $2" >&"$orders"
	read -r -t 20 line <&"$answers" || fail "the caller does not call"
	expect_eq "$line" "done" "the caller's answer"
}

start_daemon

echo "== counters: every tenth sample, as often as the program says"
perfctl create t/clock -e cpu-clock -c 1000000 --bpf "$DECIDE:pt_tenth"
busy 20
BUSY=$SPAWNED
wait_until 20 more_records_than 20 t/clock
perfctl pause t/clock
same t/clock "of a clock"
seen=$(count t/clock 3) kept=$(count t/clock 1)
expect_eq "$kept" $(((seen + 9) / 10)) "of $seen samples, those that were kept"
expect_eq "$kept" "$((seen - $(count t/clock 0)))" "those that were not dropped"
perfctl resume t/clock
wait_until 20 more_records_than $((kept + 10)) t/clock
perfctl pause t/clock
rest "$BUSY"
same t/clock "after a pause"
echo "  $(count t/clock 3) samples seen, $(records t/clock) kept"

# Each fault is a sample, so none is missed when the program drops it.
perfctl create t/faults -e page-faults -c 1 --bpf "$DECIDE:pt_tenth"
for _ in 1 2 3 4 5 6 7 8; do true | cat; done
perfctl pause t/faults
same t/faults "of faults"
missed=$(perfctl show t/faults --json | jq .missed)
[ "$missed" -lt $(($(count t/faults 0) / 10 + 1)) ] || fail "$missed faults are missed, $(count t/faults 0) were dropped"
echo "  $(count t/faults 3) faults seen, $(records t/faults) kept, $missed missed"

echo "== tracepoints: a condition on the payload, beside an ordinary event with the same filter"
filter=(--filter "id == $GETPPID" -p "$CALLER")
perfctl create t/plain -e raw_syscalls:sys_enter "${filter[@]}"
perfctl create t/generic -e raw_syscalls:sys_enter --bpf "$DECIDE:pt_call"
perfctl create t/hot -e raw_syscalls:sys_enter -p "$CALLER" --bpf "$DECIDE:pt_call_btf" || SKIP_HOT=1
EVENTS=(t/generic)
[ -n "${SKIP_HOT-}" ] || EVENTS+=(t/hot)
[ -z "${SKIP_HOT-}" ] || echo "SKIP: tp_btf: this kernel has no faster recorder of raw_syscalls:sys_enter"
expect_eq "$(perfctl show t/generic --json | jq -r .recorder)" generic "the recorder of a tracepoint program"
for event in "${EVENTS[@]}"; do calls "$event" "$CALLER" "$GETPPID" 9999; done
N=$(length 1000 20000)
call "$GETPPID" "$N"
call "$GETUID" "$N"
expect_eq "$(records t/plain)" "$N" "records of the ordinary event"
for event in "${EVENTS[@]}"; do
	expect_eq "$(records "$event")" "$N" "records of $event"
	same "$event" "by payload"
done
echo "  $N of $((2 * N)) calls: ${EVENTS[*]} and an ordinary event"

echo "== probes: every tenth call of a function"
perfctl create t/probe -e "uprobe:$BIN/probe-target:pp_work(number=arg1:s32)" -m 64K --bpf "$DECIDE:pt_probe"
echo | "$BIN/probe-target" 100 >/dev/null
expect_eq "$(records t/probe)" 10 "records of a probe that 100 calls hit"
same t/probe "of a probe"

echo "== a change, a pause, an armed target, a dead engine: the program stays in front"
perfctl change t/generic --filter "id == $GETUID" >/dev/null
call "$GETPPID" 100
expect_eq "$(records t/generic)" "$N" "records that the event's filter drops after its program"
perfctl change t/generic --filter '' -m 64K >/dev/null
call "$GETPPID" 100
call "$GETUID" 100
expect_eq "$(records t/generic)" $((N + 100)) "records after a change of the buffer"
perfctl pause t/generic
seen=$(count t/generic 1)
call "$GETPPID" 100
expect_eq "$(count t/generic 1)" "$seen" "what a paused event's program sees"
perfctl resume t/generic
kill_engine
wait_until 20 perfctl change t/generic -m 128K
[ -n "${SKIP_HOT-}" ] || perfctl change t/hot -m 128K >/dev/null
call "$GETPPID" 100
expect_eq "$(records t/generic)" $((N + 200)) "records after an engine's death"
[ -n "${SKIP_HOT-}" ] || same t/hot "after an engine's death"
expect_match "$(perfctl list)" 'raw_syscalls:sys_enter \(bpf\)' "the list"
expect_match "$(perfctl list --direct 2>/dev/null || true)" 'raw_syscalls:sys_enter \(bpf\)' "the registry's list"
expect_match "$(perfctl show t/generic)" 'program +a BPF program' "what is shown"

echo "== a trigger's program: PP_KEEP records, PP_FIRE fires"
perfctl create t/target -e raw_syscalls:sys_enter -p "$CALLER" --bpf "$DECIDE:pt_call"
calls t/target "$CALLER" "$GETPPID" 9999
perfctl trigger add t/fires --on raw_syscalls:sys_enter --hold-off 10ms --bpf "$DECIDE:pt_call" t/target
calls t/fires "$CALLER" "$GETPPID" "$GETUID"
armed() {
	[ "$(perfctl trigger show t/fires --json | jq .n_armed)" = 1 ]
}
wait_until 20 armed
call "$GETPPID" 50
expect_eq "$(perfctl trigger show t/fires --json | jq .fired)" 0 "firings by PP_KEEP"
call "$GETUID" 1
has_fired() {
	[ "$(perfctl trigger show t/fires --json | jq .fired)" = 1 ]
}
wait_until 20 has_fired
call "$GETPPID" 50
expect_eq "$(perfctl trigger show t/fires --json | jq .fired)" 1 "firings by PP_FIRE"
same t/fires "of the trigger"
expect_eq "$(count t/target 1)" 100 "what the target's program kept on both sides"
expect_eq "$(records t/target)" 100 "records of the target, before and after"
rm -rf "$SCRATCH/snapshots"
_saved() {
	perfctl snapshots collect --once -D "$SCRATCH/snapshots" >>"$LOG" 2>&1
	[ "$(find "$SCRATCH/snapshots" -name '*.data' | wc -l)" = 1 ]
}
wait_until 20 _saved || fail "the firing is not saved"
wait_until 20 armed
call "$GETPPID" 50
expect_eq "$(records t/target)" 150 "records of the target, armed again"

echo "== the documentation's examples"
perfctl create t/off-cpu -e sched:sched_switch --bpf "$BIN/off-cpu.o"
perfctl create t/ratio -e page-faults -c 10 --bpf "$BIN/ratio.o"
wait_until 20 more_records_than 0 t/off-cpu
perfctl pause t/off-cpu
expect_eq "$(records t/off-cpu)" "$("$BPFTOOL" map lookup pinned "$REGISTRY/t/off-cpu/map-decided" key 2 0 0 0 -j | jq '.formatted.value // .value')" \
	"tasks that were off the CPU for long"

# Programs and maps are gone by their ids: other runs of this test have such programs, too.
programs=() maps=()
for event in "$REGISTRY"/t/*/; do
	[ -e "$event/program" ] || continue
	programs+=("$("$BPFTOOL" prog show pinned "$event/program" -j | jq .id)")
	for map in "$event"/next "$event"/map-*; do
		maps+=("$("$BPFTOOL" map show pinned "$map" -j | jq .id)")
	done
done
perfctl list t --json | jq -r '.[].name' | sed 's|^|t/|' | xargs "${PERFCTL[@]}" delete >/dev/null
none_of() {
	local kind=$1 id
	shift
	for id in "$@"; do
		! "$BPFTOOL" "$kind" show id "$id" || return
	done
}
wait_until 20 none_of prog "${programs[@]}" || fail "a program stays behind"
wait_until 20 none_of map "${maps[@]}" || fail "a map stays behind"
echo "  ${#programs[@]} programs and ${#maps[@]} maps went with their events"

echo "== refused"
# Each recorder has been used since the engine started.
remember
create=(perfctl create t/refused -e cpu-clock -c 1000000 --bpf)
refused 3 'cannot open .*: No such file' "${create[@]}" "$BIN/nowhere.o"
refused 1 'is no BPF object' "${create[@]}" "$BIN/perfctl"
refused 1 'is no BPF object' "${create[@]}" "$CONF"
refused 1 'has several BPF programs; name one' "${create[@]}" "$DECIDE"
refused 1 'has no BPF program nothing; it has pt_tenth' "${create[@]}" "$DECIDE:nothing"
refused 1 'has no map pp_next' "${create[@]}" "$BIN/alone.o"
refused 1 'too many or too large maps.*: 16 of them with 16 MiB' "${create[@]}" "$BIN/huge.o"
refused 2 "'pt_call' is of section tracepoint; 'cpu-clock' needs one of section perf_event" "${create[@]}" "$DECIDE:pt_call"
refused 2 "is of section perf_event; .* needs one of section" perfctl create t/refused -e raw_syscalls:sys_enter --bpf "$DECIDE:pt_tenth"
[ -n "${SKIP_HOT-}" ] ||
	refused 2 "is for another tracepoint; .* needs one of section tp_btf/sys_enter" perfctl create t/refused -e raw_syscalls:sys_enter --bpf "$DECIDE:pt_exit_btf"
refused 2 'are several events, and a BPF program decides on the records of one' perfctl create t/refused -e cpu-clock,page-faults --bpf "$DECIDE:pt_tenth"
refused 2 'stands for [0-9]+ events, and a BPF program' perfctl create t/refused -e 'raw_syscalls:*' --bpf "$DECIDE:pt_call"
refused 2 'neither shared nor created by --boot' "${create[@]}" "$DECIDE:pt_tenth" --boot
refused 2 'neither shared nor created by --boot' "${create[@]}" "$DECIDE:pt_tenth" --share

expect_exit 1 "${create[@]}" "$BIN/broken.o"
expect_match "$OUT" "^perfctl: the kernel refuses program pt_wild of .*; its verifier's last lines:" "the verifier's refusal"
expect_match "$OUT" "invalid mem access" "the verifier's words"
[ "$(wc -l <<<"$OUT")" -le 14 ] || fail "the verifier says too much: $OUT"
nothing_left "a program that the verifier refuses"
echo "$OUT"

echo "== rights"
# create_as_member OPTION…: whom the kernel lets load programs.
create_as_member() {
	setpriv --reuid="$NOBODY" --regid="$NOBODY" --groups="$DAEMON_GID" --inh-caps=+bpf,+perfmon --ambient-caps=+bpf,+perfmon -- \
		"${PERFCTL[@]}" create u/mine -e cpu-clock -c 1000000 "$@"
}
for programs in root group; do
	write_conf "$(printf 'Programs=%s\n[namespace u]\nMode=0660' "$programs")"
	perfctl reload >/dev/null
	expect_ok create_as_member
	perfctl delete u/mine >/dev/null
	[ "$programs" = group ] || remember
	if [ "$programs" = root ]; then
		expect_exit 4 create_as_member --bpf "$DECIDE:pt_tenth"
		expect_match "$OUT" "may not give an event a BPF program.*Programs=" "a member's program"
		nothing_left "a member's program"
		said 4 "lets this user load no BPF program|CAP_BPF" as_user perfctl create u/mine -e cpu-clock --bpf "$DECIDE:pt_tenth"
	else
		expect_ok create_as_member --bpf "$DECIDE:pt_tenth"
		id=$("$BPFTOOL" prog show pinned "$REGISTRY/u/mine/program" -j | jq .id)
	fi
done

# Programs of others, of another event, and of nobody, by their ids.
give=("$BIN/give-program" "$INSTANCE" u other cpu-clock)
expect_exit 13 "${give[@]}" "$id"
expect_match "$OUT" "has not loaded the BPF program" "root, with nobody's program"
perfctl create u/roots -e cpu-clock -c 1000000 --bpf "$DECIDE:pt_tenth"
id=$("$BPFTOOL" prog show pinned "$REGISTRY/u/roots/program" -j | jq .id)
expect_exit 16 "${give[@]}" "$id"
expect_match "$OUT" "decides for another event already" "a program of another event"
expect_exit 13 as_member "${give[@]}" "$id"
expect_match "$OUT" "has not loaded the BPF program" "nobody, with root's program"
perfctl delete u/roots u/mine >/dev/null
wait_until 20 none_of prog "$id" || fail "the program of a deleted event stays"
expect_exit 2 "${give[@]}" "$id"
expect_match "$OUT" "no BPF program with id" "a program that is gone"
echo "  $REFUSALS refusals"
