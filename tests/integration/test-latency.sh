#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Latency reports of a known program: as many sleeps, reads and writes as it made, woken by whom it
# was, the call that does not return, and no interval that the records do not have. Counts, sums and
# maxima are those of `perf sched latency` and `perf trace -s` of the same file.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"
command -v perf >/dev/null || skip "there is no perf"

tracepoints_lock --shared
start_daemon
ROUNDS=$(length 20 200)
# Of the target alone, whose threads have its name first: others would overwrite its records.
comm='comm ~ "lt-*" || comm == "latency-target"'
perfctl create t/sched -e sched:sched_switch --filter "${comm//comm/prev_comm} || ${comm//comm/next_comm}" \
	-e sched:sched_wakeup,sched:sched_wakeup_new --filter "$comm" -m "$(length 8M 32M)" >/dev/null
perfctl create t/waking -e sched:sched_waking --filter "$comm" -m 8M >/dev/null
perfctl create t/calls -e raw_syscalls:sys_enter,raw_syscalls:sys_exit --comm 'lt-*' -m 8M >/dev/null
perfctl create t/small -e raw_syscalls:sys_enter,raw_syscalls:sys_exit -m 16K >/dev/null
perfctl create t/block -e block:block_rq_insert,block:block_rq_issue,block:block_rq_complete -m 4M >/dev/null
perfctl create t/irq -e irq:irq_handler_entry,irq:irq_handler_exit,irq:softirq_entry,irq:softirq_exit -m 4M >/dev/null

cd "$SCRATCH"
dd if=/dev/zero of=written bs=64k count=20 oflag=sync status=none
spawn "$BIN/latency-target" "$ROUNDS" >said
wait_until 60 grep -qE 'done|failed' said
expect_eq "$(tail -n 1 said)" "done" "the target"
# The rings of all CPUs end at one moment.
perfctl pause t/sched t/waking t/calls t/block t/irq >/dev/null
perfctl snapshot t/sched -o sched >/dev/null 2>&1
perfctl snapshot t/calls -o calls >/dev/null 2>&1
pid_of() {
	sed -n "s/^$1=//p" said | head -n 1
}

# The threads of which no switch and no wakeup is missing, according to the records as text: a kernel
# can skip some, which tools without a notion of that then take for long waits.
sed -n 's/^lt-[a-z]*=//p' said >pids
perf script -i sched --ns -F cpu,event,trace 2>/dev/null >text
awk '
	NR == FNR { ours[$1]; next }
	match($0, / pid=[0-9]+/) { woken[substr($0, RSTART + 5, RLENGTH - 5)] = 1; next }
	{
		match($0, /prev_pid=[0-9]+/); prev = substr($0, RSTART + 9, RLENGTH - 9)
		match($0, /next_pid=[0-9]+/); next_ = substr($0, RSTART + 9, RLENGTH - 9)
		if (($1 in on) && on[$1] != prev && is[on[$1]] == "on") { broken[on[$1]]; is[on[$1]] = "" }
		if (is[prev] == "off" || is[next_] == "on" || is[next_] == "off" && !woken[next_]) {
			if (is[prev] == "off") broken[prev]
			if (is[next_] == "on" || is[next_] == "off" && !woken[next_]) broken[next_]
		}
		is[prev] = "off"; woken[prev] = /prev_state=R/; is[next_] = "on"; on[$1] = next_
	}
	END { for (pid in ours) print pid, (pid in broken) ? "broken" : "whole" }' pids text | sort >states
while read -r pid _; do
	missing=$(perfctl report -i sched --off-cpu --wakeups --json --pid "$pid" | jq '.off_cpu.missing + .wakeups.missing')
	if [ "$missing" -eq 0 ]; then echo "$pid whole"; else echo "$pid broken"; fi
done <states >ours
diff states ours >differ || fail "records of these threads are missing (<), or not (>): $(<differ)"
sed -n 's/ whole//p' states >whole
# only_whole: rows whose second word is one of them
only_whole() {
	awk 'NR == FNR { is[$1]; next } $2 in is' whole - | sort
}

# same WHAT: the files `theirs` and `ours`
same() {
	diff theirs ours >differ || fail "$1: not the same (<) in this report (>): $(<differ)"
	[ -s ours ] || [ ! -s whole ] || fail "$1: there is nothing to compare"
}

# ── off a CPU ────────────────────────────────────────────────────────────────────────────

# Count, sum and maximum of each thread and state, from the switches as text.
perf script -i sched --ns -F time,event,trace 2>/dev/null | awk '
	$2 == "sched:sched_switch:" {
		split($1, t, /[.:]/); now = t[1] * 1000000000 + t[2]
		match($0, /prev_pid=[0-9]+/); prev = substr($0, RSTART + 9, RLENGTH - 9)
		match($0, /prev_state=[^ ]+/); s = substr($0, RSTART + 11, RLENGTH - 11)
		match($0, /next_pid=[0-9]+/); next_ = substr($0, RSTART + 9, RLENGTH - 9)
		if (next_ in since) {
			key = "pid " next_ " " state[next_]; ns = now - since[next_]
			n[key]++; sum[key] += ns; if (ns > max[key]) max[key] = ns
		}
		delete since[next_]; since[prev] = now; state[prev] = s
	}
	END { for (key in n) printf "%s %.0f %.0f %.0f\n", key, n[key], sum[key], max[key] }' | only_whole >theirs
perfctl report t/sched t/waking --off-cpu --json --top 100000 >off.json 2>/dev/null
jq -r '.off_cpu.rows[] | "pid \(.pid) \(.state) \(.count) \(.sum) \(.max)"' off.json |
	only_whole >ours
same "off a CPU"

perfctl report t/sched t/waking --off-cpu --json --top 100000 --pid "$(pid_of lt-reader)" >reader.json 2>/dev/null
expect_eq "$(jq -r '[.off_cpu.longest[] | select(.state == "S") | .waker.comm] | unique | join(" ")' reader.json)" lt-writer \
	"who woke the reader"
expect_eq "$(jq -r '[.off_cpu.rows[].comm] | unique | join(" ")' reader.json)" lt-reader "what --pid selects"
expect_eq "$(jq '[.off_cpu.longest[] | .woken == null or (.woken > .begin and .woken <= .begin + .duration)] | all' reader.json)" \
	true "wakeups are within their sleeps"
expect_eq "$(jq -c "[.off_cpu.open[] | select(.pid == $(pid_of lt-stuck)) | .state]" off.json)" '["S"]' "the sleep of lt-stuck"

# ── the run queue, and perf's view of it ─────────────────────────────────────────────────

perfctl report -i sched --wakeups --json --top 100000 >wakeups.json
hogs=$(jq '[.wakeups.rows[] | select(.comm == "lt-hog" and .cause == "preempted") | .count] | add // 0' wakeups.json)
[ "$hogs" -gt 0 ] || fail "no hog was preempted"

# The threads' names, ids, waits and longest. perf 6.1 does not know the state R+, preempted in the
# kernel: threads that were are left out.
jq -r '.off_cpu.rows[] | select(.state == "R+") | .pid' off.json >preempted
grep -vxFf preempted whole >known || true
mv known whole
with_tracefs perf sched latency -p -i sched >theirs.txt 2>perf.err || fail "perf sched latency: $(<perf.err)"
sed -nE 's/^ *(lt-[a-z]+):([0-9]+) *\| *[0-9.]+ ms \| *([0-9]+) \| avg: *[0-9.]+ ms \| max: *([0-9.]+) ms.*/\1 \2 \3 \4/p' \
	theirs.txt | only_whole >theirs
jq -r '.wakeups.rows | group_by(.pid)[] | [.[0].comm, .[0].pid, (map(.count) | add), (map(.max) | max)] | @tsv' wakeups.json |
	awk '/^lt-/ { printf "%s %d %d %.3f\n", $1, $2, $3, $4 / 1000000 }' | only_whole >ours
same "perf sched latency"
waits=$(wc -l <ours)

# ── system calls, and perf's view of them ────────────────────────────────────────────────

# calls_of NAME CALL: how many of them returned
calls_of() {
	jq "[.syscalls.rows[] | select(.pid == $(pid_of "$1") and .call == \"$2\") | .count] | add // 0" calls.json
}
perfctl report -i calls --syscalls --json --top 100000 >calls.json
expect_eq "$(calls_of lt-sleeper clock_nanosleep)" "$ROUNDS" "sleeps"
expect_eq "$(calls_of lt-reader read)" "$ROUNDS" "reads"
expect_eq "$(calls_of lt-writer write)" "$ROUNDS" "writes"
expect_eq "$(calls_of lt-stuck read)" 0 "reads that return"
expect_eq "$(jq -c '.syscalls.open | map([.comm, .call])' calls.json)" '[["lt-stuck","read"]]' "calls that do not return"
expect_eq "$(jq .syscalls.missing calls.json)" 0 "calls of which records are missing, such as signals' returns"
expect_eq "$(jq '[.syscalls.longest[] | select(.call == "clock_nanosleep" and .comm == "lt-sleeper") | .duration >= 10000000] | all' \
	calls.json)" true "sleeps of 10 ms are as long"

# perf prints times in ms, all of it on stderr. The prctl that names a thread is recorded from its end
# on; perf counts it with 0 ms.
with_tracefs perf trace -s -i calls >theirs.txt 2>&1 || fail "perf trace: $(<theirs.txt)"
awk '/^ *lt-[a-z]+ \([0-9]+\)/ { who = $1 " " $2; gsub(/[(),]/, "", who) }
	who != "" && NF >= 8 && $2 ~ /^[0-9]+$/ { print who, $1, $2, $4, $7 }' theirs.txt | grep -v prctl | sort >theirs
jq -r '.syscalls.rows[] | select(.comm | test("^lt-")) | [.comm, .pid, .call, .count, .sum, .max] | @tsv' calls.json |
	awk '{ printf "%s %d %s %d %.3f %.3f\n", $1, $2, $3, $4, $5 / 1e6, $6 / 1e6 }' | grep -v prctl | sort >ours
same "perf trace -s"
echo "as perf has it: the waits of $waits threads, $(jq .syscalls.count calls.json) calls in $(wc -l <ours) rows"

# ── block requests and interrupts, from their records as text ────────────────────────────

# Their programs begin and end one after another: the first handler has no end in the records, the last no
# beginning. A softirq begins only when its CPU handles nothing.
perfctl snapshot t/irq -o irq >/dev/null 2>&1
perf script -i irq --ns -F cpu,time,event,trace 2>/dev/null | awk '
	function forget(cpu, what, k) {
		for (k in since) if (index(k, cpu " ") == 1 && (what == "" || k == what)) { delete since[k]; missing++ }
	}
	function begun(cpu, k) { for (k in since) if (index(k, cpu " ") == 1) return 1; return 0 }
	{ split($2, t, /[.:]/); now = t[1] * 1000000000 + t[2]; soft = $3 ~ /softirq/; what = $1 " " soft " " $4 }
	$3 ~ /_entry:/ { forget($1, soft ? "" : what); since[what] = now
		if (match($0, /(action|name)=[^] ]*/)) name[what] = substr($0, RSTART, RLENGTH)
		next }
	what in since {
		split(name[what], part, "="); split($4, id, "=")
		key = soft ? "softirq " part[2] : "irq " id[2] " " part[2]
		ns = now - since[what]; n[key]++; sum[key] += ns; if (ns > max[key]) max[key] = ns
		delete since[what]; next
	}
	begun($1) { missing++ }
	END {
		for (key in n) printf "%s %.0f %.0f %.0f\n", key, n[key], sum[key], max[key]
		print "missing", missing + 0
	}' | sort >theirs
perfctl report -i irq --irq --json --top 100000 >irq.json
jq -r '.irq | (.rows[] | "\(.handler) \(.count) \(.sum) \(.max)"), "missing \(.missing)"' irq.json | sort >ours
same interrupts
grep -q '^softirq TIMER' ours || fail "no timer was handled"

perfctl snapshot t/block -o block >/dev/null 2>&1
perf script -i block --ns -F time,event,trace 2>/dev/null | sed -E 's/[0-9]* ?\(\)//' | awk '
	{ split($1, t, /[.:]/); now = t[1] * 1000000000 + t[2]; what = $3 " " $5; op = $4; sub(/^F/, "", op) }
	op !~ /^[RW]/ { next }
	{ split($3, d, ","); key = d[1] ":" d[2] (op ~ /^R/ ? " read " : " write ") }
	function count(key, ns) { n[key]++; sum[key] += ns; if (ns > max[key]) max[key] = ns }
	$2 ~ /_insert:/ { inserted[what] = now }
	$2 ~ /_issue:/ { if (what in inserted) count(key "queue", now - inserted[what]); delete inserted[what]
		issued[what] = now }
	$2 ~ /_complete:/ { if (what in issued) count(key "device", now - issued[what]); delete issued[what] }
	END { for (key in n) printf "%s %.0f %.0f %.0f\n", key, n[key], sum[key], max[key] }' | sort >theirs
perfctl report -i block --block --json --top 100000 >block.json
jq -r '.block.rows[] | select(.requests | test("read|write")) | "\(.requests) \(.count) \(.sum) \(.max)"' block.json | sort >ours
if [ -s theirs ]; then
	same "block requests"
else
	echo "not tested: block requests (files are not on a disk here)"
fi
echo "as text has it: $(jq .irq.count irq.json) handlers, $(jq .block.count block.json) times of block requests"

# ── what the time that is read cuts off, and what is not recorded ────────────────────────

# The middle of the longest sleep begins the time.
middle=$(jq '[.syscalls.longest[] | select(.call == "clock_nanosleep" and .comm == "lt-sleeper")][0] |
	.begin + .duration / 2 | floor' calls.json)
since=$(printf '%d.%09d' $((middle / 1000000000)) $((middle % 1000000000)))
perfctl report -i calls --syscalls --json --since "$since" --pid "$(pid_of lt-sleeper)" >cut.json
expect_eq "$(jq -c '[.syscalls.begun_before, .syscalls.missing]' cut.json)" '[1,0]' "the sleep that is cut off"

# Who has a CPU when the time begins has run since then, for the findings.
perfctl create t/all -e sched:sched_switch,sched:sched_waking -m 4M >/dev/null
cp "$(command -v bash)" lt-spin
spawn taskset -c 0 ./lt-spin -c 'while [ $SECONDS -lt 60 ]; do :; done'
spinner=$SPAWNED
sleep 0.7
perfctl snapshot t/all -o all >/dev/null 2>&1
rest "$spinner"
perfctl report -i all --findings --last 100ms --json >spun.json
expect_eq "$(jq '[.findings[] | select(.culprit.comm == "lt-spin") | .sum_ns <= 100000000] | all' spun.json)" true \
	"times in 100 ms: $(jq -c '[.findings[] | [.kind, .culprit.comm, .sum_ns]]' spun.json)"
echo "lt-spin ran $(jq '[.findings[] | select(.culprit.comm == "lt-spin") | .sum_ns] | max' spun.json) ns of the last 100 ms"

# Buffers that have been overwritten, each from another time on.
perfctl report t/small --syscalls --json --top 100000 >small.json 2>/dev/null
expect_eq "$(jq '.syscalls.history.from as $c | $c > .first and ([.syscalls.longest[] | .begin >= $c] | all)' small.json)" true \
	"calls begin when all buffers have records: $(head -c 400 small.json)"

perfctl snapshot t/waking -o waking >/dev/null 2>&1
for kind in $(length "wakeups irq" "off-cpu wakeups syscalls block irq"); do
	expect_exit 3 perfctl report -i waking "--$kind"
	line=$(sed -n 's/.*`perfctl \(create .*\)`.*/\1/p' <<<"$OUT")
	expect_eq "$(wc -l <<<"$OUT")" 1 "lines of the message: $OUT"
	[ -n "$line" ] || fail "without the line to type: $OUT"
	read -ra words <<<"$line"
	perfctl "${words[@]}" >/dev/null
	expect_ok perfctl report "${words[1]}" "--$kind"
	expect_match "$OUT" ' in all, ' "the report of --$kind"
done
expect_exit 2 perfctl report -i calls --syscalls --html page
expect_exit 3 perfctl report -i calls --syscalls --pid 1
