# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For tests of bad input: a refusal prints one error message and leaves nothing behind. Source it
# after lib.sh.
#
#   warm_up; remember                         records the registry and the open descriptors to compare with
#   refused 2 "not a name" perfctl create 9   exit code, pattern of the error message, command
#   said 1 "no such user" perfpersistd …      the same for commands that have no registry

REFUSALS=0
_standing=
_held=

# What follows runs after each refusal, so it starts no process.

# look_at_registry: STANDING is everything in it, a line each, except the instance's permanent files (the newest id,
# the buffers of wakeups and firings, the states of CPUs, the program counts) and the files that some kernels put into
# each bpffs.
look_at_registry() {
	local IFS=$'\n' path standing=()
	shopt -s globstar dotglob nullglob
	for path in "$REGISTRY"/**; do
		case ${path##*/} in
		'' | *.debug | +last-id | +wakeups | +firings | +sending | +cpus* | +totals*) ;;
		*) standing+=("$path") ;;
		esac
	done
	shopt -u globstar dotglob nullglob
	STANDING="${standing[*]}"
}

standing() {
	look_at_registry
	printf '%s\n' "$STANDING"
}

# look_at_descriptors: HELD has "PID N" lines, how many descriptors each process of the instance except the keeper has
# open. They include an engine's unpinned maps, programs and links.
look_at_descriptors() {
	local pid fds

	HELD=
	look_for_processes
	for pid in "${DAEMON_PIDS[@]}"; do
		fds=("/proc/$pid/fd/"*)
		HELD+="$pid ${#fds[@]}"$'\n'
	done
}

# Deleted events are gone, and so is the process that reaped them: only the broker, the launcher,
# the engine and the dumper remain.
settled() {
	look_at_registry
	[[ $STANDING != */+* ]] || return
	look_for_processes
	[ ${#DAEMON_PIDS[@]} -eq 4 ]
}

# comes_to_rest: waits for that, and says what is in the way.
comes_to_rest() {
	wait_until 20 settled && return
	standing | grep '/+' >&2 || true
	fail "the engine does not come to rest; processes: $(daemon_pids | xargs -r ps -o args= -p)"
}

# warm_up: uses each recorder once and makes a copy, so that the permanent objects of engine and
# broker exist. It may be refused, but it leaves nothing behind.
warm_up() {
	local before event
	comes_to_rest
	before=$(standing)
	for event in cpu-clock sched:sched_waking "sched:sched_waking --generic --wakeup" \
		"sched:sched_waking,cpu-clock --wakeup"; do
		# shellcheck disable=SC2086
		if perfctl create warm/up -e $event >/dev/null 2>&1; then
			perfctl reopen --copy warm/up -n 1 >/dev/null 2>&1
			perfctl delete warm/up >/dev/null
		fi
	done
	comes_to_rest
	expect_eq "$(standing)" "$before" "what stands"
}

# The count of descriptors must be the same several times: a connection that its client has closed,
# or a copy that was released, stays open for a moment.
_steady() {
	look_at_descriptors
	[ "$HELD" = "$_held" ] || _looks=0
	_held=$HELD
	_looks=$((_looks + 1))
	[ $_looks -ge "$(length 3 10)" ]
}

remember() {
	comes_to_rest
	_standing=$STANDING
	_held='' _looks=0
	wait_until 60 _steady || fail "the daemon opens and closes descriptors without any request"
}

# Fewer descriptors than before are correct: on a busy machine a connection that was closed long ago
# may have been open when they were counted.
_as_before() {
	local pid n had=()
	look_at_registry
	[ "$STANDING" = "$_standing" ] || return
	look_at_descriptors
	[ "$HELD" != "$_held" ] || return 0
	while read -r pid n; do
		had[pid]=$n
	done <<<"${_held%$'\n'}"
	[ ${#DAEMON_PIDS[@]} -eq ${#had[@]} ] || return
	while read -r pid n; do
		[ "$n" -le "${had[pid]:-0}" ] || return
	done <<<"${HELD%$'\n'}"
	_held=$HELD
}

# nothing_left WHAT: the state is the one that remember recorded.
nothing_left() {
	wait_until 20 _as_before && return
	diff <(echo "$_standing") <(standing) >&2 || true
	diff <(echo "$_held") <(echo "$HELD") >&2 || true
	fail "this left something behind: $*"
}

# one_sentence FILE REGEX WHAT: the file holds one line; sets SENTENCE to it.
one_sentence() {
	local lines
	mapfile lines <"$1"
	[[ ${#lines[@]} -eq 1 && ${lines[0]} == *$'\n' ]] || fail "not one line on stderr of: $3: ${lines[*]}"
	SENTENCE=${lines[0]%$'\n'}
	expect_match "$SENTENCE" "$2" "what was said of: $3"
}

# said CODE REGEX CMD…: CMD fails with that code and that message, and prints nothing else.
said() {
	local want=$1 regex=$2 got=0
	shift 2
	WHAT="$*"
	WHAT=${WHAT:0:120}
	"$@" >"$SCRATCH/stdout" 2>"$SCRATCH/stderr" </dev/null || got=$?
	[ "$got" -eq "$want" ] || cat "$SCRATCH/stderr" >&2
	expect_eq "$got" "$want" "exit code of: $WHAT"
	one_sentence "$SCRATCH/stderr" "$regex" "$WHAT"
	[ ! -s "$SCRATCH/stdout" ] || fail "refused, and yet something is on stdout: $WHAT"
	REFUSALS=$((REFUSALS + 1))
	printf '  %d  %s\n' "$got" "${SENTENCE:0:200}"
}

# refused CODE REGEX CMD…: like said, and CMD leaves nothing behind.
refused() {
	said "$@"
	expect_match "$SENTENCE" '^perfctl: ' "who says it"
	nothing_left "$WHAT"
}

# The first online CPU.
online_cpu() {
	sed 's/[-,].*//' /sys/devices/system/cpu/online
}
