#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Includes carry the layers: what a folder may see is in this table and nowhere else.
# Low layers never see high ones; broker and engine share orders and never each other;
# the client sees the contracts only, perfctl the public library only.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

# What files of a folder may include: our own headers, by a pattern of their paths, and other
# people's, by a pattern of those that are *not* the C library's or the kernel's.
allowed() {
	case $1 in
	proto)             ours='proto/[^/]+' theirs='' ;;
	client)            ours='(proto|client)/[^/]+' theirs='' ;;
	client/perfctl)    ours='client/perfctl/((trace|pictures)/)?[^/]+|client/perfpersist\.h|proto/(macro|printable)\.h'
	                   theirs='traceevent/.*|event-parse\.h|trace-seq\.h' ;;
	client/perfctl/trace)
	                   ours='client/perfctl/(trace/)?[^/]+|client/perfpersist\.h|proto/(macro|regular|siphash)\.h'
	                   theirs='elfutils/.*|dwarf\.h|(libelf|gelf)\.h' ;;
	client/perfctl/pictures)
	                   ours='client/perfctl/((trace|pictures)/)?[^/]+|client/perfpersist\.h|proto/(macro|printable|siphash)\.h|page-hashes\.h'
	                   theirs='event-parse\.h' ;;
	daemon)            ours='(proto|daemon)/[^/]+' theirs='systemd/.*|(libelf|gelf)\.h' ;;
	daemon/broker)     ours='(proto|daemon|daemon/broker)/[^/]+' theirs='systemd/.*' ;;
	daemon/dumper)     ours='(proto|daemon|daemon/dumper)/[^/]+' theirs='systemd/.*' ;;
	daemon/keeper)     ours='(proto|daemon|daemon/keeper)/[^/]+' theirs='systemd/.*' ;;
	daemon/engine)     ours='(proto|daemon|daemon/engine|daemon/engine/bpf)/[^/]+|[^/]+\.skel\.h'
	                   theirs='systemd/.*|bpf/.*|traceevent/.*|event-parse\.h' ;;
	daemon/engine/bpf) ours='daemon/engine/bpf/[^/]+|(proto/ring|daemon/totals|daemon/wakeup|daemon/hotplug|daemon/tasks|daemon/engine/meta)\.h' theirs='bpf/.*' ;;
	*)                 return 1 ;;
	esac
}

# Libraries that are neither libc nor the kernel's interface; everything else in <> is free.
library='(systemd|bpf|traceevent|check|elfutils|dwarf|gelf|libelf)/.*|(check|event-parse|trace-seq|libelf|gelf)\.h'

include='^[[:space:]]*#[[:space:]]*include[[:space:]]*(["<])([^">]+)[">]'
wrong=0 n=0
complain() {
	echo "$1:$2: must not include $3"
	wrong=1
}

while read -r file; do
	folder=$(dirname "$file")
	if ! allowed "$folder"; then
		echo "$file: no layer is known for $folder; add it to tests/check-includes.sh"
		wrong=1
		continue
	fi
	n=$((n + 1))
	while IFS=: read -r line text; do
		[[ $text =~ $include ]] || continue
		target=${BASH_REMATCH[2]}
		if [ "${BASH_REMATCH[1]}" = '"' ]; then
			[ -e "$folder/$target" ] && target=$folder/$target
			[[ $target =~ ^($ours)$ ]] || complain "$file" "$line" "\"$target\""
		elif [[ $target =~ ^($library)$ ]]; then
			[[ -n $theirs && $target =~ ^($theirs)$ ]] || complain "$file" "$line" "<$target>"
		fi
	done < <(grep -nE '^[[:space:]]*#[[:space:]]*include' "$file")
done < <(find client daemon proto -name '*.[ch]' | sort)

[ "$wrong" -eq 0 ] && echo "$n files keep to their layers"
exit "$wrong"
