# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Prints bash's candidates at the end of a line, one per line:
#
#   bash completion.bash FILE PERFCTL LINE [WORDBREAKS]
#
# Splits the line into words as readline does: at blanks, and at ":" and "=" outside quotes, which
# become words themselves, unless WORDBREAKS leaves them out.
# shellcheck source=/dev/null
. "$1"
PATH=$(dirname "$2"):$PATH
COMP_LINE=$3
COMP_POINT=${#COMP_LINE}
COMP_WORDBREAKS=${4-$' \t\n"\'><=;|&(:'}
COMP_WORDS=()

breaks=
for c in : =; do
	[[ $COMP_WORDBREAKS != *$c* ]] || breaks+=$c
done
quoted="'[^']*'?|\"[^\"]*\"?"
word="($quoted|[^[:blank:]$breaks'\"])+"
rest=$COMP_LINE
while [[ $rest =~ ^[[:blank:]]*($word${breaks:+|[$breaks]+}) ]]; do
	COMP_WORDS+=("${BASH_REMATCH[1]}")
	rest=${rest:${#BASH_REMATCH[0]}}
done
[[ $COMP_LINE != *[[:blank:]] ]] || COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))

_perfctl perfctl "${COMP_WORDS[COMP_CWORD]}" ""
printf '%s\n' "${COMPREPLY[@]}"
