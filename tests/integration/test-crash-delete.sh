#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# SIGKILL of the engine at each step of deleting an event of each kind, and of releasing its rings;
# and of the reaper at each step of removing what was deleted or replaced.
#
# crash.c runs broker, engine and dumper itself, as systemd would, so that what died is started
# again at once; the daemon's own launcher is test-restart.sh's.
. "$(dirname "$0")/../lib.sh"

write_conf
"$BIN/crash" "$INSTANCE" "$BUILD" "$CONF" $DAEMON_UID \
	engine:delete:{hot,generic,sampling,several} \
	reaper:delete:{hot,sampling,several} reaper:resize:several 2>>"$LOG"
