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

# Everything in the registry, except the instance's permanent files (the newest id, the buffers of
# wakeups and firings, the states of CPUs, the program counts) and the files that some kernels put
# into each bpffs.
standing() {
	find "$REGISTRY" -mindepth 1 ! -name '*.debug' ! -name +last-id ! -name +wakeups ! -name +firings ! -name +sending ! -name "+cpus*" ! -name "+totals*" \
		2>/dev/null | sort
}

# "PID N": how many descriptors each process of the instance except the keeper has open. They
# include an engine's unpinned maps, programs and links. (This runs after each refusal, so it starts
# few processes.)
held() {
	local pid program fds

	for pid in $(instance_pids); do
		IFS= read -r -d '' program <"/proc/$pid/cmdline" || continue
		[ "${program##*/}" != perfpersist-keeper ] || continue
		fds=("/proc/$pid/fd/"*)
		echo "$pid ${#fds[@]}"
	done 2>/dev/null
}

# Deleted events are gone, and so is the process that reaped them: only the broker, the launcher,
# the engine and the dumper remain.
settled() {
	! grep -q '/+' < <(standing) && [ "$(daemon_pids | wc -l)" -eq 4 ]
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
	local now
	now=$(held)
	[ "$now" = "$_held" ] || _looks=0
	_held=$now
	_looks=$((_looks + 1))
	[ $_looks -ge "$(length 3 10)" ]
}

remember() {
	comes_to_rest
	_standing=$(standing)
	_held='' _looks=0
	wait_until 60 _steady || fail "the daemon opens and closes descriptors without any request"
}

# Fewer descriptors than before are correct: on a busy machine a connection that was closed long ago
# may have been open when they were counted.
_as_before() {
	local now
	[ "$(standing)" = "$_standing" ] || return
	now=$(held)
	[ "$now" = "$_held" ] && return
	[ "$(join <(sort <<<"$_held") <(sort <<<"$now") | awk '$3 <= $2' | wc -l)" -eq "$(wc -l <<<"$_held")" ] || return
	[ "$(wc -l <<<"$now")" -eq "$(wc -l <<<"$_held")" ] || return
	_held=$now
}

# nothing_left WHAT: the state is the one that remember recorded.
nothing_left() {
	wait_until 20 _as_before && return
	diff <(echo "$_standing") <(standing) >&2 || true
	diff <(echo "$_held") <(held) >&2 || true
	fail "this left something behind: $*"
}

# one_sentence FILE REGEX WHAT: the file holds one line; sets SENTENCE to it.
one_sentence() {
	expect_eq "$(wc -l <"$1")" 1 "lines on stderr of: $3"
	SENTENCE=$(<"$1")
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
