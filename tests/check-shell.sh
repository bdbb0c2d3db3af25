#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# No script of the tree has findings of shellcheck: at full length with what it takes from others. At the
# short length what others run is looked at, each file by itself, and of the tests that they parse.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
. tests/expect.sh

command -v shellcheck >/dev/null || { echo "shellcheck is not installed"; exit 77; }
mapfile -t files < <(find client conf packaging tests \( -name '*.sh' -o -name '*.bash' -o -name '*.postinst' -o -name '*.postrm' -o -name '*.prerm' \) \
	-not -path '*/build/*' | sort)
if full; then
	shellcheck "${files[@]}" .ci/run && echo "${#files[@]} scripts are clean"
	exit
fi
for file in "${files[@]}"; do
	bash -n "$file" || exit 1
done
mapfile -t shipped < <(printf '%s\n' "${files[@]}" | grep -v ^tests/)
# What others set, use or call, and their `set -e`, cannot be seen then.
shellcheck --norc --exclude=SC1091,SC2034,SC2119,SC2120,SC2153,SC2154,SC2164 "${shipped[@]}" \
	tests/*.sh .ci/run && echo "${#files[@]} scripts are parsed"
