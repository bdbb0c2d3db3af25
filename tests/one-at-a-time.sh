#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs a test when no other run of it is under way on this machine, from any tree: they would count
# each other's calls. It ends after SECONDS, not counting those that it waits for the other.
#
#   tests/one-at-a-time.sh NAME SECONDS COMMAND [ARGUMENT…]
#
# An ordinary user's tests need no lock: no other test counts their calls.

. "$(dirname "$0")/expect.sh"

name=$1 seconds=$2
shift 2
[ "$(id -u)" -eq 0 ] || exec timeout --kill-after=60 "$seconds" "$@"
mkdir -p "$LOCKS"
exec {lock}>"$LOCKS/$name"
flock "$lock"
# The timeout holds the lock. What the test leaves behind does not.
exec timeout --kill-after=60 "$seconds" bash -c "exec $lock>&-; exec \"\$@\"" - "$@"
