#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# `make demo`: the main job on this kernel's real events, in an instance of its own. Shows each
# command with its real output, checks what each command does, and cleans up, even when it fails or
# is interrupted. Exits 0 only if everything worked.
#
#   tests/demo.sh [BUILD]

set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
BUILD=${1:-build}
[ -x "$BUILD/perfctl" ] || { echo "demo: $BUILD/perfctl is not built; type: make demo" >&2; exit 1; }

# The program that attacks a ring is separate; `make programs` leaves it out.
if [ ! -x "$BUILD/tests/ring-attack" ]; then
	MAKEFLAGS='' make -s BUILD="$BUILD" "$BUILD/tests/ring-attack" >/dev/null || exit 1
fi

if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || { echo "demo: needs root, and there is no sudo here" >&2; exit 1; }
	echo "demo: recording kernel events needs root; going on through sudo"
	exec sudo bash tests/demo.sh "$BUILD"
fi

export BUILD PP_TEST_INSTANCE=demo$$
. tests/lib.sh

# ── telling ──────────────────────────────────────────────────────────────────────────────

if [ -t 1 ]; then
	BOLD=$'\e[1m' DIM=$'\e[2m' GREEN=$'\e[32m' RED=$'\e[31m' CYAN=$'\e[36m' PLAIN=$'\e[0m'
else
	BOLD='' DIM='' GREEN='' RED='' CYAN='' PLAIN=''
fi

steps=0

step() {
	steps=$((steps + 1))
	printf '\n%s%d. %s%s\n' "$BOLD" "$steps" "$1" "$PLAIN"
}

note() {
	printf '   %s%s%s\n' "$DIM" "$*" "$PLAIN"
}

good() {
	printf '   %s✓%s %s\n' "$GREEN" "$PLAIN" "$*"
}

# show [-u|-m] [-x EXIT] [-l LINES] CMD… Runs CMD as root, -u: as nobody, -m: as nobody in the
# namespaces' group. Shows the command and at most LINES (20) lines of its output, and sets OUT to
# it. CMD must exit with EXIT (0).
show() {
	local as=() prompt='#' want=0 lines=20 got=0 n words

	while :; do
		case $1 in
		-u) as=(as_user) prompt='nobody$' ;;
		-m) as=(as_member) prompt="nobody, in group $DAEMON_GID\$" ;;
		-x) want=$2; shift ;;
		-l) lines=$2; shift ;;
		*) break ;;
		esac
		shift
	done

	words=$*
	[ "$1" = perfctl ] && words="perfctl --instance $INSTANCE ${*:2}"
	printf '   %s%s%s %s%s%s\n' "$DIM" "$prompt" "$PLAIN" "$CYAN" "${words//$BIN\//}" "$PLAIN"

	OUT=$("${as[@]}" "$@" 2>&1) || got=$?
	if [ -n "$OUT" ]; then
		head -n "$lines" <<<"$OUT" | sed 's/^/     /'
		n=$(wc -l <<<"$OUT")
		[ "$n" -le "$lines" ] || note "  … and $((n - lines)) more lines"
	fi
	[ "$got" -eq "$want" ] || fail "expected exit $want, got $got"
	[ "$want" -eq 0 ] || good "refused, with exit code $got"
}

at_end() {
	local took=$SECONDS

	if [ "$1" -eq 0 ]; then
		printf '\n%s%sAll of it worked%s, in %d s; nothing of it is left on this machine.\n' \
			"$BOLD" "$GREEN" "$PLAIN" "$took"
	else
		printf '\n%s%sThe demo failed%s at step %d; what it had made has been removed.\n' \
			"$BOLD" "$RED" "$PLAIN" "$steps"
	fi
}

# rising NAMESPACE/EVENT: shows its count of records now, and again when it is higher.
rising() {
	local before after

	before=$(records_of "$1")
	wait_until 20 more_records_than "$before" "$1" || fail "$1 does not record"
	after=$(records_of "$1")
	good "$1: $before records, and a moment later $after"
}

# Known activity: a shell with a unique name runs 40 other programs.
forks() {
	demo-sh -c 'i=0; while [ $((i += 1)) -le 40 ]; do (:) & wait; done'
}

# told REGEX FILE: whether the file contains it by now; for wait_until.
told() {
	grep -qE "$1" "$2"
}

EVENT=$REGISTRY/demo
PATH=$BIN:$PATH
install -m 0755 "$(readlink -f /bin/sh)" "$BIN/demo-sh"

printf '%sperfpersist%s, on Linux %s: events that record on their own, in an instance named %s\n' \
	"$BOLD" "$PLAIN" "$(uname -r)" "$INSTANCE"

# ── the main job ─────────────────────────────────────────────────────────────────────────

step "Start the daemon: a broker that may do nothing, and an engine that may"
write_conf
start_daemon
show perfctl ping
expect_eq "$(sed -n 's/^Uid:\t[0-9]*\t\([0-9]*\)\t.*/\1/p' "/proc/$(broker_pid)/status")" "$DAEMON_UID" "the broker's uid"
expect_eq "$(sed -n 's/^CapEff:\t0*//p' "/proc/$(broker_pid)/status")" "" "the broker's capabilities"
good "the process that listens to strangers is uid $DAEMON_UID, with no capability"

step "Create two events: a tracepoint, and 999 samples a second with call chains"
busy 120 "$(sed 's/[-,].*//' /sys/devices/system/cpu/online)" # an idle CPU has nothing to sample
show perfctl create demo/switches -e sched:sched_switch
show perfctl create demo/samples -e cpu-clock -F 999 -g -m 1M
wait_until 20 more_records_than 100 demo/samples || fail "demo/samples does not record"
wait_until 20 more_records_than 100 demo/switches || fail "demo/switches does not record"

step "They are files: anybody in the namespace's group may read what they are and do"
show -m cat "$EVENT/switches/info"
expect_match "$OUT" $'(^|\n)event=sched:sched_switch($|\n)' info
show -m cat "$EVENT/switches/stat" "$EVENT/samples/stat"
expect_match "$OUT" 'total records=[0-9]+ bytes=[0-9]+ limited=0 missed=([0-9]+|unknown)' stat

step "List them"
show perfctl -l
expect_eq "$(event_ids | sed 's/=.*//' | xargs)" "demo/samples demo/switches" "the list"

step "Reopen them by name, as an unprivileged user of the group, and read the newest records"
show -m perfctl reopen demo/switches -n 5
expect_match "$OUT" 'prev_comm' "the decoded records"
show -m -l 16 perfctl reopen demo/samples -n 2
expect_match "$OUT" '[0-9a-f]{8,}' "the samples"

step "That user holds the live ring, and cannot change one bit of it"
show -m -l 16 perfctl reopen demo/switches -- "$BIN/ring-attack"
expect_match "$OUT" 'every attempt was refused' "the attacks"
good "refused by the kernel: the rings are frozen, for root as well"

step "Nor may the group delete or create; somebody outside it may nothing at all"
show -m -x 4 perfctl delete demo/switches
show -m -x 4 perfctl create demo/mine -e sched:sched_wakeup
show -u -x 4 perfctl reopen demo/switches
show -u -x 1 cat "$EVENT/switches/stat"
show -u -x 4 perfctl list demo
show -u perfctl list --json
expect_eq "$OUT" "[]" "an outsider's list"

step "Several events under one name, only what a filter lets through, and at most 20 a second on a CPU"
show perfctl create demo/forks -e 'sched:sched_process_*' --comm 'demo-*' --max-rate 20/s
forks
show perfctl reopen demo/forks -n 4
expect_eq "$(perfctl reopen demo/forks -n all --json 2>/dev/null |
	grep '"event":"sched:sched_process_exit"' | json_field comm | sort -u)" demo-sh "who is recorded"
limited=$(stat_of demo/forks limited)
[ "$limited" -gt 0 ] || fail "no record was kept out"
good "$(records_of demo/forks) records, of demo-sh alone; $limited kept out by the limit"

step "Follow it as that user, give it larger buffers meanwhile, and pause it: none is lost, none is there twice"
spawn setpriv --reuid="$NOBODY" --regid="$NOBODY" --groups="$DAEMON_GID" \
	"${PERFCTL[@]}" reopen demo/forks -n all -f >"$SCRATCH/followed" 2>"$SCRATCH/told"
follower=$SPAWNED
note "nobody, in group $DAEMON_GID\$ perfctl --instance $INSTANCE reopen demo/forks -n all -f &"
wait_until 20 told 'sched_process' "$SCRATCH/followed" || fail "nothing is followed"
forks
show perfctl change demo/forks -m 1M --max-rate 0
forks
show perfctl pause demo/forks
before=$(records_of demo/forks)
forks
expect_eq "$(records_of demo/forks)" "$before" "the count of a paused event"
show perfctl resume demo/forks
forks
recorded=$(records_of demo/forks) # includes the first buffers' records
wait_until 20 told 'new buffers' "$SCRATCH/told" || fail "the follower has not found the new buffers"
show perfctl delete demo/forks
wait "$follower" || fail "the follower failed: $(cat "$SCRATCH/told")"
note "and the follower's last words:"
sed 's/^/     /' "$SCRATCH/told"
expect_eq "$(wc -l <"$SCRATCH/followed")" "$recorded" "records followed"
expect_match "$(cat "$SCRATCH/told")" " $recorded records printed, 0 overwritten unread" "the follower's count"
good "$recorded records were written in all, and as many were followed"

step "What is always to record is a file; what differs is applied, and nothing else is touched"
mkdir -m 0755 "$CONF.d"
printf '%s\n' '[event demo/execs]' 'Event=sched:sched_process_exec' 'Filter=filename ~ "/usr/sbin/*"' \
	'Buffer=64K' >"$CONF.d/execs.conf"
show cat "$CONF.d/execs.conf"
before=$(event_ids)
show perfctl reload
expect_match "$OUT" '1 created, 0 changed, 0 deleted, 0 failed' "what was applied"
id=$(perfctl show demo/execs --json | json_field id)
sed -i 's/64K/128K/' "$CONF.d/execs.conf"
show tail -n 1 "$CONF.d/execs.conf"
show perfctl reload
expect_match "$OUT" '0 created, 1 changed, 0 deleted, 0 failed' "what was applied"
expect_eq "$(perfctl show demo/execs --json | json_field id)" "$id" "the changed event's id"
show rm "$CONF.d/execs.conf"
show perfctl reload
expect_match "$OUT" '0 created, 0 changed, 1 deleted, 0 failed' "what was applied"
expect_eq "$(event_ids)" "$before" "names and ids of the others"
good "created, changed and deleted, as the file said"

step "Turn what they hold into a file that perf reads, with the names of those who are gone"
cp /bin/true "$SCRATCH/short-lived"
"$SCRATCH/short-lived"
show perfctl snapshot demo/switches demo/samples -o "$SCRATCH/demo.data"
show -l 3 perfctl script -i "$SCRATCH/demo.data" -F comm,tid,cpu,time,event,trace
expect_match "$OUT" 'sched_switch: prev_comm=' "the records in the file"
show -l 24 perfctl report -i "$SCRATCH/demo.data" --top 5
expect_match "$OUT" 'OVERHEAD' "the report"
expect_match "$(perfctl script -i "$SCRATCH/demo.data" --show-task-events)" 'short-lived' "a program that has ended"
good "'short-lived' ended before the snapshot, and is in it"
if command -v perf >/dev/null; then
	show -l 6 perf sched latency -i "$SCRATCH/demo.data"
fi
show perfctl report -i "$SCRATCH/demo.data" --html "$SCRATCH/demo.html"
expect_match "$(head -c 15 "$SCRATCH/demo.html")" '<!doctype html>' "the page"
good "$(stat -c %s "$SCRATCH/demo.html") bytes: one page with a timeline, a flame graph and every record"

step "Kill broker and engine. The events are the kernel's, and go on"
before=$(event_ids)
note "# kill -KILL $(broker_pid) $(engine_pid)"
kill_daemon
good "nothing of perfpersist runs any more"
rising demo/switches
rising demo/samples
show -x 5 perfctl list
show -m cat "$EVENT/switches/stat"
show perfctl --direct list
show perfctl --direct reopen demo/switches -n 3
expect_match "$OUT" 'prev_comm' "records read without a daemon"

step "Start it again: it finds everything as it was"
start_daemon
show perfctl list
expect_eq "$(event_ids)" "$before" "names and ids"
good "the same events, with the same ids"
rising demo/switches
show -m perfctl reopen demo/switches -n 2

step "Delete them"
show perfctl -d demo/switches demo/samples
show -x 3 perfctl reopen demo/switches
show perfctl list --json
expect_eq "$OUT" "[]" "the list"

# Some kernels put files of their own, maps.debug and progs.debug, into each bpffs.
events_in_registry() {
	find "$REGISTRY" -mindepth 1 ! -path "$REGISTRY/by-id" ! -path "$REGISTRY/+last-id" ! -path "$REGISTRY/+cpus*" ! -path "$REGISTRY/+totals*" ! -name '*.debug'
}

no_events_in_registry() {
	[ -z "$(events_in_registry)" ]
}
wait_until 20 no_events_in_registry || fail "the registry is not empty: $(events_in_registry | xargs)"
show ls "$REGISTRY"
good "the registry is empty"

stop_daemon
good "and the daemon has ended"
