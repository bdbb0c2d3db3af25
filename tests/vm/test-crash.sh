#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A fatal machine check panics the machine, and in the next boot the seconds before it are there, up to
# the last checkpoint. The same when the machine loses its power.
# vm: --smp 2 --disk durable --timeout 300
. "$(dirname "$0")/lib.sh"

PLACE=/var/lib/perfpersist/checkpoints
NUMBERED=/var/tmp/numbered-calls
PATIENCE=120
. "$(dirname "$0")/../checkpoints.sh"

spawn() {
	"$@" &
	SPAWNED=$!
}

record_until_checkpoint() {
	create_calls
	busy_calls
	wait_until 60 test -e "$(file_of t/calls)" || fail "no checkpoint is written"
	for _ in 1 2 3; do
		numbers | newest >"$OUT_DIR/until"
		next_checkpoint t/calls
	done
}

service_has_begun() {
	[ -d "$(boot_dir)" ]
}

expect_previous_boot() {
	expect_ok systemctl is-active perfpersist-checkpoint
	wait_until 60 service_has_begun || fail "the service does not begin"
	wait_until 60 perfctl --saved=previous-boot show t/calls || fail "the crash has left nothing"
	journalctl --boot --unit perfpersist-checkpoint --output cat --no-pager
	expect_calls "$(<"$OUT_DIR/until")"
	expect_eq "$(find $PLACE -mindepth 1 -maxdepth 1 -name '+boot-*' | wc -l)" 1 "other boots' files"
}

case $PHASE in
1)
	cp "$BUILD/tests/numbered" $NUMBERED
	sync $NUMBERED # the crash comes before the kernel writes it by itself
	install_packages perfpersist libperfpersist0
	expect_ok systemctl enable --now perfpersistd perfpersist-checkpoint
	record_until_checkpoint
	next_boot
	monitor mce 1 5 0xac00000000000090 0x0 0x1000 0x8c
	sleep 120
	fail "a fatal machine check does not panic the machine"
	;;
2)
	echo "after a panic:"
	expect_previous_boot
	record_until_checkpoint
	lose_power
	;;
3)
	echo "after a loss of power:"
	expect_previous_boot
	expect_eq "$(find $PLACE -mindepth 1 -maxdepth 1 -name '2*' | wc -l)" 2 "boots that are kept"
	;;
esac
