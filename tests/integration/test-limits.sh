#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The test reaches every limit, gets refused with its message, releases and reaches it again, many
# times; in the end the daemon charges nothing, even after clients were killed at any time. Rings
# that a process has mapped stay charged after their event is deleted or gets others, whatever dies
# meanwhile, until the process releases them. ROUNDS (20; at full length 1000) is how often; SEED
# seeds the times of the kills.
. "$(dirname "$0")/../lib.sh"

rounds=${ROUNDS:-$(length 20 1000)}
[[ $BUILD == */asan ]] && rounds=${ROUNDS:-$(length 20 300)} # ASan takes longer
kills=$(length 40 $((rounds / 3)))

# The asking client itself has one connection and one request.
zero() {
	perfctl limits --json | jq -e 'all(.[]; .memory == 0 and .held == 0 and .events == 0 and
		.copies == 0 and .programs == 0 and .sample_rate == 0 and ([.connections, .requests] ==
			if .scope == "total" or .uid == 0 then [1, 1] else [0, 0] end))'
}

at_zero() {
	wait_until 20 zero || fail "$(perfctl limits) is charged after $1"
}

fds_of() {
	find "/proc/$1/fd" -mindepth 1 | wc -l
}

# ── every limit ──────────────────────────────────────────────────────────────────────────

# limits-clients and limits-events rely on these numbers.
write_conf "MaxConnections=24
MaxConnectionsPerUser=10
MaxRequestsPerConnection=3
MaxRequestsPerUser=4
MaxEvents=10
MaxEventsPerNamespace=6
MaxEventsPerUser=4
MaxCopies=240K
[namespace r]
Mode=0666
[namespace c]
Mode=0644
Live=nobody
[namespace w]
Mode=0644
[namespace e1]
Mode=0666
Live=readers
[namespace e2]
Mode=0666
Live=readers"
: >"$LOG"
start_daemon
for limit in connections-user connections-total requests copies wakeups watches; do
	"$BIN/limits-clients" "$INSTANCE" "$limit" "$rounds"
	at_zero "$limit"
done
"$BIN/limits-events" "$INSTANCE" events "$rounds"
at_zero events
stop_daemon

# An event with a buffer of 256K takes 264K; the estimate is 336K.
write_conf "MaxMemory=1500K
MaxMemoryPerUser=1344K
[namespace m]
Mode=0666
MaxMemory=1344K
[namespace n]
Mode=0666"
: >"$LOG"
start_daemon
"$BIN/limits-events" "$INSTANCE" memory "$rounds"
at_zero memory
stop_daemon

# ── programs ─────────────────────────────────────────────────────────────────────────────

# by UID CMD…
by() {
	(cd / && exec setpriv --reuid="$1" --regid="$1" --clear-groups -- "${@:2}")
}

# A refused event leaves neither name nor program.
refused_for() {
	local key=$1 user=$2 before
	shift 2
	before=$(perfctl limits --json | jq '.[0] | [.programs, .events]')
	expect_exit 1 by "$user" "${PERFCTL[@]}" create "$@"
	expect_match "$OUT" "$key"
	expect_eq "$(perfctl limits --json | jq '.[0] | [.programs, .events]')" "$before"
}

on_tracepoint() {
	by "$1" "${PERFCTL[@]}" create "$2" -m 4K -e raw_syscalls:sys_enter --filter "id == $3"
}

write_conf "CreateNamespaces=all
MaxProgramsPerUser=40
MaxOnTracepoint=5
MaxOnTracepointPerUser=3
[namespace p]
Mode=0666
Live=readers"
: >"$LOG"
start_daemon
one=$NOBODY two=$((NOBODY - 1))
for i in 1 2 3; do
	on_tracepoint "$one" "p/one$i" "$i"
done
# Once more after a restart of the engine; and a glob counts as every tracepoint that it matches.
refused_for MaxOnTracepointPerUser= "$one" p/none -m 4K -e raw_syscalls:sys_enter
kill_engine
refused_for MaxOnTracepointPerUser= "$one" p/none -m 4K -e raw_syscalls:sys_enter
refused_for MaxOnTracepointPerUser= "$one" p/none -m 4K -e 'raw_syscalls:*'
on_tracepoint "$two" p/two1 1
by "$two" "${PERFCTL[@]}" create p/two2 -m 4K -e 'raw_sys*:*'
refused_for MaxOnTracepoint= "$two" p/none -m 4K -e raw_syscalls:sys_enter
on_tracepoint "$two" p/other 1 2>/dev/null && fail "a sixth program on raw_syscalls:sys_enter"
by "$two" "${PERFCTL[@]}" create p/elsewhere -m 4K -e raw_syscalls:sys_exit
# Root may exceed the limit, and a deleted event makes room.
perfctl create p/root -m 4K -e raw_syscalls:sys_enter
perfctl delete p/root p/two1
on_tracepoint "$two" p/two1 1
expect_eq "$(perfctl limits --json | jq -c "[.[0].programs,
	(.[] | select(.uid == $one) | .programs, .max_programs, .max_on_tracepoint)]")" '[7,3,40,3]'
# Counting events have their own limit, too: each counts as often as it is named, and the same after
# a restart.
by "$one" "${PERFCTL[@]}" create p/faults -m 4K -e page-faults,page-faults -c 1
refused_for MaxOnTracepointPerUser= "$one" p/none -m 4K -e faults,faults -c 1000
refused_for MaxOnTracepointPerUser= "$two" p/none -m 4K -e faults,faults,faults,faults -c 1000
kill_engine
refused_for MaxOnTracepointPerUser= "$one" p/none -m 4K -e page-faults,minor-faults,page-faults -c 1
by "$one" "${PERFCTL[@]}" create p/fault -m 4K -e page-faults -c 1
refused_for MaxOnTracepointPerUser= "$one" p/none -m 4K -e page-faults -c 1
perfctl delete p/faults p/fault
# So does the clock, whose rate counts.
for i in 1 2 3; do
	by "$one" "${PERFCTL[@]}" create "p/clock$i" -m 4K -e cpu-clock -F 999
done
refused_for MaxSampleRatePerUser= "$one" p/none -m 4K -e task-clock -F 2004
refused_for MaxSampleRatePerUser= "$one" p/none -m 4K -e task-clock -c 10000
by "$one" "${PERFCTL[@]}" create p/clock -m 4K -e task-clock -c 1000000
expect_eq "$(perfctl limits --json | jq -c ".[] | select(.uid == $one) | [.sample_rate, .max_sample_rate]")" '[3997,5000]'
perfctl create p/root -m 4K -e cpu-clock,task-clock -F 9999
perfctl delete p/root p/clock p/clock1 p/clock2 p/clock3
# A filter that walks much text counts as several programs, even after a change.
globs() {
	local i text=
	for ((i = 0; i < $1; i++)); do
		text+="${text:+ || }COMM ~ \"*a*b*\""
	done
	echo "$text"
}
fork=(-m 4K -e sched:sched_process_fork)
refused_for MaxOnTracepointPerUser= "$one" p/none "${fork[@]}" --filter "$(globs 44)"
by "$one" "${PERFCTL[@]}" create p/globs "${fork[@]}" --filter "$(globs 8)"
refused_for MaxOnTracepointPerUser= "$one" p/none "${fork[@]}" --filter "$(globs 9)"
kill_engine
refused_for MaxOnTracepointPerUser= "$one" p/none "${fork[@]}" --filter "$(globs 9)"
by "$one" "${PERFCTL[@]}" create p/plain "${fork[@]}" --filter "$(globs 5)"
refused_for MaxOnTracepointPerUser= "$one" p/none "${fork[@]}"
expect_exit 1 by "$one" "${PERFCTL[@]}" change p/plain --filter "$(globs 8)"
expect_match "$OUT" MaxOnTracepointPerUser=
by "$one" "${PERFCTL[@]}" change p/plain --filter "$(globs 7)"
by "$one" "${PERFCTL[@]}" change p/globs --filter "$(globs 6)"
by "$one" "${PERFCTL[@]}" change p/plain --filter "$(globs 13)"
refused_for MaxOnTracepointPerUser= "$one" p/none "${fork[@]}"
refused_for MaxOnTracepoint= "$two" p/none "${fork[@]}" --filter "$(globs 17)"
perfctl create p/root "${fork[@]}" --filter "$(globs 50)"
perfctl delete p/root p/plain p/globs
# An event that names a tracepoint several times has one program on it.
twice=sched:sched_process_fork,sched:sched_process_fork
by "$one" "${PERFCTL[@]}" create p/twice -m 4K -e "$twice"
by "$one" "${PERFCTL[@]}" create p/often -m 64K -e "sched:sched_process_e*,sched:*_fork,$twice"
kill_engine
by "$one" "${PERFCTL[@]}" create p/third "${fork[@]}"
refused_for MaxOnTracepointPerUser= "$one" p/none "${fork[@]}"
perfctl delete p/twice p/often p/third
# Nobody exceeds the limit through events that others create and delete: the programs end with those
# events.
for i in 1 2 3; do
	by "$one" "${PERFCTL[@]}" create "p/mine$i" "${fork[@]}" --filter "pid == $i"
done
for end in '' kill_engine; do
	by "$two" "${PERFCTL[@]}" create p/theirs "${fork[@]}"
	by "$one" "${PERFCTL[@]}" create p/shared "${fork[@]}" --share
	by "$two" "${PERFCTL[@]}" create p/also "${fork[@]}" --share
	$end
	by "$two" "${PERFCTL[@]}" delete p/theirs
	expect_eq "$(perfctl list p --json | jq -c '[.[].name | select(test("theirs|shared|also"))]')" '[]'
	expect_eq "$(echo "$REGISTRY"/p/*)" \
		"$(echo "$REGISTRY"/p/{elsewhere,mine1,mine2,mine3,one1,one2,one3,two1,two2})"
done
perfctl delete p/mine3
by "$two" "${PERFCTL[@]}" create p/theirs "${fork[@]}"
by "$one" "${PERFCTL[@]}" create p/shared "${fork[@]}" --share
by "$two" "${PERFCTL[@]}" delete p/theirs
refused_for MaxOnTracepointPerUser= "$one" p/none "${fork[@]}"
perfctl delete p/shared p/mine1 p/mine2
# The broker knows a glob's tracepoints, and the work that they take, only after the engine has
# looked.
refused_for MaxProgramsPerUser= "$one" p/none -m 4K -e 'syscalls:*'
# When there are too many, the engine looks for no more.
refused_for MaxProgramsPerUser= "$one" p/none -m 4K -e 'syscalls:*,nosuch:*'
many='COMM ~ "a*"'
for ((i = 0; i < 30; i++)); do
	many+=" || common_pid == $i"
done
by "$one" "${PERFCTL[@]}" create p/few -m 64K -e 'sched:sched_process_*'
by "$one" "${PERFCTL[@]}" change p/few --filter "$many"
perfctl delete --all
at_zero programs
stop_daemon

write_conf "[namespace p]
Mode=0666"
start_daemon
refused_for 'shorter filter' "$one" p/none -m 4K -e 'syscalls:*' --filter "$many"
by "$one" "${PERFCTL[@]}" create p/many -m 64K -e 'syscalls:sys_enter_*'
expect_exit 1 by "$one" "${PERFCTL[@]}" change p/many --filter "$many"
expect_match "$OUT" 'shorter filter'
# A user may not make root's event reload more programs than the user could ask for; nor pause it,
# because the user could not undo that.
perfctl create p/roots -m 64K -e 'syscalls:*' --filter "$many"
expect_exit 1 by "$one" "${PERFCTL[@]}" pause p/roots
expect_match "$OUT" 'shorter filter'
expect_eq "$(perfctl show --json p/roots | jq -r .state)" running
perfctl pause p/roots
for order in "resume p/roots" "change p/roots --max-rate 9"; do
	read -ra words <<<"$order"
	expect_exit 1 by "$one" "${PERFCTL[@]}" "${words[@]}"
	expect_match "$OUT" 'shorter filter'
done
expect_exit 4 by "$one" "${PERFCTL[@]}" change p/roots -m 128K
expect_match "$OUT" 'charged to that user'
expect_eq "$(perfctl show --json p/roots | jq -r .state)" paused
perfctl resume p/roots
by "$one" "${PERFCTL[@]}" pause p/many
by "$one" "${PERFCTL[@]}" resume p/many
perfctl delete p/many p/roots
stop_daemon

# ── clients that are killed ──────────────────────────────────────────────────────────────

ns=$INSTANCE
seed=${SEED:-$RANDOM}
rings_are_gone() {
	[ "$("$BIN/census" "$ns")" -eq 0 ]
}
holds_no_more() {
	[ "$(fds_of "$broker")" -le "$broker_fds" ] && [ "$(fds_of "$engine")" -le "$engine_fds" ]
}

write_conf "MaxMemory=4M
MaxEvents=9
MaxRequestsPerUser=8
MaxCopies=600K
[namespace $ns]
Mode=0666"
: >"$LOG"
start_daemon
"$BIN/limits-killed" "$INSTANCE" "$ns" "$seed" 10 # includes descriptors that they open once and keep
broker=$(broker_pid)
engine=$(engine_pid)
broker_fds=$(fds_of "$broker")
engine_fds=$(fds_of "$engine")
"$BIN/limits-killed" "$INSTANCE" "$ns" "$seed" "$kills" || fail "SEED=$seed"
at_zero "killed clients"
wait_until 20 rings_are_gone || fail "$("$BIN/census" "$ns") rings are in the kernel"
expect_eq "$(broker_pid) $(engine_pid)" "$broker $engine" "broker and engine"
wait_until 20 holds_no_more ||
	fail "the broker holds $(fds_of "$broker") descriptors (before: $broker_fds), the engine $(fds_of "$engine") ($engine_fds): $(readlink "/proc/$broker/fd/"* "/proc/$engine/fd/"* | sort | uniq -c | xargs)"
stop_daemon

# ── rings that somebody holds ────────────────────────────────────────────────────────────

# Memory and the held part of it: the same for all users, for root, and for the namespace.
charged() {
	perfctl limits --json | jq -r '[.[] | "\(.memory) \(.held)"] | unique | join(", ")'
}
is_charged() {
	[ "$(charged)" = "$1" ]
}
expect_charged() {
	wait_until 20 is_charged "$1" || fail "expected '$1' to be charged and held $2, got '$(charged)'"
}

# hold NAME: a process holds the rings until it is told to release them, or is killed. (A process
# with the instance's name among its arguments would look like a part of the daemon.)
hold() {
	coproc HOLDER { exec "$BIN/limits-hold" "$RUN/control" "$ns/$1"; }
	_spawned+=("$HOLDER_PID")
	read -r LINE <&"${HOLDER[0]}"
	expect_eq "$LINE" held "the holder"
}
let_go() {
	echo >&"${HOLDER[1]}"
	read -r LINE <&"${HOLDER[0]}"
	expect_eq "$LINE" free "the holder"
}
end_holder() {
	kill -KILL "$HOLDER_PID"
	wait "$HOLDER_PID" 2>/dev/null || true
}

engine_is_back() {
	[ "$(engine_pid)" -gt 0 ]
}
# The charges remain, whatever dies.
deaths() {
	expect_charged "$1" "$2"
	kill_engine
	wait_until 20 engine_is_back || fail "the engine does not come back"
	expect_charged "$1" "$2 and the engine's death"
	kill_broker
	start_daemon
	expect_charged "$1" "$2 and the broker's death"
	kill_daemon
	start_daemon
	expect_charged "$1" "$2 and both their deaths"
	stop_daemon
	start_daemon
	expect_charged "$1" "$2 and a restart"
}

cpu=$(sed 's/[-,].*//' /sys/devices/system/cpu/online)
make_event() {
	perfctl create "$ns/$1" -e oom:mark_victim -C "$cpu" -m "$2" >/dev/null
}
memory_of() {
	perfctl show --json "$ns/$1" | jq .memory
}

write_conf "MaxMemory=500K
[namespace $ns]"
: >"$LOG"
start_daemon
for end in let_go end_holder; do
	make_event e 256K
	bytes=$(memory_of e)
	expect_charged "$bytes 0" "with an event"
	hold e
	perfctl delete "$ns/e" >/dev/null
	if full || [ $end = let_go ]; then
		deaths "$bytes $bytes" "after its deletion"
	fi
	expect_exit 1 make_event f 256K
	expect_match "$OUT" "This daemon has .* MaxMemory=" "the refusal"
	$end
	expect_charged "0 0" "after $end"
	make_event f 256K
	perfctl delete "$ns/f" >/dev/null
	expect_charged "0 0" "after another event"
	[ $end = end_holder ] || end_holder
	echo "deleted and held: $bytes bytes stay charged through every death, until $end"

	make_event e 256K
	hold e
	expect_exit 1 perfctl change "$ns/e" -m 512K
	expect_match "$OUT" "This daemon has .* MaxMemory=" "the refusal"
	expect_charged "$bytes 0" "after a resize that was refused"
	perfctl change "$ns/e" -m 64K >/dev/null
	new=$(memory_of e)
	if full || [ $end = end_holder ]; then
		deaths "$((bytes + new)) $bytes" "after a resize"
	fi
	$end
	expect_charged "$new 0" "after $end"
	perfctl delete "$ns/e" >/dev/null
	expect_charged "0 0" "after its deletion"
	[ $end = end_holder ] || end_holder
	echo "resized and held: $bytes bytes beside the new $new stay charged through every death, until $end"
done
at_zero "all of it"
