#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# SIGKILL of the engine at each step of creating and of deleting an event of each kind, and of the
# reaper at each step of removing what was deleted.
#
# crash.c runs broker and engine itself, as systemd would, so that what died is started again at
# once; the daemon's own launcher is test-restart.sh's.
. "$(dirname "$0")/../lib.sh"

write_conf
"$BIN/crash" "$INSTANCE" "$BUILD" "$CONF" $DAEMON_UID \
	engine:create:{hot,generic,sampling} engine:delete:{hot,generic,sampling} \
	reaper:delete:{hot,sampling} 2>>"$LOG"
