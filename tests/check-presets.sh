#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Every preset begins with the lines that `perfctl preset list` shows, short enough for a table; the
# memory in them is the sum of its buffers; the daemon accepts its file; and docs/always-record.md
# names it.
set -u -o pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.." || exit 1
BUILD=$(cd "${BUILD:-build}" && pwd) || exit 1

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
status=0 n=0

wrong() {
	printf '%s\n' "$@"
	status=1
}

# line FILE NUMBER KEY LENGTH: that line is "# KEY: TEXT", with at most so many characters of text.
line() {
	local text
	text=$(sed -n "$2p" "$1")
	[[ $text == "# $3: "?* ]] || wrong "$1:$2: this line must be '# $3: …'"
	text=${text#"# $3: "}
	[ ${#text} -le "$4" ] || wrong "$1:$2: ${#text} characters are too many for a table; $4 are the most"
}

# mebibytes FILE: of all buffers; each section has one.
mebibytes() {
	awk -F= '/^\[(event|trigger)/ { sections++ }
		/^Buffer=/ { buffers++; n += $2 * ($2 ~ /M$/ ? 1024 : 1) }
		END { if (sections != buffers) exit 1; n /= 1024; printf n % 1 ? "%.1f" : "%d", n }' "$1"
}

mkdir "$dir/conf.d"
printf '[daemon]\nUser=1\nGroup=1\n' >"$dir/conf"
for file in conf/presets/*.conf; do
	n=$((n + 1))
	name=${file##*/} name=${name%.conf}
	line "$file" 3 Summary 60
	line "$file" 4 Cost 60
	line "$file" 5 History 65
	# One whose trigger has the default buffer, of 64K, does not say so.
	if memory=$(mebibytes "$file"); then
		grep -qF "Cost: $memory MiB " < <(sed -n 4p "$file") || wrong "$file:4: its buffers are $memory MiB on each CPU"
	elif ! grep -q '^\[trigger' "$file"; then
		wrong "$file: a section has no Buffer=, which people choose by"
	fi
	case $name in
	*@)
		cp "$file" "$dir/conf.d/$name""x.service.conf"
		grep -qF "\`${name%@} UNIT\`" docs/always-record.md || wrong "docs/always-record.md does not name ${name%@} UNIT"
		;;
	*)
		cp "$file" "$dir/conf.d/"
		grep -qF "| \`$name\` |" docs/always-record.md || wrong "docs/always-record.md does not name $name"
		;;
	esac
done
[ $n -ge 5 ] || wrong "only $n presets were found"
"$BUILD/perfpersistd" --check-config --config "$dir/conf" >"$dir/said" 2>&1 || wrong "$(<"$dir/said")"

# perfctl reads of them what is in them.
"$BUILD/perfctl" preset list --presets conf/presets -D "$dir/conf.d" >"$dir/list" || wrong "perfctl cannot list them"
[ "$(wc -l <"$dir/list")" -eq $((n + 1)) ] || wrong "perfctl lists others:" "$(<"$dir/list")"

[ $status -eq 0 ] && echo "$n presets say what they cost"
exit $status
