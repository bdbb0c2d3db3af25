#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Offline CPUs as users see them: an all-CPUs event records on a CPU that comes online, without a
# restart. show, list, stat and watch, and the library without a daemon, tell which CPUs are
# offline, since when, which have no ring, and why. After a missed notice sysfs wins.
#
# Without a notice the daemon reads sysfs every ten seconds; the test waits for that at full length.
#
# No CPU goes offline: the daemon runs where a file of this test is mounted over
# /sys/devices/system/cpu/online. The kernel sends the notices itself, triggered through `uevent`.
. "$(dirname "$0")/../lib.sh"
alone_with cpus

unshare --mount true 2>/dev/null || skip "mount namespaces cannot be made here"
mapfile -t cpus < <(lscpu --parse=CPU --online | grep -v '^#')
[ ${#cpus[@]} -ge 2 ] || skip "this machine has only one CPU"
last=${cpus[-1]}
all=$(</sys/devices/system/cpu/online)
rest=$(IFS=,; echo "${cpus[*]:0:${#cpus[@]}-1}")

# Writes the file's content in one go.
online() {
	printf '%s\n' "$1" >"$SCRATCH/online"
}

# say online|offline CPU: makes the kernel send the notice.
say() {
	echo "$1" >"/sys/devices/system/cpu/cpu$2/uevent"
}

# Mounts that vanish meanwhile do not matter.
private_mounts="findmnt -rno TARGET -t bpf | grep /perfpersist | grep -vxF '$REGISTRY' |
	while read -r m; do umount -l \"\$m\" 2>/dev/null || ! mountpoint -q \"\$m\"; done"
cat >"$SCRATCH/inside" <<-END
	#!/bin/bash
	set -eu
	$private_mounts
	mount --bind "$SCRATCH/online" /sys/devices/system/cpu/online
	exec "\$@"
END
chmod 0755 "$SCRATCH/inside"
printf '#!/bin/bash\nexec unshare --mount --propagation private "%s" "%s/perfpersistd" "$@"\n' \
	"$SCRATCH/inside" "$BUILD" >"$SCRATCH/perfpersistd"
chmod 0755 "$SCRATCH/perfpersistd"

start_hidden() {
	local build=$BUILD
	BUILD=$SCRATCH
	start_daemon
	BUILD=$build
}

field() {
	perfctl show "$1" --json | jq -r ".$2"
}

# is NAME FIELD VALUE: for wait_until.
is() {
	[ "$(field "$1" "$2")" = "$3" ]
}

# between N LOW HIGH
between() {
	[ "$1" -ge "$2" ] && [ "$1" -le "$3" ]
}

# direct VERB…: without the daemon, in its mount namespace.
direct() {
	nsenter --mount --target "$(broker_pid)" -- "${PERFCTL[@]}" --direct "$@"
}

logged() {
	grep -qE -- "$1" "$LOG"
}

# account GENERATION AWAY: what the kernel's own hotplug steps record for the last CPU.
le() {
	printf '%0*x\n' "$2" "$1" | fold -w2 | tac | sed 's/^/0x/' | xargs
}
account() {
	# shellcheck disable=SC2046
	bpftool map update pinned "$REGISTRY/+cpus" key $(le "$last" 8) value $(le "$1" 16) $(le "$2" 16)
}

# ── a CPU that comes ─────────────────────────────────────────────────────────────────────

mount_registry
online "$rest"
start_hidden
rest=$(perfctl create t/most -e sched:sched_switch >/dev/null && field t/most cpus)
perfctl create t/sampled -e cpu-clock -F 100 >/dev/null
perfctl create t/here -e sched:sched_waking -C "${cpus[0]}" >/dev/null
perfctl create t/second -e sched:sched_switch --share >/dev/null
perfctl create t/paused -e sched:sched_waking >/dev/null
perfctl pause t/paused >/dev/null
ids=$(event_ids)
expect_eq "$(field t/sampled cpus)" "$rest"
expect_eq "$(field t/most away)" ""
expect_eq "$(field t/most lacking)" ""
expect_match "$(perfctl show t/most)" "cpus +$rest \(all, and those that come\)"

"$BIN/perfctl" --instance "$INSTANCE" watch --json >"$SCRATCH/watched" &
_spawned+=($!)
# told FILTER: the watcher's notices, through jq.
told() {
	jq -r "$1" "$SCRATCH/watched" | sort | xargs
}
wait_until 10 grep -q started "$SCRATCH/watched"
spawn "$BIN/perfctl" --instance "$INSTANCE" reopen -f -n 0 --json t/most >"$SCRATCH/followed" 2>/dev/null
follower=$SPAWNED
wait_until 20 grep -q '"cpu":' "$SCRATCH/followed"
expect_eq "$(jq -c "select(.cpu == $last)" "$SCRATCH/followed" 2>/dev/null | wc -l)" 0 "followed of a CPU that is hidden"

account 0 0   # no longer shows that it was offline at the engine's start
online "$all" # without a notice, or with a wrong one
full || say offline "$last"
for name in most sampled second paused; do
	wait_until 40 is "t/$name" cpus "$all" || fail "t/$name does not record on CPU $last: $(field t/$name cpus)"
done
expect_eq "$(field t/here cpus)" "${cpus[0]}"
expect_eq "$(field t/paused state)" paused
expect_eq "$(event_ids)" "$ids" "ids"
came_back() {
	[ "$(told 'select(.notice == "cpu-online").cpu')" = "$last" ]
}
wait_until 20 came_back || fail "the watcher is not told that the CPU came"
all_told() {
	[ "$(told 'select(.notice == "changed" and .event.cpus == "'"$all"'").event.name')" = "most paused sampled second" ]
}
wait_until 20 all_told || fail "not all changes are told"
busy 60 "$last"
records_on_last() {
	[ "$(stat_of "$1" records "cpu$last")" -gt 0 ]
}
wait_until 20 records_on_last t/most
wait_until 20 records_on_last t/sampled
wait_until 20 grep -qE "\"cpu\": ?${last}[,}]" "$SCRATCH/followed" || fail "a follower does not see CPU $last"
kill "$follower"
wait "$follower" || true
echo "a CPU that comes, with no word of it: recorded on in $(grep -c 'records on CPU' "$LOG") events, all told"

# ── one that goes ────────────────────────────────────────────────────────────────────────

went=$(date +%s)
online "${cpus[*]:0:1}"
say offline "$last"
wait_until 40 is t/most away "$(nsenter --mount --target "$(broker_pid)" -- "$BIN/perfctl" --instance "$INSTANCE" --direct show t/most --json | jq -r .away)"
wait_until 40 grep -q cpu-offline "$SCRATCH/watched"
away=$(field t/most away)
expect_match ",$away," "[,-]$last," "what is away"
expect_eq "$(field t/here away)" ""
expect_eq "$(field t/most cpus)" "$all" "who has a ring keeps it"
since=$(field t/most "cpus_away[-1].since")
between "$((since / 1000000000))" "$((went - 1))" "$(date +%s)" ||
	fail "away since $since, and it went after $went"
expect_match "$(perfctl show t/most)" "away +CPU .*, since $(date -d "@$((since / 1000000000))" '+%F %T').* ago"
expect_match "$(perfctl list t)" "$all \(away: $away\)"
expect_eq "$(perfctl stat t/most --per-cpu -I 100 --interval-count 1 --json | jq -c 'select(.away).cpu' | tail -n 1)" "$last"
expect_match "$(perfctl stat t/most --per-cpu -I 100 --interval-count 1)" 't/most \(away\)'
expect_match "$(direct show t/most)" "away +CPU "
expect_match "$(as_member perfctl show t/most)" "away +CPU .*since"

# The kernel's own record counts, because it is older than any look at sysfs. (A broker that
# recently saw the CPU online would know better, so a new one has to look.)
stop_daemon
read -r up _ </proc/uptime
ago=$((${up%.*} / 2)) # seconds
monotonic=$(((${up%.*} - ago) * 1000000000))
before=$(date -d "-$ago seconds" +%s)
account 1 "$monotonic"
start_hidden
for who in perfctl direct; do
	since=$($who show t/most --json | jq -r ".cpus_away[] | select(.cpu == $last).since")
	between "$((since / 1000000000))" "$((before - 5))" "$((before + 5))" ||
		fail "$who: offline since $since, and the kernel says $before"
done
expect_ok setpriv --reuid="$DAEMON_UID" --clear-groups test -r "$REGISTRY/+cpus"
expect_exit 1 as_user test -r "$REGISTRY/+cpus"
: >"$SCRATCH/watched" # else the old one's words are taken for this one's
"$BIN/perfctl" --instance "$INSTANCE" watch --json >"$SCRATCH/watched" &
_spawned+=($!)
wait_until 10 grep -q started "$SCRATCH/watched"
echo "the kernel's own record says since when it is offline"

online "$all"
say online "$last"
wait_until 10 is t/most away ""
records=$(stat_of t/most records "cpu$last")
more_on_last() {
	[ "$(stat_of t/most records "cpu$last")" -gt "$records" ]
}
wait_until 20 more_on_last
wait_until 20 came_back # as the watcher is told

# Offline and back online before the broker looks: only the notices tell.
notices=$(wc -l <"$SCRATCH/watched")
say offline "$last"
say online "$last"
two_more() {
	[ "$(tail -n +$((notices + 1)) "$SCRATCH/watched" | jq -r 'select(.cpu).notice' | xargs)" = "cpu-offline cpu-online" ]
}
wait_until 10 two_more
expect_eq "$(event_ids)" "$ids" "ids"
echo "gone and back, with its history"

# ── one that cannot be had ───────────────────────────────────────────────────────────────

perfctl delete --all >/dev/null
online "${cpus[0]}"
say offline "$last"
went_again() {
	[ "$(jq -r 'select(.cpu).notice' "$SCRATCH/watched" | tail -n 1)" = cpu-offline ]
}
wait_until 20 went_again || fail "the watcher is not told that the CPU went: $(tail -n 3 "$SCRATCH/watched")"
nothing_is_charged() {
	[ "$(perfctl limits --json | jq '[.[] | select(.scope == "total").memory] | add')" -eq 0 ]
}
wait_until 60 nothing_is_charged
write_conf "MaxMemory=6M"
expect_ok perfctl reload
perfctl create t/large -e sched:sched_switch -m 4M >/dev/null
online "$all"
say online "$last"
wait_until 40 logged 't/large .* does not record on all CPUs that are online; this is tried again: .*MaxMemory='
expect_match ",$(field t/large lacking)," "[,-]$last,"
expect_match "$(perfctl show t/large)" 'lacking +CPU .*over a limit'
expect_match "$(field t/large lacking_reason)" 'over a limit'
perfctl create t/small -e sched:sched_switch -m 4K >/dev/null # others are not delayed
expect_eq "$(field t/small cpus)" "$all"
write_conf "MaxMemory=64M"
expect_ok perfctl reload
full || say online "$last"
wait_until 40 is t/large cpus "$all"
expect_eq "$(field t/large lacking)" ""
expect_eq "$(grep -c 't/large .* does not record' "$LOG")" 1 "how often it is said"
echo "over a limit: said once, shown, and had when there is room"

perfctl delete --all >/dev/null
online "$all"
stop_daemon
