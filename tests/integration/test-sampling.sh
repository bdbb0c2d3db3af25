#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Sampling events tell what a process did: the frequency and the period they were asked for,
# call chains of user and kernel through known functions, and each page fault and context
# switch there was.
. "$(dirname "$0")/../lib.sh"

CPU=$(sed 's/.*[-,]//' /sys/devices/system/cpu/online)

start_daemon
perfctl create t/freq -e cpu-clock -F 1997 -g -m 4M >/dev/null
perfctl create t/period -e cpu-clock -c 500000 -g -m 4M >/dev/null
perfctl create t/user -e cpu-clock:u -c 500000 -m 1M >/dev/null
# Of what everybody does there may be more than a ring holds.
perfctl create t/faults -e page-faults -c 1 -m 4M --comm sampling-check >/dev/null
perfctl create t/hundreds -e page-faults -c 100 >/dev/null
perfctl create t/switches -e context-switches -c 1 -m 4M --comm sampling-check >/dev/null

expect_eq "$(perfctl show --json t/freq | jq -c '[.recorder, .freq, .callchain]')" '["overflow",1997,true]'
expect_eq "$(perfctl show --json t/period | jq -c '[.recorder, .period, .callchain]')" '["overflow",500000,true]'

# The clocks tell what is missed, unless half of the time is left out and counted all the same.
expect_match "$(stat_of t/freq missed)" "^[0-9]+\$" "missed, with a frequency"
expect_match "$(stat_of t/period missed)" "^[0-9]+\$" "missed, with a period"
expect_eq "$(stat_of t/user missed)" unknown "missed, of user space alone"

# What is told must add up. How many others keep from being recorded is theirs: test-coexist-load
# holds that against a bar, where nobody disturbs.
for event in freq period; do
	"$BIN/coexist-samples" "$INSTANCE" "t/$event" "$CPU" "$(length 700 2000)" 0
done

"$BIN/sampling-check" "$INSTANCE" t/freq "$CPU" chains 1000
# What others record must not put these out of the rings.
perfctl pause t/freq >/dev/null
"$BIN/sampling-check" "$INSTANCE" t/period "$CPU" chains 1000
"$BIN/sampling-check" "$INSTANCE" t/faults "$CPU" faults 8000
"$BIN/sampling-check" "$INSTANCE" t/hundreds "$CPU" periods 8000
"$BIN/sampling-check" "$INSTANCE" t/switches "$CPU" switches 8000

perfctl reopen --json t/freq -n all >"$SCRATCH/freq" 2>/dev/null
# (Strangers without frame pointers have anything in their chains.)
expect_eq "$(jq -s '[.[].callchain[].space] | unique | contains(["kernel", "user"])' "$SCRATCH/freq")" true \
	"call chains of user and kernel, as perfctl prints them"
perfctl reopen --json t/user -n 0 >"$SCRATCH/user" 2>/dev/null
expect_eq "$(jq -s 'length > 0 and all(.[]; .ip < "8" or (.ip | length) < 18)' "$SCRATCH/user")" true \
	"only addresses of user space for cpu-clock:u"
