#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# SIGKILL of the engine at each step of creating an event of each kind: with a recorder of its own,
# generic, sampling, of several sources, with wakeups.
#
# crash.c runs broker, engine and dumper itself, as systemd would, so that what died is started
# again at once; the daemon's own launcher is test-restart.sh's.
. "$(dirname "$0")/../lib.sh"

write_conf
"$BIN/crash" "$INSTANCE" "$BUILD" "$CONF" $DAEMON_UID \
	engine:create:{hot,generic,sampling,several,waking} 2>>"$LOG"
