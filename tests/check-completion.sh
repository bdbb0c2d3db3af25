#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The functions for bash and zsh have no errors; bash offers each verb, command and option that --help
# names, and no other, and no option is there twice; the events that perfctl --complete knows by name
# are events.
set -u -o pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.." || exit 1
BUILD=$(cd "${BUILD:-build}" && pwd) || exit 1
PERFCTL=$BUILD/perfctl
BASH_FILE=client/perfctl/completion/perfctl.bash

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
status=0

wrong() {
	printf '%s\n' "$@"
	status=1
}

if command -v zsh >/dev/null; then
	zsh -n client/perfctl/completion/_perfctl || wrong "_perfctl has errors"
else
	echo "not checked: zsh (it is not installed)"
fi

# offered WORD…: the candidates of bash for the last word.
offered() {
	bash -c '
		. "$0"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_WORDBREAKS=" =:"
		COMP_POINT=${#COMP_LINE}
		_perfctl "$1"
		printf "%s\n" "${COMPREPLY[@]}"' $BASH_FILE "$PERFCTL" "$@" | sort -u
}

# options WORD…: the options in the help, with these words in front of --help.
options() {
	"$PERFCTL" "$@" --help | grep '^  -' | sed -E 's/^  //; s/  .*//; s/\[?=.*//' | grep -oE '(^|, )--?[a-zA-Z-]+' | tr -d ', '
}

verbs=$("$PERFCTL" --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z]*\).*/\1/p')
[ -n "$verbs" ] || wrong "perfctl --help lists no verbs"
missing=$(diff <(sort <<<"$verbs") <(offered ''))
[ -z "$missing" ] || wrong "verbs of --help (<) and those that are offered (>):" "$missing"
global=$(options)
n=0
# check_options WORD…: those of a verb, or of one of its commands.
check_options() {
	all=$({ echo "$global"; [ $# -eq 0 ] || options "$@"; } | sort)
	missing=$(diff <(echo "$all") <(offered "$@" -))
	[ -z "$missing" ] || wrong "options of $* in --help (<) and those that are offered (>):" "$missing"
	n=$((n + $(wc -l <<<"$all") - $(wc -l <<<"$global")))
}

check_options
for verb in $verbs; do
	[ "$verb" != help ] || continue # it has the global options alone
	check_options "$verb"
	parts=$("$PERFCTL" "$verb" --help | grep -B 99 'COMMAND --help' | sed -nE 's/^  ([a-z]+) .*/\1/p')
	[ -n "$parts" ] || continue
	missing=$(diff <(sort <<<"$parts") <(offered "$verb" ''))
	[ -z "$missing" ] || wrong "commands of $verb in --help (<) and those that are offered (>):" "$missing"
	for part in $parts; do
		check_options "$verb" "$part"
	done
done
[ $n -gt 20 ] || wrong "only $n options were found"

counters=$("$PERFCTL" --complete create x -e '' | sed '1,3d; /[:/]$/d')
mkdir "$dir/conf.d"
printf '[daemon]\n' >"$dir/conf"
e=0
for name in $counters; do
	printf "[event x/e%d]\nEvent=%s\n" $((++e)) "$name"
done >"$dir/conf.d/x.conf"
"$BUILD/perfpersistd" --check-config --config "$dir/conf" >"$dir/said" 2>&1 || wrong "$(<"$dir/said")"

[ $status -eq 0 ] && echo "$(wc -w <<<"$verbs") verbs, $n options, $(wc -w <<<"$counters") counters"
exit $status
