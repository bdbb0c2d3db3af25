#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# SIGKILL of the broker at each step of handling the creation and the deletion of an event.
#
# crash.c runs broker and engine itself, as systemd would, so that what died is started again at
# once; the daemon's own launcher is test-restart.sh's.
. "$(dirname "$0")/../lib.sh"

write_conf
"$BIN/crash" "$INSTANCE" "$BUILD" "$CONF" $DAEMON_UID \
	broker:{create,delete}:{hot,generic,sampling} 2>>"$LOG"
