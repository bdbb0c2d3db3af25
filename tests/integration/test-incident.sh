#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Things go wrong, and are over. Then one command says who did it and for how long, and makes an
# archive of everything. What is found is checked by name and number. Whether it comes first depends on
# what else the machine does: see test-scenes.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"

tracepoints_lock --shared
start_daemon
mkdir "$CONF.d"
# Processes that others begin would use up the limit of what is looked for here.
printf '%s\n' "[event flight/life]" MaxRate=0 Buffer=16M >"$CONF.d/flight.test.conf"
perfctl preset enable flight --presets "$ROOT/conf/presets" -D "$CONF.d" >/dev/null
cd "$SCRATCH"
ms=$(length 1200 4000)

now() {
	awk '{ printf "%.6f", $1 }' /proc/uptime
}

# scene NAME: plays it; sets from to the time before it.
scene() {
	from=$(now)
	case $1 in
	forks)
		for ((i = 0; i < ms / 4; i++)); do "$(type -P true)"; done
		;;
	*) "$BIN/scene" "$1" "$ms" >>said ;;
	esac
}

# fails CODE REGEX CMD…
fails() {
	expect_exit "$1" "${@:3}"
	expect_match "$OUT" "$2" "the message"
}

# found KIND CULPRIT VICTIM CONDITION: the findings since `from` have this one. CULPRIT and VICTIM: a
# command's name; "": none. $all: ns since then, as a busy machine makes everything longer.
found() {
	local all
	all=$(awk -v from="$from" '{ printf "%.0f", ($1 - from) * 1e9 }' /proc/uptime)
	perfctl snapshot -o taken --since "$from" >/dev/null 2>&1
	perfctl report -i taken --findings --json >findings
	jq -e --arg kind "$1" --arg culprit "$2" --arg victim "$3" --argjson all "$all" \
		".findings[] | select(.kind == \$kind and (\$culprit == \"\" or .culprit.comm == \$culprit) and
		(\$victim == \"\" or .victim.comm == \$victim)) | select($4)" findings >one ||
		fail "no such finding: $*; found: $(jq -c '.findings[:8][] | del(.stack)' findings)"
}

scene hog
found cpu sc-hog sc-loop '.count >= 2 and .max_ns > 15e6 and .max_ns < $all and .percent > 50'
scene mutex-spin
# Where others keep the holder from the CPU for most of the time, they are who did it, through the holder.
found sleep "" sc-waiter '([.culprit.comm, .through.comm] | index("sc-holder")) and
	.count >= 1 and .max_ns > 40e6 and .max_ns < $all and .usual_ns < 10e6'
scene mutex-sleep
found sleep sc-holder sc-waiter '.count >= 1 and .max_ns > 40e6 and .max_ns < $all and .percent < 60'
scene stall
found burst sc-server "" '.count >= 1 and .max_ns > 30e6 and .max_ns < $all and (.stack | index("keys_command"))'
scene flock
found peer sc-holder sc-waiter '.count >= 1 and .max_ns > 90e6 and .max_ns < $all and .percent < 60'
scene stop
found stopped sc-stopper sc-loop '.count >= 1 and .max_ns > 190e6 and .max_ns < $all and .signal == "SIGSTOP"'
if full; then
	scene fork-stall
	found burst sc-server "" '.max_ns > 10e6'
	from=$(now)
	spawn "$BIN/scene" hang "$ms" >hangs
	hanging=$SPAWNED
	wait_until 60 grep -q sc-holder hangs || fail "no hang"
	sleep 3
	found hang "" sc-waiter '.max_ns > 1e9 and .max_ns < $all and .usual_ns < 100e6'
	kill "$hanging"
	wait "$hanging" 2>/dev/null || true
	scene convoy
	for i in 0 1 2 3; do
		found sleep sc-holder sc-w$i '.count >= 4 and .max_ns > 40e6 and .max_ns < $all and .percent < 60'
	done
	scene chain
	found peer sc-backend sc-front '.max_ns > 55e6 and .max_ns < $all and .percent < 60 and .through.comm == "sc-middle"'
	scene inversion
	found sleep sc-mid sc-high '.count >= 1 and .max_ns > 100e6 and .max_ns < $all and .through.comm == "sc-low"'
	scene preempted
	found cpu sc-hog sc-calc '.count >= 2 and .max_ns > 80e6 and .max_ns < $all and .percent > 90'
	scene vfork
	found peer sc-child sc-parent '.count >= 2 and .max_ns > 90e6 and .max_ns < $all and .is_blocked'
	scene restart
	found forks sc-super sc-service '.count >= 20'
fi
scene forks
# (Another test's bash may begin some, too.)
found forks bash true '.count >= 100 and (.culprit.id // '$$') == '$$
scene crash
found crash sc-crasher "" '.signal == "SIGSEGV" and .count == 1 and .culprit.id == '"$(sed -n 's/^sc-crasher=//p' said)"

# ── the archive ──────────────────────────────────────────────────────────────────────────

"${PERFCTL[@]}" incident --since "$from" -o "a thing" >told 2>/dev/null &
incident=$!
wait $incident
expect_match "$(<told)" "^What stands out in .*a thing: report.txt.*a thing.tar.gz: all of it"
expect_eq "$(tar tzf "a thing.tar.gz" | sort | tr '\n' ' ')" "a thing/ a thing/about.txt a thing/page.html a thing/report.txt a thing/snapshot.data "
expect_eq "$(stat -c %a "a thing" "a thing.tar.gz" "a thing/report.txt" | tr '\n' ' ')" "700 600 600 "
expect_match "$(<"a thing/about.txt")" "perfctl [0-9.]+.*flight .*cpu-clock.*WHOSE +MEMORY"
expect_match "$(<"a thing/report.txt")" "What stands out.*Run-queue delay.*Off a CPU.*── --syscalls"$'\n\n'"Not recorded\."
perfctl report -i "a thing/snapshot.data" >/dev/null
forked() {
	perfctl script -i "$1" --event sched:sched_process_fork --tid "$incident" 2>/dev/null | wc -l
}
expect_eq "$(forked "a thing/snapshot.data")" 0 "its own children"
perfctl snapshot -o later --since "$from" >/dev/null 2>&1
[ "$(forked later)" -gt 0 ] || fail "they are not recorded"
# However short: it is the time before the command, however long that takes to ask for it.
busy 60 # so there are samples
for option in --last=20ms --since=-20ms; do
	perfctl incident $option -o short >/dev/null 2>&1 || fail "incident $option: exit $?"
	rm -r short short.tar.gz
done
rest "$SPAWNED"
expect_eq "$(perfctl --json incident --last 1s -o other 2>/dev/null | jq -r '.directory + " " + .archive')" "other other.tar.gz"

# Nothing is left where it fails.
perfctl save flight/sched >/dev/null
save=$(find "$STATE/saved" -mindepth 1 -maxdepth 1 -type d | sed -n 1p)
expect_match "$(perfctl --saved incident -o saved 2>&1)" "saved.tar.gz" "an incident of the newest save"
(cd "$(dirname "$save")" && expect_match "$(perfctl --saved="${save##*/}" incident -o "$SCRATCH/named" 2>&1)" "named.tar.gz" "of one by its name")
fails 1 "a thing or a thing.tar.gz exists" perfctl incident -o "a thing"
fails 1 "cannot make \.\.: Invalid argument" perfctl incident -o ..
fails 1 "No such file" perfctl incident -o nowhere/x
fails 3 "" perfctl incident nothing/ -o x
# On a full disk, in a mount namespace that goes with it: the part that fails says so, and nobody another thing.
mkdir full
fails 1 "No space left on device$" unshare --mount sh -c 'mount -t tmpfs -o size=64k none full && cd full && exec "$@"' sh \
	"${PERFCTL[@]}" incident -o x
fails 2 "not a time such as" perfctl incident --last x -o x
fails 2 "--pid, --tid" perfctl report -i taken --findings --pid 1
fails 2 "other reports" perfctl report -i taken --findings --irq
is_begun() { compgen -G ".$1.*"; }
for signal in TERM HUP; do
	"${PERFCTL[@]}" incident -o y >/dev/null 2>&1 &
	wait_until 60 is_begun y
	kill -$signal $!
	! wait $! || fail "what SIG$signal interrupted says that it is whole"
	if [ -e y ] || [ -e y.tar.gz ]; then fail "what SIG$signal interrupted is there"; fi
done
# Nobody hears that it is interrupted; and nohup(1) keeps it from a hang-up.
mkfifo unheard
"${PERFCTL[@]}" incident -o y >/dev/null 2>unheard &
incident=$!
exec {reader}<unheard
wait_until 60 is_begun y
exec {reader}<&-
kill -TERM $incident
! wait $incident || fail "what was interrupted says that it is whole"
(
	trap '' HUP
	exec "${PERFCTL[@]}" incident -o z >/dev/null 2>&1
) &
incident=$!
wait_until 60 is_begun z
kill -HUP $incident
wait $incident || fail "a hang-up ends it under nohup"
# The configuration, and nothing else of its directory.
etc=/etc/perfpersist-$INSTANCE
at_end() { rm -rf "$etc"; }
mkdir -p "$etc/events.d"
echo "[daemon]" >"$etc/perfpersistd.conf"
echo "secret" | tee "$etc/token" >"$etc/events.d/token"
ln -s "$ROOT/conf/presets/flight.conf" "$etc/events.d/flight.conf"
ln -s /dev/null "$etc/events.d/10-oom.conf"
perfctl incident --last 1s -o config >/dev/null 2>&1
expect_match "$(<config/config.txt)" "── $etc/perfpersistd.conf"$'\n\n'"\[daemon\].*── $etc/events.d/10-oom.conf.*flight.conf.*\[event flight/"
! grep -rq "secret" config || fail "the archive has a secret"
# tar takes HOST:FILE for another machine's. The place of the socket is relative to here.
ln -s "$RUN/control" control
"$BIN/perfctl" --socket ./control incident --last 1s -o at-10:00 >/dev/null 2>&1
expect_match "$(tar tzf ./at-10:00.tar.gz)" "at-10:00/report.txt"
expect_eq "$(find . -name '.*.*' | tr '\n' ' ')" "" "what is left behind"

# What is not recorded is said.
perfctl create t/clock -e cpu-clock -F 99 >/dev/null
perfctl snapshot t/ -o clock >/dev/null 2>&1
expect_match "$(perfctl report -i clock --findings)" "Not recorded: who waits for a CPU, and who woke it \\(-e sched:sched_switch"

# ── two events of one tracepoint ─────────────────────────────────────────────────────────

for name in one two; do
	perfctl create "twice/$name" -e sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new -m 16M >/dev/null
done
mkfifo quiet
spawn bash -c 'exec 9<>quiet; for i in {1..30}; do read -rt 0.002 -u 9; done'
wait "$SPAWNED" || true
perfctl pause twice/ >/dev/null
perfctl snapshot twice/one -o once >/dev/null 2>&1
perfctl snapshot twice/ -o twice >/dev/null 2>&1
# of_process FILE: what the report says of that process.
of_process() {
	perfctl report -i "$1" --top 100000 --json | jq -c --argjson pid "$SPAWNED" '.processes[] | select(.pid == $pid) | [.switches, .on_cpu_ns]'
}
expect_match "$(of_process once)" '^\[[3-9][0-9],'
expect_eq "$(of_process twice)" "$(of_process once)" "switches and time on CPUs, recorded twice"
# Where one of the two began or was paused a little later than the other, some are.
perfctl report -i twice --off-cpu >text
n=$(sed -nE 's/^([0-9]+) in all,.*/\1/p' text) missing=$(sed -nE 's/.* ([0-9]+) have missing records$/\1/p' text)
[ "$missing" -lt $((n / 4)) ] || fail "$missing beside $n sleeps have missing records"
