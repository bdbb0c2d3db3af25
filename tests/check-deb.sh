#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# This tree builds Debian packages, their version is the Makefile's, and an upgrade restarts no socket
# and unmounts nothing. At full length lintian, which takes longer than all of this, reports neither
# errors nor warnings for them.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
. tests/expect.sh
BUILD=${BUILD:-build}

for tool in dpkg-buildpackage dh lintian; do
	command -v $tool >/dev/null || { echo "$tool is not installed"; exit 77; }
done

status=0
complain() {
	echo "$*"
	status=1
}

version=$(sed -n 's/^VERSION := //p' Makefile)
[ "$(dpkg-parsechangelog -l packaging/debian/changelog --show-field Version)" = "$version-1" ] ||
	complain "the newest version in packaging/debian/changelog is not the Makefile's, $version-1"

env -u MAKEFLAGS packaging/build-deb.sh "$BUILD" "$version" 1 || exit 1
if full; then
	lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$BUILD/deb/perfpersist_$version-1"_*.changes ||
		complain "lintian is not content"
fi

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
dpkg-deb --control "$BUILD/deb/perfpersist_$version-1"_*.deb "$dir/control" || exit 1
if grep -E 'deb-systemd-invoke +(\$|restart|stop|start).*(socket|mount)' "$dir/control/postinst"; then
	complain "postinst touches units that an upgrade must leave alone"
fi
if grep -E 'deb-systemd-invoke.*keeper' "$dir/control/postinst"; then
	complain "postinst ends the keeper, and loses its data"
fi
grep -q 'deb-systemd-invoke restart perfpersistd.service' "$dir/control/postinst" ||
	complain "postinst does not restart the daemon"
if grep -s 'deb-systemd-invoke' "$dir/control/preinst"; then
	complain "preinst stops units that an upgrade must leave alone"
fi
# Runs prerm with `remove` against stubs that only report that they were called.
mkdir "$dir/stubs"
for stub in deb-systemd-invoke systemctl mountpoint umount find; do
	printf '#!/bin/sh\necho "%s $*" >>"%s"\nexit 1\n' "$stub" "$dir/did" >"$dir/stubs/$stub"
done
chmod +x "$dir"/stubs/*
prerm() {
	: >"$dir/did"
	PATH=$dir/stubs:$PATH sh "$dir/control/prerm" "$@" || complain "prerm $* fails"
}
prerm upgrade 2
[ ! -s "$dir/did" ] || complain "prerm upgrade does: $(cat "$dir/did")"
prerm remove
grep -q 'mountpoint.*registry' "$dir/did" || complain "prerm remove leaves the registry"
exit "$status"
