#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What an event holds of a tracepoint is, byte for byte, what `perf record` wrote of it at the
# same time. A workload makes as many tracepoints fire as it can; of those that do, in batches,
# each is recorded by an event of ours and by perf side by side, and compared record by record
# (payload-compare.c). At least 200 must be, of every shape there is.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"

WANTED=200 # tracepoints to be compared
MOST=360   # and no more: the kernel takes 40 ms to let go of each
BATCH=120
BUFFER=$((256 * 1024))
CPUS=$(first_cpus 4)
PERF=(perf record --quiet --cpu "$CPUS" --count 1 --clockid monotonic --mmap-pages 32M
	--no-buildid --no-buildid-cache --no-bpf-event)
WORK=(taskset -c "$CPUS" "$BIN/tp-workload" "$SCRATCH/work" 2)

command -v perf >/dev/null || skip "perf is not installed"

survey() {
	with_tracefs "$BIN/payload-survey" /sys/kernel/tracing "$INSTANCE" "${WORK[@]}"
}

at_end() {
	with_tracefs sh -c "! [ -e '/sys/kernel/tracing/instances/$INSTANCE' ] ||
		rmdir '/sys/kernel/tracing/instances/$INSTANCE'"
}

# All that are no system calls, then of those each third: they are many and much alike. Of
# irq_work_exit, which its own samples cause, perf can take none to compare.
choose() {
	{
		grep -v -e ' syscalls:' -e ' irq_vectors:irq_work_exit$' "$1"
		grep ' syscalls:' "$1" | awk 'NR % 3 == 1; NR % 3 != 1 { late[++n] = $0 }
			END { for (i = 1; i <= n; i++) print late[i] }'
	} | awk -v most="$MOST" 'NR <= most { print $2 }'
}

compare_batch() {
	local names

	"$BIN/many-events" "$INSTANCE" payload "$BUFFER" "$CPUS" <"$1" >"$SCRATCH/created"
	with_tracefs "${PERF[@]}" --output "$SCRATCH/perf.data" -e "$(paste -sd, "$SCRATCH/created")" -- \
		"${WORK[@]}" >"$SCRATCH/perf.log" 2>&1 ||
		fail "perf record: $(tail -n 3 "$SCRATCH/perf.log")"
	"$BIN/payload-compare" "$SCRATCH/perf.data" "$INSTANCE" payload
	mapfile -t names < <(perfctl list --json | jq -r '.[] | "\(.namespace)/\(.name)"')
	expect_ok perfctl delete "${names[@]}"
}

mkdir "$SCRATCH/work"
start_daemon
survey | sort -k 2 >"$SCRATCH/fired"
choose "$SCRATCH/fired" >"$SCRATCH/chosen"
echo "$(wc -l <"$SCRATCH/fired") tracepoints fire here; $(wc -l <"$SCRATCH/chosen") of them are recorded"

split -l "$BATCH" "$SCRATCH/chosen" "$SCRATCH/batch."
for batch in "$SCRATCH"/batch.*; do
	compare_batch "$batch" >>"$SCRATCH/compared"
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
}' "$SCRATCH/compared"

equal=$(grep -vc 'compared=0 ' "$SCRATCH/compared" || true)
possible=$(wc -l <"$SCRATCH/chosen")
[ "$possible" -ge "$WANTED" ] || echo "this kernel has no more than $possible that fire"
[ "$equal" -ge "$WANTED" ] || [ "$equal" -ge $((possible * 9 / 10)) ] ||
	fail "only $equal tracepoints could be compared"
