# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For integration tests of triggers, after lib.sh: whether they are armed, and a service that collects what
# they freeze.

trigger_field() {
	perfctl trigger show "$1" --json | json_field "$2"
}

# is_armed TRIGGER N: for wait_until.
is_armed() {
	[ "$(trigger_field "$1" n_armed)" = "$2" ]
}

armed() {
	wait_until 20 is_armed "$@" || fail "$1 has $(trigger_field "$1" n_armed) of $2 targets armed"
}

# A service that restarts, as systemd does it. Kill it by end_collector.
start_collector() {
	mkdir -p "$1"
	rm -f "$SCRATCH/enough"
	(
		trap - EXIT ERR
		set +e
		until [ -e "$SCRATCH/enough" ]; do
			"${PERFCTL[@]}" snapshots collect --max-files 9999 --max-files-of-trigger 9999 --max-size 1000G -D "$1" >>"$LOG" 2>&1 &
			echo $! >"$SCRATCH/collector"
			wait $!
			sleep 0.05
		done
	) &
	COLLECTOR=$!
	_spawned+=("$COLLECTOR")
}

end_collector() {
	touch "$SCRATCH/enough"
	kill -TERM "$(<"$SCRATCH/collector")" 2>/dev/null || true
	wait "$COLLECTOR"
}
