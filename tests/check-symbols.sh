#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The shared library exports exactly what perfpersist.h declares, and the header compiles on its own
# in C and in C++. The engine, which has capabilities, does not link the parsers of untrusted text:
# events, filters, ELF files.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
CC=${CC:-gcc}

declared=$(grep -v '^ \*' client/perfpersist.h | grep -oE '\bperfpersist_[a-z_]+\(' | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$BUILD/libperfpersist.so.0" |
	awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u)
# Comments above declarations name calls too, so declared may hold names twice.
if ! diff <(echo "$declared") <(echo "$exported") >&2; then
	echo "the library's exports (>) differ from the header's declarations (<)"
	exit 1
fi

status=0
parsers=$(nm "$BUILD/perfpersist-engine" | grep -E ' (pp_spec_parse|pp_filter_parse|specify[a-z_]*|(elf|gelf)_[a-z]+)(@|$)')
if [ -n "$parsers" ]; then
	echo "perfpersist-engine links parsers: $parsers"
	status=1
fi
for language in c c++; do
	[ $language = c++ ] && ! command -v g++ >/dev/null && continue
	echo '#include "client/perfpersist.h"' |
		"$CC" -x $language -I. -Wall -Wextra -Wpedantic -Werror -fsyntax-only - || status=1
done
[ $status -eq 0 ] && echo "$(wc -l <<<"$exported") functions are declared and exported"
exit $status
