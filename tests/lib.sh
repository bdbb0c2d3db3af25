# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For integration tests: a daemon per test, other users to run commands as, and (expect.sh)
# assertions.
#
#   #!/bin/bash
#   . "$(dirname "$0")/../lib.sh"
#   start_daemon
#   perfctl create t/switches -e sched:sched_switch
#   ...
#
# A test gets a unique instance (INSTANCE), a scratch directory (SCRATCH) and a trap that cleans up;
# the test fails if anything cannot be removed or is left. The test fails at the first command that
# fails. It runs as root, or it skips.
#
#   INSTANCE, RUN, REGISTRY, STATE
#                             the instance's name and places
#   SCRATCH, BIN, LOG         ours, below /tmp; perfctl and helpers, for everybody; the daemon's log
#   CONF                      the daemon's configuration; write_conf fills it
#   DAEMON_PID                of the perfpersistd that start_daemon started

set -eE -u -o pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$(cd "${BUILD:-$ROOT/build}" && pwd)
INSTANCE=${PP_TEST_INSTANCE:-t$$}
RUN=/run/perfpersist-$INSTANCE
REGISTRY=$RUN/registry
STATE=/var/lib/perfpersist-$INSTANCE

DAEMON_UID=61999 # no such user, and no need of one
DAEMON_GID=61998
NOBODY=65534

DAEMON_PID=
_spawned=()
_pinned=()
_faults=0

. "$ROOT/tests/expect.sh"

[ "$(id -u)" -eq 0 ] || skip "needs root"
PATH=$PATH:/usr/sbin:/sbin

SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/perfpersist-$INSTANCE-XXXXXX")
BIN=$SCRATCH/bin
CONF=$SCRATCH/perfpersistd.conf
LOG=$SCRATCH/daemon.log
chmod 0711 "$SCRATCH"

# The build may be in a place that other users cannot reach.
mkdir -m 0755 "$BIN"
find "$BUILD/perfctl" "$BUILD/tests" -maxdepth 1 -type f -executable -exec install -m 0755 -t "$BIN" {} +
PERFCTL=("$BIN/perfctl" --instance "$INSTANCE")

gone() {
	[ ! -e "/proc/$1" ]
}

# Some virtual machines have registers for breakpoints that do nothing: perf, if there is one, counts 0.
breakpoints_are_dead() {
	local address count
	address=$(setarch -R "$BIN/chained" --address)
	count=$(perf stat -x, -e "mem:$address:w" -- setarch -R "$BIN/chained" 3 2>&1 >/dev/null | cut -d, -f1)
	[ "$count" = 0 ]
}

# ── people and processes ─────────────────────────────────────────────────────────────────

# For perfctl as an argument. As a command it is an alias, so that what a pipeline forks becomes perfctl at once.
# Tests mostly fork; the helpers here do without where they can.
perfctl() {
	"${PERFCTL[@]}" "$@"
}
shopt -s expand_aliases
# shellcheck disable=SC2139,SC2262
alias perfctl='"${PERFCTL[@]}"'

_as() {
	local groups=$1
	shift
	if [ "$1" = perfctl ]; then
		shift
		set -- "${PERFCTL[@]}" "$@"
	fi
	(cd / && exec setpriv --reuid="$NOBODY" --regid="$NOBODY" "$groups" -- "$@")
}

# as_user CMD…: runs it as nobody. as_member: as nobody in the namespaces' group.
as_user() {
	_as --clear-groups "$@"
}

as_member() {
	_as --groups=$DAEMON_GID "$@"
}

# as_daemon CMD…: runs it as the daemon's user.
as_daemon() {
	NOBODY=$DAEMON_UID _as --clear-groups "$@"
}

# without_ksymbols FILE [TYPE…]: for the output of `perf record -a`; see that script.
without_ksymbols() {
	expect_ok perl "$ROOT/tests/integration/without-ksymbols.pl" "$@"
}

# alone_with THING: waits until no other test of the machine has it, and keeps it until this test
# ends.
alone_with() {
	local fd
	mkdir -p "$LOCKS"
	exec {fd}>>"$LOCKS/$1.lock"
	flock "$fd"
}

# spawn CMD…: runs it in the background until the test ends. SPAWNED is its pid.
spawn() {
	"$@" &
	SPAWNED=$!
	_spawned+=("$SPAWNED")
}

# busy SECONDS [CPU]: keeps a CPU (default: any) busy in the background for at most so long. Without timeout(1),
# which leaves its child behind if it is ended in the moment of its fork.
busy() {
	local pin=()
	[ $# -gt 1 ] && pin=(taskset -c "$2")
	# shellcheck disable=SC2016
	spawn "${pin[@]}" bash -c 'while [ $SECONDS -lt "$1" ]; do :; done' busy "$1"
}

# rest PID…: ends what busy() has begun, unless it has ended by itself: its number may be another's by then.
rest() {
	local pid
	for pid in "$@"; do
		! _is_child "$pid" || kill "$pid"
	done
}

# look_for_processes: PIDS are all that were started with our instance's name, except zombies; DAEMON_PIDS those of
# them but for the keeper, which survives the others while there are events; PROGRAM_OF[PID] is what it runs.
declare -A PROGRAM_OF=()
look_for_processes() {
	local IFS=$'\n' pid file words program
	PIDS=() DAEMON_PIDS=() PROGRAM_OF=()
	for file in /proc/[0-9]*/cmdline; do
		{ mapfile -d '' -t words <"$file"; } 2>/dev/null || continue
		[[ $'\n'"${words[*]}"$'\n' == *$'\n'"$INSTANCE"$'\n'* ]] || continue
		pid=${file#/proc/} pid=${pid%/cmdline} program=${words[0]##*/}
		PIDS+=("$pid")
		PROGRAM_OF[$pid]=$program
		[ "$program" = perfpersist-keeper ] || DAEMON_PIDS+=("$pid")
	done
}

# program_pids PROGRAM: those that run this program of ours.
program_pids() {
	local pid
	look_for_processes
	for pid in "${PIDS[@]}"; do
		[ "${PROGRAM_OF[$pid]}" != "$1" ] || echo "$pid"
	done
}

instance_pids() {
	look_for_processes
	[ ${#PIDS[@]} -eq 0 ] || printf '%s\n' "${PIDS[@]}"
}

daemon_pids() {
	look_for_processes
	[ ${#DAEMON_PIDS[@]} -eq 0 ] || printf '%s\n' "${DAEMON_PIDS[@]}"
}

# json_field FIELD [N]: prints its values, or the first N, one per line, from JSON on stdin. The demo uses it too, and
# runs without jq.
json_field() {
	local text value values='' n
	IFS= read -rd '' text || true
	for ((n = 0; n != ${2:--1}; n++)); do
		[[ $text =~ \"$1\":(\"[^\"]*\"|[^],}]*) ]] || break
		text=${text#*"${BASH_REMATCH[0]}"}
		value=${BASH_REMATCH[1]#\"}
		values+=${value%\"}$'\n'
	done
	printf '%s' "$values"
	[ -n "$values" ]
}

keeper_pid() {
	program_pids perfpersist-keeper
}

# complaints: the relevant lines of perf's stderr, about a file of ours. On an overloaded machine sideband records are
# lost, and other programs shut our samples out; perf must say so.
complaints() {
	if perfctl list --json | jq -e 'any(.missed > 0)' >/dev/null; then
		grep -vE '^(Warning:|Processed [0-9]+ samples and lost [0-9.]+%!|)$' || true
	else
		cat
	fi | if grep -q 'lost 0' < <(perfctl ping); then
		cat
	else
		grep -vE '^(Warning:|Processed [0-9]+ events and lost [0-9]+ chunks!|Check IO/CPU overload!|)$' || true
	fi
}

# A process that begins from then on has a name and mappings. The keeper begins behind the first event.
kept() {
	[ "$(perfctl ping --json | json_field keeping)" = true ]
}

_no_processes() {
	look_for_processes
	[ ${#DAEMON_PIDS[@]} -eq 0 ]
}

_no_keeper() {
	look_for_processes
	[ ${#PIDS[@]} -eq 0 ]
}

# ── the daemon ───────────────────────────────────────────────────────────────────────────

# write_conf [TEXT]: writes the configuration, followed by TEXT.
write_conf() {
	cat >"$CONF" <<-END
		[daemon]
		User=$DAEMON_UID
		Group=$DAEMON_GID
		${1-}
	END
	chmod 0644 "$CONF"
}

# The daemon answers a ping at once, but a list only after the engine's report.
_ready() {
	perfctl list || gone "$DAEMON_PID"
}

# start_daemon [OPTION…]: returns when the daemon is ready.
start_daemon() {
	[ -e "$CONF" ] || write_conf
	"$BUILD/perfpersistd" --instance "$INSTANCE" --config "$CONF" "$@" >>"$LOG" 2>&1 &
	DAEMON_PID=$!
	wait_until 20 _ready || fail "perfpersistd does not get ready"
	perfctl list >/dev/null || fail "perfpersistd did not start"
}

# Mounts the registry for engines that see less than we do and have mounts of their own: an instance
# without an event would unmount its own.
mount_registry() {
	mkdir -p "$REGISTRY"
	_mounted || mount -t bpf -o mode=0755 bpf "$REGISTRY"
}

# Stops the daemon and checks that it exits cleanly, with its engine and its dumper.
stop_daemon() {
	local pid=$DAEMON_PID status=0
	kill -TERM "$pid"
	wait_until 20 gone "$pid" || fail "perfpersistd does not end on SIGTERM"
	wait "$pid" || status=$?
	DAEMON_PID=
	[ "$status" -eq 0 ] || fail "perfpersistd ended with $status"
	wait_until 20 _no_processes || fail "left behind by perfpersistd: $(daemon_pids | xargs)"
}

broker_pid() {
	perfctl ping --json | json_field pid 1
}

engine_pid() {
	perfctl ping --json | json_field engine_pid
}

dumper_pid() {
	program_pids perfpersist-dumper
}

_kill_9() {
	kill -KILL "$1"
	wait_until 10 gone "$1" || fail "$1 survives SIGKILL"
}

kill_broker() {
	local pid
	pid=$(broker_pid)
	_kill_9 "$pid"
	wait "$pid" 2>/dev/null || true
	DAEMON_PID=
}

# The daemon restarts the engine.
kill_engine() {
	local pid
	pid=$(engine_pid)
	[ "$pid" -gt 0 ] || fail "there is no engine to kill"
	_kill_9 "$pid"
}

# Kills broker, engine and dumper at once; returns when only the keeper of the instance still runs.
kill_daemon() {
	local broker engine dumper
	broker=$(broker_pid)
	engine=$(engine_pid)
	dumper=$(dumper_pid)
	[ "$broker" -gt 0 ] || fail "there is no broker to kill"
	[ "$engine" -gt 0 ] || engine= # 0 would be our own process group
	# The others may have exited with the first.
	# shellcheck disable=SC2086
	kill -KILL "$broker" $engine $dumper 2>/dev/null || true
	wait "$broker" 2>/dev/null || true
	DAEMON_PID=
	wait_until 20 _no_processes || fail "still running: $(daemon_pids | xargs)"
}

# ── the registry ─────────────────────────────────────────────────────────────────────────

# stat_of NAMESPACE/EVENT FIELD [cpuN]: records, bytes, limited or missed, from the registry's text.
stat_of() {
	local IFS=$' \t\n' text words word
	text=$(<"$REGISTRY/$1/stat")
	while read -ra words; do
		[ "${words[0]-}" = "${3:-total}" ] || continue
		for word in "${words[@]:1}"; do
			[[ $word != "$2="* ]] || echo "${word#*=}"
		done
	done <<<"$text"
}

records_of() {
	stat_of "$1" records
}

# more_records_than N NAMESPACE/EVENT: for wait_until.
more_records_than() {
	[ "$(records_of "$2")" -gt "$1" ]
}

# NAMESPACE/EVENT=ID of all events, one per line.
event_ids() {
	perfctl "$@" list | awk 'NR > 1 { print $1 "/" $2 "=" $3 }' | sort
}

# ── taking it all away ───────────────────────────────────────────────────────────────────

_fault() {
	_say_failed "$*"
	_faults=$((_faults + 1))
}

_mounted() {
	grep -q " $REGISTRY " /proc/self/mountinfo
}

# "prog 12" for each BPF object that is pinned in our registry.
_pins() {
	local kind
	for kind in prog map link; do
		bpftool --bpffs "$kind" show 2>/dev/null | awk -v kind="$kind" -v place="$REGISTRY/" '
			/^[0-9]+:/ { id = $1 + 0 }
			$1 == "pinned" && index($2, place) == 1 && !seen[id]++ { print kind, id }' || true
	done
}

_released() {
	local kind
	[ ${#_pinned[@]} -gt 0 ] || return 0
	for kind in prog map link; do
		bpftool "$kind" show 2>/dev/null | sed -nE "s/^([0-9]+):.*/$kind \\1/p" || return
	done >"$SCRATCH/kernel"
	! grep -qxFf <(printf '%s\n' "${_pinned[@]}") "$SCRATCH/kernel"
}

_delete_all() {
	local names

	perfctl ping >/dev/null 2>&1 || return 0
	mapfile -t names < <(perfctl list | awk 'NR > 1 { print $1 "/" $2 }')
	[ ${#names[@]} -eq 0 ] && return
	perfctl delete "${names[@]}" >/dev/null || _fault "these could not all be deleted: ${names[*]}"
}

# Whether this shell still has it: the number of one that has ended may be another test's by now.
_is_child() {
	local stat
	read -r stat 2>/dev/null <"/proc/$1/stat" || return
	stat=${stat##*) ? }
	[ "${stat%% *}" = $$ ]
}

_end_processes() {
	local pid

	for pid in "${_spawned[@]}"; do
		! _is_child "$pid" || kill -TERM "$pid" 2>/dev/null
	done
	if [ -n "$DAEMON_PID" ] && ! gone "$DAEMON_PID"; then
		kill -TERM "$DAEMON_PID"
	fi
	wait_until 20 _no_processes || _kill_processes _no_processes
}

# _kill_processes GONE
_kill_processes() {
	local pids pid

	mapfile -t pids < <(instance_pids)
	for pid in "${pids[@]}"; do
		_fault "had to be killed: $pid $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline")"
	done
	kill -KILL "${pids[@]}" 2>/dev/null
	wait_until 10 "$1" || _fault "still running: $(instance_pids | xargs)"
}

_unmount() {
	_mounted || return 0
	mapfile -t _pinned < <(_pins)
	# A mount namespace that anybody made meanwhile has a copy of our mount.
	find "$REGISTRY" -mindepth 1 -delete 2>/dev/null
	# Any `bpftool --bpffs` on the machine walks through all bpffs mounts. None of ours runs any
	# more.
	if ! wait_until 20 umount "$REGISTRY"; then
		_fault "somebody keeps $REGISTRY busy"
		umount --lazy "$REGISTRY"
	fi
	_mounted && _fault "$REGISTRY is still mounted"
	# The kernel frees links after grace periods, and rings when the last reader has unmapped
	# them.
	wait_until 20 _released || _fault "still in the kernel after unmounting: ${_pinned[*]}"
}

_cleanup() {
	local status=$?

	trap - EXIT ERR
	trap '' INT TERM HUP
	set +eE
	[ "$status" -eq 0 ] || [ "$status" -eq 77 ] || _faults=1

	_delete_all
	_end_processes
	_unmount
	! mountpoint -q "$STATE" || umount "$STATE"
	rm -rf --one-file-system "$RUN" "$STATE"
	[ -e "$RUN" ] && _fault "$RUN is still there"
	# Nobody can reach a keeper whose socket is gone.
	wait_until 20 _no_keeper || _kill_processes _no_keeper
	if [ -e "$LOG" ] && grep -qE 'Sanitizer|runtime error:' "$LOG"; then
		_fault "the daemon's log has a sanitizer's report"
	fi

	if [ "$_faults" -gt 0 ]; then
		for log in "$SCRATCH"/*.log; do # the daemon's, and of what else the test started
			[ ! -s "$log" ] || { echo "── ${log##*/}" && tail -n 200 "$log"; } >&2
		done
		# Again, where whoever reads only the end sees it.
		cat "$SCRATCH/failed" >&2
	fi
	rm -rf --one-file-system "$SCRATCH" "${SCRATCH%-*}"-?????? # also of one that was killed
	[ "$_faults" -gt 0 ] && [ "$status" -eq 0 ] && status=1
	[ "$_faults" -gt 0 ] && [ "$status" -eq 77 ] && status=1
	# The last line of a script, when nothing is left behind.
	if declare -F at_end >/dev/null; then
		at_end "$status"
	fi
	exit "$status"
}

trap _cleanup EXIT
trap '_say_failed "${BASH_SOURCE[0]##*/}:$LINENO: $BASH_COMMAND"' ERR
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
