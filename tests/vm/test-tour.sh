#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2 --boot 1200 --timeout 1800
#
# Everything that needs a machine of its own, in one short test: installation, boot, hotplug,
# machine checks, SIGKILL, restart by an upgrade, probes, access, removal. The other tests in this directory
# cover each part completely. It ends with the seconds of each section.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/recorder.sh"

sections=/var/tmp/sections

# section NAME: ends the previous one. Names and times survive the reboot.
section() {
	echo "$EPOCHREALTIME $1" >>$sections
	echo "── $1"
}

tell_sections() {
	section end >/dev/null
	echo "── seconds"
	awk '{
		if (name) printf "%-16s %6.1f\n", name, $1 - from
		from = $1; name = $0; sub(/[^ ]+ /, "", name)
	}' $sections
}

# ── before the reboot ────────────────────────────────────────────────────────────────────

if [ "$PHASE" -eq 1 ]; then
	echo "boot 1 of Linux $(uname -r): $(cut -d ' ' -f 1 /proc/uptime) s"
	section installation
	programs >/var/tmp/programs
	install_packages perfpersist libperfpersist0 libperfpersist-dev
	expect_eq "$(dpkg --audit)" ""
	expect_ok systemctl is-active perfpersistd.service perfpersistd.socket run-perfpersist-registry.mount
	expect_match "$(names)" "${shipped// /.*}" "what is shipped"
	configure_early
	expect_ok systemctl reload perfpersistd
	expect_match "$(names)" "boot/systemd" "what is there once reload has returned"
	expect_ok perfctl create kept/switches -e sched:sched_switch -m 64K --boot
	echo "installed, reloaded: $(names)"
	section reboot
	reboot
fi

# ── a machine that has booted with it ────────────────────────────────────────────────────

section boot
is_sound
expect_match "$(names)" "boot/systemd.*kept/switches.*${shipped// /.*}" "what records"
for unit in perfpersistd perfpersist-engine; do
	expect_eq "$(systemctl show --value -p NRestarts $unit)" 0 "restarts of $unit"
done
expect_early
expect_told kept/switches
echo "running, nothing failed: $(names)"

section hotplug
trap 'kill "${maker[@]}" 2>/dev/null || true' EXIT
load roaming
expect_ok perfctl create tour/roaming -e syscalls:sys_enter_umask --pid "${maker[roaming]}" -m 8M
expect_ok perfctl create tour/clock -e cpu-clock -F 200 -m 256K
begin_load roaming
# After the first time online a CPU has an entry program of its own.
cycles=10
perl "$here/cycles.pl" run 1 1 tour/clock tour/roaming >/run/online
inventory >/run/inventory
perl "$here/cycles.pl" run 1 $((cycles - 1)) tour/clock tour/roaming >>/run/online
wait_until 120 same_inventory /run/inventory ||
	fail "left behind after $cycles cycles: $(diff /run/inventory /run/inventory.now)"
end_load roaming
counted tour/roaming roaming
echo "CPU 1 went offline and online $cycles times: recorded there again each time, no pin, descriptor or link is left"

section "machine checks"
modprobe mce-inject
inject_kinds
all_seen
check_interval 1
inject_below 0x9c00000000000151 0x777000 0x8c 0 2
all_seen
check_interval 300
expect_eq "$(recorded_checks)" "$(sort "$injections")" "machine checks (status|addr|misc|cpu|bank)"
expect_match "$(perfctl reopen mce/mce_record -n all 2>&1)" "MC3: 9c00000000000151.*$injected written" "records as people read them"
echo "$injected machine checks were injected and are read, each with its registers, CPU and bank"

section "restart"
load counted env PAUSE=0.01 # two CPUs have much else to do
expect_ok perfctl create tour/exact -e syscalls:sys_enter_umask --pid "${maker[counted]}" -m 64K
# So many that all entries share one link, and all exits another.
expect_ok perfctl create tour/several -e 'syscalls:sys_*_[tu]*' --pid "${maker[counted]}" --filter '__syscall_nr == 95' -m 64K
expect_eq "$(find "$registry"/tour/several/ -name 'link*' | wc -l)" 2 "links of system calls"
expect_ok perfctl delete tour/roaming
begin_load counted
ids=$(ids)
lasting=$(lasting)
for unit in perfpersistd perfpersist-engine; do
	kill_daemon $unit
	goes_on "SIGKILL of $unit" tour "$ids"
done

section upgrade # which ends in systemctl restart
upgrade dpkg --install
goes_on upgrade tour "$ids"
end_load counted
made=$(made counted)
expect_records tour/exact "$made"
expect_records tour/several $((2 * made))
expect_eq "$(lasting)" "$lasting" "since when sockets and registry are there"
expect_eq "$(systemctl --failed --plain --no-legend)" "" "failed units"
echo "$made system calls meanwhile: each is recorded, or counted as missed where the kernel may, and $(wc -l <<<"$ids") events have the ids that they had"

section probe
expect_ok perfctl create tour/lookups -e "$lookups" --filter 'name ~ "/nowhere/*"' -g -m 256K
expect_ok perfctl create tour/chains -e sched:sched_process_exec,raw_syscalls:sys_enter,page-faults -c 1 -g --comm prober -m 256K
look_nowhere 100
expect_nowhere tour/lookups 100
# whole EVENT JQ: how many of those records have a chain that begins in the kernel and ends in user space.
whole() {
	perfctl reopen "$1" -n all --json 2>/dev/null | jq -r "select($2) | .callchain | map(.space) | [first, last, length > 3] | @csv" |
		grep -c '^"kernel","user",true$'
}
expect_eq "$(whole tour/lookups true)" 100 "chains of a kprobe"
for event in sched_process_exec sys_enter page-faults; do
	[ "$(whole tour/chains ".event | endswith(\"$event\")")" -gt 0 ] || fail "$event has no chain from kernel to user space"
done
expect_ok perfctl delete tour/chains
echo "100 calls of filename_lookup, each with the name that was its argument, and a chain from kernel to user space"

section access
expect_eq "$(cat /proc/sys/kernel/perf_event_paranoid)" 3
make_users
expect_match "$(as member perfctl reopen mce/mce_record 2>&1)" "MC3: 9c00000000000151.*$injected written" "a member's records"
refused 4 "may not" member perfctl delete mce/mce_record
refused 4 "may not read" stranger perfctl reopen mce/mce_record
refused 1 "Permission denied" stranger cat "$registry"/mce/mce_record/stat
echo "perf_event_paranoid is 3: a member of the group reads and may not delete, a stranger may not read"

section trigger
expect_ok perfctl create tour/target -e raw_syscalls:sys_enter -m 64K
expect_ok perfctl trigger add tour/exec --on sched:sched_process_exec --filter 'filename ~ "*/true"' target
is_armed() { grep -q "1 of 1" < <(perfctl trigger list tour); }
wait_until 60 is_armed
/bin/true
# On the other CPU a program may have been on its way.
newest_where_it_fired() {
	awk '{ match($0, /\[[0-9]+\]/); cpu = substr($0, RSTART, RLENGTH); last[cpu] = $0 }
		/sched_process_exec.*\/true/ { fired = cpu } END { print last[fired] }'
}
is_written() { grep -q '"trigger":"exec"' < <(perfctl snapshots list --json); }
wait_until 120 is_written
expect_match "$(as member perfctl snapshots list)" "tour/exec +1 +true" "what a member sees"
refused 4 "its group may" stranger perfctl snapshots list
expect_match "$(perfctl script -i "$(perfctl snapshots show)" | newest_where_it_fired)" "sched_process_exec.*/true" "the newest record"
# Since Linux 6.4 /proc/modules has the size of all parts of a module, which are not side by side.
expect_ok perfctl snapshot tour/target -o /tmp/target.data # as root, who is told where modules are
perfctl script -i /tmp/target.data --show-mmap-events |
	sed -nE 's/.*MMAP -1\/[-0-9]+: \[(0x[0-9a-f]+)\((0x[0-9a-f]+)\).*: x (\[.*)$/\1 \2 \3/p' | sort -u >/tmp/maps
end=0x8000000000000000
while read -r start size name; do
	[ $((start)) -ge $((end)) ] || fail "the mapping of $name begins within another one: $(</tmp/maps)"
	end=$((start + size))
done </tmp/maps
[ "$(wc -l </tmp/maps)" -gt 5 ] || fail "there are no mappings of modules: $(</tmp/maps)"
echo "$(wc -l </tmp/maps) mappings of the kernel are side by side"
nothing_frozen() { [ -z "$(find "$registry" -name '+tape-*')" ]; }
wait_until 60 nothing_frozen || fail "what was written is frozen still"
# Where an order is under way at the end, systemd would wait for it, and no longer than TimeoutStopSec=.
wait_until 60 is_armed
echo "a trigger fired, and what was recorded until then is a file"

section removal
stay_inside "$registry"/tour
expect_ok dpkg --remove perfpersist
expect_ended "$(</var/tmp/programs)"
expect_kept kept.switches
kill "$inside"
echo "removed, with a shell in the registry: no mount, program, process or unit is left"

section purge
expect_ok dpkg --purge perfpersist libperfpersist0 libperfpersist-dev
expect_purged
echo "purged: nothing is left but the user"

tell_sections
