#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# N known system calls give N records, with the right arguments and in order, if the ring has room;
# otherwise exactly the oldest are gone. See exact.c, and exact-wander.c for the order between CPUs.
. "$(dirname "$0")/../lib.sh"

start_daemon
"$BIN/exact" "$INSTANCE" exact
"$BIN/exact-wander" "$INSTANCE" exact
expect_eq "$(perfctl list --json | jq length)" 0 "events left"
