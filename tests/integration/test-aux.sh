#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Events that trace into AUX areas, with the PMU of tests/vm/aux-pattern, whose trace says of each word
# where it belongs: snapshots are byte for byte what was traced, however often the area has overwritten
# itself, and reach back before a SIGKILL of the daemon. Runs in a guest that has the module:
# tests/vm/test-aux.sh.
. "$(dirname "$0")/../lib.sh"

# The module's name there: that of a PMU that perf has a decoder for.
pmu=${AUX_PMU:-arm_spe_0}
[ -e "/sys/bus/event_source/devices/$pmu/format/bytes" ] || skip "there is no PMU of aux-pattern here"

# traces: writes a snapshot of all events, and prints of each trace CPU, bytes, first, end.
traces() {
	perfctl snapshot -o "$SCRATCH/aux.data" "$@" >"$SCRATCH/snapshot"
	"$BIN/aux-trace" "$SCRATCH/aux.data"
}

# column N: of the first CPU's trace in what traces has printed.
column() {
	awk -v n="$1" 'NR == 1 { print $n }'
}

# has_wrapped EVENT BYTES N: the event's trace has filled an area of so many bytes N times.
has_wrapped() {
	[ "$(traces "$1" | column 4)" -ge $(($2 * $3)) ]
}

no_events() {
	expect_eq "$(perfctl list --json)" "[]" "the list"
}

# The largest two traces at a time.
write_conf "CreateNamespaces=all
MaxCopies=66M"
start_daemon
cpus=$(getconf _NPROCESSORS_ONLN)

# What perf's decoder of Intel PT is told; it would make nothing of the pattern.
if [ "$pmu" = intel_pt ]; then
	perfctl create a/trace -e "$pmu//" -m 64K >/dev/null
	perfctl create a/switches -e sched:sched_switch -m 4K >/dev/null
	traces >/dev/null
	perf report -D -f --no-itrace -i "$SCRATCH/aux.data" >"$SCRATCH/report" 2>&1 || fail "perf report: exit $?"
	for line in 'PERF_RECORD_AUXTRACE_INFO type: 1' "PMU Type +$(cat /sys/bus/event_source/devices/intel_pt/type)" \
		'TSC bit +0x400' 'NoRETComp bit +0x800' 'Have sched_switch +1' 'Snapshot mode +1' 'Per-cpu maps +1' \
		'MTC bit +0x200' 'MTC freq bits +0x3c000' 'CYC bit +0x2' 'Max non-turbo ratio +24' \
		'Time Mul[a-z]+ +[1-9]'; do
		grep -qE "$line" "$SCRATCH/report" || fail "perf report does not say '$line': $(head -n 60 "$SCRATCH/report")"
	done
	expect_eq "$(grep -c 'PERF_RECORD_AUXTRACE size: 0x10000 ' "$SCRATCH/report")" "$cpus" "AUXTRACE records"
	perf script -f -i "$SCRATCH/aux.data" >/dev/null 2>"$SCRATCH/complaints" ||
		fail "perf script: exit $?: $(cat "$SCRATCH/complaints")"
	echo "perf's clock: $(grep -E 'Time |Cap Time' "$SCRATCH/report" | tr -s ' \n' ' ')"
	stop_daemon
	exit
fi

# The PMU is on CPU 1 alone, as AUX_CPUS says: sysfs says so, too, or it is secret.
if [ "${AUX_CPUS-}" = 1 ]; then
	perfctl create a/trace -e "$pmu//" -m 64K >"$SCRATCH/created" 2>&1 && status=0 || status=$?
	case $status in
	0) said='on CPUs 1, 64K' ;;
	*) said='does not trace on CPU 0, or its driver' ;;
	esac
	expect_match "$(cat "$SCRATCH/created")" "$said" "what create says"
	[ -e "/sys/bus/event_source/devices/$pmu/cpumask" ] && expect_eq "$status" 0 "exit of create"
	[ "$status" -eq 0 ] || no_events
	[ "$status" -eq 0 ] || perfctl create a/trace -e "$pmu//" -m 64K -C 1 >/dev/null
	expect_eq "$(traces a/trace | column 1)" 1 "the CPU that is traced"
	expect_eq "$(traces a/trace | wc -l)" 1 "traces"
	perfctl delete a/trace >/dev/null
	no_events
	stop_daemon
	exit
fi

# ── made, listed, read, deleted ──────────────────────────────────────────────────────────

expect_match "$(perfctl create a/trace -e "$pmu//" -m 64K)" "records $pmu// on CPUs 0-1, 64K each" "what create says"
expect_match "$(perfctl list)" "a +trace .*$pmu//" "the list"
expect_eq "$(perfctl show a/trace --json | json_field recorder)" aux "the recorder"
expect_eq "$(perfctl show a/trace --json | json_field buffer)" 65536 "bytes of an area"
expect_eq "$(traces a/trace | wc -l)" "$cpus" "traces"
expect_match "$(cat "$SCRATCH/snapshot")" "0 records of 1 event, traces of $cpus AUX areas" "what snapshot says"
perfctl delete a/trace
no_events

# ── sizes and wraps ──────────────────────────────────────────────────────────────────────

total=0
for size in 64 128 256 512 1024 2048 4096 8192 16384 32768; do
	wraps=$((size > 1024 ? 5 : 100))
	# No portion ends where the area does.
	bytes=$(((size > 1024 ? 1024 : size) * 1024 / 4 + 8))
	for modulo in 0 1; do
		perfctl create a/trace -e "$pmu/bytes=$bytes,interval=200,modulo=$modulo/" -m ${size}K >/dev/null
		wait_until 60 has_wrapped a/trace $((size * 1024)) $wraps || fail "$size KiB do not fill"
		for _ in 1 2 3; do
			traces a/trace >"$SCRATCH/traces"
			expect_eq "$(awk '{ print $2 }' "$SCRATCH/traces" | sort -u)" $((size * 1024)) "bytes of a trace"
		done
		total=$((total + $(column 4 <"$SCRATCH/traces") / size / 1024))
		perfctl delete a/trace >/dev/null
	done
done
echo "10 sizes, aux_head in the stream and in the area: $total wraps of CPU 0, every word in its place"

# ── perf ─────────────────────────────────────────────────────────────────────────────────

if command -v perf >/dev/null; then
	perfctl create a/trace -e "$pmu//" -m 64K >/dev/null
	perfctl create a/switches -e sched:sched_switch >/dev/null
	traces >/dev/null
	# With a decoder of this PMU, and with none.
	for option in --itrace=i1 --no-itrace; do
		perf report -D -f $option -i "$SCRATCH/aux.data" >"$SCRATCH/report" 2>"$SCRATCH/complaints" ||
			fail "perf report -D $option: exit $?: $(cat "$SCRATCH/complaints")"
		expect_eq "$(grep -vE '^$|^# |kernel\.|vmlinux' "$SCRATCH/complaints" || true)" "" "what perf report $option complains of"
		expect_eq "$(grep -c 'PERF_RECORD_AUXTRACE size: 0x10000 ' "$SCRATCH/report")" "$cpus" "AUXTRACE records"
		# perf stops and starts all events of a CPU when it gets another one: that, too, makes such records.
		for record in 'AUX offset: ' 'ITRACE_START pid: '; do
			n=$(grep -c "PERF_RECORD_$record" "$SCRATCH/report") || true
			[ "$n" -ge "$cpus" ] || fail "$n records of $record on $cpus CPUs"
		done
		expect_eq "$(grep -c 'PERF_RECORD_AUXTRACE_INFO type: 4' "$SCRATCH/report")" 1 "AUXTRACE_INFO records"
	done
	# It decodes what is there; it makes nothing of the pattern, and does not crash.
	perf script -f -i "$SCRATCH/aux.data" >/dev/null 2>"$SCRATCH/complaints" ||
		fail "perf script: exit $?: $(cat "$SCRATCH/complaints")"
	# Only from a pipe does perf read a pipe's format without lseek(2).
	expect_eq "$(perfctl snapshot -o - 2>/dev/null | perf report -D -i - 2>/dev/null |
		grep -c 'PERF_RECORD_AUXTRACE size: 0x10000 ')" "$cpus" "AUXTRACE records by a pipe"
	perfctl script -i "$SCRATCH/aux.data" >"$SCRATCH/script"
	grep -q sched_switch "$SCRATCH/script" || fail "perfctl script does not read a file with traces"
	perfctl delete a/trace a/switches >/dev/null
else
	echo "SKIP: what perf makes of the file: there is no perf"
fi

# ── events beside it ─────────────────────────────────────────────────────────────────────

# samples BYTES EVENT…: writes a snapshot, and prints of each sample with so many bytes of the trace CPU, time,
# first, end.
samples() {
	local bytes=$1
	shift
	perfctl snapshot -o "$SCRATCH/aux.data" "$@" >"$SCRATCH/snapshot"
	"$BIN/aux-trace" "$SCRATCH/aux.data" "$bytes"
}

# has_samples BYTES N EVENT: there are so many.
has_samples() {
	[ "$(samples "$1" "$3" | wc -l)" -ge "$2" ]
}

# in_order FILE: of each CPU, with the time the trace grows.
in_order() {
	sort -k1,1n -k2,2n "$1" | awk '$1 == cpu && $4 < end { bad = 1 } { cpu = $1; end = $4 } END { exit bad }'
}

expect_ok perfctl create a/beside -e "$pmu/bytes=1024,interval=1000/,cpu-clock/aux-sample-size=4096/" \
	-e sched:sched_switch/aux-sample-size=512/ -F 100 -m 256K
expect_eq "$(perfctl show a/beside --json | json_field sources)" 3 "the events"
wait_until 60 has_samples 4096 40 a/beside || fail "no samples: $(cat "$SCRATCH/snapshot")"
for bytes in 4096 512; do
	samples $bytes a/beside >"$SCRATCH/samples"
	in_order "$SCRATCH/samples" || fail "the trace in samples goes back: $(cat "$SCRATCH/samples")"
	expect_eq "$(cut -d ' ' -f 1 "$SCRATCH/samples" | sort -u | wc -l)" "$cpus" "CPUs with samples"
	[ "$(awk -v n=$bytes '$4 - $3 == n' "$SCRATCH/samples" | wc -l)" -gt 10 ] || fail "parts of $bytes bytes are not whole"
	# What a sample has is in the trace, too.
	"$BIN/aux-trace" "$SCRATCH/aux.data" >"$SCRATCH/traces"
	awk 'NR == FNR { end[$1] = $4; next } $4 > end[$1] { exit 1 }' "$SCRATCH/traces" "$SCRATCH/samples" ||
		fail "samples are ahead of the trace"
	echo "$(wc -l <"$SCRATCH/samples") samples with $bytes bytes of the trace, every word in its place"
done
expect_eq "$(wc -l <"$SCRATCH/traces")" "$cpus" "traces beside samples"
n=$(samples 512 a/beside | wc -l)
expect_eq "$(perfctl script -i "$SCRATCH/aux.data" | grep -c sched:sched_switch)" "$n" "switches in perfctl script"
if command -v perf >/dev/null; then
	expect_eq "$(perf script -f -F event -i "$SCRATCH/aux.data" 2>/dev/null | grep -c sched_switch)" "$n" "switches in perf script"
	perf report -D -f --no-itrace -i "$SCRATCH/aux.data" >"$SCRATCH/report" 2>&1 || fail "perf report: exit $?"
	# perf gives each CPU's samples to the CPU's own queue.
	expect_eq "$(grep -c 'PERF_RECORD_ID_INDEX' "$SCRATCH/report")" 1 "indexes of ids"
fi
# Only the newest are kept, whole.
first=$(sort -k2,2n "$SCRATCH/samples" | sed -n 1p | cut -d ' ' -f 2)
is_overwritten() {
	[ "$(samples 512 a/beside | sort -k2,2n | sed -n 1p | cut -d ' ' -f 2)" -gt "$first" ]
}
wait_until 60 is_overwritten || fail "samples are not overwritten"
perfctl delete a/beside >/dev/null

# They outlive the other daemons, as the trace does.
perfctl create a/long -e "$pmu/bytes=1024,interval=1000/,cpu-clock/aux-sample-size=1024/" -F 20 -m 4M >/dev/null
wait_until 60 has_samples 1024 10 a/long
# newest: time, first and end of the last sample.
newest() {
	samples 1024 a/long | sort -k2,2n | tail -n 1
}
before=$(newest)
for who in kill_broker kill_engine; do
	$who
	[ -n "$DAEMON_PID" ] || start_daemon
	wait_until 20 perfctl show a/long
done
samples 1024 a/long >"$SCRATCH/samples"
grep -qxF "$before" "$SCRATCH/samples" || fail "the samples from before SIGKILL are gone: $(cat "$SCRATCH/samples")"
is_newer() {
	[ "$(newest)" != "$before" ]
}
wait_until 30 is_newer || fail "the samples do not go on after SIGKILL"
perfctl pause a/long >/dev/null
before=$(newest)
expect_eq "$(newest)" "$before" "the last sample of a paused event"
perfctl resume a/long >/dev/null
wait_until 30 is_newer || fail "the samples do not go on when the event is resumed"
perfctl delete a/long >/dev/null
memory=$(perfctl limits --json | json_field memory 1)
perfctl create a/beside -e "$pmu//,cpu-clock/aux-sample-size=64/" -m 4M >/dev/null
[ $(($(perfctl limits --json | json_field memory 1) - memory)) -ge $((cpus * 8 << 20)) ] ||
	fail "rings of samples are not charged"
perfctl delete a/beside >/dev/null

# Events pause and resume the trace, on the CPU that they happen on. Kernels before 6.13 have it if their maker has
# put it there, as Debian's 6.12.117.
can_pause() {
	[ "$(printf '6.13\n%s\n' "$(uname -r)" | sort -V | head -n 1)" != 6.13 ] || return 0
	perfctl create a/paused -e "$pmu/aux-action=start-paused/" >"$SCRATCH/refused" 2>&1 &&
		perfctl delete a/paused >/dev/null
}
if can_pause; then
	expect_ok perfctl create a/paused -e "$pmu/aux-action=start-paused,bytes=1024,interval=1000/" \
		-e syscalls:sys_enter_umask/aux-action=resume/ -e syscalls:sys_enter_sync/aux-action=pause/ -m 1M
	end_of() {
		traces a/paused | awk -v cpu="$1" '$1 == cpu { end = $4 } END { print end + 0 }'
	}
	grows() {
		[ "$(end_of 0)" -gt "$at" ]
	}
	taskset -c 0 sync
	at=$(end_of 0)
	expect_eq "$(end_of 0)" "$at" "the trace of CPU 0 after a pause"
	taskset -c 0 bash -c 'umask >/dev/null; umask 077'
	wait_until 30 grows || fail "the trace is not resumed"
	taskset -c 0 sync
	at=$(end_of 0)
	sleep 0.1
	expect_eq "$(end_of 0)" "$at" "the trace of CPU 0 after another pause"
	echo "resumed and paused by system calls: $at bytes on CPU 0"
	perfctl delete a/paused >/dev/null
else
	expect_match "$(cat "$SCRATCH/refused")" "since Linux 6.13" "start-paused"
	perfctl create a/paused -e "$pmu//,cpu-clock/aux-action=pause/" >"$SCRATCH/refused" 2>&1 && fail "not refused: pause"
	expect_match "$(cat "$SCRATCH/refused")" "'cpu-clock/aux-action=pause/'.* since Linux 6.13" "pause"
	echo "SKIP: Linux $(uname -r) cannot pause AUX events"
fi
no_events

# ── when the daemon dies ─────────────────────────────────────────────────────────────────

# A slow trace in a large area: all of it is there.
perfctl create a/trace -e "$pmu/bytes=4096,interval=10000/" -m 16M >/dev/null
wait_until 30 has_wrapped a/trace 4096 20
for who in kill_daemon kill_broker kill_engine; do
	before=$(traces a/trace | column 4)
	$who
	[ -n "$DAEMON_PID" ] || start_daemon
	wait_until 20 perfctl show a/trace
	wait_until 30 has_wrapped a/trace "$((before + 65536))" 1 || fail "the trace does not go on after $who"
	traces a/trace >"$SCRATCH/traces"
	expect_eq "$(awk '{ print $3 }' "$SCRATCH/traces" | xargs)" "0 0" "where the traces begin after $who"
	echo "$who: the trace had $before bytes before, reaches back to its first byte, and has $(column 4 <"$SCRATCH/traces") now"
done

# With the keeper go the areas; they are made anew.
keeper=$(keeper_pid)
before=$(traces a/trace | column 4)
_kill_9 "$keeper"
traced_again() {
	[ "$(traces a/trace 2>/dev/null | wc -l)" -eq "$cpus" ]
}
wait_until 30 traced_again || fail "nothing traces with the next keeper"
[ "$(traces a/trace | column 4)" -lt "$before" ] || fail "the keeper's death changed nothing"
grep -q "The keeper is gone, and with it what $cpus AUX areas held" "$LOG" || fail "the log does not say what was lost"

# Somebody else has the PMU when the keeper has gone: the event says so, and traces when it can.
AUX_PMU=$pmu spawn "$BIN/aux-check" hold 1 0 0
lacking() {
	perfctl show a/trace --json | json_field lacking
}
lacks_or_traces() {
	[ -n "$(lacking)" ] || traced_again
}
for _ in 1 2 3 4 5 6 7 8 9 10; do
	_kill_9 "$(keeper_pid)"
	wait_until 30 lacks_or_traces
	[ -z "$(lacking)" ] || break # the broker can be faster
done
expect_match "$(lacking)" "^0" "the CPUs without an area"
expect_match "$(perfctl show a/trace)" "Device or resource busy" "what show says"
expect_match "$(tail -n 3 "$LOG")" "in use on CPU 0" "what the log says"
kill "$SPAWNED"
wait_until 60 traced_again || fail "the event does not trace when the PMU is free"
expect_eq "$(lacking)" "" "the CPUs that lack an area then"

# ── paused ───────────────────────────────────────────────────────────────────────────────

perfctl pause a/trace >/dev/null
at=$(traces a/trace | column 4)
for _ in 1 2 3; do
	expect_eq "$(traces a/trace | column 4)" "$at" "where the trace of a paused event ends"
done
expect_match "$(cat "$SCRATCH/snapshot")" "AUX areas?, which pauses and snapshots had stopped for [0-9]+ ms, " "how long a pause was"
kill_daemon
start_daemon
expect_eq "$(traces a/trace | column 4)" "$at" "where it ends after a restart"
perfctl resume a/trace >/dev/null
wait_until 30 has_wrapped a/trace "$((at + 4096))" 1 || fail "it does not go on when it is resumed"
perfctl delete a/trace >/dev/null

# A trigger stops it.
perfctl create a/trace -e "$pmu/bytes=4096,interval=10000/" -m 1M >/dev/null
expect_ok perfctl trigger add a/stop --on task:task_rename --action pause a/trace
is_paused() {
	[ "$(perfctl show a/trace --json | json_field state)" = paused ]
}
bash -c 'echo renamed >/proc/self/comm'
wait_until 30 is_paused || fail "the trigger does not pause the trace"
at=$(traces a/trace | column 4)
expect_eq "$(traces a/trace | column 4)" "$at" "where the trace ends that a trigger has stopped"
perfctl delete a/stop a/trace >/dev/null

# ── at boot ──────────────────────────────────────────────────────────────────────────────

perfctl create a/boot -e "$pmu//" -m 64K --boot >/dev/null
id=$(perfctl show a/boot --json | json_field id)
perfctl reload >/dev/null
expect_eq "$(perfctl show a/boot --json | json_field id)" "$id" "the id after a reload"
expect_eq "$(traces a/boot | wc -l)" "$cpus" "traces after a reload"
perfctl delete a/boot >/dev/null

# ── shared, refused, charged ─────────────────────────────────────────────────────────────

perfctl create a/trace -e "$pmu//" -m 64K >/dev/null
perfctl create a/second -e "$pmu//" -m 64K --share >/dev/null
expect_eq "$(traces a/second | wc -l)" "$cpus" "traces by the second name"
perfctl delete a/trace >/dev/null
expect_eq "$(traces a/second | wc -l)" "$cpus" "traces when the first name is gone"
expect_refusal() {
	local what=$1
	shift
	"$@" >"$SCRATCH/refused" 2>&1 && fail "not refused: $*"
	expect_match "$(cat "$SCRATCH/refused")" "$what" "$*"
}
expect_refusal "in use on CPU 0" perfctl create a/third -e "$pmu/bytes=8/" --no-share
expect_eq "$(perfctl list --json | json_field name)" second "events after a refusal"
perfctl delete a/second >/dev/null
expect_refusal "'cpu-clock' would have nothing to do beside" perfctl create a/x -e "$pmu//,cpu-clock"
expect_refusal "no area to go with" perfctl create a/x -e cpu-clock/aux-sample-size=64/
expect_refusal "the one that does is not the first" perfctl create a/x -e "cpu-clock/aux-sample-size=64/,$pmu//"
expect_refusal "'page-faults/aux-sample-size=64/' cannot be beside" perfctl create a/x -e "$pmu//,page-faults/aux-sample-size=64/"
expect_refusal "'ftrace:function/aux-action=pause/' cannot be beside" perfctl create a/x -e "$pmu//,ftrace:function/aux-action=pause/"
expect_refusal "'sched:sched_switch' stands there twice" perfctl create a/x \
	-e "$pmu//,sched:sched_switch/aux-sample-size=64/,sched:sched_switch/aux-sample-size=8/"
expect_refusal "can be several tracepoints" perfctl create a/x -e "$pmu//,sched:*/aux-sample-size=64/"
expect_refusal "more than the 256 that a CPU" perfctl create a/x -e "$pmu//,cpu-clock/aux-sample-size=61440/" -F 5000
expect_refusal "no counter beside its trace" perfctl create a/x -e "$pmu//,sched:sched_switch/aux-sample-size=64/" -F 5
expect_refusal "takes no filter" perfctl create a/x -e "$pmu//,cpu-clock/aux-sample-size=64/" --max-rate 5
expect_refusal "takes no filter" perfctl create a/x -e "$pmu//" -F 100
expect_refusal "less than 65536" perfctl create a/x -e "$pmu//" -m 32K
expect_refusal "may not trace.* AuxTraces=" as_user perfctl create u/x -e "$pmu//"
perfctl create a/slow -e "$pmu//" -c 100000 -m 64K >/dev/null
expect_eq "$(perfctl show a/slow --json | json_field period)" 100000 "the period"
perfctl delete a/slow >/dev/null
expect_refusal "more than the 67108864" perfctl create a/x -e "$pmu//" -m 128M
expect_refusal "does not trace it" perfctl create a/x -e "$pmu/interval=1/"
expect_refusal "nothing can fire" perfctl trigger add a/x --on "$pmu//" --action notify
no_events
memory=$(perfctl limits --json | json_field memory 1)
perfctl create a/trace -e "$pmu//" -m 4M >/dev/null
[ $(($(perfctl limits --json | json_field memory 1) - memory)) -ge $((cpus * 4 << 20)) ] ||
	fail "AUX areas are not charged"
expect_refusal "may not" as_user perfctl snapshot a/trace -o -
perfctl delete a/trace >/dev/null

stop_daemon
write_conf "MaxCopies=1M"
start_daemon
expect_refusal "could never be copied.* MaxCopies=" perfctl create a/x -e "$pmu//" -m 1M
no_events

# Nothing is left: the module can be unloaded, which the kernel refuses while an event of it exists.
stop_daemon
wait_until 20 _no_keeper || fail "the keeper stays"
