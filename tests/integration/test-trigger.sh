#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Triggers: what fires freezes events of all kinds, and `perfctl snapshots collect` makes one file of
# each firing. Each record is in exactly one file or still in the buffers, whatever fires how often,
# and whoever is killed meanwhile; each firing is counted; nothing stays behind.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"
. "$(dirname "$0")/../collector.sh"

command -v perf >/dev/null || skip "needs perf"
command -v jq >/dev/null || skip "needs jq"
mapfile -t CPUS < <(tr -cs '0-9\n' ' ' <<<"$(taskset -pc $$ | sed 's/.*: //; s/-/ /')" | tr ' ' '\n')
# Programs with names of their own: another run of this test may be under way.
MARK=$SCRATCH/mark-$$
cp "$(type -P true)" "$MARK"
NUMBERED=$SCRATCH/num-$$
cp "$BIN/numbered" "$NUMBERED"
# A file system of its own, which nobody else sees, for files in want of room.
SPOOL=$SCRATCH/spool
mkdir "$SPOOL"

nothing_frozen() {
	[ "$(perfctl limits --json | jq '[.. | .held? // empty] | add // 0')" = 0 ]
}

# all_saved TRIGGER N: all that it fired at is saved. An event that waits to be turned is not armed.
all_saved() {
	armed "$@"
	wait_until 20 nothing_frozen || fail "something is frozen, and nobody saves it"
}

files() {
	find "$1" -name '*.data' | sort -t. -k6n -k7n
}

# expect_files N DIRECTORY
expect_files() {
	expect_eq "$(files "$2" | wc -l)" "$1" "snapshots in $2"
	expect_eq "$(find "$2" -mindepth 1 ! -name '*.data')" "" "what else is in $2"
}

# collect N DIRECTORY: until that many are there; what has just been frozen is ready a moment later.
collect() {
	_collected() {
		perfctl snapshots collect --once -D "$2" >>"$LOG" 2>&1
		[ "$(files "$2" | wc -l)" -ge "$1" ]
	}
	wait_until 20 _collected "$@" || true
	expect_files "$@"
}

# ── every kind, at one moment ────────────────────────────────────────────────────────────

start_daemon
collected=$SCRATCH/kinds
mkdir "$collected"
perfctl create k/hot -e sched:sched_switch -m 128K >/dev/null
perfctl create k/generic -e sched:sched_waking --generic -m 128K >/dev/null
perfctl create k/calls -e raw_syscalls:sys_enter -m 128K >/dev/null
perfctl create k/several -e 'raw_syscalls:sys_exit,timer:hrtimer_start' -m 128K >/dev/null
perfctl create k/samples -e cpu-clock -F 500 -g -m 128K >/dev/null
kinds=5
if perfctl create k/probe -e "uprobe:$BIN/probe-target:pp_work" -m 64K >/dev/null 2>&1; then
	kinds=6
else
	echo "SKIP: this kernel has no uprobes"
fi
perfctl create other/event -e sched:sched_switch >/dev/null
perfctl trigger add k/mark --on sched:sched_process_exec --filter "filename ~ \"*/${MARK##*/}\"" --hold-off 10ms '*' >/dev/null

# newest FILE CPU: the event of its newest record. An interrupt between the trigger's record and the
# freezing, a microsecond later, records too.
BY_INTERRUPTS='timer:hrtimer_start|sched:sched_waking|cpu-clock'
newest() {
	perf script -i "$1" -F cpu,event 2>/dev/null | grep -F "$2" | grep -vE "$BY_INTERRUPTS" | tail -n 1
}

for ((i = 1; i <= $(length 3 50); i++)); do
	armed k/mark $kinds
	[ $kinds -lt 6 ] || "$BIN/probe-target" 3 <<<'' >/dev/null
	taskset -c "${CPUS[i % ${#CPUS[@]}]}" "$MARK"
	collect $i "$collected"
	file=$(perfctl snapshots show -D "$collected")
	cpu=$(perf script -i "$file" -F cpu,event 2>/dev/null | awk '/sched_process_exec/ { print $1 }' | tail -n 1)
	expect_match "$(newest "$file" "$cpu")" 'sched:sched_process_exec' "the newest record on $cpu"
	expect_eq "$cpu" "$(printf '[%03d]' "${CPUS[i % ${#CPUS[@]}]}")" "the CPU that fired"
done
perfctl script -i "$file" 2>/dev/null >"$SCRATCH/ours"
perf script -i "$file" 2>/dev/null >"$SCRATCH/theirs"
for event in sched_switch sched_waking raw_syscalls:sys_enter raw_syscalls:sys_exit cpu-clock sched_process_exec; do
	count=$(grep -c "$event:" "$SCRATCH/theirs") || fail "no $event in $file"
	expect_eq "$(grep -c "$event:" "$SCRATCH/ours")" "$count" "$event, as perfctl prints it"
done
[ $kinds -lt 6 ] || grep -q pp_work "$SCRATCH/theirs" || fail "no probe in $file"
expect_eq "$(trigger_field k/mark fired)" $((i - 1)) "firings"
expect_eq "$(trigger_field k/mark late)" 0 "late"
expect_eq "$(perfctl snapshots list -D "$collected" --json | jq -c '[.[].number]')" \
	"$(seq $((i - 1)) | jq -sc .)" "their numbers"
# shellcheck disable=SC2046
perfctl delete $(perfctl list k | awk 'NR > 1 { print $1 "/" $2 }') >/dev/null
echo "$kinds kinds of events, frozen $((i - 1)) times: what fired is the newest record"

# ── every record once ────────────────────────────────────────────────────────────────────

# The numbers of calls that `numbered` made, one per line: of files, and of an event's buffers.
numbers_of_files() {
	local file
	for file; do
		perf script -i "$file" -F event,trace 2>/dev/null
	done | sed -nE 's/.*NR 3 \(ffffffffffffffff, ([0-9a-f]+),.*/\1/p'
}

numbers_of_event() {
	perfctl reopen "$1" -n all 2>/dev/null | sed -nE 's/.*NR 3 \(ffffffffffffffff, ([0-9a-f]+),.*/\1/p'
}

FIRST=$((0x50000000)) # of the numbers
MADE=0                # calls so far
CHUNK=500

# calls N: makes them, in processes that come and go.
calls() {
	local end=$((MADE + $1))
	for (( ; MADE < end; MADE += CHUNK)); do
		"$NUMBERED" $((FIRST + MADE)) $CHUNK
	done
}

# expect_calls DIRECTORY EVENT: all calls, in the files and in the event's buffers, each once.
expect_calls() {
	local paths
	mapfile -t paths < <(files "$1")
	{
		numbers_of_files "${paths[@]}"
		numbers_of_event "$2"
	} | sort >"$SCRATCH/numbers"
	expect_eq "$(uniq -d "$SCRATCH/numbers" | wc -l)" 0 "calls that are there twice"
	expect_eq "$(stat_of "$2" missed)" 0 "missed calls"
	expect_eq "$(wc -l <"$SCRATCH/numbers")" $MADE "calls in ${#paths[@]} snapshots and the buffers"
	expect_eq "$(head -n 1 "$SCRATCH/numbers") $(tail -n 1 "$SCRATCH/numbers")" \
		"$(printf '%x %x' $FIRST $((FIRST + MADE - 1)))" "the first and the last"
}

# expect_sum DIRECTORY EVENT TRACEPOINT: as many records as were ever written; it is paused.
expect_sum() {
	local file sum
	sum=$(perfctl reopen "$2" -n all --json 2>/dev/null | wc -l)
	for file in $(files "$1"); do
		sum=$((sum + $(perf script -i "$file" -F event 2>/dev/null | grep -c "$3" || true)))
	done
	expect_eq "$sum" "$(records_of "$2")" "records of $2, in files and buffers"
}

collected=$SCRATCH/exact
perfctl create e/calls -e raw_syscalls:sys_enter --filter 'id == 3' --comm "${NUMBERED##*/}" -m 4M >/dev/null
perfctl create e/returns -e raw_syscalls:sys_exit --generic --comm "${NUMBERED##*/}" -m 4M >/dev/null
perfctl create e/switches -e sched:sched_switch --comm "${NUMBERED##*/}" -m 4M >/dev/null
perfctl trigger add e/storm --on syscalls:sys_enter_close --comm "${NUMBERED##*/}" --hold-off 10ms -m 4M '*' >/dev/null
armed e/storm 3
start_collector "$collected"
# Another one beside it takes nothing from it.
spawn bash -c 'while :; do "$@" snapshots collect --once --max-files-of-trigger 9999 --max-files 9999 -D "$0" 2>/dev/null; sleep 0.3; done' "$collected" "${PERFCTL[@]}"
BESIDE=$SPAWNED
# The buffers hold so many calls, if the collector is slow.
for ((i = 0; i < $(length 1 15); i++)); do
	calls $((CHUNK * 40))
	all_saved e/storm 3
done
kill "$BESIDE"
wait "$BESIDE" 2>/dev/null || true
# While something is saved, the next firings save nothing; then each of these does.
for _ in 1 2; do
	calls $CHUNK
	all_saved e/storm 3
done
# Before its buffers overflow: looking at all the files takes a while.
perfctl pause e/returns e/switches >/dev/null
fired=$(trigger_field e/storm fired)
expect_eq "$((fired + $(trigger_field e/storm held)))" "$(records_of e/storm)" "firings and held ones"
expect_calls "$collected" e/calls
expect_sum "$collected" e/returns raw_syscalls:sys_exit
expect_sum "$collected" e/switches sched:sched_switch
[ "$(files "$collected" | wc -l)" -ge 3 ] || fail "it fired $fired times, and there are few files"
echo "$MADE calls, each once in $(files "$collected" | wc -l) snapshots of $fired firings ($(trigger_field e/storm late) late)"
perfctl resume e/returns e/switches >/dev/null
armed e/storm 3

# ── and whoever is killed ────────────────────────────────────────────────────────────────

# restart VICTIM: kills it, as soon as the trigger has fired, and has it again.
restart() {
	case $1 in
	broker)
		kill_broker
		wait_until 20 _no_processes
		start_daemon
		;;
	engine) kill_engine ;;
	collector) kill -KILL "$(<"$SCRATCH/collector")" ;;
	esac
}

has_engine() {
	[ "$(engine_pid)" -gt 0 ]
}

perfctl trigger add e/mark --on sched:sched_process_exec --filter "filename ~ \"*/${MARK##*/}\"" --hold-off 10ms '*' >/dev/null
perfctl trigger remove e/storm >/dev/null
marks=0
for ((i = 0; i < $(length 1 10); i++)); do
	for victim in broker engine collector; do
		calls $CHUNK
		all_saved e/mark 3
		"$MARK"
		marks=$((marks + 1))
		restart $victim
		calls $CHUNK
	done
done
all_saved e/mark 3
expect_eq "$(trigger_field e/mark fired) $(trigger_field e/mark late)" "$marks 0" "firings, and late ones"
expect_eq "$(perfctl snapshots list -D "$collected" --json | jq -c '[.[] | select(.trigger == "mark").number]')" \
	"$(seq $marks | jq -sc .)" "a snapshot for each firing"
expect_calls "$collected" e/calls
echo "broker, engine and collector killed after $marks firings: one snapshot each, and all $MADE calls once"

# The engine dies while it turns and arms, again and again.
perfctl trigger add e/storm --on syscalls:sys_enter_close --comm "${NUMBERED##*/}" --hold-off 10ms -m 4M '*' >/dev/null
armed e/storm 3
for ((i = 0; i < $(length 3 50); i++)); do
	calls $((2 * CHUNK))
	kill_engine
	calls $CHUNK
	wait_until 20 has_engine
	# Else the engine never gets to arm anything, and the buffers overflow.
	[ $((i % 5)) -ne 4 ] || armed e/storm 3
done
all_saved e/storm 3
end_collector
perfctl pause e/returns e/switches >/dev/null
expect_eq "$(($(trigger_field e/storm fired) + $(trigger_field e/storm held)))" "$(records_of e/storm)" "firings and held ones"
expect_calls "$collected" e/calls
expect_sum "$collected" e/returns raw_syscalls:sys_exit
expect_sum "$collected" e/switches sched:sched_switch
expect_eq "$(find "$collected" -mindepth 1 ! -name '*.data')" "" "what else is among the snapshots"
echo "the engine killed $i times while a trigger fired: all $MADE calls once in $(files "$collected" | wc -l) snapshots"

# ── writers that are late ────────────────────────────────────────────────────────────────

# A filter of some microseconds stands between a program's look at the side and its record. What fires runs
# on all CPUs, as often as it may.
perfctl delete --all e other >/dev/null
late=$SCRATCH/late
slow=$(seq -f "COMM ~ \"*n*u*m*-*%g*\" ||" 1000 1029)
perfctl create l/slow -e raw_syscalls:sys_enter \
	--filter "id == 3 && (${slow//$'\n'/ } COMM ~ \"${NUMBERED##*/}\")" -m 4M >/dev/null
perfctl trigger add l/elsewhere --on sched:sched_switch --hold-off 10ms slow >/dev/null
start_collector "$late"
FIRST=$((FIRST + MADE)) MADE=0
calls $((CHUNK * $(length 100 4000)))
saved_thrice() {
	calls $CHUNK
	[ "$(files "$late" | wc -l)" -ge 3 ]
}
wait_until 20 saved_thrice || true
perfctl pause l/elsewhere >/dev/null
all_saved l/elsewhere 1
end_collector
expect_calls "$late" l/slow
[ "$(files "$late" | wc -l)" -ge 3 ] || fail "it fired $(trigger_field l/elsewhere fired) times, and there are few files"
echo "$MADE calls, each recorded late, once in $(files "$late" | wc -l) snapshots"
perfctl delete l/slow l/elsewhere >/dev/null

# ── what it counts ───────────────────────────────────────────────────────────────────────

# expect_counts TRIGGER FIRED HELD SPENT LATE
expect_counts() {
	expect_eq "$(perfctl trigger show "$1" --json | jq -r '"\(.fired) \(.held) \(.spent) \(.late)"')" \
		"${*:2}" "fired, held, spent and late of $1"
}

# mark N: fires what waits for it, N times, further apart than the hold-off.
mark() {
	local i
	for ((i = 0; i < $1; i++)); do
		"$MARK"
		sleep 0.02
	done
}

ON_MARK=(--on sched:sched_process_exec --filter "filename ~ \"*/${MARK##*/}\"" --hold-off 10ms)
perfctl create c/one -e sched:sched_switch -m 64K >/dev/null
perfctl create c/two -e raw_syscalls:sys_exit -m 64K >/dev/null
collected=$SCRATCH/counted
mkdir "$collected"

perfctl trigger add c/days "${ON_MARK[@]}" --max-per-day 3 one >/dev/null
armed c/days 1
mark 1
armed c/days 1
mark 4
expect_counts c/days 3 0 2 1 # one is frozen, one turned, one late
expect_eq "$(perfctl show c/one --json | jq -r .state)" frozen "state of what is frozen twice"
expect_match "$(perfctl snapshot c/one -o "$SCRATCH/twice.data" 2>&1)" 'c/one: triggers have frozen it twice' "what a snapshot says"
collect 2 "$collected"
expect_eq "$(perfctl show c/one --json | jq -r .state)" running "state when that is saved"
perfctl trigger remove c/days >/dev/null
perfctl trigger add c/late "${ON_MARK[@]}" one two >/dev/null
armed c/late 2
mark 1
armed c/late 2
mark 3
expect_counts c/late 4 0 0 4
collect 4 "$collected"
expect_eq "$(perfctl snapshots list -D "$collected" --json | jq -c '[.[] | select(.trigger == "late").number]')" '[1,2]' \
	"those that found a set"
all_saved c/late 2
expect_files 4 "$collected" # and not one of each event
mark 1
collect 5 "$collected"
perfctl trigger remove c/late >/dev/null
# Nothing to freeze: by a record, and by hand.
perfctl trigger add c/none "${ON_MARK[@]}" none >/dev/null
mark 1
expect_counts c/none 1 0 0 1
expect_eq "$(perfctl trigger fire c/none --json)" '[{"namespace":"c","name":"none"}]' "what fire says, as JSON"
expect_counts c/none 2 0 0 2
id=$(trigger_field c/none id)
expect_eq "$(perfctl trigger remove c/none --json)" "[{\"namespace\":\"c\",\"name\":\"none\",\"id\":$id}]" "what remove says"
echo "fired, held, spent and late are what happened"

exported() {
	expect_ok perfctl snapshots export -D "$collected" "$@"
}
file=$(perfctl snapshots show -D "$collected")
expect_ok perfctl report -i "$file" --html "$SCRATCH/report.html"
exported "${file##*/}" --html "$SCRATCH/page.html" --json
expect_eq "$OUT" "{\"output\":null,\"html\":\"$SCRATCH/page.html\"}" "what export says, as JSON"
exported "${file##*/}" --html "$SCRATCH/page.html"
expect_eq "$OUT" "$SCRATCH/page.html" "what export says"
cmp "$SCRATCH/report.html" "$SCRATCH/page.html" || fail "another page than that of report"
rm "$SCRATCH/page.html"
exported -o "$SCRATCH/copy.data" --html "$SCRATCH/page.html"
cmp "$SCRATCH/report.html" "$SCRATCH/page.html" || fail "with -o, another page than that of report"
cmp "$file" "$SCRATCH/copy.data" || fail "another file than the snapshot"
said 2 'mutually exclusive' perfctl snapshots export -D "$collected" -o - --html -
echo "a page of a snapshot is that of report"

# As many firings as the broker is told of at a time (FIRINGS_SIZE), and then one more. It finds that
# when it looks around, after ten seconds.
if full; then
	cp "$MARK" "$SCRATCH/late-$$"
	perfctl trigger add c/untold --on sched:sched_process_exec --filter "filename ~ \"*/late-$$\"" two >/dev/null
	for ((i = 0; i < 32; i++)); do
		perfctl trigger add c/noise$i "${ON_MARK[@]}" none >/dev/null
	done
	armed c/untold 1
	kill -STOP "$DAEMON_PID"
	mark 40
	"$SCRATCH/late-$$"
	kill -CONT "$DAEMON_PID"
	expect_counts c/noise0 40 0 0 40 # each without a target
	collect 6 "$collected"
	perfctl trigger remove c/untold >/dev/null
	perfctl delete $(seq -f 'c/noise%g' 0 31) >/dev/null
	rm "$(perfctl snapshots show -D "$collected")"
	echo "a firing that the broker is not told of is found"
fi

# ── by hand, and while other things change ───────────────────────────────────────────────

# memory_is N: for wait_until.
memory() {
	perfctl limits --json | json_field memory 1
}

memory_is() {
	[ "$(memory)" = "$1" ]
}

disarmed() {
	[ -z "$(find "$REGISTRY" -name tape -o -name spare -o -name '+tape*' -o -name '+del*')" ]
}

wait_until 20 disarmed || fail "a trigger was removed, and its targets stay armed: $(find "$REGISTRY" -path '*/+[dt]*' -o -name tape -o -name spare)"
alone=$(memory)
perfctl trigger add c/hand --on sched:sched_process_exec --filter "filename ~ \"*/${MARK##*/}\"" --hold-off 1m '*' >/dev/null
armed c/hand 2
memory_is "$alone" && fail "a second set of buffers costs nothing"
expect_ok perfctl trigger fire c/hand
said 1 'hold-off' perfctl trigger fire c/hand
said 3 "no event 'none'" perfctl trigger fire c/none
said 3 "no event 'none'" perfctl trigger remove c/none
said 1 'no trigger' perfctl trigger remove c/one
said 2 'no trigger' perfctl trigger fire c/one
collect 6 "$collected"
perfctl trigger remove c/hand >/dev/null
wait_until 20 disarmed
# The trigger had a buffer as well, which is gone.
wait_until 20 memory_is "$alone" || fail "memory is still charged: $(perfctl limits)"

MADE=0
collected=$SCRATCH/changed
perfctl create c/calls -e raw_syscalls:sys_enter --filter 'id == 3' --comm "${NUMBERED##*/}" -m 4M >/dev/null
perfctl trigger add c/storm --on syscalls:sys_enter_close --comm "${NUMBERED##*/}" --hold-off 10ms '*' >/dev/null
armed c/storm 3
start_collector "$collected"
calls $((4 * CHUNK))
perfctl delete c/two >/dev/null
calls $((4 * CHUNK))
armed c/storm 2
perfctl pause c/one >/dev/null
calls $((4 * CHUNK))
armed c/storm 1
perfctl resume c/one >/dev/null
armed c/storm 2
# What has been turned twice cannot be changed until the first is saved, and says so.
change_filter() {
	until perfctl change c/calls --comm "${NUMBERED##*/}" --filter "$1" >/dev/null 2>"$SCRATCH/refused"; do
		expect_match "$(<"$SCRATCH/refused")" 'or saved just now; try again|have frozen of c/calls waits' "a change while it fires"
	done
}
for filter in 'id == 3 && common_pid > 0' 'id == 3'; do
	spawn change_filter "$filter"
	calls $((4 * CHUNK))
	wait "$SPAWNED" || fail "cannot change the filter of c/calls"
done
armed c/storm 2
calls $((4 * CHUNK))
all_saved c/storm 2
expect_calls "$collected" c/calls
expect_ok perfctl change c/calls -m 1M # empty ones
armed c/storm 2
calls $((4 * CHUNK))
all_saved c/storm 2
end_collector
echo "fired by hand, and changed while armed: memory comes back"

# ── a place that is full, and limits ─────────────────────────────────────────────────────

# The daemon's registry is in the mount namespace that this test has, too; only the directory differs.
spawn unshare --mount sh -c "mount -t tmpfs -o size=8M tmpfs '$SPOOL' && touch '$SPOOL/.ready' && exec sleep 600"
ROOM=$SPAWNED
in_room() {
	nsenter -t "$ROOM" -m -- "$@"
}
wait_until 20 in_room test -e "$SPOOL/.ready"
in_room rm "$SPOOL/.ready"

room_files() {
	in_room find "$SPOOL" -mindepth 1 -printf '%f\n' | sort -t. -k4n
}

# numbers [TRIGGER]: of the firings whose snapshots are there.
numbers() {
	room_files | grep "^[^.]*\.s\.${1:-mark}\..*\.data$" | cut -d. -f4 | xargs
}

save_to_room() {
	in_room "${PERFCTL[@]}" snapshots collect --once -D "$SPOOL" "$@" >>"$LOG" 2>&1
}

newest_in_room() {
	save_to_room
	[[ "$(numbers)" =~ (^| )$1$ ]]
}

tapes() {
	[ -n "$(find "$REGISTRY" -maxdepth 1 -name '+tape*')" ]
}

# Each snapshot has the sideband of all that ran: how much, does not depend on the machine.
write_conf "MaxSideband=1M"
expect_ok perfctl reload
# The snapshots find older ones of another trigger, which leave room for none.
perfctl delete --all c >/dev/null
perfctl create s/calls -e raw_syscalls:sys_enter --filter 'id == 3' --comm "${NUMBERED##*/}" -m 1M >/dev/null
perfctl trigger add s/mark "${ON_MARK[@]}" calls >/dev/null
for ((i = 1; i <= 27; i++)); do
	head -c 300K /dev/zero | in_room tee "$SPOOL/2026-01-01T00-00-00Z.s.old.$i.old-1.$i.data" >/dev/null
done
MADE=0
freeze() {
	armed s/mark 1
	calls "$CHUNK"
	mark 1
	wait_until 20 tapes
}
for ((i = 1; i <= 3; i++)); do
	calls $((8 * CHUNK))
	freeze
	wait_until 20 newest_in_room $i || fail "the newest one finds no room: $(in_room du -k "$SPOOL"/*)"
	expect_eq "$(room_files | sed '/\.data$/d')" '' "parts of files"
	newest=$(in_room find "$SPOOL" -name "*.s.mark.$i.*")
	expect_eq "$(in_room perf script -i "$newest" -F event | grep -c exec)" 1 "what fired, in the snapshot"
done
expect_eq "$(numbers)" "1 2 3" "the newest are kept"
expect_match " $(numbers old)" '.* 25 26 27$' "of the older ones, the newest are kept"
[ "$(numbers old | wc -w)" -lt 27 ] || fail "there was room enough"
in_room find "$SPOOL" -name '*.data' -delete
in_room dd if=/dev/zero of="$SPOOL/others" bs=1M count=9 status=none 2>/dev/null || true
freeze
has_no_room() {
	! save_to_room
}
wait_until 20 has_no_room || fail "it found room where there is none"
expect_eq "$(room_files)" others "what is in a full directory"
tapes || fail "what could not be written is gone"
# Who takes whatever becomes free does not have the older ones removed, one after the other.
in_room rm "$SPOOL/others"
for ((i = 1; i <= 9; i++)); do
	head -c 300K /dev/zero | in_room tee "$SPOOL/2026-01-01T00-00-00Z.s.old.$i.old-1.$i.data" >/dev/null
done
spawn nsenter -t "$ROOM" -m -- perl -e 'open(my $f, ">>", $ARGV[0]); while (1) { syswrite($f, "x" x 65536) or syswrite($f, "x" x 4096) }' "$SPOOL/others"
thief=$SPAWNED
is_taken() {
	[ "$(in_room stat -f -c %a "$SPOOL")" -eq 0 ]
}
wait_until 20 is_taken
has_no_room || fail "it found room that somebody takes"
[ "$(numbers old | wc -w)" -ge 6 ] || fail "of nine older ones these are left: $(numbers old)"
tapes || fail "what could not be written is gone"
rest "$thief"
wait "$thief" 2>/dev/null || true
in_room rm "$SPOOL/others"
save_to_room || fail "there is room again"
expect_eq "$(numbers)" 4 "after room was made"
echo "a full file system: older ones go, and the newest waits"

kept=$SCRATCH/kept
mkdir "$kept"
# saved N OPTION…: for wait_until; what has just been frozen is ready a moment later.
saved() {
	perfctl snapshots collect --once -D "$kept" "${@:2}" >>"$LOG" 2>&1
	[ "$(perfctl snapshots list -D "$kept" --json | jq '.[-1].number')" = "$1" ]
}
perfctl trigger add s/other "${ON_MARK[@]}" none >/dev/null
for ((i = 5; i <= 10; i++)); do
	freeze
	wait_until 20 saved $i --max-files 3
done
expect_eq "$(perfctl snapshots list -D "$kept" --json | jq -c '[.[].number]')" '[8,9,10]' "with --max-files 3"
for ((i = 11; i <= 12; i++)); do
	freeze
	wait_until 20 saved $i --max-files-of-trigger 2
done
expect_eq "$(perfctl snapshots list -D "$kept" --json | jq -c '[.[].number]')" '[11,12]' "with --max-files-of-trigger 2"

latest=$(perfctl snapshots show -D "$kept" --json)
expect_eq "$(perfctl snapshots delete latest -D "$kept" --json)" "[$latest]" "what delete says, as JSON"
expect_eq "$(perfctl snapshots list -D "$kept" --json | jq -c '[.[].number]')" '[11]' "what is left"

# A file that looks like that of another firing: the trigger counts anew, and ids in names run ahead of tapes.
head -c 300K /dev/zero | tee "$kept/2026-01-01T00-00-00Z.s.old.1.old-1.9999999999999999.data" >/dev/null
anew_saved() {
	perfctl snapshots collect --once -D "$kept" >>"$LOG" 2>&1
	[ "$(find "$kept" -name '*.s.anew.1.hand-0.*.data' | wc -l)" = "$1" ]
}
for i in 1 2; do
	perfctl trigger add s/anew "${ON_MARK[@]}" calls >/dev/null
	armed s/anew 1
	calls $CHUNK
	perfctl trigger fire s/anew >/dev/null
	wait_until 20 anew_saved $i || fail "of two first firings, a moment apart, $i is not saved"
	perfctl trigger remove s/anew >/dev/null
done
rm "$kept"/*.s.anew.* "$kept"/*.s.old.*

# A collector that is killed while it writes.
for ((i = 13; i <= $(length 14 28); i++)); do
	freeze
	perfctl snapshots collect --once -D "$kept" >/dev/null 2>&1 &
	sleep 0.0$((i % 10))
	kill -KILL $! 2>/dev/null || true
	wait $! 2>/dev/null || true
	wait_until 20 saved $i || fail "firing $i is not saved"
	expect_eq "$(find "$kept" -mindepth 1 ! -name '*.data' | wc -l)" 0 "parts of files"
done
for file in "$kept"/*.data; do
	perf script -i "$file" >/dev/null 2>"$SCRATCH/damaged" || fail "perf cannot read $file: $(<"$SCRATCH/damaged")"
done
kill "$ROOM"
echo "limits hold across collectors, and a killed one leaves no part of a file"

# ── no room for a second set ─────────────────────────────────────────────────────────────

perfctl delete --all >/dev/null
write_conf "[namespace z]
MaxMemory=$(($(getconf _NPROCESSORS_ONLN) * 3 / 2))M"
expect_ok perfctl reload
perfctl create z/calls -e raw_syscalls:sys_enter --filter 'id == 3' --comm "${NUMBERED##*/}" -m 1M >/dev/null
perfctl trigger add z/mark "${ON_MARK[@]}" -m 16K calls >/dev/null
collected=$SCRATCH/single
mkdir "$collected"
MADE=0
# is_due: whether the path unit would start the service.
is_due() {
	local glob
	while read -r glob; do
		! compgen -G "$REGISTRY/${glob##*/}" >/dev/null || return 0
	done < <(sed -n 's/^PathExistsGlob=//p' "$ROOT/units/perfpersist-snapshots.path")
	return 1
}
is_saved() {
	! is_due
}
for ((i = 1; i <= 3; i++)); do
	armed z/mark 1
	is_saved || fail "the path unit sees something to save, and there is nothing"
	calls $((2 * CHUNK))
	mark 1
	wait_until 20 is_due || fail "the path unit does not see what is frozen"
	[ $i -ne 2 ] || kill_engine
	collect $i "$collected"
	wait_until 20 is_saved || fail "the path unit sees what is saved"
done
# It goes on in the same buffers.
expect_eq "$(numbers_of_files "$(files "$collected" | tail -n 1)" | sort -u | wc -l)" $MADE "calls in the last snapshot"
armed z/mark 1
write_conf
expect_ok perfctl reload
echo "without a second set: stopped, saved and resumed $((i - 1)) times"

# ── what is refused, and what is left ────────────────────────────────────────────────────

perfctl delete --all >/dev/null
perfctl create b/one -e sched:sched_switch >/dev/null
perfctl trigger add b/taken "${ON_MARK[@]}" none >/dev/null
warm_up
remember
add() {
	local code=$1 regex=$2
	shift 2
	refused "$code" "$regex" perfctl trigger add "$@"
}
on=(--on sched:sched_process_exec)
add 2 'own namespace' b/x "${on[@]}" other/event
add 2 '10 ms' b/x "${on[@]}" --hold-off 1ms one
add 2 'not a time' b/x "${on[@]}" --hold-off soon one
add 2 '--on EVENT is missing' b/x one
add 2 'has one --on' b/x "${on[@]}" "${on[@]}" one
add 2 'nothing to freeze' b/x "${on[@]}"
add 2 'needs a NAME'
add 2 'not a valid name' 9x "${on[@]}" one
add 3 'sched:no_such' b/x --on sched:no_such one
add 2 'no_such' b/x "${on[@]}" --filter 'no_such == 1' one
add 2 'above 0' b/x "${on[@]}" --max-per-day 0 one
add 2 'targets' b/x "${on[@]}" 'o ne'
add 6 'already' b/taken "${on[@]}" one
add 6 'already' b/one "${on[@]}" one
refused 2 'NAME' perfctl trigger fire
refused 3 'no trigger' perfctl trigger show b/one
refused 3 'no snapshot' perfctl snapshots show nothing -D "$kept"
refused 2 '.' perfctl snapshots collect --max-files 0
echo "$REFUSALS refusals"

perfctl trigger add b/mark "${ON_MARK[@]}" one >/dev/null
armed b/mark 1
mark 1
mkdir "$SCRATCH/last"
collect 1 "$SCRATCH/last"
write_conf KeepEvents=no
expect_ok perfctl reload
stop_daemon
# The kernel may free what was deleted later than the engine waits for that: then the next stop takes it along.
left_nothing() {
	[ ! -e "$RUN" ] || { start_daemon && stop_daemon && [ ! -e "$RUN" ]; }
}
wait_until 20 left_nothing || fail "this is left: $(find "$RUN" -printf '%P ')"
