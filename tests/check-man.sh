#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The manual pages are well formed and complete, and describe nothing that does not exist: each
# program's options as in its --help, the keys of the configuration, the calls and
# types of perfpersist.h. The program in libperfpersist.3 compiles.
set -u -o pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.." || exit 1
BUILD=$(cd "${BUILD:-build}" && pwd) || exit 1

PERFCTL_1=client/perfctl/perfctl.1
LIBRARY_3=client/libperfpersist.3
CONF_5=conf/perfpersistd.conf.5
DAEMON_8=daemon/broker/perfpersistd.8
PAGES=("$PERFCTL_1" "$LIBRARY_3" "$CONF_5" "$DAEMON_8")
CC=${CC:-gcc}

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
status=0

wrong() {
	printf '%s\n' "$@"
	status=1
}

# same WHAT ONE ITS OTHER ITS: compares two lists, one word (or line) each; neither may be empty.
same() {
	local lost
	if [ -z "$2" ] || [ -z "$4" ]; then
		wrong "$1: nothing found in $([ -z "$2" ] && echo "$3" || echo "$5")"
		return
	fi
	lost=$(diff <(sort -u <<<"$2") <(sort -u <<<"$4") | grep '^[<>]')
	[ -z "$lost" ] && return
	wrong "$1: only in $3 (<), only in $5 (>):" "$lost"
}

# ── form ─────────────────────────────────────────────────────────────────────────────────

form() {
	local page found
	for page in "${PAGES[@]}"; do
		if command -v groff >/dev/null; then
			found=$(groff -k -mandoc -Tutf8 -ww -z "$page" 2>&1)
			[ -z "$found" ] || wrong "groff of $page:" "$found"
		fi
		if command -v mandoc >/dev/null; then
			found=$(mandoc -T lint -W warning "$page" 2>&1)
			[ -z "$found" ] || wrong "mandoc of $page:" "$found"
		fi
	done
	command -v groff >/dev/null || echo "not checked: groff's warnings (it is not installed)"
	command -v mandoc >/dev/null || echo "not checked: mandoc's warnings (it is not installed)"
}

# Each page of ours that another page refers to exists.
references() {
	same "pages of ours" \
		"$(grep -hoE '^\.Xr (lib)?perf(persist|ctl)[a-z.]* [0-9]' "${PAGES[@]}" | cut -c 5- | tr ' ' .)" "references" \
		"$(printf '%s\n' "${PAGES[@]##*/}")" "the tree"
}

# ── options ──────────────────────────────────────────────────────────────────────────────

# An option begins a line of a table in the help, or follows a comma there.
help_options() {
	grep -E '^  (-|[a-z]+, -)' | sed -E 's/^ +([a-z]+, )?//; s/  .*$//' |
		grep -oE '(^|[ ,])--?[a-zA-Z][a-zA-Z-]*' | tr -d ' ,'
}

# section PAGE REGEX: the sections with such a title, as roff.
section() {
	awk -v title="^[.]S[sh] $2" '/^[.]S[sh] / { on = $0 ~ title } on' "$1"
}

# In the pages each option is a list item; "Fl \-" alone ends the options.
page_options() {
	grep '^\.It' | grep -oE '\bFl [^ ]+' | sed 's/^Fl /-/; s/\\//g' | grep -vx -e --
}

# The commands of a verb, as `trigger add`, are in its help, in front of a line that says so.
commands() {
	"$BUILD/perfctl" "$1" --help | grep -B 99 'COMMAND --help' | sed -nE 's/^  ([a-z]+) .*/\1/p'
}

perfctl() {
	local overview help verbs verb parts part options all=()
	overview=$("$BUILD/perfctl" --help) || wrong "perfctl --help fails"
	verbs=$(sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z]*\).*/\1/p' <<<"$overview")

	# The synopsis has a line for each verb; `.Cm pause | resume` names two.
	same "verbs" "$verbs" "perfctl --help" \
		"$(section $PERFCTL_1 SYNOPSIS | sed -n 's/^\.Cm //p' | sed 's/ Cm .*//; s/Fl.*//' | grep -oE '[a-z]+')" $PERFCTL_1
	# `list, -l` is in the verb's own section.
	same "global options" "$(sed '/^Verbs:/,/^$/d' <<<"$overview" | help_options)" "perfctl --help" \
		"$(section $PERFCTL_1 Options | page_options)" $PERFCTL_1
	for verb in $verbs; do
		parts=$(commands "$verb")
		[ -n "$parts$(section $PERFCTL_1 SYNOPSIS | grep "^\.Cm $verb Cm ")" ] &&
			same "commands of $verb" "$parts" "perfctl $verb --help" \
				"$(section $PERFCTL_1 SYNOPSIS | sed -n "s/^\.Cm $verb Cm //p" | grep -oE '[a-z]+')" $PERFCTL_1
		for part in ${parts:-''}; do
			all+=("$verb${part:+ $part}")
		done
	done
	for verb in "${all[@]}"; do
		[ "$verb" = help ] && continue
		# shellcheck disable=SC2086 # two words
		help=$("$BUILD/perfctl" --socket /nowhere $verb --help 2>&1) || wrong "perfctl $verb --help does more than that:" "$help"
		options=$(help_options <<<"$help")
		section $PERFCTL_1 "(.* , )?$verb( |$)" >"$dir/section"
		[ -s "$dir/section" ] || wrong "$verb has no section in $PERFCTL_1"
		[ -z "$options$(page_options <"$dir/section")" ] && continue
		same "options of $verb" "$options" "perfctl $verb --help" "$(page_options <"$dir/section")" $PERFCTL_1
	done
	same "verbs in perf's manner" \
		"$(sed -nE 's/^  [a-z]+, (-[a-z]).*/\1/p' <<<"$overview")" "perfctl --help" \
		"$(section $PERFCTL_1 SYNOPSIS | sed -nE 's/^\.Cm .* Fl ([a-z])$/-\1/p')" "$PERFCTL_1"
	same "exit codes" \
		"$(sed -n '/^Exit codes/,/\.$/p' <<<"$overview" | grep -oE '\b[0-9]\b')" "perfctl --help" \
		"$(section $PERFCTL_1 EXIT | sed -n 's/^\.It .*\b\([0-9]\)$/\1/p')" $PERFCTL_1
	echo "perfctl: ${#all[@]} verbs"
}

daemon() {
	local help options
	help=$("$BUILD/perfpersistd" --help) || wrong "perfpersistd --help fails"
	options=$(help_options <<<"$help")
	same "options" "$options" "perfpersistd --help" "$(section $DAEMON_8 OPTIONS | page_options)" $DAEMON_8
	same "options" "$options" "perfpersistd --help" \
		"$(section $DAEMON_8 SYNOPSIS | grep -oE '\bFl [^ ]+' | sed 's/^Fl /-/; s/\\//g')" "the synopsis of $DAEMON_8"
	echo "perfpersistd: $(wc -w <<<"$options") options"
}

# ── configuration ────────────────────────────────────────────────────────────────────────

# The table has an array for each section.
parsed() {
	sed -nE "/ of_$1\[\] = /,/^\};/s/^\t\{ \"([A-Z][A-Za-z]*)\".*/\1/p" daemon/broker/config/keys.c
}

# Those that sentences name, where a limit refuses something.
named() {
	grep -rhoE --include='*.c' '\bMax[A-Z][A-Za-z]*=' daemon client | tr -d = | sort -u
}

described() {
	section $CONF_5 "[[]$1" | sed -nE 's/^\.It Cm ([A-Z][A-Za-z]*)=.*/\1/p'
}

# The keys of a section in perfpersistd.conf are in comments.
shown() {
	sed -nE "/^#?\[$1/,/^#?\[/s/^#([A-Z][A-Za-z]*)=.*/\1/p" conf/perfpersistd.conf
}

keys() {
	local section unknown
	for section in daemon namespace event; do
		same "keys of [$section]" "$(parsed $section)" "the table" "$(described $section)" $CONF_5
	done
	# Keys that triggers and events have in common are listed there, and described for events.
	same "keys of [trigger]" "$(parsed trigger)" "the table" \
		"$(section $CONF_5 "[[]trigger" | sed -nE 's/^(\.It )?\.?Cm ([A-Z][A-Za-z]*)=.*/\2/p' | sort -u | grep -vx Event)" $CONF_5
	for section in daemon namespace; do
		same "keys of [$section]" "$(described $section)" $CONF_5 "$(shown $section)" conf/perfpersistd.conf
	done
	unknown=$(comm -23 <(named) <(described '(daemon|namespace|event)' | sort -u))
	[ -z "$unknown" ] || wrong "sentences name keys that are not there:" "$unknown"
	same "keys of [event]" "$(described event)" $CONF_5 \
		"$(sed -n '/\[event NAMESPACE/,/\[trigger NAMESPACE/p' conf/perfpersistd.conf | sed -nE 's/^# +([A-Z][A-Za-z]*)= .*/\1/p')" \
		"conf/perfpersistd.conf"
	echo "perfpersistd.conf: $(described '(daemon|namespace|event)' | wc -l) keys"
	understood
}

# The daemon accepts each documented key in its section; it may reject the value.
understood() {
	local part
	mkdir "$dir/conf.d"
	for part in daemon namespace; do
		echo "[${part/namespace/namespace x}]"
		described $part | sed 's/$/=x/'
	done >"$dir/conf"
	{ echo "[event x/y]" && described event | sed 's/$/=x/'; } >"$dir/conf.d/x.conf"
	"$BUILD/perfpersistd" --check-config --config "$dir/conf" >"$dir/said" 2>&1
	grep -q ':[0-9]*: ' "$dir/said" || wrong "perfpersistd finds no fault in nonsense:" "$(<"$dir/said")"
	sed -i '/^\[daemon\]/,/^\[/{/=x/d}' "$dir/conf"
	sed -i '/=x/d' "$dir/conf"
	"$BUILD/perfpersistd" --check-config --config "$dir/conf" >>"$dir/said" 2>&1
	if grep 'has no key' "$dir/said"; then
		wrong "these are in $CONF_5, and the daemon does not know them"
	fi
}

# ── library ──────────────────────────────────────────────────────────────────────────────

# One statement per line, without insignificant blanks and forward declarations.
statements() {
	tr -s ' \t\n' ' ' | sed -E 's/ ?([][{}()*,;=]) ?/\1/g; s/(\}|\));/\1\n/g' |
		sed -E 's/^(struct perfpersist[a-z_]*;)+//'
}

header_statements() {
	grep -v '^#include' client/perfpersist.h | "$CC" -E -P -x c - | statements
}

# The types in the page as C, without comments and roff escapes.
page_types() {
	sed -n '/^\.Bd -literal -offset 2n/,/^\.Ed/p' $LIBRARY_3 | grep -v '^\.' | sed 's/^\\&//; s/\\e/\\/g' |
		"$CC" -E -P -x c - | statements
}

page_prototypes() {
	awk '
		{ word = $2; rest = $0; sub(/^[^ ]* /, "", rest); gsub(/"/, "", rest) }
		/^[.]Ft / { type = rest }
		/^[.]Fo / { line = type " " word "("; n = 0 }
		/^[.]Fa / && line { line = line (n++ ? ", " : "") rest }
		/^[.]Fc/ { print line ");"; line = "" }
	' <(section $LIBRARY_3 '(SYNOPSIS)') <(awk '/^[.]Sh/ { on = /SYNOPSIS/ } on' $LIBRARY_3) | statements
}

library() {
	local all functions
	all=$(header_statements)
	functions=$(grep -E '^[^{]*\bperfpersist_[a-z_0-9]+\(' <<<"$all" | grep -v '^typedef')
	same "prototypes" "$functions" perfpersist.h "$(page_prototypes)" $LIBRARY_3
	same "types" "$(grep -E '\{|^typedef' <<<"$all" | grep -E '^(struct|enum|typedef)')" perfpersist.h "$(page_types)" $LIBRARY_3
	same "functions" "$(grep -oE '\bperfpersist_[a-z_0-9]+\(' <<<"$functions" | tr -d '(')" perfpersist.h \
		"$(sed -nE 's/^\t\t(perfpersist_[a-z_0-9]+);/\1/p' client/libperfpersist.map)" libperfpersist.map
	same "functions" "$(grep -oE '\bperfpersist_[a-z_0-9]+\(' <<<"$functions" | tr -d '(')" perfpersist.h \
		"$(awk '/^[.]Sh/ { on = /DESCRIPTION/ } on' $LIBRARY_3 | grep '^\.' | grep -oE '\bFn perfpersist_[a-z_0-9]+' | cut -c 4-)" \
		"the description in $LIBRARY_3"
	same "constants" "$(sed -nE 's/^#define (PERFPERSIST_[A-Z_0-9]+) .*/\1/p' client/perfpersist.h)" perfpersist.h \
		"$({ grep -E '^\.(It )?Dv' $LIBRARY_3; } | grep -oE 'PERFPERSIST_[A-Z_0-9]+' | grep -v _NOTICE_)" $LIBRARY_3
	echo "libperfpersist: $(wc -l <<<"$functions") functions"
}

example() {
	local flags=(-std=gnu17 -O2 -Wall -Wextra -Wformat=2 -Wshadow -Werror -Iclient) code library
	sed -n '/^\.\\" example/,/^\.Ed/p' $LIBRARY_3 | grep -v '^\.' | sed 's/\\e/\\/g; s/\\&//g' >"$dir/example.c"
	[ -s "$dir/example.c" ] || wrong "$LIBRARY_3 has no example"
	for library in libperfpersist.a libperfpersist.so.0; do
		"$CC" "${flags[@]}" -o "$dir/example" "$dir/example.c" "$BUILD/$library" || wrong "it does not compile with $library"
	done
	# Without such an event it says what is wrong and does not crash.
	LD_LIBRARY_PATH=$BUILD "$dir/example" nowhere nothing >"$dir/said" 2>&1
	code=$?
	if [ $code -ne 1 ] || [ ! -s "$dir/said" ]; then
		wrong "the example exits with $code" "$(<"$dir/said")"
	fi
}

form
references
perfctl
daemon
keys
library
example
exit $status
