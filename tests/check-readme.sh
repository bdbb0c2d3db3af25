#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The README's program in C compiles without a warning and links, with both libraries.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
BUILD=$(cd "${BUILD:-build}" && pwd) || exit 1
CC=${CC:-gcc}

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck disable=SC2016
sed -n '/^```c$/,/^```$/p' README.md | sed '/^```/d' >"$dir/newest.c"
[ -s "$dir/newest.c" ] || { echo "README.md has no program in C"; exit 1; }

flags=(-std=gnu17 -O2 -Wall -Wextra -Wformat=2 -Wshadow -Werror -Iclient)
"$CC" "${flags[@]}" -o "$dir/newest" "$dir/newest.c" "$BUILD/libperfpersist.a" || exit 1
"$CC" "${flags[@]}" -o "$dir/newest" "$dir/newest.c" "$BUILD/libperfpersist.so.0" || exit 1

# It says what is wrong when there is no such daemon, or is refused; it does not crash.
LD_LIBRARY_PATH=$BUILD "$dir/newest" nowhere nothing 2>"$dir/stderr"
code=$?
cat "$dir/stderr"
if [ $code -ne 1 ] || [ ! -s "$dir/stderr" ]; then
	echo "it exits with $code"
	exit 1
fi
