#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# `perfctl report` shows the same sums as perf: the same functions with the same shares, the same
# call chains, the same records in the same order, in text, folded, and as a perfetto trace, which
# protoc reads. Nothing in a trace can steer a terminal.

. "$(dirname "$0")/../lib.sh"

CALLS=1000
PROTO=$ROOT/tests/integration
TRACEPOINTS=(raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch sched:sched_waking
	kmem:kmem_cache_alloc)

# Tools find tracefs at its usual place, even where the machine has not mounted it.
with_tracefs() {
	unshare --mount --propagation private sh -c \
		'[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"' sh "$@"
}

record() {
	with_tracefs perf record --quiet --no-buildid-cache --no-bpf-event -r 1 -m 16M "$@" >"$SCRATCH/perf.log" 2>&1 ||
		fail "perf record: $(tail -n 3 "$SCRATCH/perf.log")"
}

start() {
	sed 's/;_dl_start_user/;_start/'
}

same() {
	diff "$1" "$2" >"$SCRATCH/diff" && return
	head -n 20 "$SCRATCH/diff" >&2
	fail "$3"
}

cd "$SCRATCH"
record -e cpu-clock -F 2000 -g -o samples -- "$BIN/report-target" "$CALLS" 300
# Records the whole scheduler, and of the rest only this test's processes: all records could exceed
# perf's buffers.
events=()
for event in "${TRACEPOINTS[@]}"; do
	events+=(-e "$event")
	[[ $event == sched:* ]] || events+=(--filter 'COMM == "report-target" || COMM ~ "*;evil*"')
done
record "${events[@]}" -a -k monotonic -o traces -- "$BIN/report-target" "$CALLS" 10
without_ksymbols traces

# ── functions: what perf report says ─────────────────────────────────────────────────────

# Compares only places with a name: perf lists nameless places one by one, and calls the jumps that
# the loader resolves "@plt". Leaves out strangers' BPF programs, which perf knows by other names,
# and which load and unload meanwhile. perf takes a return address for the function that begins
# there: this happens in the kernel, where the test therefore compares only the sampled function,
# and where ld.so's _start ends in a call. That function is left out: perf has its callers and its
# samples in two rows.
perf_symbols() {
	perf report -i samples --stdio -g none --percent-limit 0 -t '|' "$@" 2>/dev/null |
		grep -v '^#' | sed '/^$/d; s/ *| */|/g; s/^ *//; s/ *$//' |
		grep -vE '\[[.k]\] ((0x)?[0-9a-f]{16}|@plt)$' | grep -vE "$LEFT_OUT" | sort
}
LEFT_OUT='bpf_(prog|trampoline|dispatcher)_|ftrace_trampoline|\|ld-linux[^|]*\|\[\.\] (_start|_dl_start_user)$'
named='select(.symbol != "[unknown]" and .dso != "[unknown]")'

perf_symbols --no-children -F overhead,sample,comm,dso,sym >theirs
perfctl report -i samples --top 1000000 --json >report.json
jq -r ".events[] | .period as \$all | .symbols[] | $named |
	[.period / \$all * 100, .samples, .comm, .dso, if .kernel then \"[k]\" else \"[.]\" end, .symbol] |
	@tsv" report.json | awk -F '\t' '{ printf "%.2f%%|%d|%s|%s|%s %s\n", $1, $2, $3, $4, $5, $6 }' |
	grep -vE "$LEFT_OUT" | sort >ours
same theirs ours "functions are not those of perf report"
grep -q '|report-target|\[\.\] pp_leaf_long$' ours || fail "pp_leaf_long was not sampled"

perf_symbols --children -F overhead_children,overhead,sample,comm,dso,sym | grep -vF '[k]' >theirs
perfctl report -i samples --top 1000000 --json --children | jq -r ".events[] | .period as \$all |
	.symbols[] | $named | [.total_period / \$all * 100, .period / \$all * 100, .samples,
	.comm, .dso, if .kernel then \"[k]\" else \"[.]\" end, .symbol] | @tsv" |
	awk -F '\t' '{ printf "%.2f%%|%.2f%%|%d|%s|%s|%s %s\n", $1, $2, $3, $4, $5, $6, $7 }' |
	grep -vF '[k]' | grep -vE "$LEFT_OUT" | sort >ours
same theirs ours "functions with their children are not those of perf report"

for keys in comm dso dso,symbol pid,symbol; do
	total=$(perfctl report -i samples --top 1000000 --json --sort "$keys" |
		jq '.events[] | [([.symbols[].period] | add) == .period, .different_symbols > 0] | all')
	expect_eq "$total" true "all samples are in the sums by $keys"
done
echo "functions: $(wc -l <ours)"
perf script -i samples -F pid,tid 2>/dev/null | grep / | tr / ' ' | sort | uniq -c | awk '{ print $2, $3, $1 }' | sort >theirs
perfctl report -i samples --top 1000000 --json --sort pid,tid |
	jq -r '.events[].symbols[] | "\(.pid) \(.tid) \(.samples)"' | sort >ours
same theirs ours "samples of each thread"

# ── call chains: what perf script says ───────────────────────────────────────────────────

# Chains of functions, the outermost first, each with the number of its samples; only the innermost
# function of the kernel.
perf script -i samples --no-inline -F comm,ip,sym 2>/dev/null | awk '
	/^[^\t ]/ { comm = $0; sub(/[ \t]+$/, "", comm); stack = ""; next }
	stack != "" && $1 ~ /^ffff/ { next }
	NF { name = $2; for (i = 3; i <= NF; i++) name = name " " $i
		if (name == "@plt") # a jump that has no name
			name = "[unknown]"
		stack = ";" name stack; next }
	comm != "" { count[comm stack]++; comm = "" }
	END { for (key in count) print key, count[key] }' | start | grep -v evil | sort >theirs
perfctl report -i samples --folded --weight samples 2>told | grep -v evil |
	sed -E ':next; s/;[^;]*_\[k\];/;/; t next; s/_\[k\]//; s/;\[[^];]*\]/;[unknown]/g' |
	awk '{ n = $NF; sub(/ [0-9]+$/, ""); count[$0] += n } END { for (key in count) print key, count[key] }' |
	sort >ours
same theirs ours "call chains are not those of perf script"
grep -q '^report-target;.*;main;pp_outer;pp_middle;pp_leaf_short [0-9]*$' ours ||
	fail "the chain of pp_leaf_short is not there"

perfctl report -i samples --folded=stacks --weight period 2>told
expect_match "$(cat told)" '^stacks: [0-9]+ stacks, [0-9]+ by period$' "what --folded tells"
expect_eq "$(awk '{ n += $NF } END { printf "%d", n }' stacks)" \
	"$(jq '.events[].period' report.json)" "weight of all stacks"
expect_eq "$(stat -c %a stacks)" 600 "mode of the file"
grep -q '^report-target;.*_\[k\]' stacks || fail "no function is marked as the kernel's"
short=$(perfctl report -i samples --folded --max-stack 2 2>/dev/null | awk -F ';' 'NF > 3' | wc -l)
expect_eq "$short" 0 "chains that are longer than --max-stack 2"

# As trees: the callers' tree has the callers on top, the callees' tree has them at the bottom.
perfctl report -i samples --children -g --percent-limit 5 >tree
awk '/^Call chains/ { on = 1 } on && /pp_(outer|middle|leaf_long)/ { printf "%s ", $3 }' tree >order
grep -q '^pp_outer pp_middle pp_leaf_long ' order || fail "not the callers first: $(cat tree)"
perfctl report -i samples -gcallee --percent-limit 5 >tree
# In perf's spelling, where the order stands apart and may be one of a list.
perfctl report -i samples -g callee --percent-limit 5 | cmp - tree || fail "-g callee"
perfctl report -g graph,5,callee -i samples --percent-limit 5 | cmp - tree || fail "-g graph,5,callee"
perfctl report -i samples -g none --percent-limit 5 | cmp - <(perfctl report -i samples --percent-limit 5) || fail "-g none"
[ "$(perfctl report -i samples -g callee,60 --percent-limit 5 | wc -l)" -lt "$(wc -l <tree)" ] || fail "-g callee,60 prints rare chains, too"
awk '/^Call chains/ { on = 1 } on && /pp_(outer|middle|leaf_long)/ { printf "%s ", $3 }' tree >order
# After others, if those had more samples.
expect_match "$(cat order)" '(^| )pp_leaf_long pp_middle pp_outer ' "what was hit first"
echo "chains: $(wc -l <ours)"

# ── tracepoints and processes ────────────────────────────────────────────────────────────

perfctl report -i traces --json --top 1000000 >report.json
for event in "${TRACEPOINTS[@]}"; do
	perf script -i traces -F cpu,event 2>/dev/null | awk -v event="$event:" '
		$2 == event { gsub(/[][]/, "", $1); n[$1 + 0]++ }
		END { for (cpu in n) print cpu, n[cpu] }' | sort >theirs
	jq -r --arg event "$event" '.events[] | select(.event == $event) | .cpus | to_entries[] |
		"\(.key) \(.value)"' report.json | sort >ours
	same theirs ours "$event: records of each CPU"
	[ -s ours ] || fail "$event: there are no records"
done

# Which task was on a CPU, and for how long: from switches that agree on the running task.
perf script -i traces --ns -F pid,cpu,time,event,trace 2>/dev/null | awk '
	$4 == "sched:sched_switch:" {
		cpu = $2; split($3, t, /[.:]/); now = t[1] * 1000000000 + t[2]
		match($0, /prev_pid=[0-9]+/); prev = substr($0, RSTART + 9, RLENGTH - 9)
		match($0, /next_pid=[0-9]+/); next_ = substr($0, RSTART + 9, RLENGTH - 9)
		if ((cpu in on) && on[cpu] == prev && prev != 0)
			run += now - since[cpu]
		on[cpu] = next_; since[cpu] = now
	}
	END { printf "%d\n", run }' >theirs
jq '[.processes[].on_cpu_ns] | add' report.json >ours
same theirs ours "time on CPUs"

# Short programs of a loop are one line below their parent, also one without records of its own, and
# everything is in the tree once.
record -e sched:sched_process_exit -o tree -- bash -c 'for i in {1..40}; do /bin/true; done; (/bin/echo; /bin/echo; :) | cat; exec sleep 0'
perfctl report -i tree --json | jq -c '.process_tree as $t | $t[] | [.comm, .processes, .records, if .parent then $t[.parent].comm else null end]' >ours
expect_eq "$(grep -c '"true"' ours)" 1 "lines for true"
expect_match "$(grep '"true"' ours)" '^\["true",40,40,"(sleep|bash)"\]$' "40 programs"
expect_match "$(grep '"echo"' ours)" '^\["echo",2,2,"bash"\]$' "two programs of a shell in between"
expect_match "$(perfctl report -i tree)" ' 40 +- +true' "40 programs in the table"
expect_eq "$(jq '[.process_tree[].records] | add' report.json)" "$(jq .records report.json)" "all records are in the tree"

# Parents are the same by sched_process_fork as by sideband (PERF_RECORD_FORK is 7).
record -e sched:sched_process_fork -e sched:sched_process_exit -o forks -- \
	bash -c 'for i in {1..40}; do /bin/true; done; (/bin/echo; /bin/echo; :) | cat; :'
parents() {
	perfctl report -i forks --json "$@" | jq -c '.process_tree as $t | $t[] | [.comm, .processes, .records, if .parent then $t[.parent].comm else null end]' | sort
}
parents >theirs
without_ksymbols forks 7
parents >ours
same theirs ours "parents by sched_process_fork are not those by sideband"
expect_eq "$(grep '"true"' ours)" '["true",40,40,"bash"]' "40 programs by sched_process_fork"
expect_eq "$(parents --event sched:sched_process_exit | grep -c '"bash"\]' || true)" 0 "children of bash without its forks"

# For one process: the same numbers, which come from the switches of all.
jq -r '.processes[] | select(.pid > 0 and .switches > 0) | .pid' report.json | head -n 3 >pids
[ -s pids ] || fail "no process was on a CPU"
perfctl report -i traces | grep '^CPUs were busy' >theirs
while read -r pid; do
	want=$(jq -c ".processes[] | select(.pid == $pid)" report.json)
	expect_eq "$(perfctl report -i traces --pid "$pid" --json | jq -c '.processes[]')" "$want" \
		"report --pid $pid"
	perfctl report -i traces --pid "$pid" | grep '^CPUs were busy' >ours
	same theirs ours "how busy CPUs were, with --pid $pid"
done <pids
# For a thread: includes what others did to it.
tid=$(jq -r '[.processes[] | select(.comm == "report-target")][0].pid' report.json)
perf script -i traces -F tid,event,trace 2>/dev/null | awk -v tid="$tid" '
	$1 == tid { by++ }
	$1 == tid || $0 ~ ("[ _]pid=" tid "( |$)") { about++ }
	END { printf "%d %d\n", by, about }' >theirs
echo "$(perfctl script -i traces --tid "$tid" | wc -l)" \
	"$(perfctl script -i traces --tid "$tid" --about | wc -l)" >ours
same theirs ours "records by, and about thread $tid"
read -r by about <ours
[ "$about" -gt "$by" ] || fail "no other thread has a record about thread $tid"
# With --about, each process has what others did to it beside what it did: what --pid selects with and
# without --about.
perfctl report -i traces --about --json --top 1000000 >about.json
expect_eq "$(jq '[.processes[] | select(.records > 0) | del(.about)]' about.json)" \
	"$(jq '[.processes[] | del(.about)]' report.json)" "processes with --about"
jq -r '[.processes[] | select(.pid)] | sort_by(-.about)[:2][].pid' about.json >pids
jq -r '.processes[] | select(.comm == "report-target") | .pid' about.json | head -n 1 >>pids
while read -r pid; do
	echo "$pid $(perfctl report -i traces --pid "$pid" --about --json | jq .records)"
done <pids >ours
while read -r pid; do
	jq -r --argjson pid "$pid" '.processes[] | select(.pid == $pid) | "\(.pid) \(.records + .about)"' about.json
done <pids >theirs
same theirs ours "records of and about processes"
expect_eq "$(jq -c '[([.processes[].about] | add) > 0, ([.processes[].about] | add) == ([.process_tree[].about] | add)]' about.json)" \
	'[true,true]' "records about processes, in the tree"
expect_match "$(perfctl report -i traces --about)" 'RECORDS +OF ALL +ABOUT +ON CPU' "a column for them"

# A number that no process has.
expect_exit 3 perfctl report -i traces --pid 2147483647
expect_match "$OUT" 'has no record of the threads that --pid and --tid select; --about' "nobody has the number"
expect_exit 3 perfctl script -i traces --tid 2147483647 --about
for picture in --perfetto=none --html=none --folded=none; do
	expect_exit 3 perfctl report -i traces --pid 2147483647 "$picture"
	[ ! -e none ] || fail "$picture leaves a file"
done

expect_ok perfctl report -i traces --top 10000
expect_match "$OUT" $'\n +'"[0-9]+ .* sched:sched_switch" "the table of events"
# shellcheck disable=SC1003
expect_match "$OUT" '\\x1b\[31m;evil' "a name that would steer a terminal"
[[ $OUT != *$'\e'* ]] || fail "an escape character got through"
expect_match "$OUT" "Time +[0-9.]+ s, 20[0-9-]+ [0-9:.]+ to .* monotonic [0-9.]+ to" "the time of day"

expect_eq "$(perfctl report -i traces --event 'sched:*' --json | jq '[.events[] |
	select(.records > 0).event] | sort | join(" ")')" '"sched:sched_switch sched:sched_waking"' \
	"events of --event"
# Its stacks, in a text where a semicolon ends a function.
calls=$(perfctl report -i traces --event raw_syscalls:sys_exit --folded 2>/dev/null |
	awk '/^_\[31m:evil;/ { n += $NF } END { print n + 0 }')
[ "$calls" -ge "$CALLS" ] || fail "folded: $calls system calls of $CALLS"

# ── perfetto ─────────────────────────────────────────────────────────────────────────────

command -v protoc >/dev/null || skip "protoc is not there to read a perfetto trace with"
decode() {
	protoc -I "$PROTO" --decode=perfetto.Trace perfetto.proto <"$1" >"$1.txt" ||
		fail "protoc cannot read $1"
	if grep -E -m 1 '^ *[0-9]+(:| \{)' "$1.txt" >&2; then
		fail "$1 has a field that is not in perfetto.proto"
	fi
}

# One line per packet or ftrace event: its fields as path=value.
flatten='
	function add(text) { line = line " " text }
	/\{$/ { depth++; name[depth] = $1
		if ($1 == "event" && name[depth - 1] == "ftrace_events") { head = line; line = "" }
		next }
	/^ *\}$/ { if (name[depth] == "event" && name[depth - 1] == "ftrace_events") {
			print "ftrace cpu=" cpu line; line = head }
		depth--
		if (!depth) { print "packet" line; line = "" }
		next }
	{ key = $1; sub(/:$/, "", key); value = $0; sub(/^ *[a-z_]+: /, "", value)
		path = ""
		for (i = 2; i <= depth; i++) path = path name[i] "."
		if (path == "ftrace_events." && key == "cpu") cpu = value
		sub(/^ftrace_events\.event\./, "", path)
		add(path key "=" value) }'

expect_ok perfctl report -i traces --perfetto traces.pf
decode traces.pf
awk "$flatten" traces.pf.txt >lines

# Switches, one for one: CPU, time and tasks, in the order of time.
perf script -i traces --ns -F cpu,time,event,trace 2>/dev/null | sed -nE \
	's/^ *\[0*([0-9]+)\] +([0-9]+)\.([0-9]+): +sched:sched_switch: .*prev_pid=([0-9]+) prev_prio=(-?[0-9]+) .*next_pid=([0-9]+) next_prio=(-?[0-9]+)$/\1 \2\3 \4 \5 \6 \7/p' |
	sort >theirs
sed -nE 's/^ftrace cpu=([0-9]+) timestamp=([0-9]+) pid=[0-9]+ .*sched_switch.prev_pid=([0-9]+) .*prev_prio=(-?[0-9]+) .*next_pid=([0-9]+) .*next_prio=(-?[0-9]+)$/\1 \2 \3 \4 \5 \6/p' lines |
	sort >ours
same theirs ours "switches in the perfetto trace"
[ -s ours ] || fail "there are no switches in the perfetto trace"

# System calls, with number and arguments.
perf script -i traces --ns -F tid,cpu,time,event,trace 2>/dev/null | sed -nE \
	's/^ *([0-9]+) +\[0*([0-9]+)\] +([0-9]+)\.([0-9]+): +raw_syscalls:sys_exit: NR (-?[0-9]+) = (-?[0-9]+)$/\2 \3\4 \1 \5 \6/p' |
	sort >theirs
sed -nE 's/^ftrace cpu=([0-9]+) timestamp=([0-9]+) pid=([0-9]+) sys_exit.id=(-?[0-9]+) sys_exit.ret=(-?[0-9]+)$/\1 \2 \3 \4 \5/p' lines |
	sort >ours
same theirs ours "system calls in the perfetto trace"
expect_eq "$(grep -c '^ftrace .* sys_enter.id=' lines)" \
	"$(jq '.events[] | select(.event == "raw_syscalls:sys_enter").records' report.json)" \
	"system calls that began"
expect_eq "$(grep '^ftrace .* sys_enter.id=' lines | grep -vcE '( sys_enter.args=[0-9]+){6}$' || :)" 0 \
	"system calls without their six arguments"

# Events unknown to perfetto become instants: the time, the thread by its track, a field by its
# name.
number=$(awk '/debug_annotation_names/ { on = 1 } on && /iid:/ { iid = $2 }
	on && /name: "bytes_req"/ { print iid; exit }' traces.pf.txt)
[ -n "$number" ] || fail "no field is called bytes_req"
perf script -i traces --ns -F tid,time,event,trace 2>/dev/null | sed -nE \
	's/^ *([0-9]+) +([0-9]+)\.([0-9]+): +kmem:kmem_cache_alloc: .*bytes_req=([0-9]+) .*$/\2\3 \1 \4/p' |
	awk '$2 != 0' | sort >theirs
sed -n '/ track_event\./p' lines | awk -v number="$number" '
	{ time = track = bytes = ""
	for (i = 2; i <= NF; i++) {
		split($i, kv, "=")
		if (kv[1] == "timestamp") time = kv[2]
		if (kv[1] == "track_event.track_uuid") track = kv[2]
		if (kv[1] == "track_event.debug_annotations.name_iid") iid = kv[2]
		if (kv[1] == "track_event.debug_annotations.uint_value" && iid == number) bytes = kv[2]
	}
	print time, track, bytes }' >moments
sed -nE 's/^packet .*track_descriptor.uuid=([0-9]+) track_descriptor.thread.pid=-?[0-9]+ track_descriptor.thread.tid=([0-9]+).*/\1 \2/p' lines >tracks
awk 'NR == FNR { tid[$1] = $2; next } $2 in tid { print $1, tid[$2], $3 }' tracks moments | sort >ours
same theirs ours "moments in the perfetto trace"
[ -s ours ] || fail "there are no moments in the perfetto trace"

# Names, clocks, kernel.
grep -q ' process_tree.processes.cmdline="report-target"' lines || fail "report-target has no name"
grep -qF 'process_tree.threads.name="\\x1b[31m;evil"' lines || fail "the evil name is not there"
grep -q " system_info.utsname.release=\"$(uname -r)\"" lines || fail "the kernel is not told"
# The clocks: CLOCK_MONOTONIC is the trace's, the ftrace events' (64) and each packet's, and none passes
# for CLOCK_BOOTTIME, which is perfetto's choice where a packet or a bundle names none.
grep -E '^packet .* clock_snapshot\.' lines >clocks
expect_eq "$(wc -l <clocks)" 1 "clock snapshots"
time_of() {
	grep -oP "clock_id=$1 clock_snapshot.clocks.timestamp=\K[0-9]+" clocks || fail "the trace does not tell clock $1"
}
offset=$(sed -E 's/.*"realtime_offset":([0-9]+).*/\1/' report.json) # too large for jq
expect_eq "$(($(time_of 1) - $(time_of 3)))" "$offset" "the time of day of CLOCK_MONOTONIC 0"
expect_eq "$(time_of 64)" "$(time_of 3)" "the ftrace events' clock"
expect_match "$(<clocks)" 'primary_trace_clock=3 ' "the trace's clock"
! grep -qE 'clock_id=6( |$)' lines || fail "the trace tells CLOCK_BOOTTIME, which was not recorded"
expect_eq "$(grep -c '^  timestamp_clock_id: 3$' traces.pf.txt)" \
	"$(grep -c '^packet {' traces.pf.txt)" "packets that name their clock"
expect_eq "$(grep -c '^    ftrace_clock: 2$' traces.pf.txt)" "$(grep -c '^  ftrace_events {' traces.pf.txt)" \
	"bundles that name their clock"

# Samples: the chains by their interned numbers, compared with perf script's.
expect_ok perfctl report -i samples --perfetto samples.pf
decode samples.pf
perf script -i samples --ns --no-inline -F time,ip,sym 2>/dev/null | awk '
	/^ *[0-9]+\.[0-9]+:/ { time = $1; gsub(/[.:]/, "", time); sub(/^0+/, "", time); stack = ""; next }
	stack != "" && $1 ~ /^ffff/ { next }
	NF { name = $2; for (i = 3; i <= NF; i++) name = name " " $i
		if (name == "@plt") # as above
			name = "[unknown]"
		stack = ";" name stack; next }
	time != "" { print time stack; time = "" }' | start | sort >theirs
awk '
	/\{$/ { in_[++depth] = $1; next }
	/^ *\}$/ { if (in_[depth] == "callstacks") stack[iid] = chain last
		if (in_[depth] == "perf_sample") print time stack[sample]
		depth--; next }
	in_[depth] == "packet" && $1 == "timestamp:" { time = $2 }
	$1 == "iid:" { iid = $2; chain = last = "" }
	$1 == "str:" && in_[depth] == "function_names" { name = $0; sub(/^ *str: "/, "", name)
		sub(/"$/, "", name); names[iid] = name }
	$1 == "function_name_id:" { function_[iid] = $2 }
	$1 == "kind:" { kernel[iid] = $2 == 2 }
	$1 == "frame_ids:" { if (!is_kernel) chain = chain last
		last = ";" names[function_[$2]]; is_kernel = kernel[$2] }
	$1 == "callstack_iid:" { sample = $2 }' samples.pf.txt | sort >ours
same theirs ours "samples in the perfetto trace"
expect_match "$(awk '/timebase \{/ { on = 1 } on { printf "%s ", $0 } /\}/ { on = 0 }' samples.pf.txt)" \
	'frequency: 2000 +counter: 1 +name: "cpu-clock"' "what drove the samples"
# perf recorded these by a clock of its own, for which perfetto has no number.
expect_eq "$(sed -nE 's/^ *primary_trace_clock: //p; s/^  timestamp_clock_id: //p' samples.pf.txt | sort -u)" 128 \
	"the clock of a trace without a known one"
echo "perfetto: $(wc -l <lines) packets and events, $(wc -l <ours) samples"

# ── what cannot be done is said, and leaves nothing ──────────────────────────────────────

printf 'not a trace\n' >bad
for wrong in "--sort cpu" "--percent-limit 101" "--percent-limit x" "--top 0" "-gup" "-g callee,up" \
	"--folded --perfetto x" "--folded --json" "--weight period" "--weight x --folded"; do
	# shellcheck disable=SC2086
	expect_exit 2 perfctl report -i samples $wrong
	expect_match "$OUT" "see .perfctl report --help" "what is said of $wrong"
done
expect_exit 1 perfctl report -i bad
expect_exit 1 perfctl report -i bad --perfetto bad.pf
[ ! -e bad.pf ] || fail "a trace was left that is none"
expect_exit 1 perfctl report -i bad --folded=stacks
[ -s stacks ] || fail "the earlier output is gone"
expect_exit 1 perfctl report -i samples --perfetto nowhere/x
expect_match "$OUT" "nowhere/x" "what cannot be written"
[ "$(perfctl report -i no-such-file 2>&1 | wc -l)" -eq 1 ] || fail "not one sentence"

# perfctl reports a trace that ends in the middle of a record up to that point.
head -c $(($(stat -c %s traces) / 2)) traces >half
expect_exit 1 perfctl report -i half --json

# ── events that record now ───────────────────────────────────────────────────────────────

start_daemon
expect_ok perfctl create t/exits -e raw_syscalls:sys_exit --comm '*evil' -m 2M
wait_until 20 kept # a process that exits before that has no name
"$BIN/report-target" "$CALLS" 1
expect_ok perfctl pause t/exits
expect_match "$(perfctl report t/exits)" '^Trace +a snapshot of t/exits' \
	"what it is called"
calls=$(perfctl report t/ --folded 2>told | awk '/^_\[31m:evil;/ { n += $NF } END { print n + 0 }')
[ "$calls" -ge "$CALLS" ] || fail "a snapshot has $calls system calls of $CALLS: $(xargs <told)
$(perfctl ping)
$(perfctl report t/)"
expect_exit 3 perfctl report t/none
expect_exit 4 as_user perfctl report t/exits --perfetto "$SCRATCH/stolen"
