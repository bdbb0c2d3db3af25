#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs a test when no other run of it is under way on this machine, from any tree: they would count
# each other's calls.
#
#   tests/one-at-a-time.sh NAME COMMAND [ARGUMENT…]
#
# An ordinary user's tests need no lock: no other test counts their calls.

. "$(dirname "$0")/expect.sh"

name=$1
shift
[ "$(id -u)" -eq 0 ] || exec "$@"
mkdir -p "$LOCKS"
exec flock -o "$LOCKS/$name" "$@"
