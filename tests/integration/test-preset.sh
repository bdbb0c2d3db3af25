#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# perfctl preset: each shipped preset records what it is for, with real events, and is gone when it is
# disabled. A link follows its file. One that the daemon refuses leaves nothing, and no file of the
# user's is touched. A unit that was started anew is found again, and its old records stay.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"

# Without --config, as people run it: the link goes to the instance's own place.
ETC=/etc/perfpersist-$INSTANCE
LINKS=$ETC/events.d
PRESETS=$SCRATCH/presets
UNIT=pp.$INSTANCE.service
hierarchy=$(sed -n 's/^[0-9]* [0-9]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)

at_end() {
	rmdir "$hierarchy/pp-$INSTANCE.slice/$UNIT" "$hierarchy/pp-$INSTANCE.slice" 2>/dev/null || true
	rm -rf --one-file-system "$ETC"
}

start() {
	"$BUILD/perfpersistd" --instance "$INSTANCE" >>"$LOG" 2>&1 &
	DAEMON_PID=$!
	wait_until 20 _ready || fail "perfpersistd does not get ready"
}

preset() {
	perfctl preset "$@" --presets "$PRESETS"
}

# state NAME: in the list.
state() {
	preset list --json | jq -r --arg name "$1" '.[] | select(.name == $name and .unit == null).state'
}

names() {
	perfctl list --json | jq -r '.[] | "\(.namespace)/\(.name)"' | sort | xargs
}

# seen EVENT JQ: what the records say, each once.
seen() {
	perfctl reopen "$1" -n all --json 2>/dev/null | jq -r "$2" | sort -u | xargs
}

# has EVENT JQ: some record is so; for wait_until.
has() {
	jq -ne "any(inputs; $2)" < <(perfctl reopen "$1" -n all --json 2>/dev/null)
}

nothing_is_on() {
	expect_eq "$(names)" "" "events after $1"
	expect_eq "$(ls "$LINKS" 2>/dev/null)" "" "links after $1"
}

install -d -m 0755 "$PRESETS" "$ETC"
install -m 0644 "$ROOT"/conf/presets/*.conf "$PRESETS/"
# Other programs of the machine crash, and what that freezes stays until somebody takes it.
sed -i "s/^Filter=sa_handler == 0 .*/& \&\& comm == \"pp-$INSTANCE\"/" "$PRESETS/coredump.conf"
grep -q "comm == \"pp-$INSTANCE\"" "$PRESETS/coredump.conf" || fail "coredump.conf has another filter"
CONF=$ETC/perfpersistd.conf
write_conf "MaxMemory=4G"
start

# ── each records what it is for ──────────────────────────────────────────────────────────

# flight: a program that starts, computes and is killed; SIGCHLD is none of it.
expect_ok preset enable flight
expect_match "$OUT" "^flight is enabled: $LINKS/flight.conf" "what enable says"
expect_match "$OUT" "flight/sched records on CPUs .*, 32M each" "what enable says"
expect_eq "$(readlink "$LINKS/flight.conf")" "$PRESETS/flight.conf" "the link"
expect_eq "$(state flight) $(state latency) $(state syscalls)" "enabled off per unit" "states"
expect_eq "$(preset show flight --json | jq -r '[.events[] | "\(.namespace)/\(.name)"] | sort | join(" ")')" "$(names)" \
	"the events of flight"
spawn bash -c 'while :; do :; done'
victim=$SPAWNED
expect_ok /bin/true
wait_until 10 has flight/cpu ".callchain | length > 0" || fail "flight/cpu has no call chain"
kill -TERM "$victim"
wait "$victim" 2>/dev/null || true
wait_until 10 has flight/life ".event == \"signal:signal_generate\" and .fields.pid == $victim and .fields.sig == 15" ||
	fail "flight/life does not say who was killed"
expect_eq "$(seen flight/life 'select(.event == "signal:signal_generate").fields.sig | select(. == 17 or . == 14 or . >= 32)')" "" \
	"signals that end no process"
life=$(seen flight/life .event)
expect_match "$life" "sched:sched_process_exec sched:sched_process_exit sched:sched_process_fork" "what flight/life has"
[ "$(records_of flight/sched)" -gt 0 ] || fail "flight/sched has no switch"
[ "$(records_of flight/wakeups)" -gt 0 ] || fail "flight/wakeups has no wakeup"
if dd if=/dev/zero of="$SCRATCH/block" bs=64K count=4 oflag=direct conv=fsync 2>/dev/null; then
	wait_until 5 more_records_than 0 flight/block || echo "SKIP: flight/block: $SCRATCH is on no block device"
fi

# Again: nothing is done. And a link that somebody has made by hand is the preset's as well.
ids=$(event_ids)
expect_ok preset enable flight
expect_match "$OUT" "^flight is enabled already: " "what enable says the second time"
rm "$LINKS/flight.conf"
ln -s "../../../$PRESETS/flight.conf" "$LINKS/flight.conf"
expect_eq "$(state flight)" enabled "with a link of another path"
expect_eq "$(preset enable flight --json | jq -c '[.enabled, .changed, ([.events[].records] | all)]')" "[true,false,true]" "in JSON"
expect_eq "$(event_ids)" "$ids" "the events"
expect_ok preset disable flight
expect_eq "$OUT" "flight is off" "what disable says"
nothing_is_on "flight is disabled"
expect_ok preset disable flight
expect_eq "$OUT" "flight is off already" "what disable says the second time"

# Those that are small in time and memory, all at once.
for name in latency network coredump; do
	expect_ok preset enable $name
done
wait_until 10 has latency/off-cpu ".callchain | length > 1" || fail "latency/off-cpu has no call chain"
[ "$(records_of latency/wakeups)" -gt 0 ] || fail "latency/wakeups has no wakeup"
# Nobody listens on this port, so it is a reset.
(: <>/dev/tcp/127.0.0.1/1) 2>/dev/null || true
wait_until 10 has network/connections '.event == "sock:inet_sock_set_state"' || fail "network/connections has no connection"
wait_until 10 has network/trouble '.event == "tcp:tcp_send_reset" or .event == "tcp:tcp_receive_reset"' ||
	fail "network/trouble has no reset"
wait_until 10 more_records_than 0 coredump/calls || fail "coredump/calls has no call"
expect_match "$(preset show coredump)" "events +coredump/calls, coredump/life, coredump/crash \(trigger\)" "what show says"
for name in latency network coredump; do
	expect_ok preset disable $name
done
nothing_is_on "all are disabled"
echo "each preset records what it is for, and is gone when it is disabled"

# ── one unit ─────────────────────────────────────────────────────────────────────────────

# in_unit CMD…
in_unit() {
	(echo $BASHPID >"$hierarchy/pp-$INSTANCE.slice/$UNIT/cgroup.procs" && exec "$@")
}

said 1 "cgroup '$UNIT' cannot be found: no slice .* start it" preset enable syscalls "$UNIT"
nothing_is_on "its unit does not run"
if [ -n "$hierarchy" ] && mkdir -p "$hierarchy/pp-$INSTANCE.slice/$UNIT" 2>/dev/null; then
	cp /bin/true "$BIN/pp-first"
	cp /bin/true "$BIN/pp-second"
	cp /bin/true "$BIN/pp-other"
	calls=syscalls/pp_${INSTANCE}_service
	expect_ok preset enable syscalls "${UNIT%.service}"
	expect_eq "$(names)" "$calls" "the unit's event"
	expect_eq "$(preset list | awk '$1 == "syscalls" { print $2, $3 }' | xargs)" "UNIT per $UNIT enabled" "in the list"
	said 6 "the events of pp_$INSTANCE.service have the names of those of $UNIT" preset enable syscalls "pp_$INSTANCE"
	"$BIN/pp-other"
	in_unit "$BIN/pp-first"
	rmdir "$hierarchy/pp-$INSTANCE.slice/$UNIT"
	mkdir "$hierarchy/pp-$INSTANCE.slice/$UNIT"
	in_unit "$BIN/pp-first"
	n=$(records_of "$calls")
	expect_ok preset enable syscalls "$UNIT"
	expect_match "$OUT" "is enabled already" "what enable says of a unit that was started anew"
	in_unit "$BIN/pp-second"
	[ "$(records_of "$calls")" -gt "$n" ] || fail "nothing is recorded of a unit that was started anew"
	[ "$n" -gt 0 ] || fail "nothing was recorded of the unit"
	expect_eq "$(perfctl show "$calls" --json | jq .set)" 1 "its buffers are the ones it had"
	# Other processes have none, and the first program ran once inside: before its unit had another cgroup.
	expect_eq "$(perfctl script "$calls" --json 2>/dev/null | jq -r 'select(.event == "raw_syscalls:sys_enter") | .tid' | sort -u | wc -l)" 2 \
		"processes with records"
	expect_ok preset disable syscalls "$UNIT"
	nothing_is_on "the unit's preset is disabled"
	echo "a unit, and no other, also when it was started anew"
else
	echo "SKIP: preset syscalls: no cgroup can be made here"
fi

# ── an upgrade ───────────────────────────────────────────────────────────────────────────

expect_ok preset enable network
sed -i 's/^Buffer=4M/Buffer=8M/' "$PRESETS/network.conf"
expect_ok perfctl reload
expect_eq "$(perfctl show network/connections --json | jq .buffer)" $((8 << 20)) "the buffer after an upgrade"
# The link of one that is shipped no more is still known.
rm "$PRESETS/network.conf"
expect_ok preset disable network
nothing_is_on "one that is shipped no more is disabled"
install -m 0644 "$ROOT/conf/presets/network.conf" "$PRESETS/"
echo "a link follows its file"

# ── refusals ─────────────────────────────────────────────────────────────────────────────

# The daemon refuses one of two events.
cat >"$PRESETS/broken.conf" <<-'END'
	# Summary: none
	[event broken/good]
	Event=sched:sched_process_exec
	Buffer=64K
	[event broken/bad]
	Event=sched:no_such_tracepoint
END
warm_up
remember
nothing() {
	refused "$@"
	nothing_is_on "$WHAT"
}
as_user_preset() {
	as_user perfctl preset "$@" --presets "$PRESETS"
}
nothing 1 "broken is not enabled: $LINKS/broken.conf:[0-9]+: .*no_such_tracepoint" preset enable broken
sed -i 's/^Event=sched:no_such.*/Events=x/' "$PRESETS/broken.conf"
nothing 1 "broken is not enabled: $LINKS/broken.conf:[0-9]+: " preset enable broken
nothing 1 "network is not enabled, because the daemon does not read $SCRATCH/else/events.d: .* -D must name FILE.d" \
	preset enable network -D "$SCRATCH/else/events.d"
[ ! -e "$SCRATCH/else" ] || fail "$SCRATCH/else was left behind"
# What is optional may be missing.
cat >"$PRESETS/maybe.conf" <<-'END'
	[event maybe/there]
	Event=sched:sched_process_exec
	Buffer=64K
	[event maybe/missing]
	Event=sched:no_such_tracepoint
	Optional=yes
END
expect_ok preset enable maybe
expect_match "$OUT" "maybe/missing does not record: this machine has no such event" "what enable says"
# One of its events is switched off by the administrator.
printf '[event maybe/there]\nEnabled=no\n' >"$LINKS/zz.conf"
expect_ok preset disable maybe
rm "$LINKS/zz.conf"

# Somebody's own event, and somebody's own file.
expect_ok perfctl create broken/good -e sched:sched_process_exec -m 64K
printf '[event broken/good]\nEvent=sched:sched_process_fork\nBuffer=64K\n' >"$PRESETS/broken.conf"
said 1 "not made from the configuration" preset enable broken
expect_eq "$(names) $(ls "$LINKS")" "broken/good " "somebody's own event"
expect_ok perfctl delete broken/good
for own in "ln -s /dev/null" "cp $PRESETS/network.conf" "mkdir"; do
	$own "$LINKS/flight.conf"
	before=$(stat -c '%i %y %s' "$LINKS/flight.conf")
	said 6 "$LINKS/flight.conf is not the preset's link but a file of yours" preset enable flight
	said 6 "$LINKS/flight.conf is not the preset's link but a file of yours" preset disable flight
	expect_eq "$(state flight)" "your file" "the state"
	expect_eq "$(stat -c '%i %y %s' "$LINKS/flight.conf")" "$before" "somebody's own file"
	rm -r "$LINKS/flight.conf"
done

# Bad words, and people without the right.
nothing 3 "no preset fligth .*; did you mean flight\?" preset enable fligth
nothing 3 "no preset ../x " preset disable ../x
nothing 3 "cannot read the presets in /nowhere: No such file" perfctl preset list --presets /nowhere
nothing 2 "takes no unit" preset enable flight nginx
nothing 2 "is for one unit; name it, as in" preset enable syscalls
nothing 2 "x/y: not the name of a unit" preset enable syscalls x/y
nothing 2 "takes one NAME" preset enable
nothing 2 "preset what\?" perfctl preset
chmod 0755 "$PRESETS"
nothing 4 "cannot make $LINKS/flight.conf: Permission denied; only root may" as_user_preset enable flight
install -d -m 0777 "$SCRATCH/open"
nothing 4 "Only root may reload the configuration" as_user_preset enable flight -D "$SCRATCH/open"
expect_eq "$(ls "$SCRATCH/open")" "" "the link of somebody who may not reload"
expect_ok preset enable network
said 4 "cannot remove $LINKS/network.conf: Permission denied; only root may" as_user_preset disable network
expect_ok preset disable network

# What the tab key offers.
expect_eq "$("$BIN/perfctl" --complete preset enable --presets "$PRESETS" fl | tail -n 1 | cut -f 1)" flight "the candidate of the tab key"
expect_eq "$("$BIN/perfctl" --complete preset '' | sed 1,3d | cut -f 1 | xargs)" "disable enable list show" "the commands"

stop_daemon
said 5 "not running" preset enable flight
expect_eq "$(ls "$LINKS")" "" "links without a daemon"
echo "$REFUSALS refusals, each with one sentence, and nothing was left"
