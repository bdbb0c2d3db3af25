# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Completion of perfctl for bash, with or without the package bash-completion. `perfctl --complete`
# knows what can stand at the cursor (complete.h says what it prints); this is about readline alone.

# Sets words, up to the cursor: COMP_WORDS, where readline did not cut at a blank (it also cuts at
# ":" and "="), put together again.
_perfctl_words() {
	local rest=${COMP_LINE:0:COMP_POINT} trimmed i word
	words=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		trimmed=${rest#"${rest%%[![:blank:]]*}"}
		word=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || word=$trimmed
		if ((i == 0)) || [ "$trimmed" != "$rest" ]; then
			words+=("$word")
		else
			words[${#words[@]} - 1]+=$word
		fi
		rest=${trimmed#"$word"}
	done
}

# _perfctl_files HOW TEXT: the files or directories that begin with TEXT, a line each.
_perfctl_files() {
	local word
	case $1 in
	file) compgen -f -- "$2" ;;
	directory) compgen -d -- "$2" ;;
	file:)
		# Readline quotes whole file names only; see is_plain() for what the others could do.
		compgen -f -- "$2" | while IFS= read -r word; do
			[[ $word != *[!a-zA-Z0-9_.,:+/@%=^-]* ]] || continue
			[ -d "$word" ] && echo "$word/" || echo "$word:"
		done
		;;
	esac
}

_perfctl() {
	local words how='' begin='' strip='' current line breaks

	_perfctl_words
	current=${words[${#words[@]} - 1]}
	# Readline replaces what stands behind the last character at which it cuts, in quotes all of it.
	case $current in
	[\'\"]*)
		current=${current:1}
		words[${#words[@]} - 1]=$current
		;;
	*)
		for breaks in : =; do
			[[ $COMP_WORDBREAKS == *$breaks* && $current == *$breaks* ]] || continue
			line=${current%"${current##*"$breaks"}"}
			((${#line} <= ${#strip})) || strip=$line
		done
		;;
	esac
	COMPREPLY=()
	{
		IFS= read -r how && IFS= read -r _ && IFS= read -r begin
		while IFS= read -r line; do
			line=$begin${line%%$'\t'*}
			COMPREPLY+=("${line#"$strip"}")
		done
	} < <("$1" --complete "${words[@]:1}" 2>/dev/null)
	case $how in
	command)
		# The command's own completion, where something knows how to get it.
		COMPREPLY=()
		if ((${#words[@]} - 1 > begin)) && declare -F _command_offset >/dev/null; then
			_command_offset "$begin"
		else
			# No stranger's file name becomes code on the line: nothing quotes these.
			mapfile -t COMPREPLY < <(compgen -c -- "$current" |
				LC_ALL=C grep -xE '[a-zA-Z0-9_.,:+/@%=^~[-]+' | sort -u)
		fi
		return
		;;
	file | directory) compopt -o filenames 2>/dev/null ;;
	esac
	while IFS= read -r line; do
		line=$begin$line
		COMPREPLY+=("${line#"$strip"}")
	done < <(_perfctl_files "$how" "${current#"$begin"}")
	# A part of a name is no name yet.
	if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[:/=] ]]; then
		compopt -o nospace 2>/dev/null
	fi
}

complete -F _perfctl perfctl
