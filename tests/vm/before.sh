#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Makes the packages of the version before, for tests of the upgrade from it: tests/vm/before.sh BUILD
#
# That version is the commit in $PERFPERSIST_BEFORE, or the last one whose registry has another form. Its
# tree is a worktree in BUILD/before/tree, its packages are in BUILD/before/deb. Exit 77, with the reason,
# where that commit is not to be had: the tree is no clone, or a shallow one.

set -eu -o pipefail
export LC_ALL=C.UTF-8
BUILD=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
before=${PERFPERSIST_BEFORE:-f518502}
tree=$BUILD/before/tree

commit=$(git rev-parse --verify --quiet "$before^{commit}" 2>/dev/null) || {
	echo "there is no commit $before here"
	exit 77
}
if [ -d "$tree" ]; then
	git -C "$tree" checkout --quiet --detach "$commit"
else
	git worktree prune
	git worktree add --quiet --detach "$tree" "$commit"
fi
make -C "$tree" --no-print-directory BUILD="$BUILD/before" deb
