#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Pins that a newer version left, or that are damaged: after a downgrade the daemon starts, prints
# one message about each, leaves it alone and recording, and serves all others. Every reader refuses
# a ring of a newer version with one message.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../refused.sh"

start_daemon
for name in plain newer larger damaged gutted rings older; do
	perfctl create t/$name -e sched:sched_switch -m 64K >/dev/null
done
perfctl create t/strangers -e cpu-clock -F 10 -m 64K >/dev/null
perfctl trigger add t/triggerless --on sched:sched_process_exec --filter 'pid == 0' plain >/dev/null
declare -A id place=([nothing]=t/nothing)
for name in plain newer larger damaged gutted triggerless; do
	id[$name]=$(perfctl show t/$name --json | jq .id)
	place[$name]=by-id/${id[$name]}
done
kill_daemon

echo "rings of a newer version, without a daemon"
cpu=cpu$(online_cpu)
"$BIN/newer-pin" newer "$REGISTRY/t/rings/$cpu"
said 1 'cannot open t/rings, CPU .* made by a newer version of perfpersist; update libperfpersist' perfctl --direct reopen t/rings
"$BIN/newer-pin" damage "$REGISTRY/t/strangers/$cpu"
said 1 'cannot open t/strangers, CPU .* not a ring of perfpersist, or it is damaged' perfctl --direct reopen t/strangers
expect_eq "$(perfctl --direct list --json | jq length)" 9 "events, by their texts"

echo "events of a newer version, and damaged ones"
"$BIN/newer-pin" newer "$REGISTRY/t/newer/meta"
"$BIN/newer-pin" larger "$REGISTRY/t/larger/meta"
"$BIN/newer-pin" damage "$REGISTRY/t/damaged/meta"
"$BIN/newer-pin" rate "$REGISTRY/t/older/meta"
rm "$REGISTRY/t/gutted/meta" "$REGISTRY/t/triggerless/trigger"
mkdir "$REGISTRY/t/nothing"

# the_rest: checks the messages and actions of a daemon that finds all these pins.
the_rest() {
	local name before

	for name in newer larger; do
		grep "t/$name " "$LOG" >"$SCRATCH/said"
		one_sentence "$SCRATCH/said" \
			"Event t/$name was made by a newer perfpersist and is left alone; delete it with that version" "$name"
		echo "  log: $SENTENCE"
	done
	for name in damaged gutted triggerless nothing; do
		grep "t/$name " "$LOG" >"$SCRATCH/said"
		one_sentence "$SCRATCH/said" \
			"Cannot read event t/$name (.*); it is left alone; remove ${place[$name]} from the registry if" "$name"
		echo "  log: $SENTENCE"
	done
	expect_eq "$(perfctl list --json | jq -r '[.[].name] | join(" ")')" "plain rings older strangers" "the list"
	expect_eq "$(perfctl show t/older --json | jq -c "[.max_rate, .stack_user]")" "[281474976710655,0]" "a rate of before"
	# Not listed, but still recording.
	for name in plain newer larger; do
		before=$(records_of t/$name)
		wait_until 20 more_records_than "$before" t/$name
		expect_eq "$(readlink "$REGISTRY/t/$name")" "../${place[$name]}" "where $name leads to"
	done
}

mv "$LOG" "$LOG.before"
start_daemon
the_rest
warm_up
remember
for name in newer larger; do
	refused 3 "no event '$name' in the namespace t" perfctl reopen t/$name
	refused 3 "no event '$name' in the namespace t" perfctl delete t/$name
	refused 6 "t/$name.* made by a newer perfpersist; delete it with that one, or choose another name" \
		perfctl create t/$name -e cpu-clock
done
refused 6 "t/damaged. is already there" perfctl create t/damaged -e cpu-clock
refused 3 'no event with the id' perfctl delete --id "${id[newer]}"
refused 1 'made by a newer version of perfpersist; update libperfpersist' perfctl reopen t/rings
refused 1 'not a ring of perfpersist, or it is damaged' perfctl reopen t/strangers
perfctl reopen t/plain -n 1 >/dev/null 2>&1

echo "the same again, after a crash"
kill_daemon
mv "$LOG" "$LOG.before"
start_daemon
the_rest

echo "removed by hand, as the sentence says: the name is free again, and its id is not given anew"
rm -r "${REGISTRY:?}/${place[damaged]}" "${REGISTRY:?}/${place[gutted]}" "${REGISTRY:?}/${place[triggerless]}" \
	"$REGISTRY/t/nothing"
perfctl create t/damaged -e cpu-clock >/dev/null
[ "$(perfctl show t/damaged --json | jq .id)" -gt "${id[gutted]}" ] || fail "an id was given twice"
perfctl delete t/damaged t/older t/plain t/rings t/strangers >/dev/null

# left_alone: a daemon that ends leaves these events, and the registry with them.
left_alone() {
	stop_daemon
	expect_eq "$(find "$REGISTRY" -mindepth 2 -maxdepth 2 -type d | sort | xargs)" \
		"$REGISTRY/${place[newer]} $REGISTRY/${place[larger]}" "what is left alone"
}
left_alone
start_daemon
nothing_deleted() {
	[ -z "$(find "$REGISTRY" -maxdepth 1 -name '+del-*')" ]
}
wait_until 20 nothing_deleted
rm -r "${REGISTRY:?}/t" # no name leads to them now
left_alone
echo "$REFUSALS refusals; 2 events of a newer version left alone, and recording, through 2 recoveries"
