#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Makes Debian packages of the tree as it is: packaging/build-deb.sh BUILD VERSION REVISION
#
# Out of a copy of it, BUILD/deb/source, with what make has built in BUILD: the packages hold the
# programs that the tests ran, and nothing is compiled a second time. (The Makefile's own flags are those
# of Debian's hardening=+all. A Debian source package, which is built elsewhere, compiles with
# dpkg-buildflags.) The packages are in BUILD/deb; those of another REVISION than 1, which are there to be
# upgraded to, in BUILD/deb/REVISION.

set -eu -o pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.."

[ $# -eq 3 ] || { echo "usage: packaging/build-deb.sh BUILD VERSION REVISION" >&2; exit 2; }
mkdir -p "$1/deb"
DEB=$(cd "$1/deb" && pwd)
SOURCE=$DEB/source
VERSION=$2-$3

for tool in dpkg-buildpackage dh lintian; do
	command -v "$tool" >/dev/null || {
		echo "make deb: $tool is not installed; make deps installs it where there is apt" >&2
		exit 1
	}
done
exec {lock}>"$DEB/lock"
flock "$lock"

# Everything that a package is made of.
parts=(Makefile LICENSE LICENSES README.md ARCHITECTURE.md docs client conf daemon proto units)

# One version in a folder: an installer of *.deb installs one.
into=$DEB
[ "$3" = 1 ] || into=$DEB/$3

# As make would, builds only if a part is newer than the last build's start.
began=$DEB/began-$3
if compgen -G "$into/*_${VERSION}_*.changes" >/dev/null &&
	[ -z "$(find "${parts[@]}" packaging -newer "$began" -print -quit)" ]; then
	ls "$into"/*.deb
	exit
fi
# What fails in between leaves no packages that look new.
mkdir -p "$into"
rm -f "$into"/*.deb "$into"/*.buildinfo "$into"/*.changes
touch "$began"

# With the times of the files, by which make goes.
rm -rf "$SOURCE"
mkdir -p "$SOURCE/build"
cp -a -t "$SOURCE" "${parts[@]}" packaging/debian
cp -a -t "$SOURCE/build" "$1"/{bpf,gen,obj} "$1"/libperfpersist.* "$1"/perf*
cd "$SOURCE"

# Another version than the changelog's newest is a build of that one for tests.
newest=$(dpkg-parsechangelog --show-field Version)
if [ "$newest" != "$VERSION" ]; then
	{
		printf 'perfpersist (%s) UNRELEASED; urgency=medium\n\n' "$VERSION"
		printf '  * Built as version %s of what follows.\n\n' "$VERSION"
		sed -n '/^ -- /{p;q}' debian/changelog
		printf '\n'
		cat debian/changelog
	} >debian/changelog.new
	mv debian/changelog.new debian/changelog
fi

# Nothing of how the outer make was called.
unset MAKEFLAGS MAKELEVEL MFLAGS BUILD SANITIZE
export DEB_BUILD_OPTIONS="parallel=2 ${DEB_BUILD_OPTIONS-}"
# Not cleaned: see above. Not signed: that is for who publishes it.
dpkg-buildpackage --no-pre-clean --build=binary --unsigned-source --unsigned-changes \
	--no-check-builddeps >"$DEB/log" 2>&1 || {
	tail -n 40 "$DEB/log" >&2
	echo "make deb: dpkg-buildpackage failed; its log is $DEB/log" >&2
	exit 1
}
[ "$into" = "$DEB" ] || mv -t "$into" "$DEB"/*_"$VERSION"_*
ls "$into"/*.deb
