#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Sampling events show what a process did: with the requested frequency and period, call chains of
# user and kernel through known functions, and every page fault and context switch.
. "$(dirname "$0")/../lib.sh"

CPU=$(sed 's/.*[-,]//' /sys/devices/system/cpu/online)

start_daemon
perfctl create t/freq -e cpu-clock -F 1997 -g -m 4M >/dev/null
perfctl create t/period -e cpu-clock -c 500000 -g -m 4M >/dev/null
perfctl create t/user -e cpu-clock:u -c 500000 -m 1M >/dev/null
# The faults of all processes may exceed a ring.
perfctl create t/faults -e page-faults -c 1 -m 4M --comm sampling-check >/dev/null
perfctl create t/hundreds -e page-faults -c 100 >/dev/null
perfctl create t/switches -e context-switches -c 1 -m 4M --comm sampling-check >/dev/null

expect_eq "$(perfctl show --json t/freq | jq -c '[.recorder, .freq, .callchain]')" '["overflow",1997,true]'
expect_eq "$(perfctl show --json t/period | jq -c '[.recorder, .period, .callchain]')" '["overflow",500000,true]'

# The clocks report what they missed; the cpu-clock event would otherwise ignore half of the time.
expect_match "$(stat_of t/freq missed)" "^[0-9]+\$" "missed, with a frequency"
expect_match "$(stat_of t/period missed)" "^[0-9]+\$" "missed, with a period"
expect_eq "$(stat_of t/user missed)" unknown "missed, of user space alone"

# The counts must add up. How many samples other programs shut out does not matter here:
# test-coexist-load has a bar for that, on an undisturbed machine.
for event in freq period; do
	"$BIN/coexist-samples" "$INSTANCE" "t/$event" "$CPU" "$(length 700 2000)" 0
done

"$BIN/sampling-check" "$INSTANCE" t/freq "$CPU" chains 1000
# Other processes' records must not overwrite these.
perfctl pause t/freq >/dev/null
"$BIN/sampling-check" "$INSTANCE" t/period "$CPU" chains 1000
"$BIN/sampling-check" "$INSTANCE" t/faults "$CPU" faults 8000
"$BIN/sampling-check" "$INSTANCE" t/hundreds "$CPU" periods 8000
"$BIN/sampling-check" "$INSTANCE" t/switches "$CPU" switches 8000

perfctl reopen --json t/freq -n all >"$SCRATCH/freq" 2>/dev/null
# (Programs without frame pointers have arbitrary addresses in their chains.)
expect_eq "$(jq -s '[.[].callchain[].space] | unique | contains(["kernel", "user"])' "$SCRATCH/freq")" true \
	"call chains of user and kernel, as perfctl prints them"
perfctl reopen --json t/user -n 0 >"$SCRATCH/user" 2>/dev/null
expect_eq "$(jq -s 'length > 0 and all(.[]; .ip < "8" or (.ip | length) < 18)' "$SCRATCH/user")" true \
	"only addresses of user space for cpu-clock:u"
