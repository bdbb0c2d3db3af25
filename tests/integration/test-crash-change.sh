#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# SIGKILL of the engine at each step of changing an event that records: another filter, larger rings,
# a pause and its end, a second name, and the end of either.
#
# crash.c runs broker, engine and dumper itself, as systemd would, so that what died is started
# again at once; the daemon's own launcher is test-restart.sh's.
. "$(dirname "$0")/../lib.sh"

write_conf
"$BIN/crash" "$INSTANCE" "$BUILD" "$CONF" $DAEMON_UID \
	engine:filter:hot engine:resize:several engine:pause:sampling engine:resume:hot \
	engine:{alias,unalias,bequeath}:generic 2>>"$LOG"
