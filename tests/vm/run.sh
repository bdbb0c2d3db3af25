#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Boots a guest, runs a test in it, and returns its result:
#
#   tests/vm/run.sh [OPTION…] TEST          BUILD is the environment's, or build
#
#   --kernel 6.1      one of those that build.sh found, or newest
#   --smp 2,maxcpus=4 --memory 1024 (MiB)   --append "words for the kernel's command line"
#   --disk fast       or durable: the file system has a journal, and what the guest has synced
#                     survives a panic and the end of QEMU
#   --boot 600        seconds until the test has to have begun, after each start of the guest
#   --timeout 600     seconds until it has to have ended or asked for another boot
#
# A test may have these in its first lines, as `# vm: --smp 4 --timeout 60`; the command line
# overrides them. TEST is a file below tests/vm; lib.sh has its functions.
#
# This script prints the test's output. Exit: 0 passed, 77 skipped, 1 failed; and, if the test did
# not end: 3 the guest is gone, 4 it hangs, 5 its kernel panicked, 6 it did not boot; 2 for an error
# of this script. The last line says so, after the end of the console's log. BUILD/vm/results has
# all files.

set -u -o pipefail
export LC_ALL=C.UTF-8
tests=$(cd "$(dirname "$0")/.." && pwd)
BUILD=$(realpath -m "${BUILD:-$tests/../build}")
GUEST=$BUILD/vm/guest

kernel=6.1 smp=2,maxcpus=4 memory=1024 append='' disk=fast boot_limit=600 limit=600 test=
KERNEL=

usage() {
	echo "usage: tests/vm/run.sh [--kernel 6.1] [--smp N] [--memory MIB] [--append WORDS]" \
		"[--disk fast|durable]" \
		"[--boot SECONDS] [--timeout SECONDS] TEST" >&2
	exit 2
}

# say EXIT WORDS…: the last line.
say() {
	local status=$1
	shift
	echo "$name, Linux $(cat "$KERNEL/version" 2>/dev/null || echo "$kernel"): $*" >&2
	exit "$status"
}

options() {
	while [ $# -gt 0 ]; do
		[ $# -gt 1 ] || [[ $1 != --* ]] || usage
		case $1 in
		--kernel) kernel=$2 ;;
		--smp) smp=$2 ;;
		--memory) memory=$2 ;;
		--append) append=$2 ;;
		--disk) disk=$2 ;;
		--boot) boot_limit=$2 ;;
		--timeout) limit=$2 ;;
		-*) usage ;;
		*)
			test=$1
			shift
			continue
			;;
		esac
		shift 2
	done
}

options "$@"
[ -f "$test" ] || usage
test=$(realpath "$test")
[[ $test == "$tests"/vm/* ]] || usage
header=$(sed -nE '1,20s/^# vm: //p' "$test" | tr '\n' ' ')
eval "header=($header)" # the tree's own words, quoted as a shell's
options "${header[@]}" "$@"
test=$(realpath "$test")
name=$(basename "$test" .sh)

[ -d "$GUEST" ] || say 2 "there is no guest in $GUEST; tests/vm/build.sh makes it"
# Another clone's build.sh may remove old guests, but no locked one.
GUEST=$(realpath "$GUEST")
exec {guest_lock}<"$GUEST"
flock --shared "$guest_lock"
emulator=(qemu-system-x86_64)
if [ -d "$GUEST/emulator" ]; then
	emulator=("$GUEST/emulator/usr/bin/qemu-system-x86_64" -L "$GUEST/emulator/usr/share/seabios"
		-L "$GUEST/emulator/usr/share/qemu")
fi
KERNEL=$GUEST/$kernel
if [ "$kernel" = newest ]; then
	[ -d "$BUILD/vm/newest" ] || say 77 "apt knew no such kernel when it was to be made (build.sh --newest)"
	KERNEL=$(realpath "$BUILD/vm/newest")/newest
fi
exec {kernel_lock}<"${KERNEL%/*}"
flock --shared "$kernel_lock"
[ -d "$KERNEL" ] || say 77 "apt knew no such kernel when the guest was made"

tsc_khz=$("$BUILD/tests/tsc-khz") || say 2 "make tests builds what it needs"

# ── a place ──────────────────────────────────────────────────────────────────────────────

place=$BUILD/vm/results/$name-$kernel
mkdir -p "$place"
exec {lock}>"$place.lock"
flock -n "$lock" || say 2 "is running already, in $place"
rm -rf "$place"
mkdir -p "$place/out"
echo "${test#"$tests"/}" >"$place/out/test"
if [ "$disk" = durable ]; then
	root=$place/root.raw
	drive="file=$root,if=virtio,format=raw,cache=writeback"
	cp --sparse=always "$GUEST/root.ext4" "$root" && tune2fs -O has_journal "$root" >/dev/null || exit 2
else
	root=$place/root.qcow2
	drive="file=$root,if=virtio,cache=unsafe"
	qemu-img create -q -f qcow2 -F raw -b "$GUEST/root.ext4" "$root" || exit 2
fi

qemu= # the pid of the timeout that QEMU is under
# shellcheck disable=SC2317 # called by a trap
cleanup() {
	trap '' INT TERM HUP
	[ -z "$qemu" ] || kill -TERM "$qemu" 2>/dev/null
	wait
	rm -f "$root" "$place.lock"
	# `make clean` must work for the user who built the rest.
	chown -h --reference="$BUILD" "$BUILD/vm/results"
	chown -hR --reference="$BUILD" "$place"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# ── a machine ────────────────────────────────────────────────────────────────────────────

# Always emulates in software: /dev/kvm can exist and hang. The guest talks to QEMU's monitor
# through a serial port: two character devices, one of which is the other's server. Processes that
# this script cannot end because it was killed end by themselves. no_timer_check: on a busy machine
# the emulated timer may not tick while the kernel counts ticks, and it panics ("IO-APIC + timer
# doesn't work"). no5lvl: with page tables of five levels the emulation takes a fifth longer.
# tsc_early_khz: if a CPU has to wait while the kernel measures its TSC, which is this machine's, by an
# emulated timer, the clock runs many times too fast afterwards, and no unit starts in time.
# The guest's tests take longest. In a session of its own the guest can have a priority: sched(7) weighs
# sessions ("autogroups") against each other, and each daemon of the other tests has one.
machine() {
	local socket=perfpersist-vm-$$ share shares=()

	for share in tests:"$tests" build:"$BUILD"; do
		shares+=(-virtfs "local,path=${share#*:},mount_tag=${share%%:*},security_model=none,readonly=on")
	done
	setpriv --pdeathsig TERM \
		timeout --kill-after=10 $((boot_limit + limit + 60)) \
		setsid bash -c 'echo -10 >/proc/self/autogroup; exec "$@"' - \
		setpriv --pdeathsig KILL \
		"${emulator[@]}" -accel tcg,thread=multi -machine pc -cpu max -smp "$smp" -m "$memory" \
		-nodefaults -no-user-config -display none -no-reboot -nic none \
		-device virtio-rng-pci \
		-serial "file:$console" \
		-drive "$drive" \
		-drive "file=$KERNEL/modules.ext4,if=virtio,format=raw,readonly=on" \
		"${shares[@]}" \
		-virtfs "local,path=$place/out,mount_tag=out,security_model=none" \
		-chardev "socket,id=port,path=$socket,abstract=on,server=on,wait=off" \
		-chardev "socket,id=monitor,path=$socket,abstract=on" \
		-mon chardev=monitor,mode=control \
		-device virtio-serial-pci -device virtserialport,chardev=port,name=monitor \
		-kernel "$KERNEL/vmlinuz" -initrd "$KERNEL/initrd" \
		-append "console=ttyS0 panic=-1 no_timer_check no5lvl tsc_early_khz=$tsc_khz systemd.getty_auto=0 $append" \
		</dev/null >"$place/qemu" 2>&1 {lock}>&- {guest_lock}<&- {kernel_lock}<&- &
	qemu=$!
}

begun() {
	[ -e "$place/out/begun" ]
}

# The test wants the machine to lose its power.
kill_wanted() {
	[ -e "$place/out/kill" ]
}

# Waits for QEMU's end, and enforces it. Sets ended to how QEMU ended, or "hang".
watch() {
	local from=$SECONDS end=$((SECONDS + boot_limit)) running='' killed=

	while kill -0 "$qemu" 2>/dev/null; do
		if [ -z "$running" ] && begun; then
			running=1
			booted=$((SECONDS - from))
			end=$((SECONDS + limit))
		fi
		if kill_wanted; then
			# shellcheck disable=SC2046 # the child of timeout, which is QEMU
			kill -KILL $(<"/proc/$qemu/task/$qemu/children") && rm "$place/out/kill" && killed=1
		fi
		if [ "$SECONDS" -ge "$end" ]; then
			kill -TERM "$qemu"
			wait "$qemu"
			ended=hang
			qemu=
			return
		fi
		sleep 0.2
	done
	ended=0
	wait "$qemu" || ended=$?
	[ -z "$killed" ] || ended=0
	qemu=
}

# ── what came of it ──────────────────────────────────────────────────────────────────────

# A guest that crashes leaves its console in the middle of a line, and in colours.
tail_of_console() {
	echo "── the end of its console ($console)" >&2
	tr -d '\r\0' <"$console" | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' | tail -n "$1" >&2
}

show_output() {
	cat "$place/out/stdout" 2>/dev/null
	cat "$place/out/stderr" >&2 2>/dev/null
}

panicked() {
	grep -a -m 1 -o 'Kernel panic - not syncing.*' "$console" | tr -d '\r'
}

verdict() {
	local code

	show_output
	if code=$(cat "$place/out/code" 2>/dev/null); then
		case $code in
		0) say 0 "passed in $((SECONDS - start)) s; boot $boot took $booted s until the test began" ;;
		77)
			echo "$name: skipped: $(tail -n 1 "$place/out/stdout")" >&2
			exit 77
			;;
		esac
		say 1 "the test failed, exit $code (its journal: $place/out/journal)"
	fi
	tail_of_console 40
	if panicked >/dev/null; then
		say 5 "the guest's kernel panicked: $(panicked)"
	elif [ "$ended" = hang ] && begun; then
		say 4 "the guest or its test hangs: no end within $limit s"
	elif [ "$ended" = hang ]; then
		say 6 "the guest does not boot: no test began within $boot_limit s"
	elif grep -a -q '^vm: boot failed' "$console"; then
		say 6 "the guest does not boot: systemd gave up, see above"
	elif [ "$ended" -ne 0 ]; then
		say 3 "QEMU ended with $ended: $(tail -n 1 "$place/qemu")"
	elif begun; then
		say 3 "the guest is gone in the middle of the test: it was reset or turned off"
	fi
	say 6 "the guest does not boot: it was reset or turned off before the test began"
}

start=$SECONDS booted=0 boot=0
while :; do
	boot=$((boot + 1))
	console=$place/console-$boot.log
	: >"$console"
	rm -f "$place/out/begun" "$place/out/next"
	echo "$boot" >"$place/out/phase"
	machine
	watch
	# Whatever the end, the test asked to continue.
	if [ ! -e "$place/out/next" ] || [ "$ended" != 0 ]; then
		break
	fi
done
verdict
