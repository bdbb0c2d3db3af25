#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# SIGKILL of the engine in the middle of a change, and of its successor at each step of finding out
# what is there, sweeping, and trying once more.
#
# crash.c runs broker, engine and dumper itself, as systemd would, so that what died is started
# again at once; the daemon's own launcher is test-restart.sh's.
. "$(dirname "$0")/../lib.sh"

write_conf
"$BIN/crash" "$INSTANCE" "$BUILD" "$CONF" $DAEMON_UID \
	recovery:resize:hot 2>>"$LOG"
