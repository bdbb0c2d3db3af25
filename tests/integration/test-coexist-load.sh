#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Measures what survives on a CPU whose system calls are recorded at full speed: all samples and all
# events in interrupts beside tp_btf recorders; beside generic ones those that the kernel lets
# through, and the missed count covers the others. Other programs on this machine shut ours out as
# well. So the short check, which runs beside other tests, checks only what always holds: recorded
# and missed add up.
. "$(dirname "$0")/../lib.sh"

CPU=$(sed 's/.*[-,]//' /sys/devices/system/cpu/online)
MS=$(length 700 4000)
OWN=0 # our programs that shut others out

# Programs on tracepoints and probes shut each other out, across the whole machine.
others() {
	local n
	n=$(bpftool --json prog show |
		jq '[.[] | select(.type == "tracepoint" or .type == "kprobe")] | length')
	[ "$n" -gt $OWN ]
}

# undisturbed CMD…: runs it once more if it fails while other programs than ours were attached.
undisturbed() {
	local try pid disturbed
	if ! full; then
		"$@" || fail "$*"
		return
	fi
	for try in 1 2 3 4 5; do
		disturbed=
		"$@" &
		pid=$!
		while grep -qx "$pid" < <(jobs -rp); do
			! others || disturbed=1
			sleep 0.1
		done
		if wait "$pid"; then
			return 0
		fi
		[ -n "$disturbed" ] || fail "$*"
		echo "  (try $try: beside other programs, which shut ours out)"
	done
	skip "other programs on this machine's tracepoints shut ours out"
}

samples() {
	undisturbed "$BIN/coexist-samples" "$INSTANCE" "$@"
}

interrupts() {
	[ "$(uname -m)" = x86_64 ] || return 0
	undisturbed "$BIN/coexist-interrupts" "$INSTANCE" "$@"
}

# beside RECORDER OPTION…: full-speed events on all system calls.
beside() {
	local recorder=$1 event
	shift
	for event in sys_enter sys_exit; do
		perfctl create "$recorder/$event" -e "raw_syscalls:$event" "$@" >/dev/null
		expect_eq "$(perfctl show --json "$recorder/$event" | jq -r .recorder)" "$recorder" \
			"recorder of $event"
	done
	echo "beside $recorder recorders of sys_enter and sys_exit at full speed"
}

# told RECORDER: the counts of the system calls' events.
told() {
	local event
	for event in sys_enter sys_exit; do
		printf '%s: %s records, %s missed\n' "$1/$event" "$(records_of "$1/$event")" \
			"$(stat_of "$1/$event" missed)"
	done
	perfctl delete "$1/sys_enter" "$1/sys_exit" >/dev/null
}

start_daemon
perfctl create t/samples -e cpu-clock -F 1000 -C "$CPU" >/dev/null
perfctl create t/chains -e cpu-clock -c 1000000 -g -m 4M -C "$CPU" >/dev/null

beside tp_btf
samples t/samples "$CPU" "$MS" "$(length 0 99)"
samples t/chains "$CPU" "$MS" "$(length 0 99)"
if [ "$(uname -m)" = x86_64 ]; then
	perfctl create t/timer -e irq_vectors:local_timer_entry -C "$CPU" >/dev/null
	OWN=1
	interrupts t/timer "$CPU" "$MS" "$(length told untouched)"
fi
told tp_btf

beside generic --generic
OWN=$((OWN + 2))
samples t/samples "$CPU" "$MS" "$(length 0 1)"
samples t/chains "$CPU" "$MS" "$(length 0 1)"
interrupts t/timer "$CPU" "$MS" told
told generic
