#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A sampling event gets another frequency or period while it records: it keeps its buffers, no sample is
# taken twice, and there is no gap; then it samples as often as perf does. It takes other counters for
# that, also after the engine, which opened those that there are, was killed.
. "$(dirname "$0")/../lib.sh"

CPU=$(sed 's/.*[-,]//' /sys/devices/system/cpu/online)
LAST="" CHANGED=""

# wait_cpu NS: until the busy process has had so much more CPU time.
wait_cpu() {
	local until=$(($(cut -d ' ' -f 1 "/proc/$BUSY/schedstat") + $1))
	wait_until 60 cpu_time_is "$until"
}

cpu_time_is() {
	[ "$(cut -d ' ' -f 1 "/proc/$BUSY/schedstat")" -ge "$1" ]
}

# set_rate OPTION NUMBER PERIOD: changes t/samples, and lets it sample for a while.
set_rate() {
	perfctl change t/samples "$1" "$2" >/dev/null
	changed "$3"
	wait_cpu "$(length 60 1000)000000"
}

# changed PERIOD: it is changed by now.
changed() {
	LAST+=" $1"
	CHANGED+=" $(perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC -e 'printf "%.0f", clock_gettime(CLOCK_MONOTONIC) * 1e9')"
}

# "TIME PERIOD" of each record of an event, in order of time.
records() {
	perfctl reopen --json "$1" -n all 2>/dev/null | jq -r '"\(.time) \(.period)"' | sort -n
}

# check_handover FILE MISSED PERIOD…: the records have these periods, in this order. The last sample of
# one and the first of the next are no further apart than both periods together, and what was missed. Both
# may come for a moment, but not after the change has been reported (CHANGED).
check_handover() {
	local file=$1 missed=$2
	shift 2
	awk -v missed="$missed" -v periods="$*" -v changed="$CHANGED" '
		function fail(text) { print text; failed = 1; exit 1 }
		BEGIN { n = split(periods, period); split("0" changed, until); now = 1 }
		{
			if (now > 1 && $2 == period[now - 1] && $1 <= until[now]) {
				printf "%s ns: one %d ns after the first of %s\n", $2, $1 - first, period[now]
				next
			}
			if ($2 != period[now]) {
				if ($2 != period[now + 1])
					fail("line " NR ": period " $2 " after " period[now])
				first = $1
				gap = $1 - last
				if (gap > (period[now] + $2) * (1.1 + missed))
					fail("line " NR ": a gap of " gap " ns from " period[now] " to " $2)
				printf "%s ns, then %s ns: %d ns apart\n", period[now], $2, gap
				now++
			}
			last = $1
			count[now]++
		}
		END {
			if (!failed && now != n)
				fail(now " periods of " n)
		}' "$file" || fail "periods $*: see above"
}

start_daemon
# They sample the CPU, while only the time of one of its processes is waited for.
perfctl create t/samples -e cpu-clock -F 500 -C "$CPU" -m 32M >/dev/null
ID=$(perfctl show --json t/samples | jq .id)
LAST=2000000
spawn taskset -c "$CPU" sh -c 'while :; do :; done'
BUSY=$SPAWNED
wait_cpu 60000000

# ── no gap, and nothing twice ────────────────────────────────────────────────────────────

set_rate -F 2000 500000
set_rate -F 1000 1000000
kill_engine
wait_until 20 perfctl change t/samples -F 4000
changed 250000
wait_cpu 60000000
set_rate -c 2000000 2000000
for _ in $(seq "$(length 1 10)"); do
	set_rate -F 800 1250000
	set_rate -c 300000 300000
done
perfctl pause t/samples >/dev/null
records t/samples >"$SCRATCH/records"
# shellcheck disable=SC2086
check_handover "$SCRATCH/records" "$(stat_of t/samples missed)" $LAST
expect_eq "$(perfctl show --json t/samples | jq -c '[.id, .set, .freq, .period]')" "[$ID,1,0,300000]"
expect_eq "$(records_of t/samples)" "$(wc -l <"$SCRATCH/records")" "records: all are still there"

# ── as often as perf ─────────────────────────────────────────────────────────────────────

# A paused event, too.
expect_match "$(perfctl change t/samples -F 1997)" ' 1997 samples a second$'
MISSED=$(stat_of t/samples missed)
perfctl resume t/samples >/dev/null
expect_ok perf record -q -k mono -C "$CPU" -e cpu-clock -F 1997 -o "$SCRATCH/perf.data" -- sleep "$(length 0.3 3)"
perfctl pause t/samples >/dev/null
MISSED=$(($(stat_of t/samples missed) - MISSED)) # where others' BPF programs ran
without_ksymbols "$SCRATCH/perf.data"
perf script -i "$SCRATCH/perf.data" --ns -F time 2>/dev/null | tr -d ' :.' | sort -n >"$SCRATCH/perf"
FROM=$(head -n 1 "$SCRATCH/perf") TO=$(tail -n 1 "$SCRATCH/perf")
OURS=$(records t/samples | awk -v from="$FROM" -v to="$TO" '$2 == 500751 && $1 >= from && $1 <= to' | wc -l)
PERF=$(wc -l <"$SCRATCH/perf")
echo "at 1997 Hz: $OURS samples and $MISSED missed, perf has $PERF"
if [ $(((OURS + MISSED) * 100)) -lt $((PERF * 97)) ] || [ $((OURS * 97)) -gt $((PERF * 100)) ]; then
	fail "$OURS samples where perf has $PERF"
fi

# perf reads them, each with its own period.
expect_ok perfctl snapshot t/samples -o "$SCRATCH/snapshot.data"
expect_eq "$(perf script -i "$SCRATCH/snapshot.data" -F period 2>/dev/null | sort -n | uniq | xargs)" \
	"250000 300000 500000 500751 1000000 1250000 2000000" "periods, as perf reads them"

# ── where it applies ─────────────────────────────────────────────────────────────────────

perfctl create t/mixed -e cpu-clock -e sched:sched_switch -e page-faults -F 100 >/dev/null
expect_match "$(perfctl change t/mixed -F 200)" \
	', 200 samples a second; -F is for cpu-clock, page-faults, and every occurrence of the other is recorded$'
perfctl create t/switches -e sched:sched_switch >/dev/null
expect_exit 2 perfctl change t/switches -F 99
expect_match "$OUT" 'sched:sched_switch is a tracepoint, of which every occurrence is recorded; leave out the frequency'
expect_exit 2 perfctl change t/switches -c 99 --max-rate 7
expect_match "$OUT" 'leave out the period'
expect_eq "$(perfctl show --json t/switches | jq -c '[.max_rate, .period]')" "[0,0]"
expect_exit 2 perfctl change t/samples -F 99999999
expect_match "$OUT" 'kernel.perf_event_max_sample_rate'
expect_exit 2 perfctl change t/samples -F 99 -c 99
expect_exit 2 perfctl change t/samples -F 0
expect_eq "$(perfctl show --json t/samples | jq .freq)" 1997
