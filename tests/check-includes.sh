#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Includes follow the layers: only this table says what a folder may include. Low layers never
# include high ones, within one program too. Broker and engine share only the orders between them.
# The client includes only the contracts, and perfctl only the public library.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

b=daemon/broker e=daemon/engine c=client p=client/perfctl
own="$c/perfpersist.h proto/clock.h proto/io.h proto/macro.h proto/printable.h"

# FOLDER | folders whose files it may include besides its own | single headers | third-party
# headers: a pattern of those that are *neither* the C library's nor the kernel's. Upper folders of
# a program are visible to lower ones only where the row says so.
declare -A sees also theirs
while IFS='|' read -r folder folders headers libraries; do
	read -r folder <<<"$folder"
	read -r folders <<<"$folders"
	read -r headers <<<"$headers"
	read -r libraries <<<"$libraries"
	[ -n "$folder" ] || continue
	sees[$folder]=" $folder $folders "
	also[$folder]=" $headers "
	theirs[$folder]=$libraries
done <<EOF
proto          | | | bpf/bpf_helpers\.h
daemon         | proto | | systemd/.*

$b/syntax      | proto daemon | | (libelf|gelf)\.h
$b/state       | proto daemon
$b/link        | proto daemon | | systemd/.*
$b/lifecycle   | proto daemon $b/link $b/state | | systemd/.*
$b/edge        | proto daemon $b/link $b/state | | systemd/.*
$b/handout     | proto daemon $b/link $b/state $b/edge | | systemd/.*
$b/sideband    | proto daemon $b/link $b/handout $b/lifecycle | | systemd/.*
$b/auxtrace    | proto daemon $b/link $b/handout $b/lifecycle | | systemd/.*
$b/hotplug     | proto daemon $b/handout $b/lifecycle | | systemd/.*
$b/triggers    | proto daemon $b/link $b/handout $b/lifecycle $b/state | | systemd/.*
$b/config      | proto daemon $b/syntax $b/state $b/lifecycle $b/edge | | systemd/.*
$b/request     | proto daemon $b/syntax $b/state $b/lifecycle $b/edge $b/handout $b/sideband $b/auxtrace $b/hotplug $b/triggers $b/config | | systemd/.*
$b/foreground  | proto daemon $b/config | $b/privileges.h | systemd/.*
$b             | proto daemon $b/link $b/syntax $b/state $b/lifecycle $b/edge $b/handout $b/sideband $b/auxtrace $b/hotplug $b/triggers $b/config $b/request $b/foreground | | systemd/.*

daemon/dumper  | proto daemon | | systemd/.*
daemon/keeper  | proto daemon | | systemd/.*

$e/bpf         | | proto/ring.h daemon/totals.h daemon/wakeup.h daemon/hotplug.h daemon/tasks.h daemon/trigger.h $e/registry/meta.h | bpf/.*
$e/kernel      | proto daemon | $e/failure.h | bpf/.*|traceevent/.*|event-parse\.h
$e/emit        | proto daemon $e/bpf $e/kernel | $e/failure.h $e/recorders/recorder.h | bpf/.*
$e/recorders   | proto daemon $e/bpf $e/kernel $e/emit | $e/failure.h | bpf/.*
$e/registry    | proto daemon $e/bpf $e/kernel $e/emit | $e/failure.h | bpf/.*
$e/sources     | proto daemon $e/kernel $e/emit $e/recorders $e/registry | $e/failure.h | bpf/.*
$e/event       | proto daemon $e/bpf $e/kernel $e/recorders $e/registry $e/sources | $e/failure.h $e/budget.h | bpf/.*
$e             | proto daemon $e/kernel $e/registry $e/sources $e/event | | systemd/.*|bpf/.*

client         | proto
$c/rings       | proto client
$c/perfdata    | proto client $c/rings
$c/request     | proto client $c/rings
$c/local       | proto client $c/rings $c/request
$c/daemon      | proto client $c/rings $c/request $c/local
$c/stream      | proto client $c/rings $c/request $c/daemon

$p/completion  | | $own $p/perfctl.h $p/events/presets.h $p/events/recordable.h $p/events/spool.h
$p/output      | | $own $p/perfctl.h
$p/trace       | | $c/perfpersist.h proto/cursor.h proto/io.h proto/macro.h proto/perf-file.h proto/perf-record.h proto/regular.h proto/siphash.h | elfutils/.*|dwarf\.h|(libelf|gelf)\.h
$p/decode      | $p/output $p/trace | $own | traceevent/.*|event-parse\.h|trace-seq\.h
$p/print       | $p/output $p/decode $p/trace | $own $p/perfctl.h
$p/events      | $p/output $p/decode $p/print $p/trace | $own $p/perfctl.h proto/call-graph.h proto/fired.h proto/journal.h proto/nearest.h proto/perfpersist.bpf.h proto/places.h proto/regular.h proto/sideband.h proto/specifier.h proto/symbol.h proto/user-program.h | (systemd|bpf)/.*
$p/pictures    | $p/output $p/decode $p/trace $p/events | $own proto/siphash.h page-hashes.h | event-parse\.h
$p/replay      | $p/output $p/decode $p/print $p/trace $p/events $p/pictures | $own $p/perfctl.h syscall-numbers.h | event-parse\.h
$p             | $p/completion $p/output $p/decode $p/print $p/trace $p/events $p/pictures $p/replay | $own proto/fired.h proto/nearest.h proto/regular.h proto/specifier.h proto/window.h
EOF

# may_see FOLDER HEADER: for headers of this tree. BPF skeletons are generated with the engine.
may_see() {
	[[ $2 = */* && ${sees[$1]} = *" ${2%/*} "* || ${also[$1]} = *" $2 "* || $1 = daemon/engine* && $2 = *.skel.h ]]
}

# Third-party libraries; all other headers in <> are allowed.
library='(systemd|bpf|traceevent|check|elfutils|dwarf|gelf|libelf)/.*|(check|event-parse|trace-seq|libelf|gelf)\.h'

include='^[[:space:]]*#[[:space:]]*include[[:space:]]*(["<])([^">]+)[">]'
wrong=0 n=0
complain() {
	echo "$1:$2: must not include $3"
	wrong=1
}

while read -r file; do
	n=$((n + 1))
	folder=${file%/*}
	if [ -z "${sees[$folder]-}" ]; then
		echo "$file: no layer is known for $folder; add it to tests/check-includes.sh"
		wrong=1
	fi
done < <(find client daemon proto -name '*.[ch]')

while IFS=: read -r file line text; do
	folder=${file%/*}
	[[ -n ${sees[$folder]-} && $text =~ $include ]] || continue
	target=${BASH_REMATCH[2]}
	if [ "${BASH_REMATCH[1]}" = '"' ]; then
		[ -e "$folder/$target" ] && target=$folder/$target
		may_see "$folder" "$target" || complain "$file" "$line" "\"$target\""
	elif [[ $target =~ ^($library)$ ]]; then
		[[ -n ${theirs[$folder]} && $target =~ ^(${theirs[$folder]})$ ]] || complain "$file" "$line" "<$target>"
	fi
done < <(grep -rnE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include' client daemon proto)

for folder in "${!sees[@]}"; do
	if ! grep -qF "| \`$folder/\` |" ARCHITECTURE.md; then
		echo "ARCHITECTURE.md: does not say what is in $folder/"
		wrong=1
	fi
done

[ "$wrong" -eq 0 ] && echo "$n files keep to their layers"
exit "$wrong"
