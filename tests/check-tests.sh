#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tests/list names every test of the tree exactly once, with an existing tier and a reason, and
# nothing else.
set -u -o pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.." || exit 1

status=0
wrong() {
	printf '%s\n' "$@"
	status=1
}

rows=$(sed 's/#.*//' tests/list | grep .)
listed=$(awk '{ print $3 }' <<<"$rows")

bad=$(awk '$1 !~ /^(quick|check|all|none)$/ || $2 !~ /^(beside|alone|-)$/ || ($1 != "none" && NF < 4)' <<<"$rows")
[ -z "$bad" ] || wrong "rows that are not TIER HOW NAME WHY:" "$bad"
twice=$(sort <<<"$listed" | uniq -d)
[ -z "$twice" ] || wrong "listed twice:" "$twice"

# there PREFIX SUFFIX FILE…: the name of each file's test.
there() {
	local prefix=$1 suffix=$2 file
	shift 2
	for file in "$@"; do
		file=${file##*/}
		echo "$prefix/${file%"$suffix"}"
	done
}
files=$(
	there unit .c tests/unit/test-*.c
	there check .sh tests/check-*.sh
	there integration .sh tests/integration/test-*.sh
	there fuzz .c tests/fuzz/fuzz-*.c
	there vm .sh tests/vm/test-*.sh tests/vm/check-*.sh
)
# A guest's test is listed once per kernel.
names=$(grep -v '^asan/' <<<"$listed" | sed -E '/^vm\/test-/s/-([0-9]+\.[0-9]+|newest)$//')
lost=$(diff <(sort -u <<<"$files") <(sort -u <<<"$names") | grep '^[<>]')
[ -z "$lost" ] || wrong "tests that are not listed (<), rows without a test (>):" "$lost"


# Without what needs.h does to <check.h>, assertions in loops take most of a test's time.
around=$(grep -l '<check\.h>' tests/unit/* | grep -v /needs.h)
[ -z "$around" ] || wrong 'includes <check.h> rather than "tests/unit/needs.h":' "$around"

# grep -q ends at the first match. A command that has more to say then dies of the closed pipe, and with it, by pipefail,
# the condition.
piped=$(grep -rnE '[^|]\| *grep -[a-zA-Z]*q' tests --include='*.sh' | grep -v '^tests/check-tests\.sh:')
[ -z "$piped" ] || wrong "pipes into grep -q; write grep -q TEXT < <(COMMAND):" "$piped"

[ $status -eq 0 ] && echo "$(wc -l <<<"$files") tests, each in its tier"
exit $status
