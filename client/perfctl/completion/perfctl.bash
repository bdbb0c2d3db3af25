# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Completion of perfctl for bash, with or without the package bash-completion.
#
# Verbs and options are what `perfctl --help` and `perfctl VERB --help` say, so that none can be
# forgotten here; _perfctl_option and _perfctl_operand say what kind of thing each takes. Names of
# events come from the files of the registry: no daemon has to run for them, and none is started.

# ── what the help says ───────────────────────────────────────────────────────────────────

# _perfctl_verbs PERFCTL: one a line; `list, -l` is two.
_perfctl_verbs() {
	"$1" --help 2>/dev/null | sed -nE '/^Verbs:/,/^$/s/^  ([a-z]+)(, (-[a-z]))? .*/\1 \3/p'
}

# _perfctl_options PERFCTL [VERB]: "OPTION VALUE" a line; VALUE is "[...]" if it can be left out.
_perfctl_options() {
	"$@" --help 2>/dev/null | awk '
		/^  -/ {
			sub(/^  /, ""); sub(/  .*/, "")
			value = ""; n = split($0, words, /,? +/); m = 0
			for (i = 1; i <= n; i++) {
				word = words[i]
				if (word !~ /^-/) { value = word; continue }
				at = match(word, /(\[=|=).*/)
				if (at) { value = substr(word, at); word = substr(word, 1, at - 1) }
				names[++m] = word
			}
			sub(/^=/, "", value)
			for (i = 1; i <= m; i++) print names[i], value
		}'
}

# ── what kind of thing is wanted ─────────────────────────────────────────────────────────

# _perfctl_option VERB OPTION: sets kind. (In a subshell for each it would be slow.)
_perfctl_option() {
	case $1:$2 in
	*:--instance) kind=instance ;;
	*:--socket) kind=path ;;
	*:--registry) kind=directory ;;
	*:--saved) kind=save ;;
	create:-e | create:--event | record:-e | record:--event) kind=event ;;
	create:-n | create:--namespace | record:-P | record:--persistent) kind=namespace ;;
	create:-c | create:--count | record:-c | record:--count) kind=number ;;
	create:-F | create:--freq | record:-F | record:--freq) kind=frequency ;;
	record:-o | record:--output | snapshot:-o | snapshot:--output) kind=path ;;
	record:--timeout | record:--max-size | record:--switch-*) kind=number ;;
	record:--last | record:--since | record:--until) kind=number ;;
	snapshot:--last | snapshot:--since | snapshot:--until) kind=number ;;
	script:-i | script:--input) kind=path ;;
	script:-F | script:--fields) kind=fields ;;
	script:--time) kind=clock ;;
	report:-i | report:--input | report:--folded | report:--perfetto | report:--html) kind=path ;;
	report:--sort) kind=keys ;;
	report:-g | report:--call-graph) kind=order ;;
	report:--weight) kind=weight ;;
	report:--event) kind=text ;;
	report:--percent-limit | report:--max-stack | report:--top) kind=number ;;
	report:--last | report:--since | report:--until) kind=number ;;
	script:--max-stack | script:--last | script:--since | script:--until) kind=number ;;
	*:-p | *:--pid | *:--tid) kind=pid ;;
	*:--comm) kind=task ;;
	*:--cgroup) kind=cgroup ;;
	*:--max-rate) kind=rate ;;
	*:-C | *:--cpu) kind=cpus ;;
	*:-m | *:--mmap-pages) kind=size ;;
	*:--id) kind=id ;;
	reopen:-n) kind=all ;;
	save:-o | save:--output) kind=directory ;;
	save:--keep) kind=all ;;
	*:--filter) kind=text ;;
	stat:-I | stat:--interval-print | stat:--interval-count) kind=number ;;
	top:-d | top:-n | watch:-n) kind=number ;;
	*) kind=unknown ;;
	esac
}

# _perfctl_operand VERB N: sets kind; N operands stand before this one.
_perfctl_operand() {
	case $1:$2 in
	:0 | help:0) kind=verb ;;
	create:0) kind=new ;;
	list:0 | -l:0 | top:0 | watch:0) kind=namespace ;;
	reopen:0 | show:0 | change:0) kind=name ;;
	delete:* | -d:*) [ -z "${everything-}" ] && kind=name || kind=namespace ;;
	stat:*) kind=name ;;
	pause:* | resume:* | save:* | record:* | snapshot:*) kind=name+namespace ;;
	script:* | report:*) kind=name+namespace ;;
	limits:* | reload:* | ping:*) kind=none ;;
	*:0) kind=unknown ;;
	*) kind=none ;;
	esac
}

# ── what there is ────────────────────────────────────────────────────────────────────────

# Sets place: the folder with a folder for each namespace; asks: another way has to be gone, too.
_perfctl_place() {
	local root=/run/perfpersist${instance:+-$instance} state=/var/lib/perfpersist${instance:+-$instance}
	asks=
	place=${registry:-$root/registry}
	if [ -n "$saved" ]; then
		case $saved in
		*/*) place=$saved ;;
		. | ..) place=$saved ;;
		*) place=$state/saved/${saved#-} ;;
		esac
		# A folder of saves: the newest, whose name is the last.
		compgen -G "$place/[0-9]*T*Z" >/dev/null && place=$(compgen -G "$place/[0-9]*T*Z" | sort | tail -n 1)
	elif [ -n "$socket" ]; then
		place=/nowhere asks=1
	fi
}

# _perfctl_swap FROM [TO]: of each line that begins so; all others are dropped.
_perfctl_swap() {
	local line
	while IFS= read -r line; do
		[[ $line != "$1"* ]] || printf '%s\n' "${2-}${line#"$1"}"
	done
}

# The daemon's list, where there is no other way: it is started by that, if its socket is there.
_perfctl_list() {
	timeout 5 "$perfctl" ${instance:+--instance "$instance"} ${socket:+--socket "$socket"} list 2>/dev/null |
		tail -n +2
}

# NAMESPACE/NAME of all events that one may read, a line each.
_perfctl_events() {
	local place asks namespace
	_perfctl_place
	compgen -G "$place/[a-zA-Z_]*/[a-zA-Z_]*" | _perfctl_swap "$place/"
	# Who owns a namespace, and is not in its group, cannot list its folder.
	while read -r namespace; do
		[ -r "$namespace" ] || [ -n "$saved" ] || [ "${namespace##*/}" = by-id ] || asks=1
	done < <(compgen -G "$place/[a-zA-Z_]*")
	[ -z "$asks" ] || _perfctl_list | awk '{ print $1 "/" $2 }'
}

# With what the folder has beside: by-id, and files of the kernel's.
_perfctl_namespaces() {
	local place asks
	_perfctl_place
	{ _perfctl_events; compgen -G "$place/[a-zA-Z_]*" | _perfctl_swap "$place/"; } |
		sed 's|/.*||; /^by-id$/d; /[^a-zA-Z0-9_-]/d' | sort -u
}

_perfctl_ids() {
	local place asks
	_perfctl_place
	if [ -n "$saved" ]; then
		compgen -G "$place/[a-zA-Z_]*/[a-zA-Z_]*/info" | tr '\n' '\0' | xargs -0r sed -n 's/^id=//p'
		return
	fi
	compgen -G "$place/by-id/*" | sed 's|.*/||'
	[ -r "$place/by-id" ] || _perfctl_list | awk '{ print $3 }'
}

# Names as they can be typed: with the namespace, and those of `default` without it once it is
# clear that one of these is meant.
_perfctl_names() {
	local events
	events=$(_perfctl_events)
	printf '%s\n' "$events"
	case $1 in
	"" | */*) ;;
	*) sed -n 's|^default/||p' <<<"$events" ;;
	esac
}

# perf's names for what every machine may count.
_perfctl_counters='cpu-clock task-clock page-faults minor-faults major-faults context-switches
cpu-migrations alignment-faults emulation-faults cgroup-switches cpu-cycles cycles instructions
cache-references cache-misses branch-instructions branches branch-misses bus-cycles ref-cycles
stalled-cycles-frontend stalled-cycles-backend L1-dcache-loads L1-dcache-load-misses LLC-loads
LLC-load-misses dTLB-load-misses iTLB-load-misses'

# The text of one event, as far as it has been typed.
_perfctl_event_texts() {
	local tracefs=/sys/kernel/tracing devices=/sys/bus/event_source/devices text=$1 word
	[ -d $tracefs/events ] || tracefs=/sys/kernel/debug/tracing
	case $text in
	uprobe:* | uretprobe:* | usdt:*)
		compgen -f -- "${text#*:}" | while read -r word; do
			[ -d "$word" ] && word+=/ || word+=:
			echo "${text%%:*}:$word"
		done
		;;
	kprobe:??* | kretprobe:??*)
		awk -v kind="${text%%:*}:" -v begin="${text#*:}" \
			'$2 ~ /[tT]/ && index($3, begin) == 1 { print kind $3 }' /proc/kallsyms
		;;
	*:*)
		compgen -G "$tracefs/events/${text%%:*}/*/format" | sed -E 's|.*/([^/]+)/([^/]+)/format$|\1:\2|'
		;;
	*/*)
		for word in $(compgen -G "$devices/${text%%/*}/events/*"); do
			[[ $word == *.scale || $word == *.unit || $word == *.snapshot ]] || echo "${text%%/*}/${word##*/}/"
		done
		;;
	*)
		# shellcheck disable=SC2086
		printf '%s\n' $_perfctl_counters mem: kprobe: kretprobe: uprobe: uretprobe: usdt:
		compgen -G "$tracefs/events/*/*/format" | sed -E 's|.*/([^/]+)/[^/]+/format$|\1:|' | sort -u
		compgen -G "$devices/*/events" | sed -E 's|.*/([^/]+)/events$|\1/|'
		;;
	esac
}

# Behind the last comma that is not within a PMU's terms or a probe's arguments.
_perfctl_event_list() {
	local done='' rest=$1 part=''
	while [[ $rest == *,* ]]; do
		part+=${rest%%,*}
		rest=${rest#*,}
		case $part in
		*\(*\)*) ;;
		*\(*) part+=, && continue ;;
		uprobe:* | uretprobe:* | usdt:* | */*/*) ;;
		*/*) part+=, && continue ;;
		esac
		done+=$part,
		part=''
	done
	_perfctl_event_texts "$part$rest" | _perfctl_swap '' "$done"
}

# CPUs that are online: the whole list, and each.
_perfctl_cpus() {
	local done='' all part cpu
	read -r all 2>/dev/null </sys/devices/system/cpu/online || return
	[[ $1 != *[,-]* ]] || done=${1%"${1##*[,-]}"}
	[ -n "$done" ] || echo "$all"
	for part in ${all//,/ }; do
		for ((cpu = ${part%-*}; cpu <= ${part#*-}; cpu++)); do
			echo "$done$cpu"
		done
	done
}

_perfctl_cgroups() {
	local root=/sys/fs/cgroup
	[ -e $root/cgroup.controllers ] || root=$root/unified
	compgen -d -- "$root${1:-/}" | _perfctl_swap "$root" | sed 's|$|/|'
}

_perfctl_instances() {
	compgen -G '/run/perfpersist-*' | sed 's|.*/perfpersist-||'
	compgen -G '/etc/perfpersist-*' | sed 's|.*/perfpersist-||'
}

_perfctl_saves() {
	local state=/var/lib/perfpersist${instance:+-$instance}/saved
	compgen -G "$state/[0-9]*" | sed 's|.*/||'
	[ -z "$1" ] || compgen -d -- "$1" | sed 's|$|/|'
}

# _perfctl_candidates KIND TEXT: a line each; those that do not fit TEXT may be among them.
_perfctl_candidates() {
	case $1 in
	verb)
		_perfctl_verbs "$perfctl" | sed 's/ .*//'
		;;
	name) _perfctl_names "$2" ;;
	namespace) _perfctl_namespaces ;;
	name+namespace)
		_perfctl_names "$2"
		_perfctl_namespaces | sed 's|$|/|'
		;;
	new) _perfctl_namespaces | sed 's|$|/|' ;;
	id) _perfctl_ids ;;
	event) _perfctl_event_list "$2" ;;
	cpus) _perfctl_cpus "$2" ;;
	cgroup) _perfctl_cgroups "$2" ;;
	instance) _perfctl_instances ;;
	save) _perfctl_saves "$2" ;;
	pid) compgen -G '/proc/[0-9]*' | sed "s|.*/|${2%"${2##*,}"}|" ;;
	task) cat /proc/[0-9]*/comm 2>/dev/null | sort -u ;;
	rate) printf '%s\n' 100/s 1000/s 10000/s ;;
	size) printf '%s\n' 64K 512K 1M 4M 16M 64M ;;
	frequency) printf '%s\n' 99 999 4000 ;;
	fields)
		printf "${2%"${2##*[,+-]}"}%s\n" comm tid pid time cpu event trace ip sym symoff dso addr period tod
		;;
	clock) printf '%s\n' mono real relative ;;
	keys) printf '%s\n' comm dso symbol ;;
	order) printf '%s\n' caller callee ;;
	weight) printf '%s\n' samples period ;;
	all) echo all ;;
	path) compgen -f -- "$2" ;;
	directory) compgen -d -- "$2" ;;
	esac
}

# ── the line ─────────────────────────────────────────────────────────────────────────────

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

# Takes words apart. Sets verb, operands (how many stand before the cursor), option (whose value is
# at the cursor, if it is one's), command (where one begins, behind reopen's --), what the global
# options say, and everything: delete's --all is there.
_perfctl_parse() {
	local i word value
	verb='' operands=0 option='' command='' instance='' registry='' socket='' saved='' everything=''
	while read -r word value; do
		takes[$word]=$value
	done < <(_perfctl_options "$perfctl")

	for ((i = 1; i < ${#words[@]}; i++)); do
		((i < ${#words[@]} - 1)) || break
		word=${words[i]}
		value=
		if [[ $word == -- ]]; then
			[ "$verb" != reopen ] || command=$((i + 1))
			break
		elif [[ $word == --*=* ]]; then
			value=${word#*=}
			word=${word%%=*}
		elif [ -z "$verb" ] && [[ $word == -[ld] ]]; then
			_perfctl_verb "$word"
			continue
		elif [[ $word == -* && ${takes[$word]-} == [!\[]* ]]; then
			((i + 1 < ${#words[@]} - 1)) || { option=$word && break; }
			value=${words[++i]}
		elif [[ $word != -* ]]; then
			if [ -z "$verb" ]; then
				_perfctl_verb "$word"
			else
				operands=$((operands + 1))
			fi
			continue
		fi
		case $word in
		--instance) instance=$value ;;
		--registry) registry=$value ;;
		--socket) socket=$value ;;
		--saved) saved=${value:--} ;;
		--all) everything=1 ;;
		esac
	done
}

# From here on the verb's options count, too.
_perfctl_verb() {
	local word value
	verb=$1
	[ "$verb" != help ] || return
	while read -r word value; do
		takes[$word]=$value
	done < <(_perfctl_options "$perfctl" "$verb")
}

# _perfctl_reply TEXT [STRIP [PREFIX]]: COMPREPLY from the lines of candidates that begin with TEXT:
# without what readline does not replace, and with what it does beside.
_perfctl_reply() {
	local line
	COMPREPLY=()
	while IFS= read -r line; do
		[[ -z $line || $line != "$1"* ]] || COMPREPLY+=("${3-}${line#"${2-}"}")
	done < <(sort -u)
	# A part of a name is no name yet.
	if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[:/=] ]]; then
		compopt -o nospace 2>/dev/null
	fi
}

_perfctl() {
	local perfctl=$1 words verb operands option command instance registry socket saved everything
	local -A takes=()
	local current prefix='' strip='' kind quote='' breaks kept=''

	_perfctl_words
	_perfctl_parse
	current=${words[${#words[@]} - 1]}
	if [ -n "$command" ]; then
		# The command's own completion, where something knows how to get it.
		if ((${#words[@]} - 1 > command)) && declare -F _command_offset >/dev/null; then
			_command_offset "$command"
		else
			mapfile -t COMPREPLY < <(compgen -c -- "$current" | sort -u)
		fi
		return
	fi
	case $current in
	[\'\"]*)
		quote=1
		current=${current:1}
		;;
	esac
	if [ -z "$option" ] && [[ $current == --*=* ]]; then
		option=${current%%=*}
		[[ $COMP_WORDBREAKS == *=* ]] || prefix=$option=
		current=${current#*=}
	fi
	if [ -n "$option" ]; then
		_perfctl_option "${verb:-none}" "$option"
	elif [[ $current == -* ]]; then
		_perfctl_reply "$current" < <(printf '%s\n' "${!takes[@]}")
		return
	else
		_perfctl_operand "$verb" "$operands"
	fi
	# Readline replaces what stands behind the last character at which it cuts.
	if [ -z "$quote" ]; then
		for breaks in : =; do
			[[ $COMP_WORDBREAKS != *$breaks* || $current != *$breaks* ]] || kept=${current%"${current##*"$breaks"}"}
			((${#kept} <= ${#strip})) || strip=$kept
		done
	fi
	case $kind in
	path | directory) compopt -o filenames 2>/dev/null ;;
	esac
	_perfctl_reply "$current" "$strip" "$prefix" < <(_perfctl_candidates "$kind" "$current")
}

complete -F _perfctl perfctl
