#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What was recorded until the last checkpoint is there after the machine has died. Here that is the
# death of every process at once, by SIGKILL, and the next boot is another boot_id, mounted over the
# kernel's for the service alone. (tests/vm/test-crash.sh crashes a machine.)
. "$(dirname "$0")/../lib.sh"

PLACE=$STATE/checkpoints
NUMBERED=$BIN/calls-$$ # other tests run it, too
BOOT_ID=$SCRATCH/boot_id
boots=0
. "$ROOT/tests/checkpoints.sh"

# The disk has no part in this: one that is slow is left alone for 32 times as long as a write took.
mkdir -p "$STATE"
mount -t tmpfs -o mode=0755 none "$STATE"

cp "$BIN/numbered" "$NUMBERED"

# ── a machine ────────────────────────────────────────────────────────────────────────────

# Runs a command in the present boot.
# shellcheck disable=SC2016
IN_BOOT=(unshare --mount sh -c 'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"' sh "$BOOT_ID")

# service OPTION…: as the daemon's user, in the present boot, with the limits SOFT:HARD of descriptors in
# FILES. SERVICE is its pid.
service() {
	spawn "${IN_BOOT[@]}" prlimit --nofile="${FILES:-1024:4096}" \
		setpriv --reuid="$DAEMON_UID" --regid="$DAEMON_GID" --clear-groups -- \
		"${PERFCTL[@]}" checkpoint "$@" >>"$SCRATCH/service.log" 2>&1
	SERVICE=$SPAWNED
}

stop_service() {
	kill -"$1" "$SERVICE"
	wait "$SERVICE" 2>/dev/null || true
}

boot() {
	boots=$((boots + 1))
	printf '%08x-1111-2222-3333-444444444444\n' $boots >"$BOOT_ID"
	chmod 0644 "$BOOT_ID"
	start_daemon
}

# The events go with the machine.
crash() {
	stop_service KILL
	kill_daemon
	boot
	perfctl delete --all >/dev/null
}

said() {
	grep -qE -e "$1" "$SCRATCH/service.log"
}

create() {
	create_calls
	perfctl create t/several -e 'sched:sched_process_exec,sched:sched_process_exit' --call-graph dwarf,1024 --max-stack 7 -m 64K >/dev/null 2>&1
	perfctl change t/several --checkpoint 1s >/dev/null
}

# crash_and_find: what the crash has left is a save when the service has started in the next boot.
found=0
crash_and_find() {
	crash
	service
	found=$((found + 1))
	wait_until 20 found_all || fail "what the crash left is not found"
}

found_all() {
	[ "$(grep -c 'from before the boot' "$SCRATCH/service.log")" -eq $found ]
}

# ── the first boot ───────────────────────────────────────────────────────────────────────

expect_exit 3 perfctl --saved=previous-boot list
expect_match "$OUT" 'no checkpoints of an earlier boot'
install -d -m 0755 -o "$DAEMON_UID" "$STATE" "$PLACE"
write_conf '[namespace u]
Mode=0660'
boot
create
perfctl create t/none -e sched:sched_process_fork -m 64K >/dev/null
expect_eq "$(perfctl list --json | jq -c 'map([.name, .checkpoint]) | sort')" \
	'[["calls",1],["none",0],["several",1]]' "who has checkpoints"
service
wait_until 20 test -e "$(file_of t/calls)" || fail "no checkpoint is written"
wait_until 20 test -e "$(file_of t/several)" || fail "no checkpoint is written after a change"
[ ! -e "$(file_of t/none)" ] || fail "a checkpoint that nobody asked for"
expect_eq "$(stat -c %a "$(file_of t/calls)")" 600 "a file's mode"

# ── few descriptors: the file of an event that cannot be opened stays ────────────────────

stop_service TERM
file=$(file_of t/calls)
FILES=8:8 service --once
! wait "$SERVICE" || fail "all events can be opened with 8 descriptors"
said 'no checkpoints of t/[a-z]*: .*Too many open files' || fail "it does not say which event it cannot open"
[ -e "$file" ] || fail "the checkpoints of an event that could not be opened are gone"
FILES=8:4096 service --once
wait "$SERVICE" || fail "it does not take more descriptors"

# ── nothing is left of the limit: it says so ─────────────────────────────────────────────

# Each takes 64K of 140K; a new file, another 64K.
service --once --max-rate 14K
wait "$SERVICE" || fail "two files are not written"
rm "$file"
service --once --max-rate 14K
! wait "$SERVICE" || fail "a new file costs nothing"
said 'no checkpoint of t/[a-z]* is written: .* --max-rate 14K' || fail "it does not say what is left out"
service

# ── a file says what the event is now ────────────────────────────────────────────────────

# When its next checkpoint is due, and no earlier: each costs the disk.
perfctl create t/slow -e sched:sched_process_fork -m 64K --checkpoint 1h >/dev/null
slow=$(file_of t/slow)
file=$(file_of t/several)
wait_until 20 test -e "$file" || fail "no checkpoint is written after a restart"
wait_until 20 test -e "$slow" || fail "an event with an hour between has no first checkpoint"
inode=$(stat -c %i "$file")
slow_inode=$(stat -c %i "$slow")
is_new_file() {
	[ "$(stat -c %i "$file")" != "$inode" ]
}
perfctl change t/slow --max-rate 12345 >/dev/null
perfctl change t/several --max-rate 12345 >/dev/null
wait_until 20 is_new_file || fail "the file of a changed event stays"
if [ -e "$slow.new" ] || [ "$(stat -c %i "$slow")" != "$slow_inode" ]; then
	fail "a change makes a new file before the event's next checkpoint is due"
fi
perfctl create t/clock -e cpu-clock -F 10 -m 64K --checkpoint 1s >/dev/null
file=$(file_of t/clock)
wait_until 20 test -e "$file" || fail "no checkpoint of a new event is written"
inode=$(stat -c %i "$file")
perfctl change t/clock -F 20 >/dev/null
wait_until 20 is_new_file || fail "the file of an event with another frequency stays"

# What passes is tried again soon, and not only when all events are looked through: here the broker has no
# place for the rings that it is to hand out.
few_files() {
	setpriv --reuid="$DAEMON_UID" --regid="$DAEMON_GID" --clear-groups prlimit --pid "$1" --nofile="$2:4096"
}
broker=$(broker_pid)
fds() {
	find "/proc/$broker/fd" -type l | wc -l
}
kill -STOP "$SERVICE"
fds=$(fds)
perfctl create t/later -e sched:sched_process_fork -m 64K --checkpoint 1s >/dev/null
few_again() { # the connection of that is closed
	[ "$(fds)" -le "$fds" ]
}
wait_until 20 few_again
few_files "$broker" $((fds - 1)) # one of them is above all others
kill -CONT "$SERVICE"
wait_until 20 said 'no checkpoints of t/later: .*too many descriptors' || fail "it does not say that t/later cannot be opened"
few_files "$broker" 4096
wait_until 20 test -e "$(file_of t/later)" || fail "an event that could not be opened once has no checkpoint"
perfctl delete t/slow t/clock t/later >/dev/null

# ── busy when it crashes: up to the last checkpoint ──────────────────────────────────────

busy_calls
for _ in $(seq "$(length 1 10)"); do
	until=$(numbers | newest)
	next_checkpoint t/calls
done
echo "the service: $(sed -nE 's/^(write_bytes): /\1 /p' "/proc/$SERVICE/io") of a busy event," \
	"$(awk '{ print $14 + $15 }' "/proc/$SERVICE/stat") ticks of CPU time"
crash_and_find
kill "$busy"
busy=
expect_calls "$until"
expect_eq "$(perfctl --saved=previous-boot list --json | jq -c 'map([.name, .skipped, .max_rate, .max_stack, .stack_user, .reads]) | sort')" \
	'[["calls",0,0,0,0,"saved"],["several",0,12345,7,1024,"saved"]]' "what is there"
expect_match "$(perfctl --saved=previous-boot reopen t/several -n all 2>/dev/null)" 'sched_process_exec'
expect_match "$(perfctl --saved=previous-boot script t/several 2>/dev/null)" 'sched_process_exec'
expect_ok perfctl --saved=previous-boot stat
expect_ok "${IN_BOOT[@]}" "${PERFCTL[@]}" --saved=previous-boot snapshot -o "$SCRATCH/crash.data" t/calls
# This boot's kernel was not there.
expect_eq "$(perfctl script -i "$SCRATCH/crash.data" --show-mmap-events | grep -c 'kernel.kallsyms')" 0 "maps of the kernel"
expect_eq "$(perf report --header-only -i "$SCRATCH/crash.data" | grep -c 'os release')" 0 "releases of the kernel"

# ── what cannot be asked for ─────────────────────────────────────────────────────────────

for bad in 0 500ms 1.5s 2h x; do
	expect_exit 2 perfctl create t/bad -e sched:sched_switch --checkpoint "$bad"
done
expect_exit 2 perfctl change t/calls --checkpoint 2h
expect_exit 3 perfctl checkpoint -D "$SCRATCH/none" --once
expect_exit 4 perfctl checkpoint --once # the directory is the daemon's
expect_exit 2 perfctl checkpoint --keep 0
expect_exit 2 perfctl --direct checkpoint
expect_exit 2 perfctl --saved checkpoint
stop_service TERM
full || exit 0

# ── quiet when it crashes: everything is there ───────────────────────────────────────────

create
service
made=0
wait_until 20 test -e "$(file_of t/calls)" || fail "no checkpoint is written"
calls 20000
next_checkpoint t/calls
crash_and_find
expect_calls 19999
echo "the last was $((made - 1))"

# ── the daemon and the service die ───────────────────────────────────────────────────────

create
wait_until 20 test -e "$(file_of t/calls)" || fail "no checkpoint is written"
kill_broker
start_daemon
next_checkpoint t/calls
before=$(sequence "$(file_of t/calls)" | sort -n | tail -n 1)
stop_service KILL
service
next_checkpoint t/calls
[ "$(sequence "$(file_of t/calls)" | sort -n | head -n 1)" -ge "$before" ] ||
	fail "the service began a new file of the same buffers"
perfctl change t/calls -m 64K >/dev/null
smaller() {
	[ "$(stat -c %s "$(file_of t/calls)")" -lt 500000 ]
}
wait_until 20 smaller || fail "new buffers have no new file"

# ── limits ───────────────────────────────────────────────────────────────────────────────

file=$(file_of t/calls)
gone_file() {
	[ ! -e "$file" ]
}
perfctl change t/calls --checkpoint 0 -m 256K >/dev/null
wait_until 20 gone_file || fail "the file of an event that wants no checkpoints stays"
perfctl change t/calls --checkpoint 1s >/dev/null
stop_service TERM
service --max-size 1M
wait_until 20 said 't/calls: they would take .* on the disk, and of --max-size 1M there are' ||
	fail "a file that is too large is not refused"
stop_service TERM
# Others get half: 512K, where root's own has room.
perfctl change t/calls --checkpoint 0 >/dev/null
perfctl delete t/several >/dev/null
perfctl create u/root -e sched:sched_process_fork -m 4K --checkpoint 1s >/dev/null
as_member perfctl create u/other -e sched:sched_process_fork -m 128K --checkpoint 1s >/dev/null
service --max-size 1M
wait_until 20 said 'u/other: .* left for events of users other than root' || fail "there is no share"
wait_until 20 test -e "$(file_of u/root)" || fail "root's event has no checkpoint"
[ ! -e "$(file_of u/other)" ] || fail "another user's event takes more than half"
stop_service TERM
perfctl delete u/root u/other >/dev/null
perfctl change t/calls --checkpoint 1s >/dev/null
service --max-rate 8K
wait_until 20 test -e "$(file_of t/calls)" || fail "no checkpoint is written"
calls 30000
wait_until 20 said 'leave out records for --max-rate' || fail "no limit of bytes a second"
crash_and_find
expect_match "$(perfctl --saved=previous-boot show t/calls)" 'skipped +[0-9]+ bytes'
expect_eq "$(find "$PLACE" -mindepth 1 -maxdepth 1 -name '2*' | wc -l)" 3 "boots that are kept"
