#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# SIGKILL of the broker at each step of handling whatever can be asked of an event, and of the dumper
# at each step of copying rings.
#
# crash.c runs broker, engine and dumper itself, as systemd would, so that what died is started
# again at once; the daemon's own launcher is test-restart.sh's.
. "$(dirname "$0")/../lib.sh"

write_conf
"$BIN/crash" "$INSTANCE" "$BUILD" "$CONF" $DAEMON_UID \
	broker:{create,delete}:{hot,generic,sampling} \
	broker:{filter,resize,pause,resume,alias,unalias,bequeath,copy}:several dumper:copy:several 2>>"$LOG"
