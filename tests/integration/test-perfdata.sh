#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# perfctl snapshot: perf's own tools read its files, with tracepoints, samples, probes and all of
# these together, show the right records and complain about nothing. Also covers which records are
# in a file, by event, time, CPU and process; the right to take one; and that a file is complete or
# does not exist.
. "$(dirname "$0")/../lib.sh"
command -v perf >/dev/null || skip "there is no perf"

# quiet CMD…: succeeds without relevant complaints. Its output is in $SCRATCH/out.
quiet() {
	"$@" >"$SCRATCH/out" 2>"$SCRATCH/err" </dev/null || fail "exit $?: $*: $(head -n 5 "$SCRATCH/err")"
	complaints <"$SCRATCH/err" >"$SCRATCH/complaints"
	[ ! -s "$SCRATCH/complaints" ] || fail "$*: $(head -n 5 "$SCRATCH/err")"
}

# shows REGEX WHAT: a line of the last output.
shows() {
	grep -qE -- "$1" "$SCRATCH/out" || fail "$2: no line with /$1/, but: $(head -n 8 "$SCRATCH/out")"
}

# snapshot NAME ARG…: into $SCRATCH/NAME.data
snapshot() {
	expect_ok perfctl snapshot "${@:2}" -o "$SCRATCH/$1.data"
}

# times FILE: the times of its records, as perf prints them, in ns
times() {
	perf script -i "$1" --ns -F time 2>/dev/null | grep -oE '[0-9]+\.[0-9]+' | tr -d . || true
}

samples() {
	times "$1" | wc -l
}

write_conf '[namespace team]
Mode=0660
[namespace own]
Mode=0600'
start_daemon

# ── what is wrong is told ────────────────────────────────────────────────────────────────

expect_exit 3 perfctl snapshot -o "$SCRATCH/none.data"
expect_exit 3 perfctl snapshot team/none -o "$SCRATCH/none.data"
expect_match "$OUT" "no event 'none' in the namespace team"
expect_exit 2 perfctl snapshot --last soon
expect_exit 2 perfctl snapshot --since 25:61:00
expect_exit 2 perfctl snapshot -C 3-1
expect_exit 2 perfctl snapshot --pid 1,,2
expect_exit 2 perfctl snapshot -o - --json
[ ! -e "$SCRATCH/none.data" ] || fail "a failed snapshot left a file"

# ── a workload ───────────────────────────────────────────────────────────────────────────

perfctl create team/calls -e raw_syscalls:sys_enter,raw_syscalls:sys_exit -m 256K >/dev/null
# Not for all processes, whose records could overwrite the workload's.
perfctl create team/sched -m 1M --comm perfdata-load -e \
	sched:sched_switch,sched:sched_wakeup,sched:sched_stat_runtime,sched:sched_process_fork >/dev/null
perfctl create own/profile -e cpu-clock:u -F 2000 -g -m 256K >/dev/null
perfctl create own/entries -e 'syscalls:sys_enter_*' -m 64K >/dev/null
perfctl create own/uprobe -e "uprobe:$BIN/perfdata-load:main" -m 64K >/dev/null
expect_ok "$BIN/perfdata-load" 0 100 100 3 /bin/true
spawn "$BIN/perfdata-load" burn
burner=$SPAWNED
enough() {
	[ "$(records_of own/profile)" -ge 300 ]
}
wait_until 30 enough

# ── perf's tools ─────────────────────────────────────────────────────────────────────────

# The records must be recent: the shells and programs below look for them.
expect_ok "$BIN/perfdata-load" 0 100 100 3 /bin/true
snapshot tracepoints team/
expect_match "$OUT" "[0-9]+ records of 2 events, [0-9]+ bytes: $SCRATCH/tracepoints.data$"
snapshot samples own/profile
snapshot mixed 'team/*' 'own/prof*' own/entries own/uprobe

for kind in $(length mixed "tracepoints samples mixed"); do
	file=$SCRATCH/$kind.data
	quiet perf report --stdio -i "$file"
	shows '^# Samples: [0-9.KM]+ +of event' "perf report of $kind"
	quiet perf script -i "$file"
	quiet perf script -i "$file" -F comm,pid,tid,cpu,time,event
	quiet perf evlist -v -i "$file"
	shows 'sample_id_all: 1' "perf evlist of $kind"
	quiet perf buildid-list -i "$file"
	shows '^[0-9a-f]{40} \[kernel.kallsyms\]' "perf buildid-list of $kind"
	shows '^[0-9a-f]{40} /.*(bash|dash|libc)' "perf buildid-list of $kind"
	quiet perf report --header-only -i "$file"
	shows '^# cmdline : perfctl .*snapshot' "the header of $kind"
	shows "^# hostname : $(uname -n)" "the header of $kind"
	shows "^# nrcpus avail : $(getconf _NPROCESSORS_CONF)" "the header of $kind"
	shows '^# clockid: monotonic' "the header of $kind"
	if grep -q to-json < <(perf data convert --help 2>&1); then
		rm -f "$SCRATCH/json"
		expect_ok perf data convert --to-json "$SCRATCH/json" -i "$file"
		expect_match "$OUT" '^\[ perf data convert: Converted [^:]*
\[ perf data convert: Converted and wrote [^:]* \]$'
		expect_eq "$(jq '.samples | length' "$SCRATCH/json")" "$(samples "$file")" "samples in JSON"
	fi
done

quiet perf script -i "$SCRATCH/tracepoints.data"
shows 'sched:sched_switch: .*prev_comm=.* prev_pid=[0-9]+ prev_prio' "a tracepoint's fields"
shows 'raw_syscalls:sys_enter: NR [0-9]+ \(' "a tracepoint's fields"
quiet perf sched latency -i "$SCRATCH/tracepoints.data"
shows 'Max delay' "perf sched latency"
shows '^  (sh|perfdata-load):' "perf sched latency"
quiet perf trace -i "$SCRATCH/tracepoints.data" -o "$SCRATCH/trace"
mv "$SCRATCH/trace" "$SCRATCH/out"
shows '\) = ' "perf trace"
quiet perf script -i "$SCRATCH/mixed.data"
shows 'perfdata-load .*uprobe.*__probe_ip|perfdata-load .*probe' "a probe's fields"
shows 'syscalls:sys_enter_[a-z]+: ' "one event of many"
snapshot burner own/profile --pid "$burner"
quiet perf annotate --stdio -i "$SCRATCH/burner.data"
shows 'Percent.*Source code' "perf annotate"
shows '<burn>:|burn\(\)|: +[0-9a-f]+ ' "perf annotate"
quiet perf report --stdio -i "$SCRATCH/burner.data" --no-children --sort comm,dso,sym
shows '[0-9.]+% +perfdata-load +perfdata-load +\[\.\] burn' "perf report"

# A program that has ended keeps its build id if its file gets another name, as in perf's cache: where the file
# system tells inodes apart that had the same number. Another content has none, nor another file.
programs=(linked written replaced copied)
for name in "${programs[@]}"; do
	cp "$BIN/perfdata-load" "$SCRATCH/$name"
	expect_ok "$SCRATCH/$name" 0 1 1 1 /bin/true
done
ln "$SCRATCH/linked" "$SCRATCH/link"
printf x >>"$SCRATCH/written"
cp --preserve=timestamps "$BIN/scene" "$SCRATCH/copied"
cp --preserve=timestamps "$BIN/perfdata-load" "$SCRATCH/new"
mv "$SCRATCH/new" "$SCRATCH/replaced"
snapshot programs team/sched
quiet perf buildid-list -i "$SCRATCH/programs.data"
case $(stat -f -c %T "$SCRATCH") in
ext2/ext3 | xfs | btrfs) shows "^[0-9a-f]{40} $SCRATCH/linked$" "perf buildid-list of a file with another link" ;;
esac
if grep -E "^[0-9a-f]{40} $SCRATCH/(written|replaced|copied)$" "$SCRATCH/out"; then fail "a build id of another content"; fi

# The pipe format.
kinds=('own/[!u]*')
! full || kinds+=(team/ own/profile)
for kind in "${kinds[@]}"; do
	perfctl snapshot "$kind" -o - 2>/dev/null >"$SCRATCH/pipe.data"
	for tool in script 'report --stdio'; do
		# shellcheck disable=SC2086
		perf $tool -i - <"$SCRATCH/pipe.data" >"$SCRATCH/out" 2>"$SCRATCH/err" ||
			fail "exit $?: perf $tool of $kind through a pipe"
		complaints <"$SCRATCH/err" >"$SCRATCH/complaints"
		[ ! -s "$SCRATCH/complaints" ] ||
			fail "perf $tool of $kind through a pipe: $(cat "$SCRATCH/err")"
		[ -s "$SCRATCH/out" ] || fail "perf $tool shows nothing of $kind through a pipe"
	done
done

# ── which records ────────────────────────────────────────────────────────────────────────

kill "$burner"
perfctl pause team/ own/ >/dev/null
snapshot all team/calls
read -r n bytes < <(sed -E 's/^.*\b([0-9]+) records? of 1 event, ([0-9]+) bytes.*$/\1 \2/' <<<"$OUT" | tail -n 1)
expect_eq "$(samples "$SCRATCH/all.data")" "$n" "records that were told"
expect_eq "$(stat -c %s "$SCRATCH/all.data")" "$bytes" "bytes that were told"
expect_eq "$(stat -c %a "$SCRATCH/all.data")" 600 "the file's mode"
expect_eq "$n" "$(perfctl reopen team/calls -n all 2>/dev/null | wc -l)" "records that reopen shows"
times "$SCRATCH/all.data" >"$SCRATCH/times"
sort -n -C "$SCRATCH/times" || fail "records are not in order of time"

middle=$(sed -n $((n / 2))p "$SCRATCH/times")
seconds() {
	echo "${1:0:-9}.${1: -9}"
}
snapshot since team/calls --since "$(seconds "$middle")"
snapshot until team/calls --until "$(seconds $((middle - 1)))"
expect_eq "$(times "$SCRATCH/since.data" | head -n 1)" "$middle" "the first record with --since"
cat <(times "$SCRATCH/until.data") <(times "$SCRATCH/since.data") | cmp - "$SCRATCH/times" ||
	fail "--until and --since do not make the whole"
offset=$(perfctl snapshot team/calls -o "$SCRATCH/o.data" >/dev/null 2>&1
	perf report --header-only -i "$SCRATCH/o.data" |
		sed -nE 's/.* = ([0-9]+)\.([0-9]+) \(TOD\) = ([0-9]+)\.([0-9]{6})[0-9]* .*/\1\2 \3\4/p')
real=$((${offset% *} - ${offset#* })) # µs, of the clocks' difference
wall=$((real * 1000 + middle))
snapshot wall team/calls --since "@$(seconds $wall)"
first=$(times "$SCRATCH/wall.data" | head -n 1)
# The offset between the clocks differs each time it is measured: the first record is one from about
# that time.
latest=$(awk -v about=$((middle + 10000000)) '{ print } $1 >= about { exit }' "$SCRATCH/times" | tail -n 1)
if [ "$first" -lt $((middle - 10000000)) ] || [ "$first" -gt "$latest" ]; then
	fail "--since @TIME begins at $first, not about $middle"
fi
snapshot last team/calls --last 1ms
expect_eq "$(samples "$SCRATCH/last.data")" 0 "records of the last moment, long after"
# perfctl may also report names that a busy machine lost.
expect_match "$OUT" $'(^|\n)0 records of 1 event'
quiet perf script -i "$SCRATCH/last.data" -F comm
snapshot cpu team/calls -C 0
grep -qx ' *\[000\] *' < <(perf script -i "$SCRATCH/cpu.data" -F cpu) || fail "no record of CPU 0"
expect_eq "$(perf script -i "$SCRATCH/cpu.data" -F cpu | sort -u | wc -l)" 1 "CPUs with -C 0"
snapshot pid team/calls --pid "$burner,$$"
expect_eq "$(perf script -i "$SCRATCH/all.data" -F pid | grep -cwE "$burner|$$" || true)" \
	"$(samples "$SCRATCH/pid.data")" "records with --pid"

# A ring that was overwritten reaches back less far than requested.
perfctl create own/small -e raw_syscalls:sys_enter -m 4K >/dev/null
wait_until 30 more_records_than 1000 own/small
snapshot back own/small --last 1h
expect_match "$OUT" 'own/small reaches back [0-9.]+ s only'
snapshot back own/uprobe --last 1h
[[ $OUT != *'reaches back'* ]] || fail "an event that holds all it ever had is said to lack some"

# ── who and how ──────────────────────────────────────────────────────────────────────────

mkdir -m 0777 "$SCRATCH/free"
expect_ok as_member perfctl snapshot -o "$SCRATCH/free/member.data"
expect_match "$OUT" 'records of 2 events'
quiet perf script -i "$SCRATCH/free/member.data" --force
shows 'sched:sched_switch: ' "a member's file"
expect_exit 4 as_member perfctl snapshot own/profile -o "$SCRATCH/free/other.data"
expect_exit 3 as_user perfctl snapshot -o "$SCRATCH/free/other.data"
[ ! -e "$SCRATCH/free/other.data" ] || fail "a user without the right to read has a file"

expect_ok perfctl --json snapshot team/calls -o "$SCRATCH/json.data"
expect_eq "$(jq -c '[.events, .records, .bytes, .damaged]' <<<"$(grep '^{' <<<"$OUT")")" \
	"[1,$n,$(stat -c %s "$SCRATCH/json.data"),0]" "what --json says"
expect_ok perfctl --direct snapshot team/calls -o "$SCRATCH/direct.data"
times "$SCRATCH/direct.data" | cmp - "$SCRATCH/times" || fail "--direct has other records"
expect_ok perfctl save -o "$SCRATCH/save" team/calls
expect_ok perfctl "--saved=$SCRATCH/save" snapshot -o "$SCRATCH/saved.data"
times "$SCRATCH/saved.data" | cmp - "$SCRATCH/times" || fail "--saved has other records"
quiet perf report --stdio -i "$SCRATCH/saved.data"

# ── whole or absent ──────────────────────────────────────────────────────────────────────

mkdir "$SCRATCH/place"
expect_exit 1 perfctl snapshot -o "$SCRATCH/place"
expect_exit 1 perfctl snapshot -o "$SCRATCH/nowhere/perf.data"
expect_exit 1 perfctl snapshot -o /dev/full
[ -c /dev/full ] || fail "a device was replaced by a file"
OUT=$(perfctl snapshot -o - 2>&1 >/dev/full) && fail "a write to a full device looks like success"
expect_match "$OUT" '^perfctl: .*No space left on device'
OUT=$({ perfctl snapshot -o - 2>&1 >&3 || true; } 3> >(exec true) | grep -v 'has missed' || true)
expect_match "$OUT" '^(perfctl: .*Broken pipe.*|[0-9]+ records .*)$'
if mount -t tmpfs -o size=64K perfpersist-test "$SCRATCH/place" 2>/dev/null; then
	expect_exit 1 perfctl snapshot -o "$SCRATCH/place/perf.data"
	left=$(find "$SCRATCH/place" -type f)
	umount "$SCRATCH/place"
	expect_match "$OUT" 'No space left on device'
	expect_eq "$left" "" "what is left on a full disk"
fi
printf old >"$SCRATCH/place/perf.data"
(cd "$SCRATCH/place" && perfctl snapshot team/calls >/dev/null 2>&1)
times "$SCRATCH/place/perf.data" | cmp - "$SCRATCH/times" || fail "the default's file is another"
expect_eq "$(find "$SCRATCH/place" -mindepth 1 | wc -l)" 1 "files in the directory"
