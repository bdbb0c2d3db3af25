#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# perfctl: every verb and option does what --help says, with real events. Covers every form of a
# name, a size and a list; JSON that jq can read; aligned tables; the exit codes; --direct with and
# without a daemon; commands that inherit the rings.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"

start_daemon
CHECKS=0

# json FILTER WANT CMD…: compares the output of jq -r on the command's JSON.
json() {
	local filter=$1 want=$2 got
	shift 2
	got=$(perfctl "$@" --json 2>/dev/null) || fail "exit $?: $*"
	expect_eq "$(jq -r "$filter" <<<"$got")" "$want" "$filter of: $*"
	CHECKS=$((CHECKS + 1))
}

# text REGEX CMD…: compares stdout; stderr must stay empty.
text() {
	local regex=$1
	shift
	OUT=$(perfctl "$@" 2>"$SCRATCH/stderr") || fail "exit $?: $* ($(<"$SCRATCH/stderr"))"
	[ ! -s "$SCRATCH/stderr" ] || fail "on stderr of $*: $(<"$SCRATCH/stderr")"
	expect_match "$OUT" "$regex" "stdout of: $*"
	CHECKS=$((CHECKS + 1))
}

# rings_of NAMESPACE/EVENT: cpu0:cpu1:…
rings_of() {
	find "$REGISTRY/$1/" -name 'cpu*' -printf '%f\n' | sort -V | paste -sd:
}

echo "nothing there yet"
expect_eq "$(perfctl list --json)" '[]' "an empty list"
json length 0 list
text '^NAMESPACE +NAME +ID +EVENT +BUFFER +CPUS +RECORDS +MISSED +STATE$' list
text '^NAMESPACE ' -l
json .events 0 ping

echo "help and version"
for args in --help -h help "help --help" "help -h"; do
	# shellcheck disable=SC2086
	text 'Usage: perfctl \[OPTIONS\] VERB.*Exit codes: 0 done' $args
done
for verb in create list events reopen delete show change pause resume stat top watch limits reload ping; do
	for args in "$verb --help" "help $verb" "$verb -h" "--help $verb"; do
		# shellcheck disable=SC2086
		text "Usage: perfctl " $args
	done
	text "^perfctl $verb - .*Usage: perfctl $verb" help $verb
done
text '^perfctl [0-9]+\.[0-9]+' --version
json .release "$(sed -n 's/^VERSION := //p' "$ROOT/Makefile")" ping
expect_exit 2 "${PERFCTL[@]}"
expect_match "$OUT" 'Usage: perfctl' "no verb at all"
for args in nosuch "help nosuch" "list a/b/c" "ping a" "list --nosuch" "list -x" "show a/b/c" show reopen \
	delete "show a --id 1" "--instance" "create x -e" "reopen t/x --" "reopen t/x -n -1" "help a b"; do
	# shellcheck disable=SC2086
	said 2 'see .perfctl .*--help' perfctl $args
done

echo "ping"
text "of instance $INSTANCE is running: pid $DAEMON_PID, engine pid [0-9]+, 0 events, up " ping
json '.instance + " " + (.pid | tostring) + " " + (.version | tostring)' "$INSTANCE $DAEMON_PID 1" ping
json '.engine_pid' "$(program_pids perfpersist-engine)" ping

echo "events"
json '[.[] | "\(.event) \(.kind)"] | join(", ")' "cpu-clock software" events cpu-cl\*
json '.[] | select(.event | startswith("usdt:")) | .kind + " " + .about' "form a probe that its author put there" events 'usdt*'
text '^EVENT +KIND'$'\n''page-faults +software$' events page-faults
said 3 'records no page-fualts; did you mean page-faults\?$' perfctl events page-fualts
said 3 'no event that is listed fits nosuch\*' perfctl events 'nosuch*'
# An ordinary user does not see tracepoints, and is told so.
expect_ok as_user perfctl events
expect_match "$OUT" 'cpu-clock +software' "what an ordinary user sees"
if [ -e /sys/kernel/tracing/available_events ]; then
	expect_match "$OUT" 'perfctl: tracepoints .*are not listed, because the kernel shows them to root only' "what he does not see"
	text '^EVENT +KIND'$'\n''sched:sched_switch +tracepoint$' events sched:sched_swit\*
fi

echo "create: names"
text "^default/bare \(id [0-9]+\) records sched:sched_switch on CPUs .*, 512K each$" create bare -e sched:sched_switch
text '^one/slash ' create one/slash -e sched:sched_switch
text '^one/dash ' create -n one dash -e sched:sched_switch
text '^two/long ' create --namespace=two long --event sched:sched_switch
text '^_a-1/_B-2 ' -- create _a-1/_B-2 -e sched:sched_switch
text '^default/first ' create -e sched:sched_switch first
text '^default/last ' create -e sched:sched_switch -- last
json '[.[] | .namespace + "/" + .name] | join(" ")' \
	"default/bare one/slash one/dash two/long _a-1/_B-2 default/first default/last" list
json '[.[].id] == ([.[].id] | sort)' true list
json '[.[].id] | length == (unique | length)' true list

echo "create: sizes, and what they become"
n=0
page=$(getconf PAGESIZE)
for pair in 1:$page 3:$((4 * page)) 4:$((4 * page)) 64K:65536 100K:131072 64k:65536 65536B:65536 65537B:131072 \
	1M:1048576 1m:1048576 3M:4194304; do
	n=$((n + 1))
	json .buffer "${pair#*:}" create sizes/m$n -e cpu-clock -c 1000000000000 -m "${pair%:*}"
done
json .buffer 524288 create sizes/standard -e cpu-clock --count=1000000000000
json .buffer 131072 create sizes/long -e cpu-clock --mmap-pages 128K -c 1000000000000
json '[.[] | .buffer] | add' $((2 * page / 2 + 8 * page + 3 * 65536 + 3 * 131072 + 2 * 1048576 + 4194304 + 524288)) list sizes

echo "create: CPUs"
first=$(online_cpu)
all=$(cat /sys/devices/system/cpu/online)
json '"\(.cpus) \(.all_cpus)"' "$all true" create cpus/none -e cpu-clock
json '"\(.cpus) \(.all_cpus)"' "$all true" create cpus/a -e cpu-clock -a
json '"\(.cpus) \(.all_cpus)"' "$all true" create cpus/long -e cpu-clock --all-cpus
json '"\(.cpus) \(.all_cpus)"' "$first false" create cpus/first -e cpu-clock -C "$first"
json '"\(.cpus) \(.all_cpus)"' "$first false" create cpus/twice -e cpu-clock --cpu "$first,$first-$first"
json '"\(.cpus) \(.all_cpus)"' "$all false" create cpus/all -e cpu-clock -C "$all"
expect_eq "$(rings_of cpus/first)" "cpu$first" "rings of an event on one CPU"

echo "create: a rate for some of the events"
text ', 512K each; -F is for cpu-clock, and every occurrence of the other is recorded$' create rate/F -e sched:sched_waking,cpu-clock -F 99
text ' -c is for cpu-clock, task-clock, and every occurrence of the others is recorded$' \
	create rate/c -e sched:sched_waking,cpu-clock -e task-clock,sched:sched_wakeup -c 1000000000
text ', 512K each$' create rate/all -e task-clock,cpu-clock -F 99
text ', 512K each$' create rate/none -e sched:sched_waking,cpu-clock
said 2 'is a tracepoint, of which every occurrence is recorded; leave out the frequency' perfctl create rate/no -e sched:sched_waking -F 99
perfctl delete --all rate >/dev/null

echo "create: rates, call chains, recorders"
shape='"\(.recorder) \(.period) \(.freq) \(.callchain)"'
json "$shape" "overflow 0 999 false" create kinds/F -e cpu-clock -F 999
json "$shape" "overflow 0 99 false" create kinds/freq -e cpu-clock --freq 99
json "$shape" "overflow 1000003 0 false" create kinds/c -e cpu-clock -c 1000003
json "$shape" "overflow 0 99 true" create kinds/g -e cpu-clock -F 99 -g
json "$shape" "overflow 0 4000 false" create kinds/standard -e cpu-clock:u
json "$shape" "tp_btf 0 0 false" create kinds/hot -e sched:sched_switch
json "$shape" "generic 0 0 false" create kinds/generic -e sched:sched_switch --generic
json "$shape" "generic 0 0 false" create kinds/cold -e sched:sched_process_wait
json '[.[] | select(.name == "g")][0].sample_type | . % 64 >= 32' true list kinds

echo "list and show"
json '[.[] | .namespace] | unique | join(" ")' "one" list one
json '[.[] | .name] | join(" ")' "slash dash" -l one
json 'map(has("namespace") and has("name") and has("id") and has("event") and has("buffer") and
	has("cpus") and has("records") and has("missed") and has("state")) | all' true list
json '[.[].state] | unique | join(" ")' running list
# Names and globs as everywhere; a bare name is a namespace.
json '[.[] | .namespace + "/" + .name] | join(" ")' "one/slash one/dash" list one/
json '[.[] | .namespace + "/" + .name] | join(" ")' "two/long one/slash one/dash" list two/long one
json '[.[] | .name] | join(" ")' "F freq" list 'kinds/[Ff]*'
said 3 'no event that you may read fits nosuch/\*' perfctl list 'nosuch/*'
json '[.[] | .namespace + "/" + .name] | join(" ")' "one/slash one/dash kinds/g" show one/ kinds/g
json '[.[] | .name] | join(" ")' "slash" show 'one/s*'
text "^name +one/slash"$'\n'".*"$'\n\n'"name +one/dash"$'\n' show 'one/*'
expect_eq "$(perfctl stat 'one/*' kinds/c --interval-count 1 -I 20 --json | jq -r .name | xargs)" "slash dash c" "events of stat"
# A table is aligned: each column begins, or ends, at one position in all lines.
perfctl list >"$SCRATCH/table"
expect_eq "$(wc -l <"$SCRATCH/table")" $(($(perfctl list --json | jq length) + 1)) "lines of the table"
awk 'NR == 1 { name = index($0, "NAME  "); event = index($0, "EVENT"); id = event - 3
	       buffer = index($0, "BUFFER") + 5; cpus = index($0, "CPUS"); next }
     { if (substr($0, name - 1, 1) != " " || substr($0, name, 1) == " " ||
	   substr($0, id, 1) !~ /[0-9]/ || substr($0, event - 1, 1) != " " || substr($0, event, 1) == " " ||
	   substr($0, buffer, 1) == " " || substr($0, cpus - 1, 1) != " " || substr($0, cpus, 1) == " ")
		{ print "not aligned: " $0; exit 1 } }' "$SCRATCH/table" || fail "the table"
! grep -q ' $' "$SCRATCH/table" || fail "blanks at the end of a line"
id=$(perfctl show bare --json | jq .id)
json .id "$id" show default/bare
json .name bare show --id "$id"
json .name bare show --id="$id"
text "^name +default/bare"$'\n'"id +$id"$'\n'"event +sched:sched_switch"$'\n'"state +running"$'\n'"recorder +tp_btf" show bare
text "reopen with  perfctl --instance $INSTANCE reopen kinds/g" show kinds/g
text "frequency +99 Hz"$'\n'"call chains +user and kernel" show kinds/g
text "period +1000003" show kinds/c
json '"\(.owner) \(.group) \(.mode)"' "0 $DAEMON_GID 0640" show bare
# The texts in the registry agree with the daemon.
for name in default/bare kinds/g cpus/first; do
	json '"\(.id) \(.event) \(.buffer) \(.cpus)"' \
		"$(sed -n 's/^\(id\|event\|buffer\|cpus\)=//p' "$REGISTRY/$name/info" | awk '
			{ v[NR] = $0 } END { print v[1], v[2], v[3], v[4] }')" show $name
done

echo "reopen"
wait_until 20 more_records_than 100 default/bare
wait_until 20 more_records_than 20 kinds/g
lines() {
	perfctl reopen "$@" 2>/dev/null | wc -l
}
expect_summary() {
	expect_match "$(cat)" "^default/counted: $1 printed of $2 written, " "the summary"
}
expect_eq "$(lines bare)" 10 "records by default"
expect_eq "$(lines bare -n 3)" 3 "records with -n 3"
expect_eq "$(lines -n3 bare)" 3 "records with -n3"
[ "$(lines bare -n 0)" -gt 100 ] || fail "-n 0 is not everything"
[ "$(lines bare -n all)" -gt 100 ] || fail "-n all is not everything"
perfctl reopen bare -n 2 >/dev/null 2>"$SCRATCH/stderr"
expect_match "$(<"$SCRATCH/stderr")" \
	'^default/bare: 2 printed of [0-9]+ written, ([0-9]+|unknown) missed|missed unknown$' "the summary"
# --direct shows the event, even one whose buffers were replaced.
perfctl create counted -e raw_syscalls:sys_enter -m 4M --max-rate 200/s >/dev/null
wait_until 20 more_records_than 20 default/counted
perfctl pause counted >/dev/null
written=$(perfctl show --json counted | jq .records)
perfctl reopen counted -n all 2>&1 >/dev/null | expect_summary "$written" "$written"
perfctl change counted -m 64K >/dev/null
perfctl reopen counted -n all 2>&1 >/dev/null | expect_summary 0 "$written"
perfctl delete counted >/dev/null
record='^ +\[[0-9]{3}\] +[0-9]+\.[0-9]{9} +[0-9]+/[0-9]+ +sched:sched_switch: prev_comm=.* prev_pid=.* ==> next_comm='
expect_match "$(perfctl reopen bare -n 1 2>/dev/null)" "$record" "a record"
expect_match "$(perfctl reopen --id "$id" -n 1 2>/dev/null)" "$record" "a record, by id"
# As JSON: one object per line, in order of time, with the payload's fields.
perfctl reopen bare -n all --json 2>/dev/null >"$SCRATCH/records"
expect_eq "$(jq -s 'length' "$SCRATCH/records")" "$(wc -l <"$SCRATCH/records")" "objects, one a line"
expect_eq "$(jq -s '[.[].time] == ([.[].time] | sort)' "$SCRATCH/records")" true "in order of time"
expect_eq "$(jq -s 'map(.event == "sched:sched_switch" and (.fields | has("prev_comm") and has("next_pid"))
	and (has("cpu") and has("pid") and has("tid"))) | all' "$SCRATCH/records")" true "all fields are there"
echo "  $(wc -l <"$SCRATCH/records") records as JSON, in order of time"
expect_eq "$(perfctl reopen kinds/g -n all --json 2>/dev/null |
	jq -s 'map((.callchain | length) > 0 and (.ip | startswith("0x"))) | all and length > 0')" true "call chains"
# Hot and generic recorders write the same fields.
wait_until 20 more_records_than 10 kinds/generic
expect_eq "$(perfctl reopen kinds/generic -n 1 --json 2>/dev/null | jq -c '.fields | keys')" \
	"$(perfctl reopen kinds/hot -n 1 --json 2>/dev/null | jq -c '.fields | keys')" "fields of both recorders"

echo "reopen: several events, and selections"
perfctl create sel/a -e sched:sched_switch,sched:sched_waking -m 4M >/dev/null
perfctl create sel/b -e cpu-clock -F 999 >/dev/null
busy 5
mkfifo "$SCRATCH/silent"
# shellcheck disable=SC2016
spawn bash -c 'exec 3<>"$1"; while :; do read -rt 0.01 -u 3; done' - "$SCRATCH/silent"
pid=$SPAWNED
wait_until 20 more_records_than 200 sel/a
wait_until 20 more_records_than 50 sel/b
has_slept() {
	[ "$(perfctl reopen sel/a -n all --tid "$pid" --about 2>/dev/null | wc -l)" -gt 20 ]
}
wait_until 20 has_slept
perfctl pause sel/ >/dev/null
# reads VERB ARGUMENT…: what it reads, a line for each record.
reads() {
	perfctl "$@" --json 2>/dev/null | jq -c '[.time, .cpu, .tid, .event]'
}
# one_selection OPTION…: it selects the same for reopen, script, report and snapshot.
one_selection() {
	local n
	reads reopen sel/ -n all "$@" >"$SCRATCH/reopened"
	reads script sel/ "$@" >"$SCRATCH/scripted"
	cmp -s "$SCRATCH/reopened" "$SCRATCH/scripted" || fail "reopen and script with $*: $(diff "$SCRATCH/reopened" "$SCRATCH/scripted" | head -n 4)"
	n=$(wc -l <"$SCRATCH/reopened")
	[ "$n" -gt 0 ] || fail "$* selects nothing"
	json .records "$n" report sel/ "$@"
	json .records "$n" snapshot sel/ "$@" -o "$SCRATCH/selected"
	reads script -i "$SCRATCH/selected" >"$SCRATCH/scripted"
	cmp -s "$SCRATCH/reopened" "$SCRATCH/scripted" || fail "reopen and snapshot with $* differ"
	reads reopen sel/ -n 3 "$@" | cmp - <(tail -n 3 "$SCRATCH/reopened") ||
		fail "-n 3 with $* is not the newest"
	echo "  $n records: $*"
}
reads reopen sel/ -n all >"$SCRATCH/all"
all=$(wc -l <"$SCRATCH/all")
expect_eq "$all" "$(jq -s 'map(.records) | add' < <(perfctl show sel/ --json | jq '.[]'))" "records of both events"
expect_eq "$(jq -s '. == sort_by(.[0])' "$SCRATCH/all")" true "in order of time"
early=$(sed -n "$((all / 4))p" "$SCRATCH/all" | jq -r '.[0] / 1000000000')
late=$(sed -n "$((all / 2))p" "$SCRATCH/all" | jq -r '.[0] / 1000000000')
cpu=$(sed -n "$((all * 3 / 8))p" "$SCRATCH/all" | jq -r '.[1]')
one_selection --since "$early" --until "$late" -C "$cpu"
expect_eq "$(jq -s "[.[] | select(.[1] != $cpu or .[0] < ($early * 1e9 - 1000) or .[0] > ($late * 1e9 + 1000))] | length" \
	"$SCRATCH/reopened")" 0 "records of other times and CPUs"
one_selection --pid "$pid" --about --event 'sched:*'
! grep -v '"sched:' "$SCRATCH/reopened" || fail "--event selects other events"
if full; then
	one_selection --event cpu-clock
	one_selection --event 'sched:*' -C "$cpu"
	one_selection --pid "$pid"
	one_selection --tid "$(sed -n "$((all * 3 / 8))p" "$SCRATCH/all" | jq -r '.[2]')" --since "$early"
fi
expect_eq "$(perfctl reopen sel/ -n all 2>&1 >/dev/null | cut -d ' ' -f 1 | xargs)" "sel/a: sel/b:" "the summaries"
# Whose a thread was that has ended, and no record of its own says: of one that slept and was woken.
perfctl create ended/w -e sched:sched_waking -m 4M >/dev/null
read -r pid thread < <("$BIN/sideband-work" threads)
perfctl pause ended/w >/dev/null
perfctl snapshot ended/w --pid "$pid" --about -o "$SCRATCH/ended" >/dev/null 2>&1
for verb in "reopen ended/w -n all" "script ended/w" "script -i $SCRATCH/ended"; do
	# shellcheck disable=SC2086
	expect_ok test -n "$(perfctl $verb --pid "$pid" --about --json 2>/dev/null | jq "select(.fields.pid == $thread)")"
done

# Nothing selected is said, with the times that there are.
none=" has no record for --until 1\.5"
said 3 "^perfctl: sel/a$none; its records are from [0-9.]+ to [0-9.]+$" perfctl reopen sel/a --until 1.5
said 3 "^perfctl: a snapshot of sel/a$none$" perfctl script sel/a --until 1.5
said 3 "^perfctl: a snapshot of sel/a$none$" perfctl report sel/a --until 1.5
said 3 "^perfctl: a snapshot of sel/a$none$" perfctl report sel/a --until 1.5 --html "$SCRATCH/none"
said 3 "^perfctl: $SCRATCH/selected has no record for --event nosuch; its records are from [0-9.]+ to [0-9.]+$" \
	perfctl script -i "$SCRATCH/selected" --event nosuch
expect_ok perfctl snapshot sel/a --until 1.5 -o "$SCRATCH/none"
expect_match "$OUT" 'no record of these events fits --until 1.5, and the file has none' "an empty snapshot"
said 2 'COMMAND gets the buffers of one event, and these are 2' perfctl reopen sel/ -- true
said 2 'do not go with -- COMMAND' perfctl reopen sel/a --last 1s -- true
# Following: both events, and what is selected of them.
perfctl resume sel/ >/dev/null
"${PERFCTL[@]}" reopen sel/ -n 0 -f --event '*[hk]' >"$SCRATCH/followed" 2>"$SCRATCH/stderr" &
follower=$!
_spawned+=("$follower")
followed() {
	grep -q "$1" "$SCRATCH/followed"
}
wait_until 20 followed sched:sched_switch
wait_until 20 followed cpu-clock
kill -TERM "$follower"
wait "$follower" || fail "reopen -f ended with $?"
! followed sched:sched_waking || fail "reopen -f prints an event that --event does not select"
expect_match "$(<"$SCRATCH/stderr")" '^sel/a: [0-9]+ records? printed, .*'$'\n''sel/b: [0-9]+ records? printed, 0 overwritten unread$' "the summaries"
perfctl delete --all sel >/dev/null

echo "reopen: a command inherits the rings"
rings=$(rings_of default/bare | tr : '\n' | wc -l)
cat >"$BIN/child" <<'END'
#!/bin/bash
echo "$LISTEN_FDS $([ "$LISTEN_PID" = $$ ] && echo me) $LISTEN_FDNAMES $PERFPERSIST_EVENT $*"
fds=()
for fd in /proc/$$/fd/*; do
	case $(readlink "$fd") in anon_inode:bpf-map) fds+=("${fd##*/}") ;; esac
done
echo "${fds[*]}"
exit 42
END
chmod 0755 "$BIN/child"
expect_exit 42 perfctl reopen bare -- "$BIN/child" -n --json
expect_eq "$OUT" "$rings me $(rings_of default/bare) default/bare -n --json
$(seq -s' ' 3 $((rings + 2)))" "what the command finds"
expect_exit 42 perfctl reopen cpus/first -- "$BIN/child"
expect_match "$OUT" "^1 me cpu$first cpus/first " "what the command finds of an event on one CPU"
# The command can map its descriptors: the attacks need that first, and find nothing else possible.
expect_ok perfctl reopen bare -- "$BIN/ring-attack"
expect_eq "$(grep -c '^ring of CPU' <<<"$OUT")" "$rings" "rings that the command has mapped"
# perfctl passes its standard descriptors on, closed ones too.
expect_exit 42 perfctl reopen bare -- "$BIN/child" <&-
expect_eq "$(sed -n 2p <<<"$OUT")" "$(seq -s' ' 3 $((rings + 2)))" "descriptors, without a standard input"
said 126 'cannot run .*: Permission denied' perfctl reopen bare -- "$CONF"
said 127 'cannot run /nonexistent: No such file' perfctl reopen bare -- /nonexistent
said 3 'no event' perfctl reopen nosuch -- true
expect_exit 42 perfctl --direct reopen bare -- "$BIN/child"

echo "--direct, beside a daemon and without one"
static='map({namespace, name, id, event, buffer, cpus, all_cpus, state, recorder, sample_type, period, freq,
	callchain, owner, group, mode, created})'
expect_eq "$(perfctl --direct list --json | jq -S "$static")" "$(perfctl list --json | jq -S "$static")" \
	"the list, from the pins"
direct() {
	expect_eq "$(perfctl list --direct --json | jq -r '[.[] | .id] | tostring')" "$ids" "ids, from the pins"
	json '[.[] | .name] | join(" ")' "slash dash" --direct list one
	json .id "$id" --direct show bare
	json .name bare --direct show --id "$id"
	expect_match "$(perfctl --direct reopen bare -n 1 2>/dev/null)" "$record" "a record, from the pins"
	expect_match "$(perfctl reopen --direct --id "$id" -n 1 2>/dev/null)" "$record" "a record, from the pins"
	expect_eq "$(perfctl --direct --registry "$REGISTRY" --instance none list one --json | jq length)" 2 "--registry"
	said 3 'no event default/nosuch' perfctl --direct show nosuch
	said 3 'no namespace nosuch' perfctl --direct list nosuch
	said 1 'only perfpersistd can; start it, and leave --direct out' perfctl --direct create x -e cpu-clock
	said 1 'only perfpersistd can; start it, and leave --direct out' perfctl --direct delete bare
}
ids=$(perfctl list --json | jq -r '[.[] | .id] | tostring')
direct
kill_daemon
direct
said 5 'is not running' perfctl list
start_daemon

echo "--socket"
expect_eq "$("$BIN/perfctl" --socket "$RUN/control" list one --json | jq length)" 2 "--socket"
expect_eq "$("$BIN/perfctl" list --socket="$RUN/control" one --json | jq length)" 2 "--socket, behind the verb"

echo "change, pause, resume"
perfctl create verbs/e -e sched:sched_switch -m 64K >/dev/null
id_of_e=$(perfctl show verbs/e --json | jq .id)
text '^verbs/e \(id [0-9]+\) records with .*filter prev_pid != 0' change verbs/e --filter 'prev_pid != 0'
json '"\(.id) \(.filter) \(.max_rate) \(.buffer)"' "$id_of_e prev_pid != 0 1000000 65536" change verbs/e --max-rate 1000000/s
json '"\(.id) \(.filter) \(.max_rate) \(.buffer)"' "$id_of_e  0 4194304" change verbs/e --filter '' --max-rate 0 -m 4M
said 2 'nothing to change.*see .perfctl change --help' perfctl change verbs/e
said 3 'no event' perfctl change verbs/nosuch -m 64K
text '^verbs/e is paused$' pause verbs/e
json .state paused show verbs/e
text '^verbs/e was paused already$' pause verbs/e
before=$(records_of verbs/e)
perfctl list >/dev/null # makes switches
expect_eq "$(records_of verbs/e)" "$before" "records of a paused event"
text '^1 event of verbs resumed$' resume verbs/
text '^verbs/e was not paused$' resume verbs/e
json .state running show verbs/e
wait_until 20 more_records_than "$before" verbs/e
json '[.[] | "\(.namespace)/\(.name) \(.count)"] | join(" ")' "verbs/e 1" pause verbs/e
perfctl resume verbs/e >/dev/null
said 2 'neither an event name nor NAMESPACE/' perfctl pause 9
said 3 "no namespace 'nosuch'" perfctl resume nosuch/

echo "did you mean"
perfctl create words/sched -e cpu-clock -F 1 >/dev/null
for args in "show words/shced" "change words/shced -m 64K" "delete words/shced" "pause words/shced" "stat words/shced" \
	"snapshot words/shced -o $SCRATCH/none" "reopen words/shced"; do
	# shellcheck disable=SC2086
	said 3 "^perfctl: There is no event 'shced' in the namespace words; did you mean 'sched'\?$" perfctl $args
done
said 3 "^perfctl: There is no namespace 'wrods', and so no event 'sched' in it; did you mean 'words/sched'\?$" perfctl show wrods/sched
said 3 "^perfctl: There is no namespace 'wrods'; did you mean 'words'\?$" perfctl list wrods
said 3 "^perfctl: no event that you may read fits wrods/; did you mean 'words/'\?$" perfctl snapshot wrods/
said 3 "\`perfctl list words\` shows those there are" perfctl show words/other
said 2 '^perfctl: unknown verb lsit; did you mean list\?$' perfctl lsit
said 2 '^perfctl: unknown verb lsit; did you mean list\?$' perfctl help lsit
said 2 '^perfctl: unknown command shwo; did you mean show\?$' perfctl trigger shwo
said 2 '^perfctl: unknown option --interval-cuont=3; did you mean --interval-count\?$' perfctl stat --interval-cuont=3
if [ -e /sys/kernel/tracing/available_events ]; then
	tracepoint="^perfctl: This kernel has no tracepoint 'sched:sched_swich'; did you mean sched:sched_switch\?$"
	said 3 "$tracepoint" perfctl create words/x -e cpu-clock,sched:sched_swich
	said 3 "$tracepoint" perfctl trigger add words/x --on sched:sched_swich sched
	said 3 "$tracepoint" perfctl record -e sched:sched_swich -P words
fi
# A name that the caller may not read is not given away.
said 4 'may not|not allowed|cannot' as_user perfctl show words/shced
perfctl delete words/sched >/dev/null

echo "stat, top, limits, watch, reload"
text '^# +TIME +RECORDS/S .* NAME'$'\n''.*s +verbs/e'$'\n''.*s +verbs/e$' stat verbs/e --interval-count 2 -I 50
json '"\(.namespace)/\(.name) \(.time_ns >= 50000000) \(.records >= 0)"' "verbs/e true true" stat verbs/e --interval-count 1 -I 50
expect_eq "$(perfctl stat verbs/e --per-cpu --interval-count 1 -I 50 --json | jq -s -r '[.[] | "cpu\(.cpu)"] | join(":")')" \
	"$(rings_of verbs/e)" "CPUs of stat --per-cpu"
text 's +verbs/e$' --direct stat verbs/e --interval-count 1 -I 50
said 2 '-I 0: not a number of milliseconds' perfctl stat -I 0
said 3 'no event' perfctl stat verbs/nosuch --interval-count 1
text '^RECORDS/S .*NAME +EVENT.*running +verbs/e +sched:sched_switch' top -n 1 -d 0.05
expect_eq "$(perfctl top verbs -n 2 -d 0.05 --json | jq -c '[.[] | "\(.namespace)/\(.name)"]' | xargs)" \
	"[verbs/e] [verbs/e]" "two looks of top"
said 2 '-d x: not a number of seconds' perfctl top -d x
text 'Samples of sched:sched_switch: .*OVERHEAD +SAMPLES +COMMAND' top -e persistent/verbs/e/ -n 1 -d 0.05
expect_eq "$(perfctl top -e persistent/verbs/ -n 2 -d 0.05 --json | jq -c '[.events[0].event]' | xargs)" \
	"[sched:sched_switch] [sched:sched_switch]" "functions of two looks"
expect_eq "$(perfctl top -e persistent/verbs/ -n 2 -d 0.05 --json | wc -l)" 2 "lines of two looks"
said 2 'write persistent/NAMESPACE/' perfctl top -e sched:sched_switch
said 2 'names the events already' perfctl top verbs -e persistent/verbs/
said 3 "no event 'nosuch'" perfctl top -e persistent/verbs/nosuch/
text '^WHOSE +MEMORY .*all .*namespace verbs .*user root ' limits
json '.[] | select(.scope == "namespace" and .namespace == "verbs") | "\(.events) \(.memory)"' \
	"1 $(perfctl show verbs/e --json | jq .memory)" limits
said 2 'takes no names' perfctl limits x
"${PERFCTL[@]}" watch verbs -n 1 >"$SCRATCH/watch" 2>&1 &
_spawned+=("$!")
watcher=$!
wait_until 20 grep -q started "$SCRATCH/watch"
perfctl delete verbs/e >/dev/null
wait_until 20 gone "$watcher" || fail "watch -n 1 does not end"
wait "$watcher" || fail "watch -n 1 ended with $?"
expect_match "$(<"$SCRATCH/watch")" 'deleted +verbs/e' "what watch tells"
text '^0 created, 0 changed, 0 deleted, 0 failed$' reload
json .failed 0 reload
said 2 'takes no names' perfctl reload x
for command in "pause bare" "change bare -m 64K" limits reload; do
	# shellcheck disable=SC2086
	said 1 'only perfpersistd can; start it, and leave --direct out' perfctl --direct $command
done

echo "output that cannot be written"
for command in list "list --json" "show bare" "reopen bare -n all" "reopen bare --json" ping --help "help list" --version; do
	got=0
	# shellcheck disable=SC2086
	perfctl $command >/dev/full 2>"$SCRATCH/stderr" || got=$?
	expect_eq "$got" 1 "exit code of $command >/dev/full"
	expect_match "$(tail -n 1 "$SCRATCH/stderr")" '^perfctl: cannot write the output: (No space left on device|an earlier write failed)$' "$command"
done

echo "delete"
text '^one/slash \(id [0-9]+\) is deleted$' delete one/slash
text '^one/dash ' -d one/dash
json '[.[].name] | join(" ")' "none a" delete cpus/none cpus/a
json '[.[].id] | tostring' "[$id]" delete --id "$id"
ids=$(perfctl list kinds --json | jq -r '"--id \(.[0].id) --id \(.[1].id)"')
# shellcheck disable=SC2086
json length 3 delete kinds/c $ids
# All are tried; the first failure is the exit code.
expect_exit 3 perfctl delete nosuch kinds/g two/long nosuch/too
expect_eq "$(grep -c 'is deleted$' <<<"$OUT")" 2 "deleted"
expect_eq "$(grep -c '^perfctl: ' <<<"$OUT")" 2 "not found"
said 2 'not a valid event name' perfctl delete kinds/hot 9
json '[.[].name] | contains(["hot"])' true list kinds
said 3 'no event' perfctl delete --id "$id"
expect_exit 3 perfctl delete --json --id "$id"
said 3 "no namespace 'two'" perfctl list two
mapfile -t rest < <(perfctl list --json | jq -r '.[] | "\(.namespace)/\(.name)"')
text 'is deleted' delete "${rest[@]}"
expect_eq "$(perfctl list --json)" '[]' "the list at the end"
settled_empty() {
	settled && [ "$(standing)" = "$REGISTRY/by-id" ]
}
wait_until 20 settled_empty || fail "left: $(standing | xargs)"
stop_daemon
echo "$CHECKS answers and $REFUSALS refusals were as they shall be"
