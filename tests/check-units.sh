#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The units are well formed. systemd-analyze rates their sandboxes: the broker at most 1.2, the
# engine at most 2.2, dumper and keeper at most 0.8, the save at shutdown at most 1.5, the writers
# of snapshots and of checkpoints and the command for each snapshot at most 1.2. The unit explains
# each remaining exposure. The daemons' units wait for nothing late in the boot.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

command -v systemd-analyze >/dev/null || { echo "systemd-analyze is not installed"; exit 77; }
# The check needs --man (always), --offline and --threshold (250).
systemd-analyze --help | grep -e --threshold >/dev/null || { echo "systemd is older than 250"; exit 77; }

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
status=0

complain() {
	echo "$*"
	status=1
}

for unit in units/*.service units/*.socket units/*.mount units/*.path; do
	sed -e 's|@[A-Z]*DIR@/[a-z-]*|/bin/true|' "$unit" >"$dir/${unit##*/}"
done
while read -r place; do
	grep -qF "s|$place|" Makefile || complain "$place is not known to make install"
done < <(grep -ohE '@[A-Z]+@' units/*.service units/*.socket units/*.mount units/*.path | sort -u)
# What can be enabled the packages know: what is enabled at installation, and what an administrator may enable.
while read -r unit; do
	unit=${unit##*/}
	grep -qF "$unit" packaging/debian/rules || grep -E "for unit in .*\b$(expr "$unit" : 'perfpersist-\(.*\).service')\b" \
		packaging/debian/perfpersist.postrm >/dev/null || complain "$unit can be enabled, and purging the package leaves that"
done < <(grep -l '^\[Install\]' units/*)
cd "$dir" || exit 1
SYSTEMD_UNIT_PATH=$dir: systemd-analyze verify --man=no ./*.service ./*.socket ./*.mount ./*.path || status=1

# explained UNIT: a comment of the unit names each exposure in the report.
explained() {
	local name
	while read -r name; do
		grep -qF -e "#   $name " "$1" || complain "$1 does not explain why it needs $name"
	done < <(awk '$1 == "✗" { print $2 }' "$dir/report")
	while read -r name; do
		awk -v name="$name" '$1 == "✗" && $2 == name { found = 1 } END { exit !found }' "$dir/report" ||
			complain "$1 explains $name, which is not exposed"
	done < <(sed -n '/^# What .systemd-analyze security./,/^$/s/^#   \([A-Z][^ ]*=[^ ]*\) .*/\1/p' "$1")
}

# exposure UNIT TENTHS
exposure() {
	systemd-analyze security --offline=true --no-pager --threshold="$2" "$1" >"$dir/report" 2>&1 || {
		cat "$dir/report"
		complain "$1 is more exposed than $2 tenths"
	}
	tail -n 1 "$dir/report"
	explained "$1"
}
exposure perfpersistd.service 12
exposure perfpersist-engine.service 22
exposure perfpersist-dumper.service 8
exposure perfpersist-keeper.service 8
exposure perfpersist-save.service 15
exposure perfpersist-snapshots.service 12
exposure perfpersist-on-snapshot.service 12
exposure perfpersist-checkpoint.service 12

# By default a unit starts after sysinit.target; some settings make it wait for /tmp and tmpfiles.
for unit in perfpersistd.service perfpersist-{engine,dumper,keeper}.service perfpersist*.socket *.mount; do
	grep -qx DefaultDependencies=no "$unit" || complain "$unit waits for the whole early boot"
	grep -qE '^Conflicts=.*(shutdown|umount)\.target' "$unit" || complain "$unit is not stopped at shutdown"
	if grep -nE '^(PrivateTmp=yes|(Cache|Logs)Directory=)' "$unit"; then
		complain "$unit waits for more of the file system than it needs"
	fi
done
grep -qE '^Before=.*\bsysinit\.target' perfpersistd.service || complain "perfpersistd.service is not early"
# The daemon's state ends with the daemon.
if grep -nE '^(PartOf|BindsTo|Requires|RuntimeMaxSec)=' perfpersist-keeper.service; then
	complain "the keeper ends with something else"
fi
exit $status
