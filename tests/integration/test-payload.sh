#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# An event's records of a tracepoint equal those of a simultaneous `perf record`, byte for byte. A
# workload fires tracepoints; one of our events and perf record each of them side by side, and
# payload-compare.c compares them record by record.
#
# First the hot ones, with a tp_btf recorder and with a generic recorder, whose records are equal,
# too. Then all others, of every shape: in the short form a few of each shape, at full length all
# that the workload fires, at least 200.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"

FEW=12    # tracepoints of each shape, in the short form
WANTED=200 # tracepoints to be compared, at full length
MOST=360   # and no more: the kernel takes 40 ms to release each
BATCH=120
BUFFER=$((256 * 1024))
HOT_BUFFER=$((2 * 1024 * 1024)) # all of the machine's records while perf runs
CPUS=$(first_cpus 4)
# perf must be able to read its records, however busy the machine is.
PERF=(perf record --quiet --cpu "$CPUS" --count 1 --clockid monotonic --mmap-pages 64M --realtime 1
	--no-buildid --no-buildid-cache --no-bpf-event)
WORK=(taskset -c "$CPUS" "$BIN/tp-workload" "$SCRATCH/work" 2)
HOT=(raw_syscalls:sys_enter raw_syscalls:sys_exit
	sched:sched_switch sched:sched_waking sched:sched_wakeup
	sched:sched_process_fork sched:sched_process_exec sched:sched_process_exit
	irq:irq_handler_entry irq:irq_handler_exit irq:softirq_entry irq:softirq_exit irq:softirq_raise
	timer:hrtimer_init timer:hrtimer_setup timer:hrtimer_start timer:hrtimer_expire_entry
	timer:hrtimer_expire_exit timer:hrtimer_cancel)

command -v perf >/dev/null || skip "perf is not installed"
alone_with probes # the survey enables all events of the kernel

at_end() {
	with_tracefs sh -c "! [ -e '/sys/kernel/tracing/instances/$INSTANCE' ] ||
		rmdir '/sys/kernel/tracing/instances/$INSTANCE'"
}

# many NAMESPACE BUFFER [generic]: creates events on the tracepoints that it reads; prints these.
many() {
	local ns=$1 buffer=$2
	shift 2
	"$BIN/many-events" "$INSTANCE" "$ns" "$buffer" "$CPUS" "$@"
}

# compare TRACEPOINTS RESULT NAMESPACE…: compares perf's records of the tracepoints in that file
# with those of our events.
compare() {
	local file=$1 result=$2 names
	shift 2
	with_tracefs "${PERF[@]}" --output "$SCRATCH/perf.data" -e "$(paste -sd, "$file")" -- \
		"${WORK[@]}" >"$SCRATCH/perf.log" 2>&1 ||
		fail "perf record: $(tail -n 3 "$SCRATCH/perf.log")"
	"$BIN/payload-compare" "$SCRATCH/perf.data" "$INSTANCE" "$@" >"$result" ||
		fail "our records differ from perf's: $(grep DIFFERENT "$result" || true)"
	mapfile -t names < <(perfctl list --json | jq -r '.[] | "\(.namespace)/\(.name)"')
	expect_ok perfctl delete "${names[@]}"
}

mkdir "$SCRATCH/work"
start_daemon

# ── hot tracepoints, by both recorders ───────────────────────────────────────────────────

# Those of HOT that this kernel has.
hot_tracepoints() {
	with_tracefs bash -c 'for tp; do
		[ ! -e "/sys/kernel/tracing/events/${tp/://}/id" ] || echo "$tp"
	done' bash "${HOT[@]}"
}

hot_tracepoints >"$SCRATCH/hot"
if [ -e /sys/kernel/btf/vmlinux ]; then
	many plain $HOT_BUFFER generic <"$SCRATCH/hot" >/dev/null
	many hot $HOT_BUFFER <"$SCRATCH/hot" >/dev/null
	compare "$SCRATCH/hot" "$SCRATCH/hot-compared" hot plain
	# NAME twins equal=N hot-only=N plain-only=N hot-missed=N plain-missed=N shut-out=N unproved=N
	awk -v tracepoints="$(wc -l <"$SCRATCH/hot")" '$2 == "twins" {
		for (i = 3; i <= NF; i++) {
			split($i, n, "=")
			sum[n[1]] += n[2]
		}
		fired += $3 != "equal=0"
	}
	END {
		printf "%d of %d hot tracepoints fired: %d records are the same of both recorders, byte for byte\n", \
			fired, tracepoints, sum["equal"]
		printf "  %d only tp_btf has, %d only generic; the other one counts them as missed, but for %d\n", \
			sum["hot-only"], sum["plain-only"], sum["shut-out"]
		printf "  which nobody counts: the kernel shut perf out as well, while it woke who polls perf\n"
		exit fired < tracepoints - 2 # a machine may have no interrupts
	}' "$SCRATCH/hot-compared" || fail "too few of them fired: $(grep " twins equal=0 " "$SCRATCH/hot-compared" || true)"
else
	echo "SKIP hot tracepoints by both recorders: this kernel has no BTF"
	: >"$SCRATCH/hot"
	: >"$SCRATCH/hot-compared"
fi

# ── all others ───────────────────────────────────────────────────────────────────────────

# COUNT NAME SHAPE
survey() {
	with_tracefs "$BIN/payload-survey" /sys/kernel/tracing "$INSTANCE" "${WORK[@]}"
}

# The short form takes FEW of each word that describes a shape, and no two of a system that have the
# same shape, except for system calls, which differ in their number of arguments. It prefers those
# that fire a few times, so that neither perf nor our rings have to hold much. Full length takes
# everything but system calls, and every third of those: they are many and much alike.
choose() {
	if full; then
		grep -v ' syscalls:' "$1"
		grep ' syscalls:' "$1" | awk 'NR % 3 == 1; NR % 3 != 1 { late[++n] = $0 }
			END { for (i = 1; i <= n; i++) print late[i] }'
	else
		awk '{ print ($1 < 5 || $1 > 500), $0 }' "$1" | sort -s -k 1,1n | cut -d " " -f 2- | awk -v few=$FEW '{
			take = 0
			k = split($3, words, ",")
			for (i = 1; i <= k; i++)
				take += have[words[i]] < few
			split($2, name, ":")
			if (!take || seen[name[1], $3]++ >= (name[1] == "syscalls" ? 6 : 1))
				next
			for (i = 1; i <= k; i++)
				have[words[i]]++
			print
		}'
	fi | awk -v most="$MOST" 'NR <= most { print $2 }'
}

# perf's own samples fire irq_work_exit, so perf cannot record it for comparison.
survey | sort -k 2 | grep -v -F -f <(sed 's/.*/ & /' "$SCRATCH/hot") |
	grep -v ' irq_vectors:irq_work_exit ' >"$SCRATCH/fired"
choose "$SCRATCH/fired" >"$SCRATCH/chosen"
echo "$(wc -l <"$SCRATCH/fired") others fire here; $(wc -l <"$SCRATCH/chosen") of them are recorded"

split -l "$BATCH" "$SCRATCH/chosen" "$SCRATCH/batch."
for batch in "$SCRATCH"/batch.*; do
	many payload $BUFFER <"$batch" >"$SCRATCH/created"
	compare "$SCRATCH/created" "$batch.compared" payload
	cat "$batch.compared" >>"$SCRATCH/compared"
done

# ── what came of it ──────────────────────────────────────────────────────────────────────

# NAME RECORDER SHAPE compared=N gone=N extra=N missed=N padding=N
awk '{
	split($4, n, "="); split($5, gone, "="); split($6, extra, "=")
	records += n[2]; all_gone += gone[2]; all_extra += extra[2]
	if (n[2] == 0) { silent++; next }
	equal++; recorder[$2]++
	k = split($3, shape, ",")
	for (i = 1; i <= k; i++)
		shapes[shape[i]]++
}
END {
	printf "%d tracepoints, %d records: equal to what perf wrote\n", equal, records
	printf "  %d did not fire again; %d records of perf were gone from our rings; %d more than perf has\n", \
		silent, all_gone, all_extra
	for (s in recorder)
		printf "  recorder %-16s %4d\n", s, recorder[s] | "sort"
	for (s in shapes)
		printf "  shape    %-16s %4d\n", s, shapes[s] | "sort"
}' <(grep -v ' twins ' "$SCRATCH/hot-compared") "$SCRATCH/compared"

# Each shape that more than a few tracepoints have: those of the first file minus those of the
# second.
shapes='{ k = split($3, words, ","); for (i = 1; i <= k; i++) n[words[i]]++ }
	END { for (word in n) if (n[word] > few) print word }'
awk -v few=$FEW "$shapes" "$SCRATCH/fired" | sort >"$SCRATCH/shapes"
grep -v ' compared=0 ' "$SCRATCH/compared" | awk -v few=0 "$shapes" | sort >"$SCRATCH/shapes-compared"
expect_eq "$(comm -23 "$SCRATCH/shapes" "$SCRATCH/shapes-compared")" "" "shapes of which no tracepoint could be compared"

equal=$(grep -vc 'compared=0 ' "$SCRATCH/compared" || true)
possible=$(wc -l <"$SCRATCH/chosen")
wanted=$(length $((possible * 2 / 3)) $WANTED)
[ "$possible" -ge "$wanted" ] || echo "this kernel has no more than $possible that fire"
[ "$equal" -ge "$wanted" ] || [ "$equal" -ge $((possible * 9 / 10)) ] ||
	fail "only $equal tracepoints could be compared"
