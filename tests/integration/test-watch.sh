#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Notices: watchers learn of events that are created, changed, paused, resumed and deleted, and of
# second names, by namespace and by rights. A watcher that does not read learns exactly how many
# notices it lost, and a watcher whose daemon has exited says so.
. "$(dirname "$0")/../lib.sh"
alone_with cpus # test-away has the kernel say to everybody that CPUs come and go

configuration() {
	printf '[namespace %s]\nMode=%s\n' closed 0600 group 0640 open 0644
}

write_conf "$(configuration)"
start_daemon

lines() {
	[ "$(wc -l <"$1")" -ge "$2" ]
}

declare -A WATCHER=()

# watch NAME WHO [OPERAND…]: watches in the background, into SCRATCH/NAME; returns when it has
# begun. It runs perfctl without a shell in between, so that signals reach it.
watch() {
	local name=$1 who=()
	case $2 in
	root) ;;
	member) who=(setpriv "--reuid=$NOBODY" "--regid=$NOBODY" "--groups=$DAEMON_GID" --) ;;
	other) who=(setpriv "--reuid=$NOBODY" "--regid=$NOBODY" --clear-groups --) ;;
	esac
	shift 2
	: >"$SCRATCH/$name"
	"${who[@]}" "${PERFCTL[@]}" watch --json "$@" >"$SCRATCH/$name" 2>"$SCRATCH/$name.err" &
	WATCHER[$name]=$!
	_spawned+=("$!")
	wait_until 20 lines "$SCRATCH/$name" 1 || fail "$name does not begin to watch: $(cat "$SCRATCH/$name.err")"
	expect_eq "$(head -n 1 "$SCRATCH/$name" | jq -r .notice)" started "the first line"
}

# told NAME: its notices in one line, except for the first.
told() {
	jq -r 'select(.notice != "started") | "\(.notice) \(.event.namespace)/\(.event.name)"' "$SCRATCH/$1" | paste -sd,
}

expect_told() {
	local name=$1 n
	shift
	n=$(awk -F, '{ print NF }' <<<"$*")
	wait_until 20 lines "$SCRATCH/$name" $((n + 1)) || fail "$name was told '$(told "$name")' only, not '$*'"
	expect_eq "$(told "$name")" "$*" "what $name was told"
}

# ends NAME STATUS
ends() {
	local status=0
	wait_until 20 gone "${WATCHER[$1]}" || fail "$1 does not end"
	wait "${WATCHER[$1]}" || status=$?
	expect_eq $status "$2" "how $1 ended"
}

# ── what happens ─────────────────────────────────────────────────────────────────────────

watch root root
watch member member
watch other other
watch of-group root group
watch of-later root later

e=(-e sched:sched_switch -m 16K)
perfctl create open/e "${e[@]}" >/dev/null
perfctl create group/e "${e[@]}" >/dev/null
perfctl create closed/e "${e[@]}" >/dev/null
perfctl create later/e "${e[@]}" >/dev/null
perfctl change open/e --filter 'prev_pid != 0' >/dev/null
perfctl change group/e -m 64K >/dev/null
perfctl change closed/e --max-rate 1000/s >/dev/null
perfctl pause open/e >/dev/null
perfctl resume open/e >/dev/null
perfctl pause group/e >/dev/null
perfctl delete later/e group/e closed/e open/e >/dev/null

expect_told root "created open/e,created group/e,created closed/e,created later/e,changed open/e,changed group/e,changed closed/e,paused open/e,resumed open/e,paused group/e,deleted later/e,deleted group/e,deleted closed/e,deleted open/e"
# The first event of `later` creates it, for root and the daemon's group.
expect_told member "created open/e,created group/e,created later/e,changed open/e,changed group/e,paused open/e,resumed open/e,paused group/e,deleted later/e,deleted group/e,deleted open/e"
expect_told other "created open/e,changed open/e,paused open/e,resumed open/e,deleted open/e"
expect_told of-group "created group/e,changed group/e,paused group/e,deleted group/e"
expect_told of-later "created later/e,deleted later/e"
# Each has the event as it was at that time.
changed() {
	jq -r "select(.notice == \"changed\" and .event.namespace == \"$1\") | .event.$2" "$SCRATCH/root"
}
expect_eq "$(changed open filter)" 'prev_pid != 0' "the changed filter"
expect_eq "$(changed group buffer) $(changed group set)" "65536 2" "the changed buffer"
expect_eq "$(changed closed max_rate)" 1000 "the changed rate"
expect_eq "$(jq -r 'select(.notice == "paused") | .event.state' "$SCRATCH/root" | sort -u)" paused "the state"
echo "created, changed, paused, resumed, deleted: $(wc -l <"$SCRATCH/root") lines for root, $(wc -l <"$SCRATCH/member") for a member, $(wc -l <"$SCRATCH/other") for others, by namespace and rights"

# ── namespaces at once, second names ─────────────────────────────────────────────────────

for name in root member other of-group of-later; do
	kill -INT "${WATCHER[$name]}"
	ends $name 0
	[ ! -s "$SCRATCH/$name.err" ] || fail "$name complained: $(cat "$SCRATCH/$name.err")"
done

perfctl create open/a "${e[@]}" >/dev/null
perfctl create open/b -e sched:sched_wakeup -m 16K >/dev/null
watch all root
perfctl pause open/ >/dev/null
perfctl resume open/ >/dev/null
perfctl create group/alias "${e[@]}" --share >/dev/null
id=$(perfctl show --json open/a | jq -r .id)
expect_eq "$(perfctl show --json group/alias | jq -r .shares)" "$id" "whose rings it shares"
perfctl pause open/a >/dev/null
perfctl resume open/a >/dev/null
expect_told all "paused open/a,paused open/b,resumed open/a,resumed open/b,created group/alias,paused open/a,paused group/alias,resumed open/a,resumed group/alias"
expect_eq "$(jq -r 'select(.event.name == "alias" and .notice == "created") | .event.shares' "$SCRATCH/all")" "$id" "whose rings it was told to share"
perfctl delete group/alias >/dev/null
wait_until 20 lines "$SCRATCH/all" 11
expect_match "$(told all)" ',deleted group/alias$' "what was told of the second name"
echo "a namespace at once, a second name: $(wc -l <"$SCRATCH/all") lines"

# ── the engine dies, and comes back ──────────────────────────────────────────────────────

engine=$(engine_pid)
kill_engine
back() {
	[ "$(engine_pid)" -gt 0 ] && [ "$(engine_pid)" != "$engine" ] && perfctl list
}
wait_until 20 back || fail "the engine does not come back"
perfctl delete open/b >/dev/null
wait_until 20 lines "$SCRATCH/all" 12
expect_match "$(told all)" ',deleted group/alias,deleted open/b$' "what is told when an engine has died"
echo "an engine's death and its successor's start: nothing is told, since nothing happened"

# ── who does not read ────────────────────────────────────────────────────────────────────

"$BIN/watch-check" "$INSTANCE" open/a follows 100
many=$(length 300 2000)
"$BIN/watch-check" "$INSTANCE" open/a lags "$many"
# perfctl reads all the time, but the daemon does not wait for it: if the machine delays it by more
# notices than its socket holds, it learns how many. Both together are all notices.
total=$((11 + 100 + 2 + many + 2))
known_to_all() {
	[ "$(jq -r 'select(.notice != "started") | .lost // 1' "$SCRATCH/all" | awk '{ n += $1 } END { print n + 0 }')" -eq $total ]
}
wait_until 60 known_to_all || fail "a watcher that reads does not know of all $total: $(jq -r .notice "$SCRATCH/all" | sort | uniq -c | xargs)"

# ── asking for what is not to be had ─────────────────────────────────────────────────────

expect_exit 4 as_user perfctl watch closed
expect_match "$OUT" 'closed' "the sentence"
expect_exit 4 as_user perfctl watch group
expect_exit 2 perfctl watch 'no name'
expect_exit 2 perfctl watch open closed
expect_exit 2 perfctl watch -n 0
expect_exit 2 perfctl --direct watch

# -n N: exactly so many.
watch one root -n 1
perfctl pause open/a >/dev/null
perfctl resume open/a >/dev/null
ends one 0
expect_eq "$(told one)" "paused open/a" "what one was told"

# ── the daemon dies ──────────────────────────────────────────────────────────────────────

watch other other
kill_broker
for name in all other; do
	ends $name 5
	expect_eq "$(wc -l <"$SCRATCH/$name.err")" 1 "the lines that $name complained in"
	expect_match "$(cat "$SCRATCH/$name.err")" '^perfctl: ' "what $name complained of"
done
cat "$SCRATCH/all.err"
expect_exit 5 perfctl watch
wait_until 20 _no_processes || fail "the engine outlives its broker: $(daemon_pids | xargs)"
start_daemon
watch all root
perfctl delete open/a >/dev/null
expect_told all "deleted open/a"
stop_daemon
ends all 5
echo "daemon killed, daemon stopped: watchers end with status 5 and a sentence"
