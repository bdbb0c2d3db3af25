#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What is told of firings and snapshots: an entry in the journal for each, with all fields; without a
# journal, a line.

# In a mount namespace with a /run of its own, so that the journal's socket is ours.
if [ -z "${PRIVATE_RUN-}" ] && unshare --mount true 2>/dev/null; then
	PRIVATE_RUN=yes exec unshare --mount --propagation private "$0" "$@"
fi
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../collector.sh"

command -v jq >/dev/null || skip "needs jq"
[ -n "${PRIVATE_RUN-}" ] || skip "mount namespaces cannot be made here"
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -p /run/systemd/journal
MARK=$SCRATCH/mark-$$
cp "$(type -P true)" "$MARK"
SPOOL=$SCRATCH/spool
mkdir "$SPOOL"

# Prints each entry as it was sent, and an empty line.
spawn perl -MSocket -e '
	$| = 1;
	umask(0);
	socket(S, PF_UNIX, SOCK_DGRAM, 0) && bind(S, sockaddr_un($ARGV[0])) or die "$ARGV[0]: $!";
	print "$entry\n" while defined recv(S, $entry, 65536, 0);' /run/systemd/journal/socket >"$SCRATCH/entries"
wait_until 10 test -S /run/systemd/journal/socket
# To the daemon and the collector it is the journal.
touch "$LOG"
JOURNAL_STREAM=$(stat -c %d:%i "$LOG")
export JOURNAL_STREAM

start_daemon
perfctl create s/calls -e raw_syscalls:sys_enter -m 64K >/dev/null
perfctl create s/switches -e sched:sched_switch -m 64K >/dev/null
perfctl trigger add s/mark --on sched:sched_process_exec --filter "filename ~ \"*/${MARK##*/}\"" \
	--hold-off 10ms -m 16K '*' >/dev/null
n_files() {
	find "$SPOOL" -name '*.data' | wc -l
}

# collected N CMD…: whether CMD runs a collector, and there are more than N files; for wait_until.
collected() {
	"${@:2}" "${PERFCTL[@]}" snapshots collect --once -D "$SPOOL" >>"$LOG" 2>&1
	[ "$(n_files)" -gt "$1" ]
}

# collect CMD…: what fired last, into FILE.
collect() {
	wait_until 20 collected "$(n_files)" "$@" || fail "no snapshot was written"
	FILE=$(perfctl snapshots show -D "$SPOOL")
}

# The same order as in the catalog.
{
	read -r FIRED
	read -r WRITTEN
} < <(sed -n 's/^-- //p' "$ROOT/conf/perfpersist.catalog")

# entries ID: those with this MESSAGE_ID.
entries() {
	awk -v RS= -v id="MESSAGE_ID=$1" 'index("\n" $0 "\n", "\n" id "\n") { print $0 "\n" }' "$SCRATCH/entries"
}

has_entries() {
	[ "$(entries "$1" | grep -c ^MESSAGE=)" -ge "$2" ]
}

# field NAME: of the last snapshot's entry.
field() {
	entries "$WRITTEN" | awk -v RS= '{ last = $0 } END { print last }' | sed -n "s/^$1=//p"
}

armed s/mark 2
before=$(date +%s)
"$MARK" &
pid=$!
wait $pid
collect env
wait_until 10 has_entries "$WRITTEN" 1 || fail "no entry says that a snapshot was written"
expect_eq "$(entries "$WRITTEN" | grep -c ^MESSAGE=)" 1 "entries"
expect_eq "$(field PERFPERSIST_FILE)" "$FILE" "the file"
perfctl report -i "$FILE" --json 2>/dev/null >"$SCRATCH/report"
of_report=$(jq -r '"\([.events[].records] | add) \([.events[] | select(.records > 0)] | length)"' "$SCRATCH/report")
expect_eq "$(field PERFPERSIST_RECORDS) $(field PERFPERSIST_EVENTS)" "$of_report" "records and events"
expect_eq "$(field PERFPERSIST_BYTES)" "$(stat -c %s "$FILE")" "bytes"
expect_eq "$(field PERFPERSIST_NAMESPACE)/$(field PERFPERSIST_TRIGGER) $(field PERFPERSIST_NUMBER)" "s/mark 1" "what fired"
expect_eq "$(field PERFPERSIST_EVENT) $(field PRIORITY) $(field SYSLOG_IDENTIFIER)" "mark 5 perfctl" "common fields"
expect_eq "$(field PERFPERSIST_PID) $(field PERFPERSIST_TID)" "$pid $pid" "who ran"
# The kernel names a task after its program before this event.
expect_eq "$(field PERFPERSIST_COMM)" "${MARK##*/}" "its name"
cpu=$(perfctl script -i "$FILE" --json 2>/dev/null | grep sched_process_exec | tail -n 1 | json_field cpu 1)
expect_eq "$(field PERFPERSIST_CPU)" "$cpu" "the CPU"
time=$(($(field PERFPERSIST_TIME) / 1000000000))
if [ $time -lt "$before" ] || [ $time -gt "$(date +%s)" ]; then
	fail "it fired at $time, not between $before and now"
fi
expect_match "$(field MESSAGE)" "^$FILE: [0-9]+ records of [0-9]+ events, [0-9]+ bytes$" "the message"

# The daemon's entries: one for each event that is frozen, with the same facts.
wait_until 10 has_entries "$FIRED" 2 || fail "the daemon does not say what was frozen"
expect_eq "$(entries "$FIRED" | grep ^PERFPERSIST_EVENT= | sort | xargs)" \
	"PERFPERSIST_EVENT=calls PERFPERSIST_EVENT=switches" "what was frozen"
for name in NAMESPACE TRIGGER NUMBER COMM PID TID CPU; do
	expect_eq "$(entries "$FIRED" | grep -cxF "PERFPERSIST_$name=$(field PERFPERSIST_$name)")" 2 "the daemon's PERFPERSIST_$name"
done
apart=$((time - $(entries "$FIRED" | sed -n 's/^PERFPERSIST_TIME=//p' | head -n 1) / 1000000000))
expect_match $apart '^(-1|0|1)$' "seconds between both times"

armed s/mark 2
perfctl trigger fire s/mark >/dev/null
collect env
wait_until 10 has_entries "$WRITTEN" 2
expect_eq "$(field PERFPERSIST_COMM) $(field PERFPERSIST_NUMBER)" "hand 2" "by hand"
expect_eq "$(field PERFPERSIST_PID)$(field PERFPERSIST_CPU)" "" "who ran, by hand"

# stdout is something else than the stream that systemd connected.
armed s/mark 2
"$MARK"
collect env JOURNAL_STREAM=1:1
expect_match "$(grep -F "$FILE" "$LOG")" "^$FILE: [0-9]+ records of [0-9]+ events, [0-9]+ bytes$" "the line"
expect_eq "$(grep -cF "${FILE##*/}" "$SCRATCH/entries" || true)" 0 "entries without a journal"

# calls NAME SIZE: a trigger with so large a buffer fires at the first of 2,000 calls of a task; WHO are those of
# its own records that are in the snapshot.
calls() {
	perfctl trigger add "s/$1" --on syscalls:sys_enter_getpriority --filter 'who > 77000' --hold-off 1h -m "$2" \
		calls >/dev/null
	armed "s/$1" 1
	# (On one CPU, whose buffer they fill.)
	taskset -c "$(sed 's/[-,].*//' /sys/devices/system/cpu/online)" perl -e 'getpriority(0, 77000 + $_) for 1 .. 2000'
	collect env
	WHO=$(perfctl script -i "$FILE" --json 2>/dev/null | sed -n '/sys_enter_getpriority/s/.*"who": *\([0-9]*\).*/\1/p' | xargs)
	perfctl trigger remove "s/$1" >/dev/null
}

calls large 1M
expect_eq "$WHO" 77001 "of 2,000 records of a trigger, that with which it has fired"
calls small 16K
expect_eq "$WHO" "" "of the records of a trigger, if that one is overwritten"
grep -q 'the record with which s/small has fired (number 1) is not there' "$LOG" || fail "nobody says that it is overwritten"

# A firing that freezes nothing is an entry of its own.
perfctl trigger add s/tell --on sched:sched_process_exec --filter "filename ~ \"*/${MARK##*/}\"" \
	--action notify >/dev/null
before=$(entries "$FIRED" | grep -c ^MESSAGE=)
"$MARK" &
pid=$!
wait $pid
told() {
	entries "$FIRED" | awk -v RS= '/PERFPERSIST_TRIGGER=tell/ { print $0 "\n" }' >"$SCRATCH/told"
	[ -s "$SCRATCH/told" ]
}
wait_until 10 told || fail "no entry says that it has fired"
for field in NAMESPACE=s EVENT=tell ACTION=notify NUMBER=1 COMM="${MARK##*/}" PID=$pid TID=$pid; do
	grep -qxF "PERFPERSIST_$field" "$SCRATCH/told" || fail "no PERFPERSIST_$field: $(<"$SCRATCH/told")"
done
echo "each firing and each snapshot is an entry in the journal with all its fields, or a line"
stop_daemon
