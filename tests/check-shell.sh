#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# No script of the tree has findings of shellcheck: at full length with what it takes from others, at the
# short length each file by itself.
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
# What others set, use or call, and their `set -e`, cannot be seen then.
printf '%s\0' "${files[@]}" .ci/run | xargs -0 -n 20 -P "$(nproc)" shellcheck --norc \
	--exclude="$(sed -n 's/^disable=//p' .shellcheckrc),SC1091,SC2034,SC2153,SC2154,SC2164" &&
	echo "${#files[@]} scripts are clean, each by itself"
