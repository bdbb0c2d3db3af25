#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2 --timeout 1500
#
# The guest's own PMU with an AUX area, which has no hardware behind it: whoever records it by perf's
# interface finds each word of the pattern in its place, however often the area has overwritten itself.
# (perf itself records AUX areas only of PMUs that it knows by name and processor.) Then with the name
# of a PMU that has a decoder in perf, the integration test of such events.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/inside.sh"

modprobe aux-pattern
expect_eq "$(cat /sys/bus/event_source/devices/aux_pattern/format/bytes)" "config:0-31"

check() {
	"$BUILD/tests/aux-check" "$@" || fail "aux-check $*: exit $?"
}

for pages in 1 4 16 64 256; do
	check overwrite $pages 65536 10
	check modulo $pages 65536 10
done
check overwrite 16 4096 100 1 # in small portions, on the other CPU
check overwrite 4 1000 50     # no portion fits a page
check stream 16 4096 20
check stream 4 16384 5 # and an area that is too small for it
status=0
"$BUILD/tests/aux-check" pause 16 4096 1 || status=$?
case $status in
0) ;;
77) echo "SKIP: Linux $(uname -r) cannot pause AUX events" ;;
*) fail "aux-check pause: exit $status" ;;
esac
rmmod aux_pattern

modprobe aux-pattern name=arm_spe_0
inside aux
rmmod aux_pattern

# Some CPUs lack it, as with two kinds of cores; that file may be missing, too.
for secret in 0 1; do
	modprobe aux-pattern name=arm_spe_0 cpus=1 secret=$secret
	AUX_CPUS=1 inside aux
	rmmod aux_pattern
done

modprobe aux-pattern name=intel_pt
AUX_PMU=intel_pt inside aux

# Nor has the kernel found that an area is read that is no more.
if dmesg | grep -A 12 'WARNING: .*kernel/events'; then
	fail "the kernel warns"
fi
