#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Sideband names exited processes and their files, even if broker and engine were dead at the time.
# The successor of a killed keeper says since when its data is complete. A keeper runs only while an
# event records, stays within its limit and counts what it forgets. A user who may read no event
# gets nothing.
. "$(dirname "$0")/../lib.sh"

WORK=$BIN/sideband-work
SIDE=$SCRATCH/sideband

# take [ARG…]: writes the sideband to $SIDE.
take() {
	"$BIN/sideband-read" "$INSTANCE" "$@" >"$SIDE" || fail "no sideband: $(cat "$SIDE")"
}

# head_of FIELD
head_of() {
	sed -nE "1s/(.* )?$1=([^ ]+).*/\2/p" "$SIDE"
}

# said REGEX: a record matches, at any time.
said() {
	grep -qE "^[0-9]+ $1\$" "$SIDE" || fail "no record says: $1"
}

unsaid() {
	! grep -E "^[0-9]+ $1\$" "$SIDE" || fail "a record says: $1"
}

# is_told PID NAME: there are records of the name, the program and the exit of that process.
is_told() {
	said "EXEC $1 $1 $2"
	said "MMAP $1 [0-9a-f]+ [0-9a-f]+ [0-9a-f]+ $WORK"
	said "EXIT $1 $1 from .*"
}

status() {
	perfctl ping --json | jq -r ".sideband.$1"
}

no_keeper() {
	[ -z "$(keeper_pid)" ]
}

is_limited_to() {
	[ "$(status max_memory)" = "$1" ]
}

another_keeps() {
	kept && [ "$(status pid)" -ne "$1" ]
}

# A process from before the first event.
spawn "$WORK" wait >/dev/null
old=$SPAWNED

start_daemon

# ── when it is kept ──────────────────────────────────────────────────────────────────────
expect_match "$(perfctl ping)" $'\nsideband: none is kept: nothing records$'
wait_until 10 no_keeper || fail "a keeper runs though nothing is recorded"
expect_ok "$BIN/sideband-read" "$INSTANCE"
expect_match "$OUT" '^keeping=0 pid=0 '
perfctl create "$INSTANCE/switches" -e sched:sched_switch
wait_until 10 kept || fail "nothing is kept though something is recorded"
expect_eq "$(perfctl list 2>&1 >/dev/null)" "" "list of names that are complete"
expect_match "$(perfctl ping)" \
	$'\nsideband: [0-9]+ processes \([0-9]+ ended\) in [0-9]+\.[0-9]M of 64M, for [^,]+, lost [0-9]+, forgotten [0-9]+\n'
# Other tests overload every keeper of the machine: then it reports what it had to forget.
# Others' BPF programs come and go.
unseen=$'(\nsideband: [0-9]+ BPF programs were loaded and unloaded unseen, and have no names)?'
complete=$'\nsideband: names are complete for [^:]+:'
expect_match "$(perfctl ping)" "forgotten (0$unseen$complete since the first event began|[1-9][0-9]*$unseen$complete older sideband was dropped to make room)\$"
keeper=$(status pid)
expect_eq "$(keeper_pid)" "$keeper" "the keeper"
expect_eq "$(stat -c %u "/proc/$keeper")" "$DAEMON_UID" "the keeper's user"

echo "processes from before, and one that ran for 50 ms"
began=$("$WORK" run)
take
said "COMM $old $old sideband-work"
said "MMAP $old [0-9a-f]+ [0-9a-f]+ [0-9a-f]+ $WORK"
unsaid "EXIT $old $old .*"
is_told "$began" sideband-work
# Libraries, and mappings that are no file.
said "MMAP $began .*/libc\.so\.6"
said "MMAP $began .*\[vdso\]"
take "$(($(awk '$3 == "'"$began"'" && $2 == "EXIT" { print $1 }' "$SIDE") + 1))"
unsaid "EXEC $began .*"

echo "threads, children, and one program after the other"
read -r parent child < <("$WORK" fork)
read -r process thread < <("$WORK" threads)
both=$("$WORK" exec "$WORK" run)
has_exited() { # a zombie has
	! grep -q '^State:[[:space:]]*[^ZX]' "/proc/$1/status" 2>/dev/null
}
wait_until 20 has_exited "$child"
take
said "FORK $child $child from $parent $parent"
unsaid "EXEC $child .*"
said "MMAP $parent [0-9a-f]+ [0-9a-f]+ [0-9a-f]+ $WORK"
said "EXIT $child $child from .*"
said "FORK $process $thread from $process $process"
said "COMM $process $thread its-thread"
both=${both%%$'\n'*}
said "COMM $both $both before-exec"
is_told "$both" sideband-work
expect_eq "$(grep -c " EXEC $both $both " "$SIDE")" 2 "programs that $both ran"

# Our own recorder is one of this machine's BPF programs: KSYMBOL and BPF_EVENT.
said "TYPE 17"
said "TYPE 18"

# ── who gets it ──────────────────────────────────────────────────────────────────────────
echo "rights"
expect_exit 1 as_user "$BIN/sideband-read" "$INSTANCE"
expect_match "$OUT" "User $NOBODY may not read any event, and so not which processes ran"
expect_ok as_user "$BIN/perfctl" --instance "$INSTANCE" ping
[[ $OUT != *sideband* ]] || fail "ping shows sideband to a user who may read no event"
expect_ok as_member "$BIN/sideband-read" "$INSTANCE"
expect_match "$OUT" "EXEC $began $began sideband-work"
expect_ok as_member "$BIN/sideband-read" "$INSTANCE" --touch
expect_match "$OUT" 'nothing can be changed'
expect_ok "$BIN/sideband-read" "$INSTANCE" --touch
expect_match "$OUT" 'nothing can be changed'
# The keeper itself refuses every other connection.
expect_exit 1 as_member "$BIN/sideband-read" "$INSTANCE" --direct

# ── deaths ───────────────────────────────────────────────────────────────────────────────
echo "broker and engine dead"
began=$("$WORK" run) # on a busy machine older ones may be forgotten
kill_daemon
while_dead=$("$WORK" run)
expect_eq "$(keeper_pid)" "$keeper" "the keeper, alone"
take --direct
is_told "$while_dead" sideband-work
start_daemon
wait_until 10 kept || fail "the new daemon does not find the keeper"
take
expect_eq "$(head_of pid)" "$keeper" "the keeper, after a restart"
is_told "$while_dead" sideband-work
is_told "$began" sideband-work
began=$("$WORK" run)
for _ in 1 2; do
	kill_engine
	wait_until 20 perfctl create "$INSTANCE/more" -e cpu-clock || fail "no engine comes back"
	perfctl delete "$INSTANCE/more"
done
take
expect_eq "$(head_of pid)" "$keeper" "the keeper, after other engines"
is_told "$began" sideband-work

echo "saved"
while_dead=$("$WORK" run)
perfctl save -o "$SCRATCH/save" >/dev/null
expect_eq "$(stat -c %a "$SCRATCH/save/+sideband")" 600 "mode of saved sideband"
take --saved "$SCRATCH/save"
is_told "$while_dead" sideband-work
expect_exit 1 as_member "$BIN/sideband-read" "$INSTANCE" --saved "$SCRATCH/save"
truncate -s 300 "$SCRATCH/save/+sideband"
expect_exit 1 "$BIN/sideband-read" "$INSTANCE" --saved "$SCRATCH/save"
expect_match "$OUT" 'is damaged or cut off'

echo "keeper dead"
take
cp "$SIDE" "$SCRATCH/living"
before=$(awk 'END { print $1 }' "$SCRATCH/living")
_kill_9 "$keeper"
wait_until 20 another_keeps "$keeper" || fail "no other keeper begins"
after=$("$WORK" run)
take
[ "$(head_of began)" -ge "$before" ] || fail "the new keeper began before it did"
[ "$(head_of complete)" -ge "$(head_of began)" ] || fail "complete since before it began"
keeper=$(head_of pid)
said "COMM $old $old sideband-work"
said "MMAP $old [0-9a-f]+ [0-9a-f]+ [0-9a-f]+ $WORK"
unsaid "(EXEC|COMM) $began $began sideband-work"
is_told "$after" sideband-work
expect_match "$(perfctl list 2>&1 >/dev/null)" \
	'^perfctl: process names are complete only for the last [^:]+: the previous keeper has ended$'

# ── limits ───────────────────────────────────────────────────────────────────────────────
echo "in 1 MiB"
write_conf "MaxSideband=1M"
perfctl reload >/dev/null
wait_until 10 is_limited_to 1048576 || fail "the limit does not arrive"
MANY=$(length 2500 6000)
"$WORK" many "$MANY" >"$SCRATCH/many"
take
[ "$(head_of memory)" -le 1048576 ] || fail "$(head_of memory) bytes are taken"
[ "$(head_of forgotten)" -gt 0 ] || fail "nothing was forgotten, in $(head_of memory) bytes"
[ "$(head_of complete)" -gt "$(head_of began)" ] || fail "complete as if nothing was forgotten"
# The oldest is gone, and live processes remain. The remaining ones are the newest, however many:
# other processes, which exit meanwhile, share the limit.
said "COMM $old $old sideband-work"
# By name, too: on a busy machine other processes have reused the numbers.
awk '$2 == "COMM" || $2 == "EXEC" { name[$3] = $5 } $2 == "EXIT" && name[$3] == "sideband-work" { print $3 }' "$SIDE" |
	grep -xFf "$SCRATCH/many" >"$SCRATCH/told" || true
! grep -qxF "$(head -n 1 "$SCRATCH/many")" "$SCRATCH/told" || fail "the oldest of $MANY processes is told"
told=$(wc -l <"$SCRATCH/told")
counted=$(($(head_of forgotten) + $(head_of lost)))
[ $((told + counted)) -ge "$MANY" ] ||
	fail "of $MANY processes $told are told and $counted forgotten or lost"
[ "$(head_of lost)" -gt 0 ] || tail -n "$told" "$SCRATCH/many" | diff - "$SCRATCH/told" >&2 ||
	fail "of $MANY processes others are told than the last $told"

# ── the end ──────────────────────────────────────────────────────────────────────────────
echo "not wanted"
write_conf "Sideband=no"
perfctl reload >/dev/null
wait_until 10 no_keeper || fail "the keeper still runs without an event"
expect_eq "$(status keeping)" false "keeping"
expect_ok "$BIN/sideband-read" "$INSTANCE"
expect_match "$OUT" '^keeping=0 '
write_conf
perfctl reload >/dev/null
wait_until 10 kept || fail "nothing is kept though it is wanted again"

echo "the last event"
perfctl create "$INSTANCE/second" -e cpu-clock
perfctl delete "$INSTANCE/switches"
kept || fail "nothing is kept any more though something is recorded"
perfctl delete "$INSTANCE/second"
wait_until 10 no_keeper || fail "the keeper goes on though nothing is recorded"

echo "a daemon that ends all events"
stop_daemon
write_conf "KeepEvents=no"
start_daemon
perfctl create "$INSTANCE/third" -e cpu-clock
wait_until 10 kept || fail "nothing is kept"
stop_daemon
wait_until 10 no_keeper || fail "the keeper goes on though all events have ended"

echo "a keeper that cannot be had"
write_conf
start_daemon --keeper /bin/false
expect_ok perfctl create "$INSTANCE/fourth" -e cpu-clock
expect_ok "$BIN/sideband-read" "$INSTANCE"
expect_match "$OUT" '^keeping=0 pid=0 '
perfctl delete "$INSTANCE/fourth"
