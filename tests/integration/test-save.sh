#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# perfctl save: a save has the rings' records, one for one, with and without a daemon, even for
# events that are long deleted. A user who may not read an event may not read its save. A save is
# complete or does not exist. All events keep recording meanwhile.
. "$(dirname "$0")/../lib.sh"

SAVED=$STATE/saved

# records NAME [OPTION…]: prints all records, one per line, with times as on the machine that wrote
# them.
records() {
	perfctl "${@:2}" reopen "$1" -n all --json 2>/dev/null | jq -c 'del(.realtime)'
}

saves() {
	find "$SAVED" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort
}

# expect_sentence REGEX CODE CMD…: fails with that code and one line.
expect_sentence() {
	local regex=$1 code=$2
	shift 2
	expect_exit "$code" "$@"
	expect_eq "$(wc -l <<<"$OUT")" 1 "lines of: $OUT"
	expect_match "$OUT" "^perfctl: .*$regex" "what is said"
}

write_conf '[namespace all]
Mode=0664
[namespace team]
Mode=0660
[namespace own]
Mode=0600'
start_daemon

# Nothing to save is no failure, and makes no save.
expect_ok perfctl save
expect_match "$OUT" 'nothing is saved'
[ ! -e "$SAVED" ] || fail "a save of nothing was made"
expect_sentence 'there is no save in' 3 perfctl --saved list

before=$(date +%s%N)
perfctl create team/one -e raw_syscalls:sys_enter -m "$(length 16K 64K)" >/dev/null
perfctl create all/several -e 'syscalls:sys_enter_openat,syscalls:sys_exit_openat' -m 16K >/dev/null
perfctl create own/profile -e cpu-clock -F 1000 -g -m "$(length 32K 64K)" >/dev/null
perfctl create all/quiet -e syscalls:sys_enter_settimeofday -m 1M >/dev/null
EVENTS=(team/one all/several own/profile)
# works: fires all events until the test ends
works() {
	spawn sh -c 'while :; do : </dev/null; done'
}
works
for name in "${EVENTS[@]}"; do
	wait_until 30 more_records_than 500 "$name"
done

# ── while all record: nothing rests, and each save is one of the moment ──────────────────

for name in "${EVENTS[@]}"; do
	count=$(records_of "$name")
	expect_ok perfctl save "$name" -o "$SCRATCH/${name%/*}"
	expect_match "$OUT" "^1 event saved, [0-9]+ records of [0-9]+ bytes: $SCRATCH/${name%/*}$"
	held=$(records "$name" "--saved=$SCRATCH/${name%/*}" | wc -l)
	[ "$held" -gt 100 ] || fail "but $held records of $name are saved"
	written=$(perfctl "--saved=$SCRATCH/${name%/*}" show "$name" --json | jq .records)
	[ "$written" -ge "$count" ] || fail "$name: $written records saved, after $count"
	wait_until 30 more_records_than "$written" "$name"
done

# ── at rest: record for record ───────────────────────────────────────────────────────────

perfctl pause team/ all/ own/ >/dev/null
after=$(date +%s%N)
ids=$(event_ids)
for name in "${EVENTS[@]}" all/quiet; do
	records "$name" >"$SCRATCH/${name//\//-}.live"
done
expect_ok perfctl save --json
expect_eq "$(jq -c '[.events, .failed, .removed]' <<<"$OUT")" '[4,0,0]' "what is said of a save"
path=$(jq -r .path <<<"$OUT")
expect_match "$path" "^$SAVED/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}Z$" "where it is"
expect_eq "$(jq .records <<<"$OUT")" "$(cat "$SCRATCH"/*.live | wc -l)" "how many records it has"
expect_eq "$(event_ids)" "$ids" "the events' ids"

# Empty rings take no disk space: 1 MiB for each CPU.
[ "$(du -sk "$path/all/quiet" | cut -f 1)" -lt 200 ] || fail "the save of empty rings is not sparse"

expect_same() {
	local name
	expect_eq "$(event_ids "$@")" "$ids" "the events of the save"
	for name in "${EVENTS[@]}" all/quiet; do
		records "$name" "$@" >"$SCRATCH/saved"
		cmp "$SCRATCH/saved" "$SCRATCH/${name//\//-}.live" || fail "$name is another in the save"
	done
	[ -s "$SCRATCH/own-profile.live" ] || fail "there is nothing to compare"
	expect_eq "$(grep -c '"space":"user"' "$SCRATCH/own-profile.live" | head -c 1 | tr 1-9 y)" y "call chains"
}
expect_same --saved
for place in "$path" "$SAVED" "${path##*/}"; do
	if full; then
		expect_same "--saved=$place"
	else
		expect_eq "$(event_ids "--saved=$place")" "$ids" "the events of the save"
		records all/several "--saved=$place" | cmp - "$SCRATCH/all-several.live" || fail "all/several is another in $place"
	fi
done

# The time of day at which the records were made.
perfctl --saved reopen all/several -n all --json 2>/dev/null |
	jq -e --argjson from "$before" --argjson to "$after" -s \
		'length > 0 and all(.realtime >= $from and .realtime <= $to)' >/dev/null ||
	fail "the records' time of day is wrong"
seconds=$(perfctl --saved reopen all/several -n 1 --json 2>/dev/null | jq '.realtime / 1e9 | floor')
expect_ok perfctl --saved reopen all/several -n 1
expect_match "$OUT" "^ +\[[0-9]+\] $(date -d "@$seconds" "+%F %T")\.[0-9]{9} " "a record"
# The clock of that boot, not of this one.
mkdir "$SCRATCH/boot"
cp -r "$path" "$SCRATCH/boot/"
sed -i -E 's/^saved_mono=.*/saved_mono=5000000000/; s/^saved=.*/saved=1700000005000000000/' \
	"$SCRATCH/boot/${path##*/}/all/several/info"
perfctl "--saved=$SCRATCH/boot" reopen all/several -n 1 --json 2>/dev/null |
	jq -e '.realtime == 1700000000000000000 + .time' >/dev/null || fail "the clock of another boot"

# The save describes the event as it was.
same='del(.saved, .skipped, .reads, .cpus_away, .away, .lacking, .lacking_reason, .missed)'
for name in "${EVENTS[@]}"; do
	expect_eq "$(perfctl --saved show "$name" --json | jq -cS "$same")" \
		"$(perfctl show "$name" --json | jq -cS "$same")" "show of $name"
	expect_eq "$(perfctl --saved stat "$name" --json | jq .held)" \
		"$(wc -l <"$SCRATCH/${name//\//-}.live")" "records that stat finds"
	expect_eq "$(perfctl --saved stat "$name" --per-cpu --json | jq -s 'map(.records) | add')" \
		"$(records_of "$name")" "records that stat counts"
done
expect_ok perfctl --saved show own/profile
expect_match "$OUT" 'read as +files of a save'
id=$(perfctl show team/one --json | jq .id)
perfctl --saved reopen --id "$id" -n all --json 2>/dev/null | jq -c 'del(.realtime)' |
	cmp - "$SCRATCH/team-one.live" || fail "reopen --id of a save"
# A command gets the files.
expect_eq "$(perfctl --saved reopen team/one -- sh -c 'printenv LISTEN_FDNAMES; head -c 8 <&3')" \
	"$(perfctl reopen team/one -- printenv LISTEN_FDNAMES)
+pp-ring" "what a command inherits"

# ── who may read it ──────────────────────────────────────────────────────────────────────

while read -r name mode; do
	expect_eq "$(stat -c %U:%g:%a "$path/$name/cpu"* "$path/$name/info" "$path/$name/stat" | sort -u)" \
		"root:$DAEMON_GID:$mode" "the files of $name"
done <<-END
	all/several 644
	team/one 640
	own/profile 600
END
expect_eq "$(as_user perfctl --saved list --json | jq -c 'map(.name) | sort')" '["quiet","several"]' \
	"what others see"
expect_eq "$(as_member perfctl --saved list --json | jq -c 'map(.name) | sort')" \
	'["one","quiet","several"]' "what the group sees"
as_member perfctl --saved reopen team/one -n all --json 2>/dev/null | jq -c 'del(.realtime)' |
	cmp - "$SCRATCH/team-one.live" || fail "the group's records differ"
expect_sentence 'Permission denied' 4 as_user perfctl --saved show team/one
expect_sentence 'Permission denied' 4 as_member perfctl --saved reopen own/profile
expect_exit 3 as_user perfctl --saved show all/none

# A user other than root saves the events that he may read, to a directory of his own.
install -d -m 0700 -o "$NOBODY" "$SCRATCH/nobody"
chmod 0755 "$SCRATCH"
expect_sentence '-o' 4 as_user perfctl save
expect_ok as_user perfctl save -o "$SCRATCH/nobody/mine"
expect_match "$OUT" '^2 events saved'
as_user perfctl "--saved=$SCRATCH/nobody/mine" reopen all/several -n all --json 2>/dev/null |
	jq -c 'del(.realtime)' | cmp - "$SCRATCH/all-several.live" || fail "what somebody saved"
expect_eq "$(stat -c %a "$SCRATCH/nobody/mine/all/several/info")" 600 "a file whose group is not his"

# ── without a daemon, and when the events are gone ───────────────────────────────────────

kill_daemon
expect_exit 5 perfctl save
expect_ok perfctl --direct save
expect_match "$OUT" '^4 events saved'
expect_same --saved
expect_exit 4 as_user perfctl --direct save
expect_eq "$(perfctl save --list --json | jq -c 'map([.events, .save])')" \
	"$(saves | jq -Rc '[4, .]' | jq -sc .)" "the list of saves"
start_daemon
perfctl delete team/one all/several own/profile all/quiet >/dev/null
expect_same --saved

# ── how many there are ───────────────────────────────────────────────────────────────────

perfctl create team/few -e syscalls:sys_enter_close -m 4K >/dev/null
for ((i = 0; i < 4; i++)); do
	expect_ok perfctl save
done
expect_eq "$(saves | wc -l)" 3 "saves that are kept"
newest=$(saves | tail -n 1)
expect_ok perfctl save --keep 1
# Even for many saves in a second the names increase, and the last one is the newest.
expect_eq "$(saves)" "$(basename "$(sed -nE 's/^.* bytes: //p' <<<"$OUT")")" "what --keep 1 keeps"
[[ $(saves) > $newest ]] || fail "--keep 1 keeps an old one"
expect_ok perfctl save --keep all
expect_ok perfctl save --keep all
expect_eq "$(saves | wc -l)" 3 "saves with --keep all"
for bad in 0 x -1 ''; do
	expect_exit 2 perfctl save --keep "$bad"
done

# ── a second name ────────────────────────────────────────────────────────────────────────

perfctl create team/second -e syscalls:sys_enter_close -m 4K --share >/dev/null
perfctl pause team/few >/dev/null
perfctl save -o "$SCRATCH/second" team/second >/dev/null
records team/second | cmp - <(records team/second "--saved=$SCRATCH/second") || fail "a second name"
perfctl delete team/second >/dev/null
perfctl resume team/few >/dev/null

# ── what cannot be done leaves nothing ───────────────────────────────────────────────────

here=$(saves)
expect_sentence 'something of that name' 6 perfctl save -o "$SCRATCH/second"
expect_sentence 'No such file' 3 perfctl save -o "$SCRATCH/none/x"
expect_sentence 'Not a directory' 1 perfctl save -o "$CONF/x"
expect_exit 2 perfctl save -o "$SCRATCH/x" --keep 2
expect_exit 3 perfctl save team/none
expect_exit 3 perfctl save none/
expect_exit 2 perfctl save 'a b'
expect_exit 2 perfctl --saved save
expect_exit 2 perfctl --saved delete team/few
expect_exit 2 perfctl --saved --direct list
expect_exit 2 perfctl --saved reopen team/few -f
chmod 0777 "$SAVED"
expect_sentence 'others can write it' 4 perfctl save
chmod 0755 "$SAVED"

# A full disk: 64 KiB, for rings of 1 MiB.
perfctl create team/big -e raw_syscalls:sys_exit -m 1M >/dev/null
wait_until 30 more_records_than 20000 team/big
mkdir "$SCRATCH/full"
expect_sentence 'No space left on device.*make room' 1 unshare --mount sh -c "
	mount -t tmpfs -o size=64k tmpfs '$SCRATCH/full' || exit 99
	'$BIN/perfctl' --instance '$INSTANCE' save -o '$SCRATCH/full/save'
	code=\$?
	[ -z \"\$(ls -A '$SCRATCH/full')\" ] || exit 98
	exit \$code"
expect_sentence 'Read-only file system' 1 unshare --mount sh -c "
	mount -t tmpfs -o ro tmpfs '$SCRATCH/full' || exit 99
	exec '$BIN/perfctl' --instance '$INSTANCE' save -o '$SCRATCH/full/save'"
expect_eq "$(saves)" "$here" "saves, after failures"

# Killed in the middle, by the limit on the size of its files: the remaining files are no save, and
# the next save removes them.
code=0
(
	ulimit -c 0 -f 200
	exec "${PERFCTL[@]}" save
) >"$SCRATCH/killed" 2>&1 || code=$?
expect_eq "$code" 153 "the end of one that writes too much (SIGXFSZ)"
expect_match "$(saves | xargs)" "^\+new-[^ ]* $(xargs <<<"$here")$" "what is left"
expect_eq "$(perfctl save --list --json | jq -c 'map(.save)')" "$(jq -Rc . <<<"$here" | jq -sc .)" \
	"the list of saves"
expect_ok perfctl save
expect_eq "$(find "$SAVED" -maxdepth 1 -name '+*')" "" "left by one that was killed"

# ── damaged ones ─────────────────────────────────────────────────────────────────────────

path=$SAVED/$(saves | tail -n 1)
truncate -s 5000 "$path/team/big/cpu"*
expect_sentence "$path/team/big/cpu[0-9]+: it is cut off" 1 perfctl --saved reopen team/big
expect_ok perfctl --saved reopen team/few
truncate -s 100 "$path/team/few/info"
expect_sentence "$path/team/few: " 1 perfctl --saved show team/few
expect_sentence "$path/team/few: " 1 perfctl --saved list
rm "$path/team/few/info"
ln -s /etc/passwd "$path/team/few/info"
expect_sentence 'symbolic link' 1 perfctl --saved show team/few
echo "$(wc -l <"$SCRATCH/team-one.live") + $(wc -l <"$SCRATCH/all-several.live") + $(wc -l <"$SCRATCH/own-profile.live") records were the same"
