#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The tables in proto/PROTOCOL.md equal those that the codec prints. --write updates them. Usage:
# tests/check-protocol-doc.sh [--write] [BUILD]
set -euo pipefail
cd "$(dirname "$0")/.."

write=
if [ "${1:-}" = --write ]; then
	write=1
	shift
fi
build=${1:-${BUILD:-build}}
print=$build/tests/print-protocol
doc=proto/PROTOCOL.md
begin='<!-- generated: begin -->'
end='<!-- generated: end -->'

if [ ! -x "$print" ]; then
	echo "$print is not there: build it with \`make tests\`" >&2
	exit 1
fi
for mark in "$begin" "$end"; do
	if [ "$(grep -cxF -- "$mark" "$doc")" != 1 ]; then
		echo "$doc must have one line '$mark'" >&2
		exit 1
	fi
done

# The whole document as it should be: the text around the marks, and the tables between them.
wanted=$(mktemp)
trap 'rm -f "$wanted"' EXIT
{
	sed "/^$begin\$/q" "$doc"
	echo
	"$print"
	echo
	sed -n "/^$end\$/,\$p" "$doc"
} > "$wanted"

if cmp -s "$wanted" "$doc"; then
	exit 0
fi
if [ -n "$write" ]; then
	cat "$wanted" > "$doc"
	exit 0
fi
diff -u --label "$doc" --label "as the codec has it" "$doc" "$wanted" || true
echo "$doc is not what protocol.def says: run tests/check-protocol-doc.sh --write $build" >&2
exit 1
