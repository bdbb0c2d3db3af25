#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# No script of the tree has findings of shellcheck.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

command -v shellcheck >/dev/null || { echo "shellcheck is not installed"; exit 77; }
mapfile -t files < <(find client conf packaging tests \( -name '*.sh' -o -name '*.bash' -o -name '*.postinst' -o -name '*.postrm' -o -name '*.prerm' \) \
	-not -path '*/build/*' | sort)
shellcheck "${files[@]}" .ci/run && echo "${#files[@]} scripts are clean"
