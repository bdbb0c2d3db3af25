#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Daemons that cannot start, and clients without a daemon: each prints one message, exits with a
# code other than 0, and leaves no process, mount or file.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"

PERFPERSISTD=("$BUILD/perfpersistd" --instance "$INSTANCE" --config "$CONF")

# will_not_start REGEX [OPTION…]
will_not_start() {
	local regex=$1
	shift
	said 1 "$regex" "${PERFPERSISTD[@]}" "$@"
	wait_until 20 _no_processes || fail "left running: $(daemon_pids | xargs)"
	[ ! -e "$RUN" ] || fail "$RUN is left"
}

# bad_conf REGEX TEXT
bad_conf() {
	printf '%s\n' "$2" >"$CONF"
	will_not_start "^$CONF:[0-9]+: .*$1"
	said 1 "^$CONF:[0-9]+: .*$1" "${PERFPERSISTD[@]}" --check-config
}

echo "a wrong configuration"
bad_conf 'has no key Users=; see the commented' $'[daemon]\nUsers=nobody'
bad_conf 'there is no such user; name one that is there' $'[daemon]\nUser=no-such-user'
bad_conf 'there is no such group; name one' $'[daemon]\nGroup=no-such-group'
bad_conf 'must not be root; name an ordinary user' $'[daemon]\nUser=root'
bad_conf 'must not be root' $'[daemon]\nUser=0'
bad_conf "must be a number from 1 to 1000000, and '-1' is not" $'[daemon]\nMaxEvents=-1'
bad_conf 'must be a number from 1' $'[daemon]\nMaxConnections=0'
bad_conf 'must be a size from 4K to [0-9]+[MG]' $'[daemon]\nMaxBuffer=2G'
bad_conf 'must be root, group or all' $'[daemon]\nCreateNamespaces=nobody'
bad_conf 'no section \[deamon\]; there are' $'[deamon]\nUser=1'
bad_conf 'before any section; put it under' 'User=1'
bad_conf 'no setting; write KEY=VALUE' $'[daemon]\nUser'
bad_conf "name has no end" '[daemon'
bad_conf 'must be octal' $'[namespace x]\nMode=rw'
bad_conf 'has no key Colour=; there are Owner=, Group=, Mode=, Live=, Fire=, MaxMemory= and MaxEvents=' $'[namespace x]\nColour=red'
bad_conf "cannot be a namespace's name" '[namespace 9]'
bad_conf 'there twice; keep one' $'[namespace x]\n[namespace x]'
rm "$CONF"
will_not_start 'cannot read the configuration: No such file'
mkdir "$CONF"
will_not_start 'cannot read the configuration: it is no regular file'
rmdir "$CONF"

echo "the wrong machine"
# Uses its own user, where the package's user does not exist: the configuration does not set one.
: >"$CONF"
if getent passwd perfpersist >/dev/null || getent group perfpersist >/dev/null; then
	echo "  there is a user or group perfpersist here: that it is missing is not tested"
else
	will_not_start "There is no group 'perfpersist'; run systemd-sysusers, or set Group="
	printf '[daemon]\nGroup=%s\n' "$DAEMON_GID" >"$CONF"
	will_not_start "There is no user 'perfpersist' to run as; run systemd-sysusers, or set User="
fi
write_conf
will_not_start 'no engine to run at /nonexistent: .*name it with --engine' --engine /nonexistent
install -m 0755 "$BUILD/perfpersistd" "$BIN/"
said 1 'must be started by root' as_user "$BIN/perfpersistd" --instance "$INSTANCE" --config "$CONF"
said 2 'cannot be an instance.s name; take letters' "$BUILD/perfpersistd" --instance 9
said 2 'takes no argument .now.; try --help' "${PERFPERSISTD[@]}" now
touch "$RUN"
said 1 "$RUN is there, but it is not a directory of root's; remove it" "${PERFPERSISTD[@]}"
rm "$RUN"
mkdir "$RUN"
chown "$NOBODY" "$RUN"
said 1 "$RUN is there, but it is not a directory of root's; remove it" "${PERFPERSISTD[@]}"
rmdir "$RUN"

echo "a kernel without bpffs: the daemon runs, its engine cannot, and both say so"
cat >"$SCRATCH/no-bpffs" <<-END
	#!/bin/bash
	exec "$BIN/deny" mount=ENODEV "$BUILD/perfpersist-engine" "\$@"
END
chmod 0755 "$SCRATCH/no-bpffs"
"${PERFPERSISTD[@]}" --engine "$SCRATCH/no-bpffs" >>"$LOG" 2>&1 &
DAEMON_PID=$!
wait_until 20 grep -q 'Cannot use .*/registry as the registry: No such device; this kernel has no bpffs' "$LOG"
# Clients wait ten seconds for an engine.
if full; then
	wait_until 20 perfctl ping
	expect_eq "$(perfctl ping --json | jq .engine_pid)" null "the engine"
	for command in list "create t/x -e cpu-clock" "show t/x" "reopen t/x" "delete t/x"; do
		# shellcheck disable=SC2086
		said 1 "The engine has not started yet.*look at the daemon's log, and try again" perfctl $command
	done
fi
stop_daemon
[ ! -e "$RUN" ] || fail "$RUN is still there"

echo "a daemon that is not running"
gone_commands() {
	local regex=$1 command
	for command in ping list "create t/x -e cpu-clock" "show t/x" "reopen t/x" "delete t/x" \
		"reopen t/x -- true"; do
		# shellcheck disable=SC2086
		said 5 "$regex" perfctl $command
	done
}
gone_commands "cannot reach perfpersistd at $RUN/control: it is not running; start it with .perfpersistd --instance $INSTANCE"
said 3 "cannot read the pins below $REGISTRY: No such file.*has not run since" perfctl --direct list
said 5 'nobody listens there; start it or check the path' perfctl --socket /nonexistent ping
said 2 'cannot be the name of an instance' perfctl --instance 9 ping
said 2 'the path is longer than' perfctl --socket "/$(printf 'x%.0s' {1..200})" ping

start_daemon
perfctl create t/event -e sched:sched_switch >/dev/null
wait_until 20 kept # the keeper comes behind the first event

echo "a second daemon of the same instance"
before=$(instance_pids | sort -n)
said 1 "Another perfpersistd is running: it answers on $RUN/control. End it first, or .*--instance" \
	"${PERFPERSISTD[@]}"
expect_eq "$(instance_pids | sort -n)" "$before" "what runs"
expect_eq "$(perfctl list --json | jq -r '.[].name')" event "what the first one has"
wait_until 20 more_records_than "$(records_of t/event)" t/event

echo "a killed daemon: its socket exists without a listener"
kill_daemon
[ -S "$RUN/control" ] || fail "the socket is not there"
gone_commands 'it is not running; start it with'
start_daemon
expect_eq "$(perfctl list --json | jq -r '.[].name')" event "what the next one finds"
perfctl delete t/event >/dev/null
stop_daemon
echo "$REFUSALS failures, each one sentence, and nothing left behind by any"
