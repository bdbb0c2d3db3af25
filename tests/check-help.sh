#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# perfctl --help and perfctl.1 name the same verbs, options and exit codes.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
PERFCTL=${BUILD:-build}/perfctl
MAN=client/perfctl/perfctl.1
status=0

# same WHAT HELP MAN: two lists, one word a line.
same() {
	local lost
	lost=$(diff <(sort -u <<<"$2") <(sort -u <<<"$3") | grep '^[<>]')
	[ -z "$lost" ] && return
	echo "$1: only in --help (<), only in perfctl.1 (>):"
	echo "$lost"
	status=1
}

help=$("$PERFCTL" --help) || { echo "perfctl --help fails"; exit 1; }
verbs=$(sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z]*\).*/\1/p' <<<"$help")
[ -n "$verbs" ] || { echo "perfctl --help lists no verbs"; exit 1; }
for verb in $verbs; do
	[ "$verb" = help ] && continue
	help+=$'\n'$("$PERFCTL" "$verb" --help) || { echo "perfctl $verb --help fails"; status=1; }
done

same verbs "$verbs" "$(grep -oE '^\.Cm [a-z]+( \||$|)' $MAN | awk '{ print $2 }')"

# In the help an option begins a line of a table, or stands behind a comma there.
# In the page's mdoc each is a Fl; "Fl \-" alone is the end of options.
same options \
	"$(grep -E '^  (-|[a-z]+, -)' <<<"$help" | sed -E 's/^ +([a-z]+, )?//; s/  .*$//' |
		grep -oE '(^|[ ,])--?[a-zA-Z][a-z-]*' | tr -d ' ,')" \
	"$(grep '^\.' $MAN | grep -oE '\bFl [^ ]+' | sed 's/^Fl /-/; s/\\//g' | grep -vx -e --)"

same "exit codes" \
	"$(sed -n '/^Exit codes/,/\.$/p' <<<"$help" | grep -oE '\b[0-9]\b')" \
	"$(sed -n '/^\.Sh EXIT STATUS/,/^\.Sh [^E]/s/^\.It .*\b\([0-9]\)$/\1/p' $MAN)"

[ $status -eq 0 ] && echo "help and manual agree on $(wc -w <<<"$verbs") verbs"
exit $status
