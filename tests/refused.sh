# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For tests of bad input: what is refused costs one sentence and leaves nothing behind. To be
# read after lib.sh.
#
#   warm_up; remember                         what stands, and what is held open, is as it shall be
#   refused 2 "not a name" perfctl create 9   exit code, what the sentence must say, the command
#   said 1 "no such user" perfpersistd …      the same of what has no registry to leave things in

REFUSALS=0
_standing=
_held=

# Everything in the registry, but for what is the instance's own for good (the newest id, the
# buffer of wakeups, the states of CPUs, what counts) and what some kernels put into each bpffs.
standing() {
	find "$REGISTRY" -mindepth 1 ! -name '*.debug' ! -name +last-id ! -name +wakeups ! -name "+cpus*" ! -name "+totals*" \
		2>/dev/null | sort
}

# "PID N": how many descriptors each process of the instance but the keeper has open. An engine's
# maps, programs and links that are pinned nowhere are among them. (After each refusal, so that it
# starts few processes.)
held() {
	local pid program fds

	for pid in $(instance_pids); do
		IFS= read -r -d '' program <"/proc/$pid/cmdline" || continue
		[ "${program##*/}" != perfpersist-keeper ] || continue
		fds=("/proc/$pid/fd/"*)
		echo "$pid ${#fds[@]}"
	done 2>/dev/null
}

# Deleted events are gone, and so is the process that reaped them: there are the broker, the
# launcher, the engine and the dumper.
settled() {
	! grep -q '/+' < <(standing) && [ "$(daemon_pids | wc -l)" -eq 4 ]
}

# warm_up: each recorder is used once, and a copy made, so that what engine and broker keep for
# ever is there. It may be refused, but what stands afterwards is what stood before.
warm_up() {
	local before event
	wait_until 20 settled || fail "the engine does not come to rest"
	before=$(standing)
	for event in cpu-clock sched:sched_waking "sched:sched_waking --generic --wakeup" \
		"sched:sched_waking,cpu-clock --wakeup"; do
		# shellcheck disable=SC2086
		if perfctl create warm/up -e $event >/dev/null 2>&1; then
			perfctl reopen --copy warm/up -n 1 >/dev/null 2>&1
			perfctl delete warm/up >/dev/null
		fi
	done
	wait_until 20 settled || fail "the engine does not come to rest"
	expect_eq "$(standing)" "$before" "what stands"
}

# What is held stays the same for some looks: a connection that its client has closed, or a copy
# that was let go, is open for a moment more.
_steady() {
	local now
	now=$(held)
	[ "$now" = "$_held" ] || _looks=0
	_held=$now
	_looks=$((_looks + 1))
	[ $_looks -ge "$(length 3 10)" ]
}

remember() {
	wait_until 20 settled || fail "the engine does not come to rest"
	_standing=$(standing)
	_held='' _looks=0
	wait_until 60 _steady || fail "the daemon opens and closes descriptors, and nobody asks it anything"
}

# Fewer descriptors than were remembered is what there should have been: on a busy machine a
# connection that was closed long ago may still have been open then.
_as_before() {
	local now
	[ "$(standing)" = "$_standing" ] || return
	now=$(held)
	[ "$now" = "$_held" ] && return
	[ "$(join <(sort <<<"$_held") <(sort <<<"$now") | awk '$3 <= $2' | wc -l)" -eq "$(wc -l <<<"$_held")" ] || return
	[ "$(wc -l <<<"$now")" -eq "$(wc -l <<<"$_held")" ] || return
	_held=$now
}

# nothing_left WHAT: it is as it was when remember was called.
nothing_left() {
	wait_until 20 _as_before && return
	diff <(echo "$_standing") <(standing) >&2 || true
	diff <(echo "$_held") <(held) >&2 || true
	fail "this left something behind: $*"
}

# one_sentence FILE REGEX WHAT: the file holds one line, which is in SENTENCE then.
one_sentence() {
	expect_eq "$(wc -l <"$1")" 1 "lines on stderr of: $3"
	SENTENCE=$(<"$1")
	expect_match "$SENTENCE" "$2" "what was said of: $3"
}

# said CODE REGEX CMD…: it fails so, with that sentence and nothing else.
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

# refused CODE REGEX CMD…: and nothing is left behind.
refused() {
	said "$@"
	expect_match "$SENTENCE" '^perfctl: ' "who says it"
	nothing_left "$WHAT"
}

# The first of the CPUs that are online.
online_cpu() {
	sed 's/[-,].*//' /sys/devices/system/cpu/online
}
