#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# CPUs that go offline and online, as the engine sees them; no CPU of this machine changes state. A
# file mounted over the one in sysfs hides a CPU; the test simulates hotplug by running the
# instance's program for the kernel's hotplug steps (hotplug.h).
. "$(dirname "$0")/../lib.sh"

. "$(dirname "$0")/../blind.sh"

CALL=sched_rr_get_interval
BROKER=

# The broker would itself do what this test tries, so it is stopped meanwhile.
hotplug() {
	(
		trap 'kill -CONT "$BROKER"' EXIT
		kill -STOP "$BROKER"
		"$BIN/hotplug" "$INSTANCE" "$@"
	)
}

# Without the instance's name, because it is not a process of the daemon.
call() {
	"$BIN/hotplug" load call "$@"
}

# within N LOW HIGH: LOW <= N < HIGH
within() {
	[ "$1" -ge "$2" ] && [ "$1" -lt "$3" ]
}

id_of() {
	sed -n 's/^id=//p' "$REGISTRY/$1/info"
}

# ring_id EVENT CPU: the kernel's id of the map.
ring_id() {
	bpftool --json map show pinned "$REGISTRY/$1/cpu$2" | jq -r .id
}

# line EVENT CPU: its line in stat, or nothing.
line() {
	grep "^cpu$2 " "$REGISTRY/$1/stat" || true
}

# come EVENT…: tells the engine that all CPUs are online.
come() {
	local event
	for event in "$@"; do
		hotplug come "$(id_of "$event")" "${CPUS[@]}" >"$SCRATCH/come" || fail "$event: it does not take the CPUs"
		expect_match "$(<"$SCRATCH/come")" 'incomplete=0$' "$event"
	done
}

is_incomplete() {
	[ "$(hotplug incomplete "$(id_of "$1")")" = 1 ]
}

# begin_with [ENGINE]: restarts the daemon.
begin_with() {
	[ -z "$DAEMON_PID" ] || stop_daemon
	mount_registry
	start_daemon ${1:+--engine "$1"}
	BROKER=$(broker_pid)
}

# ── a CPU that is not there yet ────────────────────────────────────────────────────────────

begin_with
printf '#!/bin/bash\nexec "%s" "$@" --max-memory 3000000\n' "$BUILD/perfpersist-engine" >"$SCRATCH/poor"
chmod 0755 "$SCRATCH/poor"

expect_eq "$(hotplug state "$LAST")" "0 0" "a CPU that never went away"
expect_eq "$(stat -c '%a %u %g' "$REGISTRY/+cpus")" "440 $DAEMON_UID 0" "rights of +cpus"
expect_eq "$(stat -c '%a %u %g' "$REGISTRY/+cpus-link")" "600 0 0" "rights of +cpus-link"

begin_with "$BLIND"
echo "CPU $LAST is not there yet"
expect_match "$(hotplug state "$LAST")" '^0 [1-9]' "a CPU that is offline at the start"
ALL=(generic hot filtered several clock paused probe)
perfctl create t/generic -e syscalls:sys_enter_$CALL --generic >/dev/null
perfctl create t/hot -e sched:sched_switch >/dev/null
nr=$(sed -nE 's/^#define __NR_'$CALL'[ \t]+([0-9]+).*/\1/p' /usr/include/*/asm/unistd_64.h /usr/include/asm-generic/unistd.h 2>/dev/null | head -1)
perfctl create t/filtered -e raw_syscalls:sys_enter --filter "id == $nr" >/dev/null
perfctl create t/several -e "syscalls:sys_enter_$CALL,cpu-clock" >/dev/null
perfctl create t/clock -e cpu-clock -F 999 >/dev/null
perfctl create t/paused -e syscalls:sys_enter_$CALL --generic >/dev/null
perfctl create t/probe -e "uprobe:$BIN/hotplug:pp_called" >/dev/null
perfctl create t/large -e task:task_rename -m 2M >/dev/null
perfctl create t/listed -e syscalls:sys_enter_$CALL --generic -C "$FIRST" >/dev/null
perfctl create t/other -e syscalls:sys_enter_$CALL --generic --share >/dev/null
perfctl pause t/paused
ids=$(event_ids)
for event in "${ALL[@]}"; do
	[ ! -e "$REGISTRY/t/$event/cpu$LAST" ] || fail "t/$event has a ring on a CPU that is not there"
	is_incomplete "t/$event" && fail "t/$event misses a CPU that is not there"
done

call "$LAST" 1000
call "$FIRST" 10
for event in generic filtered several probe; do
	missed=$(stat_of t/$event missed "cpu$LAST")
	within "$missed" 1000 1100 || fail "1000 calls on CPU $LAST, and t/$event missed $missed"
	expect_match "$(line t/$event "$LAST")" " records=0 bytes=0 limited=0 missed=$missed ringless=[0-9]+ away=[0-9]+\.[0-9]{6}\$"
	[ "$(stat_of t/$event missed)" -ge "$missed" ] || fail "t/$event: the total lacks the missed events"
done
[ "$(stat_of t/hot missed "cpu$LAST")" -gt 0 ] || fail "t/hot missed nothing on CPU $LAST"
expect_eq "$(line t/clock "$LAST")$(line t/paused "$LAST")$(line t/listed "$LAST")" "" \
	"what does not count, is paused, or records other CPUs"
[[ $(grep ^total "$REGISTRY/t/generic/stat") != *away* ]] || fail "no CPU with a ring is offline"
missed=$(stat_of t/generic missed "cpu$LAST")

# ── it comes ───────────────────────────────────────────────────────────────────────────────

echo "it comes: over the engine's memory"
begin_with "$SCRATCH/poor"
expect_exit 1 hotplug come "$(id_of t/large)" "${CPUS[@]}"
expect_match "$OUT" 'may take [0-9]+ MiB.*--max-memory' "what is said"
[ ! -e "$REGISTRY/t/large/cpu$LAST" ] || fail "a ring was made against the engine's ceiling"

echo "it comes, under load"
declare -A rings links
for event in "${ALL[@]}"; do
	rings[$event]=$(ring_id "t/$event" "$FIRST")
	links[$event]=$(cd "$REGISTRY/t/$event" && for l in link*; do echo "$l=$(hotplug link "t/$event/$l")"; done)
done
before=$(stat_of t/generic records "cpu$FIRST")
spawn "$BIN/hotplug" load calls "$FIRST" "$(length 20000 300000)" >"$SCRATCH/calls"
caller=$SPAWNED
begin_with
[ "$(hotplug state "$LAST")" = "0 0" ] || fail "sysfs says that the CPU is there: $(hotplug state "$LAST")"
come "${ALL[@]/#/t/}" t/large
for event in "${ALL[@]}"; do
	[ -e "$REGISTRY/t/$event/cpu$LAST" ] || fail "t/$event has no ring on CPU $LAST"
	expect_eq "$(ring_id "t/$event" "$FIRST")" "${rings[$event]}" "the ring of t/$event on CPU $FIRST"
	while IFS= read -r link; do
		expect_eq "$(hotplug link "t/$event/${link%=*}")" "${link#*=}" "link of t/$event"
	done <<<"${links[$event]}"
	is_incomplete "t/$event" && fail "t/$event is incomplete"
done
expect_eq "$(stat -c '%a %u' "$REGISTRY/t/clock/cpu$LAST")" "600 $DAEMON_UID" "rights of a new ring"
expect_eq "$(event_ids)" "$ids" "ids"
kill -TERM "$caller"
wait "$caller"
calls=$(<"$SCRATCH/calls")
all=$(($(stat_of t/generic records "cpu$FIRST") + $(stat_of t/generic missed "cpu$FIRST")))
[ "$all" -ge $((before + calls)) ] || fail "CPU $FIRST: $calls calls, and $((all - before)) are accounted for"
echo "  $calls calls on CPU $FIRST, $((all - before)) accounted for"

call "$LAST" 500
for event in generic filtered several probe; do
	[ "$(stat_of t/$event records "cpu$LAST")" -ge 500 ] || fail "t/$event has not recorded 500 calls on CPU $LAST"
done
now=$(stat_of t/generic missed "cpu$LAST")
within "$now" "$missed" $((missed + 100)) || fail "missed was $missed, and is $now"
expect_match "$(line t/paused "$LAST")" ' records=0 ' "a paused event"
wait_until 20 more_records_than 0 t/clock
perfctl resume t/paused >/dev/null
call "$LAST" 100
[ "$(stat_of t/paused records "cpu$LAST")" -ge 100 ] || fail "resumed, it does not record on CPU $LAST"
come t/other t/generic

# ── it goes and comes back ─────────────────────────────────────────────────────────────────

echo "it is offline"
hotplug down "$LAST"
expect_match "$(line t/clock "$LAST")" ' away=[0-9]+\.[0-9]{6}$'
expect_match "$(grep ^total "$REGISTRY/t/clock/stat")" ' away=1$'
[[ $(line t/clock "$FIRST") != *away* ]] || fail "CPU $FIRST is reported as offline"
expect_eq "$(hotplug incomplete "$(id_of t/clock)")" 0 "what a CPU that is away makes incomplete"
expect_eq "$(hotplug up "$LAST" + incomplete "$(id_of t/clock)" + incomplete "$(id_of t/generic)" | xargs)" "1 0" \
	"a dead counter, and a tracepoint, which does not die with a CPU"
come t/clock t/several
generation=$(hotplug state "$LAST")
link=$(hotplug link "t/clock/link0-$LAST")
undone=$(hotplug undone "$LAST" + state "$LAST" + incomplete "$(id_of t/clock)" | xargs)
# The engine may have had an order of the broker's left, and have opened it again.
[ "$(hotplug link "t/clock/link0-$LAST")" = "$link" ] || undone=${undone/%0/1}
expect_eq "$undone" "$((${generation% *} + 1)) 0 1" "a CPU that was to go and stayed: its counters have died"
come t/clock t/several

times=$(length 10 200)
echo "it goes and comes back, $times times"
# Reads the periods on both CPUs at once: two reads would differ by any amount on a busy machine.
accounted() {
	tr '=' ' ' <"$REGISTRY/t/clock/stat" | awk -v first="cpu$FIRST" -v last="cpu$LAST" '
		{ for (i = 2; i < NF; i += 2) if ($i ~ /^(records|missed|idle)$/) n[$1] += $(i + 1) }
		END { print n[first], n[last] }'
}
perfctl create "$INSTANCE/clock" -e cpu-clock >/dev/null
link=$(hotplug link t/generic/link0)
pins=$(find "$REGISTRY" | sort)
engine=$(program_pids perfpersist-engine | sort -n | head -1)
fds=$(find "/proc/$engine/fd" | wc -l)
expect_eq "$("$BIN/census" "$INSTANCE")" 2 "its rings in the kernel"
busy 60 "$FIRST"
hogs=("$SPAWNED")
busy 60 "$LAST"
hogs+=("$SPAWNED")
read -r first last < <(accounted)
hotplug bounce "$times" "$LAST" "t/clock/link0-$LAST:$(id_of t/clock)" "t/several/link1-$LAST:$(id_of t/several)" \
	"$INSTANCE/clock/link0-$LAST:$(id_of "$INSTANCE/clock")"
before=$(stat_of t/clock records "cpu$LAST")
more() {
	[ "$(stat_of t/clock records "cpu$LAST")" -gt $((before + 100)) ]
}
wait_until 20 more
read -r first_now last_now < <(accounted)
rest "${hogs[@]}"
wait "${hogs[@]}" || true
first=$((first_now - first)) last=$((last_now - last))
echo "  meanwhile $first periods on CPU $FIRST, $last on CPU $LAST"
# Each new counter begins a new period, and an old one may end one.
most=$((2 * times + 20))
within $((first - last)) -$most $((most + 1)) || fail "the missed count is wrong"
expect_eq "$(hotplug link t/generic/link0)" "$link" "the tracepoint's link"
few_fds() { # an order's may be open for a moment
	[ "$(find "/proc/$engine/fd" | wc -l)" -le "$fds" ]
}
wait_until 20 few_fds || fail "the engine has more descriptors than before"
expect_eq "$(program_pids perfpersist-engine | sort -n | head -1)" "$engine" "the engine"
expect_eq "$(find "$REGISTRY" | sort)" "$pins" "what is pinned"
expect_eq "$("$BIN/census" "$INSTANCE")" 2 "rings in the kernel"

echo "a counter's first sample after its CPU is online again stands for a whole period"
perfctl create t/faults -e page-faults -c 5000 -C "$LAST" >/dev/null
wait_touched() {
	taskset -c "$LAST" sh -c :
	more_records_than "$1" t/faults
}
wait_until 20 wait_touched 0
for _ in 1 2 3; do
	hotplug down "$LAST" + up "$LAST" + come "$(id_of t/faults)" "$LAST" >/dev/null
	wait_until 20 wait_touched "$(records_of t/faults)"
done
periods=$(perfctl reopen t/faults 2>/dev/null | grep -oE 'period [0-9]+' | sort | uniq -c)
echo "  $(xargs <<<"$periods")"
expect_eq "$(awk '$3 % 5000 || !$3' <<<"$periods")" "" "periods that are no multiple of 5000"

# ── who removes what is the instance's ─────────────────────────────────────────────────────

echo "the link of the instance's program is gone: all counters are in doubt"
generation=$(hotplug state "$LAST")
link=$(hotplug link "t/clock/link0-$LAST")
rm "$REGISTRY/+cpus-link"
begin_with
expect_eq "$(hotplug state "$LAST")" "$((${generation% *} + 1)) 0" "the generation"
come t/clock t/several
[ "$(hotplug link "t/clock/link0-$LAST")" != "$link" ] || fail "it counts as before"

expect_eq "$(event_ids | grep -v "faults\|^$INSTANCE")" "$ids" "ids"

# ── one thing that cannot be had does not keep another ─────────────────────────────────────

echo "no room for a new CPU's ring: the counter of another CPU goes on"
begin_with "$BLIND"
perfctl create t/both -e task:task_rename,cpu-clock -m 2M >/dev/null
begin_with "$SCRATCH/poor"
link=$(hotplug link "t/both/link1-$FIRST")
hotplug down "$FIRST" + up "$FIRST" >/dev/null
expect_exit 1 hotplug come "$(id_of t/both)" "${CPUS[@]}"
expect_match "$OUT" 'may take [0-9]+ MiB.*--max-memory' "what is said"
[ ! -e "$REGISTRY/t/both/cpu$LAST" ] || fail "a ring was made against the engine's ceiling"
again=$(hotplug link "t/both/link1-$FIRST")
[ "$again" != "$link" ] || fail "the counter is not attached anew"
expect_exit 1 hotplug come "$(id_of t/both)" "${CPUS[@]}"
expect_eq "$(hotplug link "t/both/link1-$FIRST")" "$again" "what has been attached anew"
