#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Large numbers: events in many namespaces (150 in ten; at full length 1,000 in fifty), a large
# creation beside small requests, many clients (200, or 1,000) of which one never reads, seventy
# names on one tracepoint. The test prints each cost beside its bar, and asserts only what must hold
# on any machine.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"

ns=$INSTANCE
events=$(length 150 1000) clients=$(length 200 1000)

write_conf "MaxConnections=1100
[namespace $ns]
Mode=0644
Live=readers
[namespace other]
Mode=0666
[namespace secret]
Mode=0600"
start_daemon
perfctl create "$ns/small" -e oom:mark_victim >/dev/null

# ── the kernel's BTF ─────────────────────────────────────────────────────────────────────

# faults CMD…: FAULTS are the pages that the engine touched first meanwhile.
ENGINE=$(engine_pid)
faults() {
	local before
	before=$(awk '{ print $10 }' "/proc/$ENGINE/stat")
	"$@" >/dev/null
	FAULTS=$(($(awk '{ print $10 }' "/proc/$ENGINE/stat") - before))
}
# One to be looked into, two for objects of libbpf, each once from the kernel and once in libbpf's own memory.
btf=$(($(stat -c %s /sys/kernel/btf/vmlinux) / $(getconf PAGESIZE)))
faults perfctl create other/first -e sched:sched_switch
echo "pages that the engine touches for its first fast recorder: $FAULTS, of $btf of the kernel's BTF"
[ "$FAULTS" -lt $((btf * 7 / 2)) ] || fail "the kernel's BTF does not get memory that was used before"
given_back() {
	[ "$(awk '/^RssAnon/ { print $2 }' "/proc/$ENGINE/status")" -lt 4096 ]
}
wait_until 20 given_back || fail "the engine keeps what it read the kernel's BTF into"
perfctl delete other/first >/dev/null

# ── at rest ──────────────────────────────────────────────────────────────────────────────

rss() {
	local pid sum=0
	for pid in $(instance_pids); do
		sum=$((sum + $(sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$pid/status")))
	done
	echo $sum
}
tell_rss() {
	local kib verdict=met
	kib=$(rss)
	[ "$kib" -le $((24 * 1024)) ] || verdict=MISSED
	echo "RSS of all daemons $1: $kib KiB; bar 24 MiB, $verdict"
}
# How often our processes slept, except for the keeper, which other processes' activity wakes.
switches() {
	local pid
	for pid in $(daemon_pids); do
		sed -n 's/^voluntary_ctxt_switches:\t//p' "/proc/$pid/task/"*/status
	done | awk '{ sum += $1 } END { print sum }'
}
rest() {
	local before after
	wait_until 20 nothing_held || fail "rings of deleted events are held"
	wait_until 60 names_kept || fail "no keeper keeps names"
	tell_rss "$1"
	LOOKS=0
	wait_until 60 asleep || fail "the daemons do not come to rest"
	before=$(switches)
	busy "$(length 1 3)"
	wait "$SPAWNED" || true
	after=$(switches)
	echo "wakeups of all daemons in $(length 1 3) s at rest: $((after - before))"
	expect_eq $((after - before)) 0 "wakeups at rest"
}
# Ten seconds without a wakeup: the daemon has seen the last client's end, and the reaper is done.
asleep() {
	local now last=${LAST_SWITCHES-}
	now=$(switches)
	LAST_SWITCHES=$now
	[ "$now" = "$last" ] || LOOKS=0
	LOOKS=$((LOOKS + 1))
	[ $LOOKS -ge 10 ]
}
# From then on the keeper has no more questions: on a busy machine it begins late.
names_kept() {
	[ "$(perfctl ping --json | jq '.sideband.keeping and .sideband.complete > 0')" = true ]
}
nothing_held() {
	[ "$(perfctl limits --json | jq '.[0].held')" -eq 0 ]
}

rest "with one event"

# ── many events ──────────────────────────────────────────────────────────────────────────

tracepoints() {
	with_tracefs find /sys/kernel/tracing/events/syscalls -mindepth 1 -maxdepth 1 -type d |
		sed 's|.*/|syscalls:|' | sort
}
mapfile -t all < <(tracepoints)
[ ${#all[@]} -gt 0 ] || skip "this kernel has no tracepoints of system calls"
for ((i = 0; i < events - 1; i++)); do
	echo "${all[i % ${#all[@]}]}"
done >"$SCRATCH/many"
"$BIN/scale" "$INSTANCE" make "$(length 10 50)" <"$SCRATCH/many"
expect_eq "$(perfctl list --json | jq length)" "$events" "events"
"$BIN/scale" "$INSTANCE" list
rest "with $events events"
"$BIN/scale" "$INSTANCE" beside "$ns/small" "$(length 1 3)" 'syscalls:*'
"$BIN/scale" "$INSTANCE" clients "$clients" "$ns/small"

# ── seventy names on one tracepoint ──────────────────────────────────────────────────────

cpu=$(sed 's/[-,].*//' /sys/devices/system/cpu/online)
event=oom:oom_score_adj_update
score=$((RANDOM % 900 + 50)) # no other process sets it
create() {
	perfctl create "$1" -e $event --filter "oom_score_adj == $score" --generic -C "$cpu" -m 4K "${@:2}"
}
# Fires so many events, by a process on that CPU.
adjust() {
	taskset -c "$cpu" bash -c 'for ((i = 0; i < $1; i++)); do echo "$2" >/proc/self/oom_score_adj; done' bash "$1" $score
}
names=()
for ((i = 1; i <= 70; i++)); do
	names+=("$ns/n$i")
done

# As many as fit beside those of other instances, at most all 64. They run at once, because they
# mostly wait; a name that finds no room is tried again, so that the last failure is certain.
tracepoints_lock
creations=()
for name in "${names[@]:0:60}"; do
	create "$name" --no-share >/dev/null 2>&1 &
	creations+=("$name=$!")
done
unshared=()
for creation in "${creations[@]}"; do
	if wait "${creation#*=}"; then
		unshared+=("${creation%=*}")
	fi
done
for ((i = 1; i <= 65; i++)); do
	OUT=$(create "$ns/more$i" --no-share 2>&1) || break
	unshared+=("$ns/more$i")
done
expect_match "$OUT" "$event.*64 BPF programs.*--share" "what has no room"
echo "without sharing: ${#unshared[@]} names, and the next: $OUT"
[ ${#unshared[@]} -le 64 ] || fail "more names than the kernel has places"
perfctl delete "${unshared[@]}" >/dev/null

# The kernel frees a program some time after its link.
first_is_there() {
	create "${names[0]}" --share
}
wait_until 20 first_is_there || fail "the programs of deleted events are still there"
tracepoints_unlock
first=$(perfctl show --json "${names[0]}" | jq .id)
for name in "${names[@]:1}"; do
	create "$name" --share >/dev/null
done
expect_eq "$(perfctl list "$ns" --json | jq "[.[] | select(.shares == $first)] | length")" 69 "second names"
expect_eq "$(find "$REGISTRY/$ns" -type l | wc -l)" 71 "symlinks"
rings() {
	[ "$("$BIN/census" "$ns")" -eq "$1" ]
}
# The other event's rings, and one more.
expected_rings=$(($(find "$REGISTRY/$ns/small/" -name 'cpu*' | wc -l) + 1))
wait_until 20 rings $expected_rings || fail "$("$BIN/census" "$ns") rings"

records=0
# After so many more events each of these names has all of them.
expect_records() {
	adjust 10
	records=$((records + 10))
	perfctl list "$ns" --json | jq -r '.[] | select(.name != "small") | "\(.namespace)/\(.name) \(.records)"' |
		sort >"$SCRATCH/records"
	printf "%s $records\n" "$@" | sort | diff - "$SCRATCH/records" >&2 || fail "not what all names should have"
}
expect_records "${names[@]}"
expect_eq "$(perfctl reopen "${names[69]}" -n 3 --json | jq -r .event | sort | uniq -c | xargs)" "3 $event" "read by the last name"
echo "with --share: 70 names, 69 of them for the rings of the first"

# The first name goes, then others in random order: the rest keep the same rings.
mapfile -t order < <(printf '%s\n' "${names[@]:1}" | rev | sort | rev)
perfctl delete "${names[0]}" >/dev/null
expect_records "${order[@]}"
expect_eq "$(perfctl list "$ns" --json | jq '[.[] | select(.name != "small" and .shares == null)] | length')" 1 "who has them"
perfctl delete "${order[@]:0:40}" >/dev/null
order=("${order[@]:40}")
expect_records "${order[@]}"
perfctl delete "${order[@]:1}" >/dev/null
expect_records "${order[0]}"
wait_until 20 rings $expected_rings || fail "$("$BIN/census" "$ns") rings"
perfctl delete "${order[0]}" >/dev/null
wait_until 20 rings $((expected_rings - 1)) || fail "the last name has gone, and the rings are there"
expect_eq "$(find "$REGISTRY/$ns" -mindepth 1 -maxdepth 1 -not -name small)" "" "left in the registry"
echo "the event lives on under the remaining names, and ends with the last"

# ── rights of second names ───────────────────────────────────────────────────────────────

shares() {
	perfctl show --json "$1" | jq .shares
}
# Root, who may read everything, creates a second name in a public namespace; the first is secret.
create secret/first --no-share >/dev/null
create other/second --share >/dev/null
expect_eq "$(shares other/second)" "$(perfctl show --json secret/first | jq .id)" "the second name's target"
adjust 10
expect_ok as_user perfctl reopen other/second -n 1
expect_exit 4 as_user perfctl reopen secret/first -n 1
expect_exit 4 as_user perfctl delete secret/first
# A user who may not read the event cannot have a name for it, nor find out that it exists.
perfctl delete other/second >/dev/null
as_user perfctl create other/own -e $event --filter "oom_score_adj == $score" --generic -C "$cpu" -m 4K --share >/dev/null
expect_eq "$(shares other/own)" null "what a stranger's event shares"
perfctl delete secret/first other/own >/dev/null
echo "a second name has the rights of its own namespace, and only users who may read the first can create it"
