#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The completions for bash and zsh offer each verb and option that --help names, and know its
# argument. The events that they name exist.
set -u -o pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.." || exit 1
BUILD=$(cd "${BUILD:-build}" && pwd) || exit 1
PERFCTL=$BUILD/perfctl
BASH_FILE=client/perfctl/completion/perfctl.bash
ZSH_FILE=client/perfctl/completion/_perfctl

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
status=0

wrong() {
	printf '%s\n' "$@"
	status=1
}

verbs=$("$PERFCTL" --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z]*\).*/\1/p')
[ -n "$verbs" ] || { echo "perfctl --help lists no verbs"; exit 1; }

# "VERB OPTION VALUE" of each option in the help of perfctl ("-") and of its verbs. Reads the help
# in another way than the completions do: a line per option, "[=" and "=" made blanks.
for verb in - $verbs; do
	case $verb in
	help) continue ;;
	-) help=$("$PERFCTL" --help) ;;
	*) help=$("$PERFCTL" "$verb" --help) ;;
	esac || wrong "the help of $verb cannot be had"
	while read -r -a words; do
		value=
		[[ ${words[-1]} == -* ]] || value=${words[-1]}
		for word in "${words[@]%,}"; do
			[[ $word != -* ]] || echo "$verb $word $value" >>"$dir/options"
		done
	done < <(grep '^  -' <<<"$help" | sed -E 's/^  //; s/  .*//; s/\[?=/ /; s/\]//')
done
[ "$(wc -l <"$dir/options")" -gt 20 ] || wrong "only these options were found:" "$(<"$dir/options")"

# ── the arguments ────────────────────────────────────────────────────────────────────────

# kinds SHELL…: asks the completion for the kinds of all arguments, in that shell.
kinds() {
	# shellcheck disable=SC2016
	{
		while read -r verb option value; do
			[ -z "$value" ] || echo "_perfctl_option $verb $option; echo \"$verb $option \$kind\""
		done <"$dir/options"
		for verb in $verbs; do
			echo "_perfctl_operand $verb 0; echo \"$verb operand \$kind\""
		done
	} >"$dir/ask"
	cat "$dir/functions" "$dir/ask" | "$@" >"$dir/kinds" || wrong "$1 fails"
	if [ "$(wc -l <"$dir/kinds")" -ne "$(wc -l <"$dir/ask")" ] || grep -E ' (unknown)?$' "$dir/kinds"; then
		wrong "the completion for $1 does not know the arguments of these; add them to _perfctl_option or _perfctl_operand"
	fi
}

grep -v '^complete ' $BASH_FILE >"$dir/functions"
kinds bash
bash_kinds=$(<"$dir/kinds")

if command -v zsh >/dev/null; then
	zsh -n $ZSH_FILE || wrong "$ZSH_FILE has errors"
	# All but the last line, which calls the function.
	sed '$d' $ZSH_FILE >"$dir/functions"
	kinds zsh -f
	diff <(echo "$bash_kinds") "$dir/kinds" || wrong "bash (<) and zsh (>) complete different things"
else
	echo "not checked: zsh (it is not installed)"
fi

# ── the candidates ───────────────────────────────────────────────────────────────────────

# offered WORD…: bash's candidates for the last word.
offered() {
	# shellcheck disable=SC2016
	bash -c '
		. "$0"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_WORDBREAKS=" =:"
		COMP_POINT=${#COMP_LINE}
		_perfctl "$1"
		printf "%s\n" "${COMPREPLY[@]}"' $BASH_FILE "$PERFCTL" "$@"
}

missing=$(diff <(echo "$verbs" | sort) <(offered '' | sort))
[ -z "$missing" ] || wrong "verbs of --help (<) and those that are offered (>):" "$missing"
for verb in - $verbs; do
	[ "$verb" = help ] && continue
	words=("$verb" '')
	[ "$verb" != - ] || words=('')
	words[${#words[@]} - 1]=-
	missing=$(diff <(grep -E "^(-|$verb) " "$dir/options" | cut -d ' ' -f 2 | sort -u) <(offered "${words[@]}" | sort -u))
	[ -z "$missing" ] || wrong "options of $verb in --help (<) and those that are offered (>):" "$missing"
done

# ── names of counters ────────────────────────────────────────────────────────────────────

n=0
mkdir "$dir/conf.d"
printf '[daemon]\n' >"$dir/conf"
# shellcheck disable=SC2016
counters=$(bash -c '. "$0" && printf "%s\n" $_perfctl_counters' $BASH_FILE)
for name in $counters; do
	printf '[event x/e%d]\nEvent=%s\n' $((++n)) "$name"
done >"$dir/conf.d/x.conf"
"$BUILD/perfpersistd" --check-config --config "$dir/conf" >"$dir/said" 2>&1 || wrong "$(<"$dir/said")"
if command -v zsh >/dev/null; then
	diff <(echo "$counters") \
		<(zsh -fc "$(sed '$d' $ZSH_FILE); print -l \$_perfctl_counters") || wrong "bash (<) and zsh (>) know different counters"
fi

[ $status -eq 0 ] && echo "$(wc -w <<<"$verbs") verbs, $(wc -l <"$dir/options") options, $n counters"
exit $status
