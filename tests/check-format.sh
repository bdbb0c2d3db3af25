#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `make format` would leave all C unchanged. Versions of clang-format differ: version 14 decides.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

command -v clang-format >/dev/null || { echo "clang-format is not installed"; exit 77; }
version=$(clang-format --version | sed -nE 's/.*version ([0-9]+).*/\1/p')
[ "$version" = 14 ] || { echo "clang-format is $version here; the tree is formatted by 14"; exit 77; }

mapfile -t files < <(find client daemon proto tests -name '*.[ch]' | sort)
wrong=$(printf '%s\0' "${files[@]}" | xargs -0 -P 2 -n 100 clang-format --dry-run --Werror 2>&1 |
	sed -n 's/: error: .*//p' | sort -u | head -20)
if [ -n "$wrong" ]; then
	echo "$wrong"
	echo "make format would change these places"
	exit 1
fi
echo "${#files[@]} files are as clang-format has them"
