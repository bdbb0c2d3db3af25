#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Configured events: the files of events.d in their folders and their order. A reload applies the
# difference and touches nothing else. A fault costs only its section. Events created with --boot
# exist after a reboot. The installed files create the events that this kernel supports.
. "$(dirname "$0")/../lib.sh"
. "$ROOT/tests/integration/tracepoints.sh"

DROPINS=$CONF.d
FOLDERS=("/etc/perfpersist-$INSTANCE" "/run/perfpersist-$INSTANCE" "/usr/lib/perfpersist-$INSTANCE")

at_end() {
	rm -rf --one-file-system "${FOLDERS[0]}" "${FOLDERS[2]}"
}

# dropin NAME: writes its input to that file.
dropin() {
	cat >"$DROPINS/$1"
}

_told_ready() {
	grep -q "Ready: " "$LOG" || gone "$DAEMON_PID"
}

# start OPTION…: returns when all configured events record, or cannot.
start() {
	: >"$LOG"
	start_daemon "$@"
	wait_until 20 _told_ready || fail "perfpersistd does not say that it is ready"
}

# reload CREATED CHANGED DELETED FAILED
reload() {
	OUT=$(perfctl reload 2>&1) || [ "$4" -gt 0 ] || fail "$OUT"
	expect_match "$OUT" "$1 created, $2 changed, $3 deleted, $4 failed" "what a reload says"
}

id_of() {
	perfctl list --json | jq -r --arg name "$1" '.[] | select("\(.namespace)/\(.name)" == $name).id'
}

field_of() {
	perfctl show "$1" --json | jq -r ".$2"
}

names() {
	perfctl list --json | jq -r '.[] | "\(.namespace)/\(.name)"' | sort | xargs
}

# ── at the start, and by a reload ────────────────────────────────────────────────────────

# A task name that no other process has.
OURS=pp-$$

mkdir -m 0755 "$DROPINS"
dropin 10-a.conf <<-'END'
	[namespace web]
	Owner=65534
	Mode=0600

	[event web/calls]
	Event=raw_syscalls:sys_enter
	Buffer=256K

	[event web/renames]
	Event=task:task_rename
	Filter=newcomm ~ "nosuch*"
	Buffer=64K
END
dropin 20-b.conf <<-'END'
	[event web/both]
	Event=sched:sched_process_exec
	Event=sched:sched_process_exit
	Filter=pid > 1
	MaxRate=1000/s

	[event web/gone]
	Event=sched:sched_process_fork
	Buffer=64K
END
start
expect_eq "$(names)" "web/both web/calls web/gone web/renames"
expect_match "$(perfctl show web/calls)" "the configuration"
expect_eq "$(field_of web/both sources)" 2
calls=$(id_of web/calls) renames=$(id_of web/renames)
wait_until 20 more_records_than 100 web/calls
records=$(records_of web/calls)
as_user perfctl list web >/dev/null || fail "the namespace does not have its owner"

reload 0 0 0 0

# One event changed, one recreated, one removed, one added: web/calls is untouched.
dropin 10-a.conf <<-END
	[namespace web]
	Owner=65534
	Mode=0600

	[event web/calls]
	Event=raw_syscalls:sys_enter
	Buffer=256K

	[event web/renames]
	Event=task:task_rename
	Filter=newcomm ~ "$OURS*"
	Buffer=64K

	[event web/more]
	Event=cpu-clock
	Frequency=99
	Buffer=64K
	CallGraph=dwarf,4096
	MaxStack=9
END
dropin 20-b.conf <<-'END'
	[event web/both]
	Event=sched:sched_process_exec
	MaxRate=1000/s
END
reload 1 2 1 0
expect_eq "$(names)" "web/both web/calls web/more web/renames"
expect_eq "$(id_of web/calls)" "$calls" "the id of what did not change"
expect_eq "$(id_of web/renames)" "$renames" "the id of what got another filter"
wait_until 20 more_records_than "$((records + 100))" web/calls
expect_eq "$(records_of web/renames)" 0
bash -c "printf $OURS-x >/proc/self/comm"
wait_until 20 more_records_than 0 web/renames
expect_eq "$(field_of web/both event)" sched:sched_process_exec

# The same by a signal.
rm "$DROPINS/20-b.conf"
kill -HUP "$DAEMON_PID"
_without_both() {
	[ "$(names)" = "web/calls web/more web/renames" ]
}
wait_until 20 _without_both || fail "SIGHUP changes nothing"
expect_exit 4 as_user perfctl reload
expect_match "$OUT" "root"

# After a restart of the daemon, unchanged events keep recording.
stop_daemon
start
expect_eq "$(id_of web/calls)" "$calls" "the id after a restart"
expect_eq "$(id_of web/renames)" "$renames" "the id after a restart"
expect_eq "$(field_of web/more max_stack)" 9 "MaxStack= after a restart"
expect_eq "$(field_of web/more stack_user)" 4096 "CallGraph=dwarf after a restart"
reload 0 0 0 0
more=$(id_of web/more)
sed -i s/Frequency=99/Frequency=98/ "$DROPINS/10-a.conf"
reload 0 1 0 0
expect_eq "$(field_of web/more freq)" 98 "Frequency= after a reload"
expect_eq "$(id_of web/more)" "$more" "the id of what got another frequency"
sed -i s/Frequency=98/Period=20000000/ "$DROPINS/10-a.conf"
reload 0 1 0 0
expect_eq "$(field_of web/more freq) $(field_of web/more period)" "0 20000000" "Period= after a reload"
expect_eq "$(id_of web/more)" "$more" "the id of what got a period"
sed -i s/MaxStack=9/MaxStack=8/ "$DROPINS/10-a.conf"
reload 0 1 0 0
expect_eq "$(field_of web/more max_stack)" 8 "MaxStack= after a reload"
[ "$(id_of web/more)" != "$more" ] || fail "the event was changed, and not replaced"
sed -i s/dwarf,4096/dwarf/ "$DROPINS/10-a.conf"
reload 0 1 0 0
expect_eq "$(field_of web/more stack_user)" 8192 "CallGraph=dwarf after a reload"

# ── faults ───────────────────────────────────────────────────────────────────────────────

dropin 30-bad.conf <<-'END'
	[event web/renames]
	Colour=red
	[event web/good]
	Event=sched:sched_process_fork
	Buffer=64K
	[event web/none]
	Event=sched:no_such_event
	[event web/none2]
	Event=no-such-event
	[event web/filter]
	Event=sched:sched_switch
	Filter=prev_pid !==
	[event web/field]
	Event=sched:sched_switch
	Filter=no_such_field == 1
	[event web/perhaps]
	Event=sched:no_such_event
	Optional=yes
END
ln -s "$SCRATCH/nowhere" "$DROPINS/40-link.conf"
reload 1 0 0 6
expect_match "$OUT" "30-bad.conf:2: \[event web/renames\] has no key Colour="
expect_eq "$(names)" "web/calls web/good web/more web/renames"
expect_eq "$(id_of web/renames)" "$renames" "the id of what has a fault"
for line in 2 6 9 12 13; do
	grep -q "30-bad.conf:$line: " "$LOG" || fail "the log has nothing of line $line"
done
grep -q "40-link.conf: The symlink leads nowhere" "$LOG" || fail "the log does not mention the symlink"
expect_exit 1 "$BUILD/perfpersistd" --config "$CONF" --check-config
for line in 2 9 12; do
	expect_match "$OUT" "30-bad.conf:$line: "
done
rm "$DROPINS/30-bad.conf" "$DROPINS/40-link.conf"
expect_ok "$BUILD/perfpersistd" --config "$CONF" --check-config
expect_match "$OUT" "sound: 3 events"
reload 0 0 1 0

# perfpersistd.conf, too: a faulty file leaves the settings in force, and a valid one replaces them.
write_conf "MaxEvents=nothing"
reload 0 0 0 1
write_conf "MaxEvents=3"
reload 0 0 0 0
expect_exit 1 perfctl create web/fourth -e sched:sched_process_fork
expect_match "$OUT" "MaxEvents="
write_conf

# ── there after a reboot ─────────────────────────────────────────────────────────────────

FILE=$STATE/events.d/own.boot.conf
reload 0 0 0 0
perfctl create own/boot -e task:task_rename --filter 'newcomm ~ "a ;b*"' -m 64K --boot
as_user perfctl create web/mine -e sched:sched_process_exec -m 64K --boot
[ -e "$FILE" ] || fail "--boot wrote no $FILE"
boot=$(id_of own/boot)
reload 0 0 0 0
expect_eq "$(id_of own/boot)" "$boot" "the id of what was created with --boot"

# Without the registry everything in the kernel is gone, as after a reboot.
reboot() {
	stop_daemon
	find "$REGISTRY" -mindepth 1 -delete 2>/dev/null || true # (two files are the kernel's)
	wait_until 20 umount "$REGISTRY" # any `bpftool --bpffs` keeps it busy
	start "$@"
}
reboot
expect_eq "$(names)" "own/boot web/calls web/mine web/more web/renames"
expect_eq "$(field_of own/boot filter)" 'newcomm ~ "a ;b*"'
expect_eq "$(field_of web/mine creator)" "$NOBODY"
[ "$(id_of own/boot)" != "$boot" ] || fail "an id was given twice"
as_user perfctl delete web/mine
perfctl delete own/boot
[ -z "$(ls -A "$STATE/events.d")" ] || fail "deleted events have their files still"
reload 0 0 0 0
expect_eq "$(names)" "web/calls web/more web/renames"

# Nobody can inject a line; and an event that cannot be written down is not created.
expect_exit 2 perfctl create own/evil -e 'task:task_rename' --filter $'pid > 1\n[event own/x]' --boot
chown 0 "$STATE/events.d"
expect_exit 4 perfctl create own/none -e task:task_rename --boot
expect_match "$OUT" "own.none.conf: Permission denied"
chown "$DAEMON_UID" "$STATE/events.d"
expect_eq "$(id_of own/none)" "" "what could not be written down"

# ── the files that are installed ─────────────────────────────────────────────────────────

rm "$DROPINS"/*.conf
install -m 0644 "$ROOT"/conf/events.d/*.conf "$DROPINS/"
expect_ok "$BUILD/perfpersistd" --config "$CONF" --check-config
perfctl reload >/dev/null || fail "an installed file is not as it must be"
tracepoints=$(with_tracefs find /sys/kernel/tracing/events -mindepth 2 -maxdepth 2 -type d |
	awk -F/ '{ print $(NF - 1) ":" $NF }')
wanted=$(
	has() { grep -qE "^$1\$" <<<"$tracepoints"; }
	has 'mce:mce_record' && echo mce/mce_record
	has 'ras:.*' && echo mce/ras
	has 'oom:mark_victim' && echo oom/kills
	has 'sched:sched_process_hang' && echo tasks/hung
	has 'thermal:thermal_zone_trip' && echo thermal/trips
	true
)
expect_eq "$(names)" "$(xargs <<<"$wanted")" "what the installed files make"
echo "installed files: $(names); $(perfctl list --json | jq '[.[].memory] | add') bytes on $(nproc) CPUs"
rm "$DROPINS"/*.conf
perfctl reload >/dev/null
expect_eq "$(names)" ""

# ── the folders of an instance ───────────────────────────────────────────────────────────

stop_daemon
for folder in "${FOLDERS[@]}"; do
	mkdir -p "$folder/events.d"
	chmod 0755 "$folder" "$folder/events.d"
done
cp "$CONF" "${FOLDERS[0]}/perfpersistd.conf"
one() {
	printf '[event %s]\nEvent=sched:sched_process_fork\nBuffer=%s\n' "$2" "$3" >"$1"
}
one "${FOLDERS[2]}/events.d/10-hidden.conf" f/vendor 64K
one "${FOLDERS[0]}/events.d/10-hidden.conf" f/admin 64K
one "${FOLDERS[2]}/events.d/20-masked.conf" f/masked 64K
ln -s /dev/null "${FOLDERS[0]}/events.d/20-masked.conf"
one "${FOLDERS[2]}/events.d/30-emptied.conf" f/emptied 64K
: >"${FOLDERS[1]}/events.d/30-emptied.conf"
one "${FOLDERS[2]}/events.d/40-kept.conf" f/kept 64K
one "${FOLDERS[1]}/events.d/50-run.conf" f/run 64K
printf '[event f/kept]\nBuffer=128K\n' >"${FOLDERS[0]}/events.d/60-over.conf"
: >"$LOG" # not in the background: the last one's lines must not count as its own
"$BUILD/perfpersistd" --instance "$INSTANCE" >>"$LOG" 2>&1 &
DAEMON_PID=$!
wait_until 20 _told_ready
expect_eq "$(names)" "f/admin f/kept f/run"
expect_eq "$(field_of f/kept buffer)" 131072
expect_ok "$BUILD/perfpersistd" --instance "$INSTANCE" --check-config
