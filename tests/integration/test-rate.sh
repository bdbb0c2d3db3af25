#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A rate limit passes so many records per second and CPU and counts the others. Every known call is
# accounted for, the first ones of a window pass, and a limit can be removed and set again while the
# event records (rate-check.c). Covers every recorder, shared rings, and perfctl's output.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"

start_daemon
cpus=$(first_cpus 2)

# limited NAME RATE RECORDS EVENT [OPTION…]: these run side by side, because they mostly wait for
# seconds to pass.
checks=()
limited() {
	local name=$1 rate=$2 records=$3 event=$4
	shift 4
	perfctl create "r/$name" -e "$event" --filter "id == 3 && COMM == \"rate-$name\"" --max-rate "$rate" \
		-C "$cpus" -m 1M "$@" >/dev/null
	spawn "$BIN/rate-check" "$INSTANCE" "r/$name" "$rate" "$records" "rate-$name" >"$SCRATCH/$name" 2>&1
	checks+=("$name=$SPAWNED")
}

limited hot 500 1 raw_syscalls:sys_enter
limited generic 700 1 raw_syscalls:sys_enter --generic
limited several 300 2 'raw_syscalls:*'
for check in "${checks[@]}"; do
	name=${check%=*} failed=0
	wait "${check#*=}" || failed=1
	echo "$name: $(perfctl show "r/$name" --json | jq -r '"\(.event), \(.recorder), \(.max_rate)/s"')"
	cat "$SCRATCH/$name"
	[ $failed -eq 0 ] || fail "the limit of $name"
	perfctl delete "r/$name" >/dev/null
done

# ── probes and samples ───────────────────────────────────────────────────────────────────

counts() {
	perfctl show "$1" --json | jq -r "$2"
}

perfctl create r/probe -e "uprobe:$BIN/probe-target:pp_work" --max-rate 10/s -m 64K >/dev/null
echo | taskset -c "${cpus%%,*}" "$BIN/probe-target" 500 >/dev/null
expect_eq "$(counts r/probe '.records + .limited')" 500 "records and limited of a probe"
[ "$(counts r/probe .records)" -ge 10 ] || fail "a probe's limit let too few through"
[ "$(counts r/probe .limited)" -gt 400 ] || fail "a probe's limit let too many through"

some_limited() {
	[ "$(counts r/samples .limited)" -ge 100 ] && [ "$(counts r/samples .records)" -ge 10 ]
}
perfctl create r/samples -e cpu-clock -F 1000 --max-rate 10 -C "${cpus%%,*}" >/dev/null
busy 20 "${cpus%%,*}"
wait_until 15 some_limited || fail "a limit on samples keeps none out"
rest "$SPAWNED"
wait "$SPAWNED" || true

# ── perfctl ──────────────────────────────────────────────────────────────────────────────

expect_eq "$(counts r/probe .max_rate)" 10 "max_rate"
expect_ok perfctl change r/probe --max-rate 0
expect_eq "$(counts r/probe .max_rate)" 0 "max_rate, changed"
before=$(counts r/probe .limited)
echo | "$BIN/probe-target" 100 >/dev/null
expect_eq "$(counts r/probe '.records + .limited')" 600 "records and limited, without a limit"
expect_eq "$(counts r/probe .limited)" "$before" "limited, without a limit"
expect_match "$(perfctl show r/probe)" "limited" "show"
expect_match "$(cat "$REGISTRY/r/probe/stat")" "total .*limited=$before" "the registry's file"
for bad in 0 -1 x 10/h 10/ ''; do
	expect_exit 2 perfctl create r/bad -e cpu-clock --max-rate "$bad"
done
