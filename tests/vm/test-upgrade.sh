#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --timeout 900
#
# An upgrade from the version before (before.sh), whose registry has another form, under load and with
# shared names: all keep their ids, no record is lost, and who looks by a name finds it at any time.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/recorder.sh"

DEBIAN_FRONTEND=noninteractive expect_ok dpkg --install "$BUILD"/before/deb/perfpersist_*.deb

load counted
trap 'kill "${maker[counted]}" $looker 2>/dev/null || true' EXIT
looker=
calls=(-e syscalls:sys_enter_umask --pid "${maker[counted]}" -m 64K)
expect_ok perfctl create load/exact "${calls[@]}"
expect_ok perfctl create other/exact "${calls[@]}" --share
expect_ok perfctl create load/also "${calls[@]}" --share
# And rings whose first name is gone.
several=(-e 'syscalls:sys_*_umask' --pid "${maker[counted]}" -m 64K)
expect_ok perfctl create load/gone "${several[@]}"
expect_ok perfctl create other/several "${several[@]}" --share
expect_ok perfctl create load/several "${several[@]}" --share
expect_ok perfctl delete load/gone
expect_ok perfctl create load/clock -e cpu-clock -F 100 -m 64K

# whose: NAMESPACE/NAME, id, and whose rings it has, of all there are.
whose() {
	perfctl list --json "$@" | jq -r '.[] | "\(.namespace)/\(.name) \(.id) \(.shares)"' | sort
}

# no_links: the directories in the place of names.
no_links() {
	find "$registry"/load "$registry"/other -mindepth 1 -maxdepth 1 ! -type l -printf '%P\n' | sort | xargs
}

expect_eq "$(no_links)" "clock exact several" "directories of the version before"
begin_load counted
ids=$(ids) whose=$(whose) lasting=$(lasting)

# Until it is killed, or a name is not there.
perl -e 'for (;;) { for (@ARGV) { -e or die "$_: $!\n" } select undef, undef, undef, 0.001 }' \
	"$registry"/{load/exact,other/exact,load/also,other/several,load/several}/stat 2>/run/missed &
looker=$!

upgrade dpkg --install
goes_on upgrade load "$ids"
kill -0 $looker || fail "while it was upgraded: $(cat /run/missed)"
kill $looker
looker=
expect_eq "$(whose)" "$whose" "names, ids, and whose rings they have"
expect_eq "$(no_links)" "" "directories that are left in the place of names"
expect_eq "$(find "$registry"/by-id -mindepth 1 -maxdepth 1 ! -type d)" "" "what is no event"
expect_eq "$(lasting)" "$lasting" "since when sockets and registry are there"

renewed systemctl restart perfpersistd
goes_on restart load "$ids"
expect_eq "$(whose)" "$whose" "after another start"
end_load counted
made=$(made counted)
for name in load/exact other/exact load/also; do
	expect_records $name "$made"
done
for name in other/several load/several; do
	expect_records $name $((2 * made))
done

# The oldest name goes, and then all.
expect_ok perfctl delete load/exact other/several
expect_records other/exact "$made"
expect_records load/several $((2 * made))
expect_ok perfctl delete load/also other/exact load/several load/clock
expect_eq "$(systemctl --failed --plain --no-legend)" "" "failed units"
echo "$made system calls meanwhile: all names have each, under the ids that they had before the upgrade"
