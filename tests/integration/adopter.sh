# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Processes with perf events of their own (adopter.c), for tests of adopting. Source it after lib.sh.

# shellcheck disable=SC2034 # the test uses these
SOCKET=$RUN/control
ADOPTER=$BIN/adopter

# started CMD…: runs it in the background; LINE is what it says first.
started() {
	local file=$SCRATCH/said
	: >"$file"
	spawn sh -c 'exec "$@" >"$0"' "$file" "$@"
	wait_until 10 test -s "$file"
	LINE=$(<"$file")
}

# open_events WHAT…: OPENER is the process, FDS its descriptors.
open_events() {
	started "$ADOPTER" open "$@"
	OPENER=$SPAWNED FDS=$LINE
}

ended() {
	kill -KILL "$1"
	wait_until 10 gone "$1"
	wait "$1" 2>/dev/null || true
}
