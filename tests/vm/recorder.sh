# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For tests in a guest, after lib.sh: shared checks of the recorder and its machine, and actions on
# both.

registry=/run/perfpersist/registry
here=$(dirname "${BASH_SOURCE[0]}")

# ── the machine, and the daemons ─────────────────────────────────────────────────────────

# is_sound: the boot is complete, and nothing failed.
is_sound() {
	local state
	state=$(systemctl is-system-running --wait) || true
	expect_eq "$(systemctl --failed --plain --no-legend)" "" "failed units"
	expect_eq "$state" running "state of the system"
}

main_pid() {
	systemctl show --value -p MainPID "$1"
}

# is_new UNIT PID: the unit runs, as another process than that.
is_new() {
	[ "$(systemctl is-active "$1")" = active ] && [ "$(main_pid "$1")" != "$2" ] && [ "$(main_pid "$1")" != 0 ]
}

# kill_daemon UNIT: sends SIGKILL. Returns when systemd has restarted it.
kill_daemon() {
	local pid
	pid=$(main_pid "$1")
	kill -KILL "$pid"
	wait_until 120 is_new "$1" "$pid" || fail "$1 is not back after SIGKILL"
}

# renewed CMD…: runs it, and checks that it restarted broker and engine.
renewed() {
	local broker engine
	broker=$(main_pid perfpersistd) engine=$(main_pid perfpersist-engine)
	expect_ok "$@"
	wait_until 120 is_new perfpersistd "$broker" || fail "perfpersistd was not restarted by: $*"
	wait_until 120 is_new perfpersist-engine "$engine" || fail "its engine was not restarted by: $*"
}

# upgrade CMD…: upgrades to the packages of revision 2, whose files are CMD's arguments.
upgrade() {
	DEBIAN_FRONTEND=noninteractive renewed "$@" "$BUILD"/deb/2/perfpersist_*.deb
	expect_match "$(dpkg-query -W -f '${Version}' perfpersist)" "-2$" "version after the upgrade"
}

# lasting: the start times of everything that no restart and no upgrade may touch.
lasting() {
	systemctl show -p ActiveEnterTimestampMonotonic perfpersistd.socket perfpersist-engine.socket \
		perfpersist-dumper.socket run-perfpersist-registry.mount
}

# ── events ───────────────────────────────────────────────────────────────────────────────

# The events that the package configures and a guest supports, in the order of names.
# shellcheck disable=SC2034 # used by tests
shipped="mce/mce_record mce/ras oom/kills tasks/hung"

names() {
	perfctl list --json | jq -r '"\(.[] | .namespace + "/" + .name)"' | sort | xargs
}

names_kept() {
	[ "$(perfctl ping --json | jq '.sideband.keeping and .sideband.complete > 0')" = true ]
}

# programs_told EVENT FILE: a snapshot has the BPF programs of our events.
programs_told() {
	perfctl snapshot "$1" -o "$2" && grep -aq bpf_prog_ "$2"
}

# expect_told EVENT: the keeper, in its tight sandbox, knows the names of processes and of programs;
# the latter through an iterator that it opens itself.
expect_told() {
	local scratch
	scratch=$(mktemp -d)
	wait_until 60 names_kept || fail "no keeper keeps names: $(journalctl --unit perfpersistd --output cat | grep -m 1 Names)"
	wait_until 60 programs_told "$1" "$scratch/snapshot" ||
		fail "no BPF program is told of: $(journalctl --unit perfpersist-keeper --output cat | tail -n 5)"
	rm -r "$scratch"
}

ids() {
	perfctl list --json | jq -r '.[] | "\(.id) \(.namespace)/\(.name)"' | sort
}

# of_cpu CPU EVENT FIELD: reads the CPU's line in the registry's text.
of_cpu() {
	sed -nE "s/^cpu$1 (.* )?$3=([^ ]+).*/\2/p" "$registry/$2/stat"
}

read_all() {
	perfctl reopen "$1" -n all 2>/dev/null
}

# records NAMESPACE: one line per event, with its id and its count of records. It asks no daemon.
records() {
	perfctl list --direct --json | jq -r --arg namespace "$1" \
		'.[] | select(.namespace == $namespace) | "\(.id) \(.records)"' | sort
}

# count_of NAMESPACE NAME: the event's count of records. It asks no daemon.
count_of() {
	perfctl list --direct --json | jq --arg namespace "$1" --arg name "$2" \
		'.[] | select(.namespace == $namespace and .name == $name).records'
}

# have_more NAMESPACE LINES: each of these events has more records by now, under the same id.
have_more() {
	join <(echo "$2") <(records "$1") |
		awk -v events="$(wc -l <<<"$2")" '$3 > $2 { n++ } END { exit n != events }'
}

# goes_on WHAT NAMESPACE IDS: the events record, and the daemon answers and knows all by these ids.
goes_on() {
	local before
	before=$(records "$2")
	wait_until 120 have_more "$2" "$before" || fail "$1: events do not record any more: $before, $(records "$2")"
	expect_eq "$(ids)" "$3" "$1: events"
	expect_ok perfctl create "$2/new" -e sched:sched_wakeup -m 16K
	expect_ok perfctl delete "$2/new"
	echo "$1: all go on"
}

# Everything that CPU hotplug could leak. Programs of cgroups belong to systemd.
inventory() {
	local unit kind
	for unit in perfpersistd perfpersist-engine; do
		find "/proc/$(main_pid $unit)/fd" -type l | wc -l
	done
	for kind in link prog map; do
		bpftool --json $kind | jq -r --arg kind $kind \
			'.[] | select(.type | startswith("cgroup") | not) | "\($kind) \(.type) \(.name)"' | sort
	done
	find "$registry" | sort
}

# same_inventory FILE: equals the one in FILE. For wait_until, because the kernel frees after grace
# periods.
same_inventory() {
	inventory >"$1.now"
	cmp -s "$1" "$1.now"
}

# ── an event that records early ──────────────────────────────────────────────────────────

configure_early() {
	mkdir -p /etc/perfpersist/events.d
	cat >/etc/perfpersist/events.d/50-boot.conf <<-END
		[event boot/systemd]
		Event=sched:sched_wakeup
		Filter=comm == "systemd"
		Buffer=4M
	END
}

# expect_early: the event recorded, and the daemon was ready, before basic.target. Times are those
# of CLOCK_MONOTONIC, like systemd's. READY=1 itself wakes systemd, if nothing did before.
expect_early() {
	local basic start ready first older
	basic=$(systemctl show --value -p ActiveEnterTimestampMonotonic basic.target)
	start=$(systemctl show --value -p ExecMainStartTimestampMonotonic perfpersistd.service)
	ready=$(systemctl show --value -p ActiveEnterTimestampMonotonic perfpersistd.service)
	read -r first older < <(read_all boot/systemd | awk -v basic="$basic" '
		{ t = $2 * 1e6 }
		NR == 1 || t < first { first = t }
		t < basic { older++ }
		END { printf "%d %d\n", first, older }')
	echo "started at $((start / 1000)) ms, first record at $((first / 1000)) ms, ready at $((ready / 1000)) ms, basic.target at $((basic / 1000)) ms; $older records are older"
	if [ "$first" -eq 0 ] || [ "$first" -ge "$basic" ]; then
		fail "no record is older than basic.target"
	fi
	[ "$ready" -lt "$basic" ] || fail "basic.target did not wait for the configured events"
}

# ── a load whose records can be counted ──────────────────────────────────────────────────

# Processes that make numbered calls (sequence.pl), from begin_load to end_load, so that a test can
# first create an event for maker[NAME].
declare -A maker=()
loads=/run/loads

# load NAME [CMD…]: starts one, run by CMD.
load() {
	local name=$1
	shift
	mkdir -p $loads
	(
		while [ ! -e "$loads/$name.go" ]; do sleep 0.1; done
		exec "$@" perl "$here/sequence.pl" make
	) >"$loads/$name" &
	maker[$name]=$!
}

begin_load() {
	local name
	for name in "$@"; do
		touch "$loads/$name.go"
	done
}

# end_load NAME…: sets made to how many calls each made.
end_load() {
	local name
	for name in "$@"; do
		kill -TERM "${maker[$name]}"
	done
	for name in "$@"; do
		wait "${maker[$name]}" || true
	done
}

made() {
	cat "$loads/$1"
}

# may_miss EVENT: how many records may be absent: none, or as many as the event counts as missed.
# Where the kernel preempts a task that uses a map, of any program, it runs no programs on
# tracepoints on that CPU until the task continues (bpf_disable_instrumentation()), and counts the
# misses.
may_miss() {
	if grep -q '(lazy)\|(full)' /sys/kernel/debug/sched/preempt; then
		perfctl show "$1" --json | jq .missed
	else
		echo 0
	fi
}

# counted EVENT NAME [CPU]: the event has all calls of this process, except for those that it may
# miss, each once, and on that CPU.
counted() {
	local all
	all=$(read_all "$1" | perl "$here/sequence.pl" check "$(made "$2")" "$(may_miss "$1")" "${maker[$2]}" "${@:3}") ||
		fail "records of process $2 in $1: $(grep '^total' "$registry/$1/stat")"
	echo "$1, of process $2: $all"
}

# expect_records EVENT N: exactly so many, except for those that it may miss.
expect_records() {
	local n missed
	n=$(count_of "${1%/*}" "${1#*/}") missed=$(may_miss "$1")
	if [ "$n" -gt "$2" ] || [ $((n + missed)) -lt "$2" ]; then
		fail "$1: expected $2 records, but for $missed, got $n"
	fi
	echo "$1 has $n of $2 records"
}

# put_cpu CPU 0|1: takes it offline or online.
put_cpu() {
	echo "$2" >"/sys/devices/system/cpu/cpu$1/online"
}

# ── calls under a name of their own ──────────────────────────────────────────────────────

# calls_of N CODE: makes N calls, in a process named prober. In CODE the call's number is $_.
calls_of() {
	[ -x /usr/local/bin/prober ] || cp /usr/bin/perl /usr/local/bin/prober
	/usr/local/bin/prober -e "$2 for 1..$1"
}

# int filename_lookup(int dfd, struct filename *name, …), whose first member is the name. stat(2)
# calls it, in Linux 6.1 to 7.3. open(2) has no such function with a stable name.
# shellcheck disable=SC2034 # used by tests
lookups='kprobe:filename_lookup(dfd=arg1:s32,name=+0(+0(arg2)):string)'

# look_nowhere N: calls stat for /nowhere/0 to /nowhere/9, in turn.
look_nowhere() {
	calls_of "$1" 'stat("/nowhere/" . ($_ % 10))'
}

# expect_nowhere EVENT N: the event has the records of N such calls.
expect_nowhere() {
	expect_eq "$(fields "$1" .name | sort | uniq -c | awk '{ print $1, $2 }' | xargs)" \
		"$(for i in {0..9}; do echo $(($2 / 10)) "/nowhere/$i"; done | xargs)" "names in $1"
}

# fields EVENT JQ: from each of its records.
fields() {
	perfctl reopen "$1" -n all --json 2>/dev/null | jq -r ".fields | $2"
}

# ── machine checks ───────────────────────────────────────────────────────────────────────

injected=0 # so many
injections=/run/injections # a line for each, as recorded_checks has them

_note_injection() {
	printf '%x|%x|%x|%x|%x\n' "$@" >>$injections
	injected=$((injected + 1))
}

# inject STATUS ADDR MISC CPU BANK: through the kernel, which then reports an error that no hardware
# had. Needs the module mce-inject.
inject() {
	(
		cd /sys/kernel/debug/mce-inject || fail "the module mce-inject is not there"
		echo sw >flags
		echo "$1" >status
		echo "$2" >addr
		echo "$3" >misc
		echo "$4" >cpu
		echo "$5" >bank
	)
	_note_injection "$@"
}

# inject_below STATUS ADDR MISC CPU BANK: into the registers of the emulated CPU, where the kernel
# finds it at its next check.
inject_below() {
	expect_eq "$(monitor mce "$4" "$5" "$1" 0x0 "$2" "$3")" "" "what the monitor says"
	_note_injection "$@"
}

# check_interval SECONDS: how often the kernel checks.
check_interval() {
	echo "$1" >/sys/devices/system/machinecheck/machinecheck0/check_interval
}

# A read of memory, a scrub, a bus error, a TLB error, and one that overflowed.
inject_kinds() {
	inject 0x9c00000000000151 0x12345000 0x8c 1 3
	inject 0x8c00004000010091 0x2345680 0x86 0 7
	inject 0x8c000040000800c1 0x7ffffffffff040 0x86 1 0
	inject 0x9000000000000e0b 0x0 0x0 0 5
	inject 0x8400000000000014 0xffffffff81000000 0x0 1 1
}

# all_seen: the kernel has seen them; its own log does not depend on the recorder.
all_seen() {
	wait_until 120 _seen_by_kernel || fail "the kernel has told of no $injected machine checks: $(dmesg | tail -n 20)"
}

_seen_by_kernel() {
	[ "$(dmesg | grep -c 'Hardware Error.*Machine Check: ')" -ge $injected ]
}

# recorded_checks [FIELDS]: one line of hexadecimal numbers each. jq does not support 64-bit
# numbers, and passes them on unchanged only if it does not process them.
recorded_checks() {
	perfctl reopen mce/mce_record -n all --json 2>/dev/null | perl -ne '
		BEGIN { @names = split /,/, shift @ARGV }
		s/.*"fields"://;
		my %v = /"(\w+)":(\d+)/g;
		print join("|", map { sprintf "%x", $v{$_} } @names), "\n";
	' "${1:-status,addr,misc,cpu,bank}" | sort
}

# ── other users ──────────────────────────────────────────────────────────────────────────

# A member of the group perfpersist, and a user who is not.
make_users() {
	useradd member --groups perfpersist
	useradd stranger
}

# as USER CMD…: with only that user's rights.
as() {
	local user=$1
	shift
	setpriv --reuid "$user" --regid "$user" --init-groups --inh-caps=-all --no-new-privs "$@"
}

# refused EXIT SENTENCE USER CMD…: fails with one message that matches SENTENCE.
refused() {
	local exit=$1 sentence=$2
	shift 2
	expect_exit "$exit" as "$@"
	expect_match "$OUT" "$sentence" "what '$*' says"
	expect_eq "$(wc -l <<<"$OUT")" 1 "lines of what '$*' says: $OUT"
}

# ── removal ──────────────────────────────────────────────────────────────────────────────

# programs: how many BPF programs of the recording types there are.
programs() {
	bpftool prog list | grep -c 'tracing\|tracepoint\|perf_event' || true
}

_programs_are() {
	[ "$(programs)" -eq "$1" ]
}

# stay_inside FOLDER: starts a process with that working directory, and sets inside to its pid.
stay_inside() {
	(cd "$1" && exec sleep 100000) &
	inside=$!
	wait_until 60 test "/proc/$inside/cwd" -ef "$1"
}

# expect_ended PROGRAMS: nothing of ours is mounted, recording, running, or failed. PROGRAMS is the
# number before the installation.
expect_ended() {
	expect_eq "$(findmnt -n -o TARGET -t bpf | grep perfpersist || true)" "" "mounts"
	wait_until 120 _programs_are "$1" || fail "events go on: $(bpftool prog list)"
	expect_eq "$(pgrep -l perfpersist || true)" "" "processes"
	expect_eq "$(systemctl list-units --all --plain --no-legend 'perfpersist*' 'run-perfpersist*' | grep -v not-found || true)" "" "units"
	expect_eq "$(systemctl --failed --plain --no-legend)" "" "failed units"
}

# expect_kept EVENT: removing the package kept the configuration, and the event for the next boot
# (NAMESPACE.NAME).
expect_kept() {
	[ -e /etc/perfpersist/perfpersistd.conf ] || fail "configuration went with the package"
	[ -e "/var/lib/perfpersist/events.d/$1.conf" ] || fail "the event for the next boot went with the package"
}

# expect_purged: only the user is left, as with Debian's packages. The test's own files and logs do
# not count.
expect_purged() {
	expect_eq "$(find / /run -xdev -name '*perfpersist*' -not -path '/run/vm/*' -not -path '/run/systemd/*' -not -path '/var/log/*')" \
		"" "what is left"
	expect_ok getent passwd perfpersist
}
