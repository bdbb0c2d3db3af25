#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The units are well formed, and their sandboxes are as tight as they are meant to be, by the
# measure of systemd-analyze: the broker at most 1.2, the engine at most 2.2.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

command -v systemd-analyze >/dev/null || { echo "systemd-analyze is not installed"; exit 77; }
# What is needed of it: --man (always), --offline and --threshold (250).
systemd-analyze --help | grep -e --threshold >/dev/null || { echo "systemd is older than 250"; exit 77; }

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
status=0

for unit in units/*.service units/*.socket units/*.mount; do
	sed -e 's|@SBINDIR@/[a-z-]*|/bin/true|; s|@LIBEXECDIR@/[a-z-]*|/bin/true|' "$unit" >"$dir/${unit##*/}"
done
cd "$dir" || exit 1
if grep -n '@[A-Z]*@' ./*; then
	echo "these places are not known to make install"
	status=1
fi
SYSTEMD_UNIT_PATH=$dir: systemd-analyze verify --man=no ./*.service ./*.socket ./*.mount || status=1

# exposure UNIT TENTHS
exposure() {
	systemd-analyze security --offline=true --no-pager --threshold="$2" "$1" >"$dir/report" 2>&1 || {
		cat "$dir/report"
		echo "$1 is more exposed than $2 tenths"
		status=1
	}
	tail -n 1 "$dir/report"
}
exposure perfpersistd.service 12
exposure perfpersist-engine.service 22
exit $status
