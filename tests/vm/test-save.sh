#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Records from before a shutdown exist after the next boot: perfpersist-save.service saves them at
# shutdown and at no other time, even if the daemon was stopped before.
. "$(dirname "$0")/lib.sh"

SAVED=/var/lib/perfpersist/saved

if [ "$PHASE" -eq 1 ]; then
	install_packages perfpersist libperfpersist0
	expect_ok systemctl enable --now perfpersistd perfpersist-save
	expect_ok perfctl create before/programs -e sched:sched_process_exec -m 64K
	/bin/true
	expect_ok systemctl restart perfpersistd
	expect_ok systemctl is-active perfpersist-save
	[ ! -e $SAVED ] || fail "a restart of the daemon made a save"
	perfctl pause before/programs >/dev/null
	perfctl reopen before/programs -n all --json 2>/dev/null >/var/tmp/before
	[ -s /var/tmp/before ] || fail "nothing was recorded"
	date +%s >/var/tmp/date
	reboot
fi

if [ "$PHASE" -eq 2 ]; then
	expect_eq "$(systemctl --failed --plain --no-legend)" "" "failed units"
	journalctl --boot=-1 --unit perfpersist-save --output cat --no-pager || true
	perfctl save --list
	expect_eq "$(perfctl save --list --json | jq length)" 1 "saves"
	perfctl --saved reopen before/programs -n all --json 2>/dev/null | jq -c 'del(.realtime)' |
		cmp - /var/tmp/before || fail "other records than before the reboot"
	perfctl --saved reopen before/programs -n all --json 2>/dev/null |
		jq -e -s --argjson until "$(($(</var/tmp/date) + 1))" \
			'all(.realtime / 1e9 <= $until and .realtime / 1e9 > $until - 3600)' >/dev/null ||
		fail "the records' time of day is wrong"
	expect_eq "$(stat -c %U:%a $SAVED/*/before/programs/cpu0)" root:640 "whose it is"
	expect_ok perfctl create before/second -e sched:sched_process_exec -m 64K
	expect_ok systemctl stop perfpersistd.socket perfpersistd.service
	[ "$(find $SAVED -mindepth 1 -maxdepth 1 | wc -l)" -eq 1 ] || fail "the daemon's stop made a save"
	reboot
fi

expect_eq "$PHASE" 3
expect_eq "$(perfctl save --list --json | jq length)" 2 "saves, also with the daemon stopped"
expect_match "$(perfctl --saved list --json | jq -r '.[].name' | xargs)" second "events that are saved"
expect_eq "$(find $SAVED -maxdepth 1 -name '+*')" "" "what is half-made"
echo "$(jq -s length /var/tmp/before) records were there after the boot"
