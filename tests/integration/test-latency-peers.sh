#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Latency reports beside runqlat, offcputime and biolatency, as programs of bpftrace, in the same minute:
# the same count for each thread and state, and percentiles in the same bucket of bpftrace's histogram.
# Each program ends while both record (bpftrace -c), so that no interval is cut off in one of them.
#
# Both read the clock each time, one after the other. So they differ by a little in each interval, and
# a percentile beside the limit of a bucket may be in the next one. How far the two are apart is known,
# since bpftrace also prints each interval: if no interval differs by more than that, no percentile does.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"
for tool in bpftrace bpftool jq; do
	command -v $tool >/dev/null || skip "there is no $tool"
done

tracepoints_lock --shared
start_daemon
cd "$SCRATCH"

# beside PROGRAM SCRIPT: runs the script beside the program of bpftrace, which wants to begin an ELF file.
beside() {
	with_tracefs bpftrace -f json -e "$1" -c "$BASH $SCRATCH/$2" >peer.json 2>peer.err || fail "bpftrace: $(<peer.err)"
	expect_eq "$(jq -r 'select(.type == "lost_events") | .data.events' peer.json)" "" "what bpftrace has lost"
}

# Common to both sides: names and labels of rows. bpftrace has keys of two parts.
rows='
	def causes: { "0": "preempted", "1": "woken", "2": "new" };
	def states: { "0": "R", "1": "S", "2": "D", "256": "R+" };
	def thread($pid; $what): $names[0][$pid] | select(.) | "\(.):\($pid) \($what)";
	def operations: { "0": "read", "1": "write" };
	def row($report; $key): ($key | split(",")) as $k |
		if $report == "wakeups" then thread($k[0]; causes[$k[1]])
		elif $report == "off_cpu" then thread($k[0]; states[$k[1]] // "state \($k[1])")
		else "\($device) \(operations[$k[0]] // "other") \($k[1])" end;'

# theirs REPORT: of peer.json
theirs() {
	jq -r --arg report "$1" --arg device "${DEVICE-}" --slurpfile names names "$rows"'
		select(.type == "hist") | .data["@" + $report] // {} | to_entries[] | row($report; .key) as $row |
		.value[] | [$row, .min // 0, .max, .count] | @tsv' peer.json | sort -t $'\t' -k 1,1 -k 2,2n >theirs.hist
	jq -r --arg report "$1" --arg device "${DEVICE-}" --slurpfile names names "$rows"'
		select(.type == "printf") | .data | split("\n")[] | split(" ") | select(.[0] == $report) |
		row($report; .[1]) as $row | [$row, .[2], .[3]] | @tsv' peer.json | sort -t $'\t' -k 1,1 -k 2,2n >theirs.all
}

# ours REPORT FIELD: of report.json, with FIELD as the label
ours() {
	jq -r --arg report "$1" --arg field "$2" --arg device "${DEVICE-}" --slurpfile names names "$rows"'
		def of: if $report == "block" then .requests | select(startswith($device + " "))
			else thread(.pid | tostring; .[$field]) end;
		.[$report] | (.rows[] | of as $row | ["row", $row, .count, .p50, .p90, .p99, .p999]),
			(.longest[] | of as $row | [$row, .begin, .duration]) | @tsv' report.json >ours.json
	sed -n 's/^row\t//p' ours.json | sort -t $'\t' -k 1,1 >ours.rows
	grep -v $'^row\t' ours.json | sort -t $'\t' -k 1,1 -k 2,2n >ours.all
}

# only_missed REPORT PEER: the counts differ. The kernel runs no program of a tracepoint in an interrupt
# of another one on that CPU, whosever it is; bpftrace misses wakeups then, which the kernel counts.
# Fails if it was not that; else leaves out these rows.
only_missed() {
	local counted missed file
	counted=$(jq '[.[] | select(.type == "tracepoint" and .name == "sched_wakeup") | .recursion_misses // 0] | add' programs)
	missed=$(awk -F '\t' 'NR == FNR { n[$1] = $2; next }
		{ if ($2 < n[$1]) wrong++; sum += $2 - n[$1]; delete n[$1] }
		END { for (row in n) wrong++; print wrong ? 1e9 : sum }' theirs.counts ours.counts)
	if [ "$1" != wakeups ] || [ "$missed" -gt "$counted" ]; then
		fail "--${1//_/-}: not the counts of $2 (<) in this report (>): $(<differ)"
	fi
	echo "SKIP: $(grep -c '^>' differ) rows of --$1: $2 missed $missed wakeups, and the kernel counts $counted"
	comm -12 theirs.counts ours.counts | cut -f 1 >same
	for file in theirs.all ours.all theirs.hist ours.rows; do
		awk -F '\t' 'NR == FNR { is[$1]; next } $1 in is' same $file >kept
		mv kept $file
	done
}

# compare REPORT FIELD PEER: prints both as a table
compare() {
	theirs "$1"
	ours "$1" "$2"
	[ -s ours.rows ] || fail "--${1//_/-}: there is nothing to compare"
	awk -F '\t' '{ n[$1] += $4 } END { for (row in n) print row "\t" n[row] }' theirs.hist | sort >theirs.counts
	cut -f 1,2 ours.rows | sort >ours.counts
	diff theirs.counts ours.counts >differ || only_missed "$1" "$3"
	paste theirs.all ours.all >both
	awk -F '\t' -v report="--${1//_/-}" -v peer="$3" -f "$ROOT/tests/integration/latency-peers.awk" \
		both theirs.hist ours.rows || fail "${1//_/-}: not the percentiles of $3"
}

# ── threads: runqlat and offcputime ──────────────────────────────────────────────────────

# A wakeup of a thread that runs is no wait, and a state above 0xff says that the thread did not want
# to sleep. runqlat.bt takes neither into account.
threads='
	tracepoint:sched:sched_wakeup /strncmp(args->comm, "lt-", 3) == 0 && !@since[args->pid]/ {
		@since[args->pid] = nsecs; @cause[args->pid] = 1;
	}
	tracepoint:sched:sched_wakeup_new /strncmp(args->comm, "lt-", 3) == 0/ {
		@since[args->pid] = nsecs; @cause[args->pid] = 2;
	}
	tracepoint:sched:sched_switch {
		$now = nsecs;
		if (strncmp(args->prev_comm, "lt-", 3) == 0) {
			delete(@since[args->prev_pid]);
			if ((args->prev_state & 0xff) == 0) {
				@since[args->prev_pid] = $now; @cause[args->prev_pid] = 0;
			}
			@off[args->prev_pid] = $now; @state[args->prev_pid] = args->prev_state;
			if (args->prev_state & 0x30) {
				delete(@off[args->prev_pid]);
			}
		}
		if (strncmp(args->next_comm, "lt-", 3) == 0) {
			$since = @since[args->next_pid]; $cause = @cause[args->next_pid];
			if ($since) {
				@wakeups[args->next_pid, $cause] = hist(($now - $since) / 1000);
				printf("wakeups %d,%d %llu %llu\n", args->next_pid, $cause, $since, $now - $since);
			}
			$off = @off[args->next_pid]; $state = @state[args->next_pid];
			if ($off) {
				@off_cpu[args->next_pid, $state] = hist(($now - $off) / 1000);
				printf("off_cpu %d,%d %llu %llu\n", args->next_pid, $state, $off, $now - $off);
			}
			delete(@since[args->next_pid]); delete(@off[args->next_pid]);
		}
	}
	END { clear(@since); clear(@cause); clear(@off); clear(@state); }'

perfctl create t/sched -e sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new -m "$(length 8M 64M)" >/dev/null
cp "$BIN/latency-target" lt-target
cat >threads <<-END
	: >said
	./lt-target $(length 350 6000) >said &
	until grep -qE 'done|failed' said; do sleep 0.1; done
	bpftool -j prog show >programs
	kill %1
END
beside "$threads" threads
expect_eq "$(tail -n 1 said)" "done" "the target"
perfctl snapshot t/sched -o sched >/dev/null 2>&1
# lt-stuck ends with the target, when bpftrace may have ended.
sed -nE '/lt-stuck/d; s/^(lt-[a-z]+)=([0-9]+)$/\2 \1/p' said | jq -nR '[inputs | split(" ") | { (.[0]): .[1] }] | add' >names

perfctl report -i sched --wakeups --off-cpu --json --top 1000000 >report.json
compare wakeups cause runqlat
compare off_cpu state offcputime
perfctl delete t/sched >/dev/null

# ── block requests: biolatency ───────────────────────────────────────────────────────────

# A loop device of our own, so that its requests are all ours; it goes with the descriptor. bpftrace
# misses what interrupts another program of its kind on the CPU, so there is one request at a time.
truncate -s 64M disk
LOOP=$(losetup --find --show disk 2>/dev/null) || { echo "SKIP: block requests: no loop device"; exit 0; }
exec 9<>"$LOOP"
losetup --detach "$LOOP"
SCHEDULER=/sys/block/${LOOP##*/}/queue/scheduler
FORMER=$(sed 's/.*\[\(.*\)\].*/\1/' "$SCHEDULER")
at_end() {
	echo "$FORMER" >"$SCHEDULER"
}
# Without a scheduler no request is queued.
echo mq-deadline >"$SCHEDULER"

DEVICE=$(lsblk -dno MAJ:MIN "$LOOP" | xargs)
number=$(((${DEVICE%:*} << 20) + ${DEVICE#*:}))
# What follows the NUL in rwbs is not defined, so rwbs cannot be a key.
requests='
	tracepoint:block:block_rq_insert /args->dev == '$number'/ { @queued[args->sector] = nsecs; }
	tracepoint:block:block_rq_issue /args->dev == '$number'/ {
		$now = nsecs; $queued = @queued[args->sector];
		$operation = strncmp(args->rwbs, "R", 1) == 0 ? 0 : strncmp(args->rwbs, "W", 1) == 0 ? 1 : 2;
		if ($queued) {
			@block[$operation, "queue"] = hist(($now - $queued) / 1000);
			printf("block %d,queue %llu %llu\n", $operation, $queued, $now - $queued);
		}
		delete(@queued[args->sector]);
		@issued[args->sector] = $now; @operation[args->sector] = $operation;
	}
	tracepoint:block:block_rq_complete /args->dev == '$number' && @issued[args->sector]/ {
		$issued = @issued[args->sector]; $ns = nsecs - $issued; $operation = @operation[args->sector];
		@block[$operation, "device"] = hist($ns / 1000);
		printf("block %d,device %llu %llu\n", $operation, $issued, $ns);
		delete(@issued[args->sector]);
	}
	END { clear(@queued); clear(@issued); clear(@operation); }'

perfctl create t/block -e block:block_rq_insert --filter "dev == $number" -e block:block_rq_issue \
	--filter "dev == $number" -e block:block_rq_complete --filter "dev == $number" -m 16M >/dev/null
cat >requests <<-END
	for ((i = 0; i < $(length 15 500); i++)); do
		dd if=/dev/zero of=$LOOP bs=64k count=20 oflag=direct status=none
		dd if=$LOOP of=/dev/null bs=16k count=20 iflag=direct status=none
		sleep 0.05
	done
END
beside "$requests" requests
perfctl snapshot t/block -o block >/dev/null 2>&1
perfctl report -i block --block --json --top 1000000 >report.json
compare block requests biolatency
