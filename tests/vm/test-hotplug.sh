#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2 --memory 2048 --timeout 3000
#
# A CPU goes offline and online 200 times under load. No record of the other CPU is lost, nor any
# earlier record, and each time the CPU records again at once; nothing leaks.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/recorder.sh"

cycles=${CYCLES:-200}
scratch=/var/tmp/hotplug
mkdir -p "$scratch"

now() {
	perl -MTime::HiRes=:DEFAULT,clock_gettime,CLOCK_MONOTONIC -e 'printf "%.9f\n", clock_gettime CLOCK_MONOTONIC'
}

# records_again EVENT COUNT: it has more than COUNT records on CPU 1.
records_again() {
	[ "$(of_cpu 1 "$1" records)" -gt "$2" ]
}

# oldest EVENT: the time of CPU 1's oldest readable record.
oldest() {
	read_all "$1" | awk '$1 == "[001]" && !n++ { print $2 }'
}

# away_to_client CPUS: the offline CPUs that show reports for hp/clock.
away_to_client() {
	[ "$(perfctl show hp/clock --json | jq -r '.away // ""')" = "$1" ]
}

# ── events, and a load ───────────────────────────────────────────────────────────────────

# Two processes that make numbered calls; one stays on CPU 0, one moves on request.
others=()
# shellcheck disable=SC2317 # called by a trap
end() {
	kill "${others[@]}" "${maker[@]}" 2>/dev/null
}
trap end EXIT
install_packages perfpersist
expect_ok systemctl start perfpersistd
for name in pinned roaming; do
	pin=(taskset -c 0)
	[ $name = pinned ] || pin=()
	load $name "${pin[@]}"
	expect_ok perfctl create hp/$name -e syscalls:sys_enter_umask --pid "${maker[$name]}" -m 16M
done
expect_ok perfctl create hp/probe -e kprobe:__x64_sys_umask --pid "${maker[pinned]}" -m 16M
expect_ok perfctl create hp/several -e 'syscalls:sys_*_umask,cpu-clock' -F 100 -m 16M
expect_ok perfctl create hp/clock -e cpu-clock -F 1000 -m 32M
expect_ok perfctl create hp/switches -e sched:sched_switch -m 1M
perfctl watch --json >"$scratch/watched" &
others+=($!)
wait_until 60 grep -q started "$scratch/watched"
begin_load pinned roaming
for _ in 1 2; do
	sh -c 'while :; do :; done' &
	others+=($!)
done

# ── once, and looked at ──────────────────────────────────────────────────────────────────

wait_until 60 records_again hp/clock 100
history=$(oldest hp/clock)
away_before=$(now)
put_cpu 1 0
count=$(of_cpu 1 hp/clock records)
away_after=$(now)
[ -n "$(of_cpu 1 hp/clock away)" ] || fail "stat does not say that CPU 1 is offline"
wait_until 60 away_to_client 1 || fail "show does not say that CPU 1 is offline"
expect_match "$(perfctl show hp/clock)" "away +CPU 1, since .* ago" "show"
awk -v a="$away_before" -v t="$(of_cpu 1 hp/clock away)" -v b="$away_after" 'BEGIN { exit !(a <= t + 0.000001 && t <= b) }' ||
	fail "away since $(of_cpu 1 hp/clock away) is not between $away_before and $away_after"
expect_eq "$(oldest hp/clock)" "$history" "oldest record of a CPU that is away"
expect_eq "$(read_all hp/clock | grep -c '^ *\[001\]')" "$count" "records that can be read of a CPU that is away"
expect_eq "$(of_cpu 1 hp/clock records)" "$count" "records of a CPU that is away"
put_cpu 1 1
wait_until 60 records_again hp/clock "$count" || fail "hp/clock does not record on CPU 1 again"
expect_eq "$(of_cpu 1 hp/clock away)" "" "away, of a CPU that is back"
wait_until 60 away_to_client "" || fail "show says that CPU 1 is still offline"

# ── many times ───────────────────────────────────────────────────────────────────────────

inventory >"$scratch/before"
perl "$here/cycles.pl" run 1 "$cycles" hp/clock hp/several hp/switches >"$scratch/online"
end_load pinned roaming
done_pinned=$(made pinned)
counted hp/pinned pinned 0
counted hp/roaming roaming
counted hp/several pinned 0
counted hp/several roaming
expect_eq "$(read_all hp/several | grep -c " ${maker[pinned]}/.* syscalls:sys_exit_umask:")" "$done_pinned" "sys_exit_umask in hp/several"
expect_eq "$(read_all hp/probe | grep -c '^ *\[000\]')" "$done_pinned" "records of hp/probe"
for name in pinned roaming several probe switches; do
	printf 'hp/%s: ' $name && grep '^total' "$registry/hp/$name/stat"
done
expect_eq "$(oldest hp/clock)" "$history" "oldest record of CPU 1"
count=$(of_cpu 1 hp/clock records)
can_be_read=$(read_all hp/clock | grep -c '^ *\[001\]')
[ "$can_be_read" -ge "$count" ] || fail "of $count records of CPU 1 $can_be_read can be read"
told=$(jq -r 'select(.cpu == 1).notice' "$scratch/watched" | sort | uniq -c | xargs)
expect_eq "$told" "$((cycles + 1)) cpu-offline $((cycles + 1)) cpu-online" "what a watcher was told"

read_all hp/clock | perl "$here/cycles.pl" late 1 "$scratch/online" >"$scratch/late"
expect_eq "$(wc -l <"$scratch/late")" "$cycles"
echo "first sample after online, ms: median $(sed -n $((cycles / 2 + 1))p "$scratch/late"), most $(tail -n 1 "$scratch/late")," \
	"$(awk '$1 <= 100' "$scratch/late" | wc -l) of $cycles within 100"

# The kernel frees replaced objects after grace periods.
wait_until 60 same_inventory "$scratch/before" || fail "left behind after $cycles cycles: $(diff "$scratch/before" "$scratch/before.now")"
cat "$registry/hp/clock/stat"
