#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# `perfctl snapshots exec` runs a command for each snapshot, once; again where it failed, and after new ones.
# One that takes too long is killed with all that it started, and delays no other for longer; whoever is killed
# leaves out none.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"

SPOOL=$SCRATCH/spool
DONE=$SPOOL.done
mkdir "$SPOOL"
CALLED=$SCRATCH/called
: >"$CALLED"
n=0

# written: a snapshot comes, as the collector writes them; N counts them. Its name is in NAMES.
NAMES=()
written() {
	n=$((n + 1))
	NAMES[n]=2026-11-25T22-34-0$((n % 10))Z.ns.trig.$n.co_mm-$((100 + n)).$((1795646045765354 + n)).data
	echo snapshot $n >"$SCRATCH/new"
	mv "$SCRATCH/new" "$SPOOL/${NAMES[n]}"
}

# command TEXT: what runs; it first notes the number of its snapshot.
command() {
	cat >"$SCRATCH/command" <<-END
		#!/bin/bash
		echo "\$PERFPERSIST_NUMBER" >>"$CALLED"
		$1
	END
	chmod 0755 "$SCRATCH/command"
}

run_exec() {
	"${PERFCTL[@]}" snapshots exec -D "$SPOOL" "$@"
}

called() {
	xargs <"$CALLED"
}

# has_called N…: for wait_until.
has_called() {
	[ "$(called)" = "$*" ]
}

# marked: the numbers of those that are done.
marked() {
	find "$DONE" -type f -printf '%f\n' | cut -d. -f4 | sort -n | xargs
}

is_marked() {
	[ "$(marked)" = "$*" ]
}

# ── each once, with all that is known ────────────────────────────────────────────────────

written
written
written
touch "$SPOOL/.hidden.data" "$SPOOL/other"
command '{ echo "$# $1 $2"; env | grep ^PERFPERSIST_ | sort; cat "$2"; readlink /proc/self/fd/0; } >>"$0.said"'
# What the caller has of these names is not the command's.
PERFPERSIST_NUMBER=99 PERFPERSIST_FILE=/etc/passwd expect_ok run_exec --once -- "$SCRATCH/command" first
expect_eq "$(called)" "1 2 3" "whose command ran"
expect_eq "$(head -n 11 "$SCRATCH/command.said")" "2 first $SPOOL/${NAMES[1]}
PERFPERSIST_BYTES=$(($(stat -c %b "$SPOOL/${NAMES[1]}") * 512))
PERFPERSIST_COMM=co_mm
PERFPERSIST_FILE=$SPOOL/${NAMES[1]}
PERFPERSIST_NAMESPACE=ns
PERFPERSIST_NUMBER=1
PERFPERSIST_PID=101
PERFPERSIST_TIME=$(date -u -d 2026-11-25T22:34:01Z +%s)000000000
PERFPERSIST_TRIGGER=trig
snapshot 1
/dev/null" "what a command gets"
expect_ok run_exec --once -- "$SCRATCH/command"
expect_eq "$(called)" "1 2 3" "whose command ran, after a second start"
rm "$SPOOL/${NAMES[1]}"
written
expect_ok run_exec --once -- "$SCRATCH/command"
expect_eq "$(called)" "1 2 3 4" "and for a new one"
expect_eq "$(marked)" "2 3 4" "what is remembered, of those that are there"
said 2 'give a command' run_exec --once
said 2 'not a time' run_exec --timeout soon -- true
expect_ok "${PERFCTL[@]}" snapshots exec -D "$SPOOL/" --once -- false # they are done
echo "each snapshot's command ran once"

# ── whose directories ────────────────────────────────────────────────────────────────────

# refused_place DIRECTORY TEXT
refused_place() {
	expect_exit 1 "${PERFCTL[@]}" snapshots exec -D "$1" --once -- false
	expect_match "$OUT" "$2" "$1 is refused"
}
OTHER=$SCRATCH/other
mkdir "$OTHER"
ln -s "$SPOOL" "$SCRATCH/link"
refused_place "$SCRATCH/link" 'cannot use .*/link: it is no directory, or a link'
refused_place "$SCRATCH/link/" 'cannot use .*/link: it is no directory, or a link'
ln -s "$DONE" "$OTHER.done"
refused_place "$OTHER" 'cannot use .*/other.done: it is no directory, or a link'
rm "$OTHER.done"
chmod 0777 "$OTHER"
refused_place "$OTHER" 'cannot use .*/other: it belongs to another user, or others can write it'
[ ! -e "$OTHER.done" ] || fail "a refused spool has got a directory of what is done"
chmod 0755 "$OTHER"
install -d -o 12345 "$OTHER.done"
refused_place "$OTHER" 'cannot use .*/other.done: it belongs to another user'
chown 12345 "$OTHER"
expect_ok "${PERFCTL[@]}" snapshots exec -D "$OTHER" --once -- false
echo "nobody else chooses what a command reads"

# ── failures ─────────────────────────────────────────────────────────────────────────────

command '[ "$PERFPERSIST_NUMBER" != 5 ] || exit 7
[ "$PERFPERSIST_NUMBER" != 6 ] || kill -SEGV $$'
: >"$CALLED"
written
written
written
expect_exit 1 run_exec --once -- "$SCRATCH/command"
expect_match "$OUT" "failed for ${NAMES[5]} \(attempt 1; 1 failures in all\): exit status 7" "an exit status"
expect_match "$OUT" "failed for ${NAMES[6]} \(attempt 1; 2 failures in all\): signal 11" "a signal"
expect_eq "$(called) / $(marked)" "5 6 7 / 2 3 4 7" "what ran, and what is done"
command true
expect_ok run_exec --once -- "$SCRATCH/command"
expect_eq "$(called) / $(marked)" "5 6 7 5 6 / 2 3 4 5 6 7" "after another start"
echo "what failed runs again"

# ── too long ─────────────────────────────────────────────────────────────────────────────

# Whether what the command started is gone; for wait_until.
is_gone() {
	local pid
	while read -r pid; do
		[ ! -e "/proc/$pid" ] || return 1
	done <"$SCRATCH/pids"
}

# expect_gone WHAT
expect_gone() {
	wait_until 10 is_gone && return
	xargs kill -KILL <"$SCRATCH/pids" || true
	fail "$1"
}
command '[ "$PERFPERSIST_NUMBER" = 8 ] || exit 0
trap "" TERM
sleep 600 >/dev/null 2>&1 & echo $! $$ | tr " " "\n" >'"$SCRATCH/pids"'
wait'
: >"$CALLED"
written
written
expect_exit 1 run_exec --once --timeout 1s -- "$SCRATCH/command"
expect_match "$OUT" "failed for ${NAMES[8]} .*: it took longer than 1 s, and was killed" "one that takes too long"
expect_eq "$(called) / $(marked)" "8 9 / 2 3 4 5 6 7 9" "what ran, and what is done"
expect_gone "processes outlive the time of their command"
# What a command that ends leaves behind.
command 'sleep 600 >/dev/null 2>&1 & echo $! >'"$SCRATCH/pids"
expect_ok run_exec --once -- "$SCRATCH/command"
expect_gone "a process outlives its command"
echo "a command that takes too long is killed, with all of its processes"

# ── the service ──────────────────────────────────────────────────────────────────────────

# The first one fails again and again; new ones come before it. The third one hangs.
command '[ "$PERFPERSIST_NUMBER" != 10 ] || exit 1
[ "$PERFPERSIST_NUMBER" != 12 ] || { echo $$ >'"$SCRATCH/pids"'; exec sleep 600; }'
: >"$CALLED"
: >"$SCRATCH/pids"
written
spawn "${PERFCTL[@]}" snapshots exec -D "$SPOOL" -- "$SCRATCH/command" >>"$LOG" 2>&1
service=$SPAWNED
wait_until 10 has_called 10
written
wait_until 10 has_called 10 11 || fail "these ran: $(called)"
written
wait_until 10 has_called 10 11 12
kill -KILL "$service"
wait "$service" 2>/dev/null || true
wait_until 10 test -s "$SCRATCH/pids"
kill "$(<"$SCRATCH/pids")"
: >"$SCRATCH/pids"
spawn "${PERFCTL[@]}" snapshots exec -D "$SPOOL" -- "$SCRATCH/command" >>"$LOG" 2>&1
service=$SPAWNED
wait_until 10 has_called 10 11 12 10 12 || fail "these ran: $(called)"
wait_until 10 test -s "$SCRATCH/pids"
kill -TERM "$service"
wait "$service" || fail "it ends with $? on SIGTERM"
expect_gone "its command goes on after SIGTERM"
command true
expect_ok run_exec --once -- "$SCRATCH/command"
is_marked "$(seq 2 12 | xargs)" || fail "these are done: $(marked)"
echo "the service runs new ones first, and none is left out when it is killed"

# ── other directories of these names ─────────────────────────────────────────────────────

# What is done is known only where it was noted: nobody may go on with the old ones.
for moved in "$SPOOL" "$DONE"; do
	command "[ -e $moved.away ] || { mv $moved $moved.away; mkdir $moved; }"
	written
	expect_exit 1 run_exec --once -- "$SCRATCH/command"
	expect_match "$OUT" "$SPOOL or $DONE was removed or moved away" "$moved is another one"
	rm -r "$moved"
	mv "$moved.away" "$moved"
	expect_ok run_exec --once -- "$SCRATCH/command"
done
# One that is removed while it is open looks empty.
command "rm -r $SPOOL; mkdir $SPOOL"
written
expect_exit 1 run_exec --once -- "$SCRATCH/command"
[ "$(marked | wc -w)" -gt 2 ] || fail "the marks of what is done are gone"
echo "directories that are not those of the beginning end it"

# ── interrupted ──────────────────────────────────────────────────────────────────────────

command 'echo $$ >'"$SCRATCH/pids"'; exec sleep 600'
: >"$SCRATCH/pids"
written
"${PERFCTL[@]}" snapshots exec -D "$SPOOL" --once -- "$SCRATCH/command" >"$SCRATCH/once" 2>&1 &
once=$!
_spawned+=("$once")
wait_until 10 test -s "$SCRATCH/pids"
kill -TERM "$once"
wait "$once" && fail "interrupted, it says that all is done"
expect_match "$(<"$SCRATCH/once")" 'interrupted: the command may not have run for every snapshot'
command true
expect_ok run_exec --once -- "$SCRATCH/command"
echo "what is interrupted is not done"
