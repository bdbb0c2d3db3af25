#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A kernel that lacks something, or a machine with another setup: no BPF, no BTF, no perf, no right
# to use them, tracefs not mounted, a CPU offline. The daemon refuses events that it cannot record,
# with one message, and leaves nothing behind; older events keep recording.
#
# The engine, or the whole daemon, runs where the feature is missing: behind a seccomp filter
# (deny.c), or in mounts of its own that hide it.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"

ENGINE=$BUILD/perfpersist-engine
unshare --mount true 2>/dev/null || skip "mount namespaces cannot be made here"

# make_engine NAME SCRIPT: writes the argument of --engine to $SCRATCH/NAME; in SCRIPT the word
# ENGINE stands for the real one with its arguments.
make_engine() {
	printf '#!/bin/bash\nset -eu\n%s\n' "${2//ENGINE/\"$ENGINE\" \"\$@\"}" >"$SCRATCH/$1"
	chmod 0755 "$SCRATCH/$1"
}

# Creates mounts of its own, in which SCRIPT begins. It does not keep other instances' mounts busy;
# mounts that vanish meanwhile do not matter.
private_mounts="findmnt -rno TARGET -t bpf | grep /perfpersist | grep -vxF '$REGISTRY' |
	while read -r m; do umount -l \"\$m\" 2>/dev/null || ! mountpoint -q \"\$m\"; done"
make_engine_with_mounts() {
	make_engine "$1.inside" "$private_mounts
$2"
	make_engine "$1" "exec unshare --mount --propagation private \"$SCRATCH/$1.inside\" \"\$@\""
}

# with NAME: restarts the daemon with that engine.
with() {
	echo "$2"
	[ -z "$DAEMON_PID" ] || stop_daemon
	: >"$LOG.before"
	[ ! -e "$LOG" ] || mv "$LOG" "$LOG.before"
	start_daemon --engine "$1"
	warm_up
	remember
}

make_engine no-bpf "exec $BIN/deny bpf=ENOSYS ENGINE"
with "$SCRATCH/no-bpf" "no BPF"
for event in sched:sched_waking cpu-clock; do
	refused 1 'kernel does not .*BPF.* needs CONFIG_BPF_SYSCALL=y' perfctl create t/x -e $event
done
expect_eq "$(perfctl list --json)" '[]' "the list"

make_engine bpf-forbidden "exec $BIN/deny bpf=EPERM ENGINE"
with "$SCRATCH/bpf-forbidden" "no right to use BPF"
refused 4 'kernel does not .*BPF.* the right to use it' perfctl create t/x -e sched:sched_waking
expect_eq "$(perfctl list --json)" '[]' "the list"

# Events created with everything available, which later daemons must handle.
stop_daemon
start_daemon
perfctl create old/hot -e sched:sched_switch >/dev/null
perfctl create old/sampled -e cpu-clock -F 100 >/dev/null

# old_ones_go_on: the old events are listed, counted and read, whatever this kernel lacks now.
old_ones_go_on() {
	local before
	expect_eq "$(perfctl list --json | jq -r '[.[] | .namespace + "/" + .name] | join(" ")')" \
		"old/hot old/sampled" "what is listed"
	before=$(records_of old/hot)
	wait_until 20 more_records_than "$before" old/hot
	expect_match "$(perfctl reopen old/hot -n 1 2>/dev/null)" 'sched:sched_switch: prev_comm=' "a record"
	expect_eq "$(jq -r .name <<<"$(perfctl show old/sampled --json)")" sampled
}

make_engine perf-forbidden "exec $BIN/deny perf_event_open=EACCES ENGINE"
with "$SCRATCH/perf-forbidden" "no right to use perf"
refused 4 "does not allow 'cpu-clock' to be recorded .*perf_event_paranoid" perfctl create t/x -e cpu-clock
refused 4 "does not allow 'sched:sched_waking'" perfctl create t/x -e sched:sched_waking --generic
perfctl create old/x -e sched:sched_waking >/dev/null # its recorder needs no perf event
perfctl delete old/x >/dev/null
old_ones_go_on

make_engine_with_mounts no-btf 'mount -t tmpfs none /sys/kernel/btf; exec ENGINE'
with "$SCRATCH/no-btf" "no BTF"
for event in sched:sched_waking cpu-clock; do
	refused 1 'no BTF \(/sys/kernel/btf/vmlinux is missing\).*CONFIG_DEBUG_INFO_BTF=y' perfctl create t/x -e $event
done
old_ones_go_on

hide_tracefs='for m in $(findmnt -rno TARGET -t tracefs,debugfs | sort -r); do umount -l "$m"; done'
tracefs_mounts() {
	findmnt -rno TARGET -t tracefs | sort || true
}
before=$(tracefs_mounts)

make_engine_with_mounts no-tracefs "$hide_tracefs; exec ENGINE"
with "$SCRATCH/no-tracefs" "tracefs not mounted: the engine mounts one of its own"
perfctl create t/switches -e sched:sched_switch --generic >/dev/null
wait_until 20 more_records_than 0 t/switches
expect_match "$(perfctl reopen t/switches -n 1 2>/dev/null)" 'next_comm=' "its records"
echo "  $(perfctl show t/switches --json | jq -c '{event, recorder, records, missed}')"
expect_eq "$(tracefs_mounts)" "$before" "what others see of tracefs"
expect_match "$(<"$LOG")" 'Tracefs is not mounted; the engine has mounted it for itself alone' "the log"
perfctl delete t/switches >/dev/null
refused 3 "no tracepoint 'sched:nosuch'" perfctl create t/x -e sched:nosuch

make_engine_with_mounts tracefs-refused "$hide_tracefs; exec $BIN/deny fsmount=EPERM ENGINE"
with "$SCRATCH/tracefs-refused" "tracefs not mounted, and it cannot be"
refused 1 'Tracefs is not mounted and cannot be mounted here, .*run .mount -t tracefs tracefs /sys/kernel/tracing' \
	perfctl create t/x -e sched:sched_waking
perfctl create t/clock -e cpu-clock >/dev/null # sampling needs none
perfctl delete t/clock >/dev/null
old_ones_go_on

# ── ordinary users may use BPF ───────────────────────────────────────────────────────────

echo "ordinary users may use BPF: they could write rings that they hold, and get copies"
stop_daemon
build=$BUILD
BUILD=$SCRATCH
ENGINE=$build/perfpersistd
echo 0 >"$SCRATCH/zero"
make_engine_with_mounts perfpersistd "mount --bind $SCRATCH/zero /proc/sys/kernel/unprivileged_bpf_disabled; exec ENGINE"
start_daemon
BUILD=$build
ENGINE=$build/perfpersist-engine
expect_eq "$(perfctl show old/hot --json | jq -r .reads)" live "what root gets"
expect_eq "$(as_member perfctl show old/hot --json | jq -r .reads)" copies "what a member gets"
# perfctl reads the same file.
show=$(unshare --mount --propagation private bash -c 'mount --bind "$0" /proc/sys/kernel/unprivileged_bpf_disabled
	exec setpriv --reuid='"$NOBODY"' --regid='"$NOBODY"' --groups='"$DAEMON_GID"' -- "$@"' \
	"$SCRATCH/zero" "${PERFCTL[@]}" show old/hot)
expect_match "$show" 'read as +copies .*kernel.unprivileged_bpf_disabled is 0' "why"
expect_match "$(as_member perfctl reopen old/hot -n 1 2>/dev/null)" 'sched:sched_switch: prev_comm=' "a record"
old_ones_go_on

# ── CPUs ─────────────────────────────────────────────────────────────────────────────────

mapfile -t cpus < <(lscpu --parse=CPU --online | grep -v '^#')
if [ ${#cpus[@]} -lt 2 ]; then
	echo "a CPU offline: this machine has only one, not tested"
else
	last=${cpus[-1]}
	rest=$(IFS=,; echo "${cpus[*]:0:${#cpus[@]}-1}")
	echo "$rest" >"$SCRATCH/online"
	hide_cpu="mount --bind $SCRATCH/online /sys/devices/system/cpu/online"

	make_engine_with_mounts cpu-offline "$hide_cpu; exec ENGINE"
	with "$SCRATCH/cpu-offline" "a CPU that goes offline after the broker has looked"
	refused 1 "CPU $last is not online; choose among 0" perfctl create t/x -e cpu-clock -C "$last"

	echo "a CPU offline"
	stop_daemon
	build=$BUILD
	BUILD=$SCRATCH
	ENGINE=$build/perfpersistd
	make_engine_with_mounts perfpersistd "$hide_cpu; exec ENGINE"
	start_daemon
	BUILD=$build
	warm_up
	remember
	refused 1 "CPU $last is offline, and cannot record; bring it online, or choose from those that are: 0" \
		perfctl create t/x -e cpu-clock -C "$last"
	refused 1 "CPU $last is offline" perfctl create t/x -e sched:sched_waking -C "${cpus[0]},$last"
	perfctl create t/most -e sched:sched_switch >/dev/null
	expect_eq "$(perfctl show t/most --json | jq -r .all_cpus)" true
	[[ ,$(perfctl show t/most --json | jq -r .cpus), != *[,-]"$last",* ]] || fail "CPU $last has a ring"
	perfctl delete t/most >/dev/null
	old_ones_go_on
fi

perfctl delete old/hot old/sampled >/dev/null
stop_daemon
echo "$REFUSALS refusals, each one sentence, and nothing left behind by any"
