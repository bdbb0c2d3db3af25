#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What a firing does: `--action freeze` keeps what was recorded until somebody asks for it, `pause` stops
# its targets at that instant until somebody resumes them, `notify` is only told. Each by the kernel, with
# no daemon running, and whoever is killed before it is handled.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"
. "$(dirname "$0")/../collector.sh"

MARK=$SCRATCH/mark-$$
cp "$(type -P true)" "$MARK"
NUMBERED=$SCRATCH/num-$$
cp "$BIN/numbered" "$NUMBERED"
ON_MARK=(--on sched:sched_process_exec --filter "filename ~ \"*/${MARK##*/}\"" --hold-off 10ms)
SPOOL=$SCRATCH/spool
mkdir "$SPOOL"

# calls N: makes N recorded calls that carry a number, beside a few of the program's start.
CALLS=0
CALL='NR 3 \(ffffffffffffffff, 5'
calls() {
	"$NUMBERED" $((0x50000000 + CALLS)) "$1"
	CALLS=$((CALLS + $1))
}

# files: how many snapshots there are.
files() {
	find "$SPOOL" -name '*.data' | wc -l
}

# memory_below BYTES: for wait_until.
memory_below() {
	[ "$(memory)" -lt "$1" ]
}

# For wait_until.
no_links_of_tapes() {
	[ -z "$(find "$REGISTRY"/+kept-* -name 'link*')" ]
}

# calls_in FILE
calls_in() {
	perfctl script -i "$1" 2>/dev/null | grep -cE "$CALL" || true
}

# calls_of EVENT: those in its buffers.
calls_of() {
	perfctl reopen "$1" -n all 2>/dev/null | grep -cE "$CALL" || true
}

# told LINE N: whether the daemon has logged it as often; for wait_until.
told() {
	[ "$(grep -cE "$1" "$LOG")" = "$2" ]
}

# is TRIGGER FIELD VALUE: for wait_until.
is() {
	[ "$(trigger_field "$1" "$2")" = "$3" ]
}

# paused EVENT: by a trigger; for wait_until.
paused() {
	[ "$(perfctl show "$1" --json | json_field state) $(perfctl show "$1" --json | json_field paused_by_trigger)" = "paused true" ]
}

memory() {
	perfctl limits --json | json_field memory 1
}

memory_is() {
	[ "$(memory)" = "$1" ]
}

# Without a broker: what is sent to it meanwhile never arrives.
kill_and_start() {
	kill_daemon
	start_daemon
}

write_conf "[namespace p]
Fire=all
Mode=0644
[namespace small]
MaxMemory=900K"
start_daemon

# ── freeze ───────────────────────────────────────────────────────────────────────────────

perfctl create f/calls -e raw_syscalls:sys_enter --filter 'id == 3' --comm "${NUMBERED##*/}" -m 256K >/dev/null
expect_match "$(perfctl trigger add f/keep "${ON_MARK[@]}" --action freeze calls 2>"$SCRATCH/note")" 'and freezes calls$' "what it says"
is f/keep n_armed 1 || grep -qF '0 of 1 targets of f/keep are armed so far' "$SCRATCH/note" ||
	fail "it is added, and its target is not armed: $(<"$SCRATCH/note")"
armed f/keep 1
calls 100
"$MARK"
kill_and_start
wait_until 20 is f/keep tapes 1 || fail "what was frozen is lost: $(perfctl trigger show f/keep)"
calls 200
# Neither a path unit nor the service finds anything.
expect_eq "$(find "$REGISTRY" -maxdepth 1 -name '+tape-*' -o -maxdepth 1 -name '+frozen-*')" "" "what is to be saved"
perfctl snapshots collect --once -D "$SPOOL" >/dev/null
expect_eq "$(files)" 0 "snapshots that nobody has asked for"
expect_match "$(perfctl trigger show f/keep)" 'waits +1 event frozen' "what show says"
# Another firing finds the second set, and the next one nothing.
armed f/keep 1
"$MARK"
sleep 0.02
"$MARK"
expect_eq "$(trigger_field f/keep fired) $(trigger_field f/keep late)" "3 1" "firings, and late ones"
# In files only by name.
said 3 'has frozen nothing' perfctl trigger release f/none
# One that has frozen nothing does not keep the others.
said 3 'f/none has frozen nothing' perfctl snapshots collect --once -D "$SPOOL" f/none
expect_exit 3 perfctl snapshots collect --once -D "$SPOOL" f/none f/keep
expect_eq "$(files)" 1 "snapshots"
expect_eq "$(calls_in "$(perfctl snapshots show -D "$SPOOL")")" 100 "calls until the first firing"
wait_until 20 is f/keep tapes 1 || fail "the second firing is lost"
expect_ok perfctl snapshots collect --once -D "$SPOOL" f/keep
armed f/keep 1
"$MARK"
# At once: the daemon has hardly heard of it.
collects() {
	perfctl snapshots collect --once -D "$SPOOL" f/keep >>"$LOG" 2>&1
}
wait_until 20 collects || fail "what has just been frozen is not saved"
armed f/keep 1
"$MARK"
calls 50
wait_until 20 is f/keep tapes 1 || fail "the second firing is lost"
perfctl trigger remove f/keep >/dev/null
said 3 'has frozen nothing' perfctl trigger release f/keep
perfctl snapshots collect --once -D "$SPOOL" >/dev/null
expect_eq "$(files)" 3 "snapshots of a removed trigger that nobody has asked for"
expect_eq "$(perfctl trigger release f/deleted --json)" '[{"namespace":"f","name":"deleted","released":1}]' "what release says"
expect_eq "$(find "$REGISTRY" -maxdepth 1 -name '+kept-*')" "" "what is kept after that"
expect_eq "$(calls_of f/calls)" 50 "calls since the last firing"

# What was turned, and waits for an earlier tape, is kept when its event is deleted. What root saves in the
# services' stead is theirs.
perfctl create d/calls -e raw_syscalls:sys_enter --filter 'id == 3 && common_pid > 1' --comm "${NUMBERED##*/}" -m 256K >/dev/null
perfctl trigger add d/keep "${ON_MARK[@]}" --action freeze calls >/dev/null
armed d/keep 1
calls 70
"$MARK"
armed d/keep 1
calls 30
"$MARK"
wait_until 20 is d/keep tapes 1
# Not when another name goes: what it had turned waits, and it is armed again later.
perfctl create d/second -e raw_syscalls:sys_enter --filter 'id == 3 && common_pid > 1' --comm "${NUMBERED##*/}" -m 256K --share >/dev/null
expect_eq "$(perfctl show d/second --json | json_field shares)" "$(perfctl show d/calls --json | json_field id)" "whose buffers it has"
expect_eq "$(trigger_field d/keep tapes)" 1 "tapes, with a second name"
perfctl delete d/second >/dev/null
expect_eq "$(trigger_field d/keep tapes)" 1 "tapes, when a second name has gone"
perfctl delete d/calls >/dev/null
wait_until 20 is d/keep tapes 2 || fail "what it had turned went with the event: $(perfctl trigger show d/keep)"
mkdir -p "$STATE/snapshots"
chown 65533:65531 "$STATE/snapshots"
expect_ok perfctl snapshots collect --once d/keep
expect_eq "$(stat -c '%u:%g %a' "$STATE"/snapshots/*.data | uniq -c | xargs)" "2 65533:65531 600" "snapshots of the deleted event"
expect_eq "$(calls_in "$(perfctl snapshots show)")" 30 "calls until the second firing"
rm -r "$STATE/snapshots"

# So is what a namespace leaves that nothing else is in.
perfctl create d/calls -e raw_syscalls:sys_enter --filter 'id == 3' -m 64K >/dev/null
armed d/keep 1
"$MARK"
wait_until 20 is d/keep tapes 1
perfctl delete --all d >/dev/null
expect_match "$(perfctl trigger release d/deleted)" 'had recorded is released' "what release says"

# Without room for a second set the event itself waits, and records nothing meanwhile.
perfctl create small/calls -e raw_syscalls:sys_enter --filter 'id == 3' --comm "${NUMBERED##*/}" -m 256K >/dev/null
perfctl trigger add small/keep "${ON_MARK[@]}" -m 16K --action freeze calls >/dev/null
armed small/keep 1
calls 100
"$MARK"
wait_until 20 is small/keep tapes 1
expect_eq "$(perfctl show small/calls --json | jq -r .state)" running "state of what is frozen once, and is its own tape"
calls 100
perfctl snapshots collect --once -D "$SPOOL" >/dev/null
expect_eq "$(find "$REGISTRY" -maxdepth 1 -name '+frozen-*')" "" "what is to be saved"
expect_eq "$(calls_of small/calls)" 100 "calls until the firing"
expect_match "$(perfctl trigger release small/keep)" 'had recorded is released' "what release says"
calls 100
expect_eq "$(calls_of small/calls)" 200 "calls, but for those while it was frozen"

# It waits also when its event has gone.
armed small/keep 1
calls 100
"$MARK"
wait_until 20 is small/keep tapes 1
calls 100
before=$(memory)
perfctl delete small/calls >/dev/null
expect_eq "$(trigger_field small/keep tapes)" 1 "tapes, when the event has gone"
wait_until 20 no_links_of_tapes || fail "its programs stay: $(find "$REGISTRY"/+kept-*)"
! memory_below $((before - 500000)) || fail "nobody is charged for what waits: $(memory) of $before bytes"
mkdir -p "$STATE/snapshots"
chown 65533:65531 "$STATE/snapshots"
expect_ok perfctl snapshots collect --once small/keep
expect_eq "$(calls_in "$(perfctl snapshots show)")" 300 "calls of a deleted event until the firing"
expect_eq "$(trigger_field small/keep tapes)" 0 "tapes when they are saved"
expect_eq "$(find "$REGISTRY" -maxdepth 1 -name '+kept-*')" "" "what is left in the registry"
rm -r "$STATE/snapshots"

# Nor is what a window that is open has recorded lost.
wait_until 20 memory_below $((before - 500000)) || fail "a tape is charged when it is saved: $(memory) of $before bytes"
perfctl create small/open -e raw_syscalls:sys_enter --filter 'id == 3' --comm "${NUMBERED##*/}" -m 256K >/dev/null
perfctl trigger remove small/keep >/dev/null
perfctl trigger add small/long "${ON_MARK[@]:0:4}" --hold-off 1h -m 16K --after 60s open >/dev/null
armed small/long 1
calls 100
"$MARK"
wait_until 20 is small/long fired 1
calls 50
perfctl delete small/open >/dev/null
perfctl snapshots collect --once -D "$SPOOL/window" >/dev/null
expect_eq "$(calls_in "$SPOOL"/window/*.data)" 150 "calls of a deleted event in an open window"
rm -r "$SPOOL/window"
perfctl delete --all f small >/dev/null
wait_until 20 memory_is 0 || fail "a tape is charged when it is saved: $(memory)"
echo "what is frozen waits until somebody asks for it, also after SIGKILL, and is no file before"

# ── pause ────────────────────────────────────────────────────────────────────────────────

perfctl create p/calls -e raw_syscalls:sys_enter --filter 'id == 3' --comm "${NUMBERED##*/}" -m 256K >/dev/null
perfctl create p/several -e 'raw_syscalls:sys_exit,sched:sched_switch' --generic --comm "${NUMBERED##*/}" -m 256K >/dev/null
alone=$(memory)
expect_match "$(perfctl trigger add p/stop "${ON_MARK[@]}" -m 16K --action pause '*')" "and pauses \\*$" "what it says"
armed p/stop 2
[ $(($(memory) - alone)) -lt 100000 ] || fail "a pause takes a second set of buffers"

# records: of both events.
records() {
	echo "$(records_of p/calls) $(records_of p/several)"
}

# A daemon that is stopped or dead cannot have done it.
victims=(nobody engine daemon)
! full || victims+=(broker)
for victim in "${victims[@]}"; do
	calls 100
	before=$(records) seen=$(calls_of p/calls)
	[ "$victim" = nobody ] || kill -STOP "$(broker_pid)"
	"$MARK"
	calls 100
	case $victim in
	broker)
		kill -KILL "$DAEMON_PID"
		wait "$DAEMON_PID" 2>/dev/null || true
		wait_until 20 _no_processes
		start_daemon
		;;
	engine)
		kill -KILL "$(program_pids perfpersist-engine)"
		kill -CONT "$DAEMON_PID"
		;;
	daemon)
		# shellcheck disable=SC2046
		kill -KILL $(daemon_pids)
		wait "$DAEMON_PID" 2>/dev/null || true
		wait_until 20 _no_processes
		start_daemon
		;;
	esac
	for event in p/calls p/several; do
		wait_until 20 paused $event || fail "$victim killed: $event is not paused: $(perfctl list p)"
	done
	calls 100
	expect_eq "$(records)" "$before" "records after the firing, with $victim killed"
	expect_eq "$(perfctl reopen p/calls -n all --json 2>/dev/null | wc -l)" "$(records_of p/calls)" "what readers get"
	expect_match "$(perfctl list p)" 'calls .* paused \(trigger\)' "list"
	wait_until 20 told 'p/stop has fired .* and p/calls is paused' 1 || fail "no entry in the log: $(<"$LOG")"
	: >"$LOG"
	perfctl resume p/calls p/several >/dev/null
	expect_eq "$(perfctl show p/calls --json | json_field paused_by_trigger)" false "resumed"
	calls 100
	expect_eq "$(calls_of p/calls)" $((seen + 100)) "calls until it was stopped and after it was resumed, with $victim killed"
	armed p/stop 2
done
perfctl snapshots collect --once -D "$SPOOL" >/dev/null
expect_eq "$(files) $(trigger_field p/stop fired) $(trigger_field p/stop late)" "3 ${#victims[@]} 0" "files, firings and late targets"

# The right to fire gives no other right.
expect_ok as_user perfctl trigger fire p/stop
wait_until 20 paused p/calls
calls 10
expect_exit 4 as_user perfctl resume p/calls
paused p/calls || fail "a stranger has resumed it"
perfctl resume p/calls p/several >/dev/null

# One that freezes the same event finds it with a second set, and a pause needs no room for a tape.
perfctl trigger add p/save "${ON_MARK[@]}" -m 16K calls >/dev/null
armed p/save 1
calls 100
expect_ok perfctl trigger fire p/save
armed p/save 1
expect_exit 4 as_user perfctl trigger release p/save
calls 100
expect_ok perfctl trigger fire p/stop
wait_until 20 paused p/calls
calls 100
expect_eq "$(calls_of p/calls)" 100 "calls between both"
perfctl snapshots collect --once -D "$SPOOL" >/dev/null
expect_eq "$(files)" 4 "snapshots"
perfctl delete --all p >/dev/null
echo "targets stop in the kernel, are paused whoever is killed, and go on when somebody resumes them"

# ── notify ───────────────────────────────────────────────────────────────────────────────

: >"$LOG"
expect_match "$(perfctl trigger add n/tell "${ON_MARK[@]}" --action notify)" 'and notifies$' "what it says"
spawn perfctl watch -n 2 n >"$SCRATCH/watched"
watcher=$SPAWNED
wait_until 20 grep -q started "$SCRATCH/watched"
"$MARK"
wait_until 20 told 'n/tell has fired \(number 1, CPU [0-9]+, mark' 1 || fail "nobody was told: $(<"$LOG")"
# Those that are a second apart are told each.
sleep 1
expect_ok perfctl trigger fire n/tell
wait_until 20 told 'n/tell has fired \(number 2, by hand\)\.' 1
wait "$watcher"
expect_eq "$(grep -c 'fired *n/tell' "$SCRATCH/watched")" 2 "what watchers were told"
# told_until: the number of the last firing that was told, if each one was: by itself, or as one of those since the
# last message.
told_until() {
	sed -nE 's/.*n\/tell has fired \(number ([0-9]+)[^)]*\)(, and ([0-9]+) more firings? since the last message)?\.$/\1 \3/p' "$LOG" | awk '
		$1 != last + $2 + 1 { print "behind " last ": " $0; last = -1; exit }
		{ last = $1 }
		END { if (last >= 0) print last + 0 }'
}
is_told_until() {
	[ "$(told_until)" = "$1" ]
}
# burst N: firings within less than a second, whatever else runs.
burst() {
	# shellcheck disable=SC2016
	chrt -f 50 bash -c 'for ((i = 0; i < $1; i++)); do sleep 0.02; "$2"; done' - "$1" "$MARK"
}
# Those that the broker has not read wait for the next one.
kill -STOP "$(broker_pid)"
burst 3
kill -KILL "$DAEMON_PID"
wait "$DAEMON_PID" 2>/dev/null || true
wait_until 20 _no_processes
start_daemon
wait_until 20 told 'n/tell has fired \(number 3, CPU [^)]+\)\.' 1 || fail "firing 3 is lost: $(<"$LOG")"
# A burst is told with its number: with the next one, after a while, and with whatever ends before that.
sleep 1
burst 3
last=8
if full; then
	wait_until 20 is_told_until 8 || fail "the rest was not told: $(told_until)"
	burst 2
	sleep 0.02 # what the hold-off demands
	expect_ok perfctl trigger fire n/tell
	last=11
else
	wait_until 20 is n/tell fired 8
fi
stop_daemon
expect_eq "$(told_until)" $last "what is told when the daemon has ended"
start_daemon
[ "$(grep -c 'n/tell has fired' "$LOG")" -lt $last ] || fail "each of a burst is told by itself"
expect_eq "$(($(records_of n/tell) + 1 + $(full && echo 1 || echo 0))) $(trigger_field n/tell fired)" \
	"$(full && echo '11 11' || echo '8 8')" "records and those by hand, and firings"
spawn perfctl watch -n 3 n >"$SCRATCH/watched"
watcher=$SPAWNED
wait_until 20 grep -q started "$SCRATCH/watched"
"$MARK"
sleep 0.02
"$MARK"
last=$(trigger_field n/tell fired)
perfctl trigger remove n/tell >/dev/null
told "n/tell has fired \\(number $last, CPU [^)]+\\)\\." 1 || fail "the trigger was removed, and its last firing is lost: $(<"$LOG")"
wait "$watcher"
expect_match "$(awk '{ print $2 }' <(grep n/tell "$SCRATCH/watched") | xargs)" 'fired fired deleted' "what watchers were told"
# A missing end, which the engine finds.
cp "$(type -P sleep)" "$SCRATCH/nap-$$"
perfctl trigger add n/slow --on syscalls:sys_enter_clock_nanosleep --until syscalls:sys_exit_clock_nanosleep --key tid \
	--longer-than 10ms --comm "nap-$$" --hold-off 10ms --action notify >/dev/null
spawn "$SCRATCH/nap-$$" 30
wait_until 20 told 'n/slow has fired \(number 1, the end of a pair is missing\)\.' 1 || fail "an end was missing: $(<"$LOG")"
perfctl snapshots collect --once -D "$SPOOL" >/dev/null
expect_eq "$(files)" 4 "snapshots"
perfctl delete --all n >/dev/null
echo "firings are told, or counted if there are many, also to a daemon that comes later"

# ── what is refused ──────────────────────────────────────────────────────────────────────

said 2 'none of snapshot' perfctl trigger add x/t "${ON_MARK[@]}" --action stop '*'
said 2 'give no targets' perfctl trigger add x/t "${ON_MARK[@]}" --action notify '*'
for action in freeze pause; do
	said 2 "nothing to $action" perfctl trigger add x/t "${ON_MARK[@]}" --action $action
done
said 2 'stops them at once' perfctl trigger add x/t "${ON_MARK[@]}" --after 5ms --action pause '*'
said 2 'no targets that could go on' perfctl trigger add x/t "${ON_MARK[@]}" --after 5ms --action notify
stop_daemon
