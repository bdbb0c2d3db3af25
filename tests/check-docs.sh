#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The documents' links lead to existing files and headings, the README names every page, and the
# programs in docs/program.md compile without a warning and link with both libraries. The journal's
# catalog has a text for each MESSAGE_ID, and names no field that its message does not have.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
BUILD=$(cd "${BUILD:-build}" && pwd) || exit 1
CC=${CC:-gcc}
failed=0

fail() {
	echo "$1"
	failed=1
}

# anchors FILE: as GitHub makes them from the headings
anchors() {
	sed -n '/^```/,/^```/!s/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

links=0
for file in README.md ARCHITECTURE.md docs/*.md; do
	while read -r link; do
		links=$((links + 1))
		target=${link%%#*}
		path=$file
		[ -z "$target" ] || path=$(dirname "$file")/$target
		if [ ! -f "$path" ]; then
			fail "$file: there is no $target"
		elif [[ $link == *'#'* ]] && ! grep -qxF "${link#*#}" < <(anchors "$path"); then
			fail "$file: $path has no heading ${link#*#}"
		fi
	done < <(grep -oE '\]\([^)]+\)' "$file" | sed 's/^](//; s/)$//' | grep -v '://')
done
for page in docs/*.md; do
	grep -qF "($page)" README.md || fail "README.md does not name $page"
done
[ "$links" -gt 10 ] || fail "only $links links were found"
[ "$(stat -c %s docs/report.png)" -le $((300 * 1024)) ] || fail "docs/report.png has more than 300 KiB"

CATALOG=conf/perfpersist.catalog
messages=$(grep -rhoE --include='*.[ch]' '^#define MESSAGE_[A-Z_]+ +"[^"]+"' client daemon proto)
ids=$(sed -E 's/.*"(.*)"/\1/' <<<"$messages" | sort)
lost=$(diff <(echo "$ids") <(sed -n 's/^-- //p' $CATALOG | sort) | grep '^[<>]')
[ -z "$lost" ] || fail "MESSAGE_IDs of the source (<) and of $CATALOG (>) differ: $lost"
! grep -qvE '^[0-9a-f]{32}$' <<<"$ids" || fail "these are no MESSAGE_IDs of 32 digits: $ids"
while read -r _ name _; do
	file=$(grep -rlE --include='*.c' "MESSAGE_ID=\" $name\b" client daemon) || fail "no message has $name"
	id=$(sed -nE "s/^#define $name +\"(.*)\"/\1/p" "$file")
	for field in $(sed -n "/^-- $id/,/^-- /p" $CATALOG | grep -oE '@[A-Z_]+@' | tr -d @ | sort -u); do
		grep -qE "(\"|\\\\n)$field=" "$file" daemon/log.c || fail "$CATALOG names $field, which $file does not send"
	done
	grep -qF "$id" client/perfctl/perfctl.1 daemon/broker/perfpersistd.8 || fail "no man page names the MESSAGE_ID $id"
done <<<"$messages"

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
awk -v dir="$dir" '/^```c$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print >(dir "/" n ".c") }' docs/program.md
[ -s "$dir/2.c" ] || fail "docs/program.md does not have two programs in C"

flags=(-std=gnu17 -O2 -Wall -Wextra -Wformat=2 -Wshadow -Werror -Iclient)
for program in "$dir"/*.c; do
	"$CC" "${flags[@]}" -o "${program%.c}" "$program" "$BUILD/libperfpersist.a" || exit 1
	"$CC" "${flags[@]}" -o "${program%.c}" "$program" "$BUILD/libperfpersist.so.0" || exit 1
done

# Without such a daemon, or when it is refused, each says what is wrong and does not crash.
# says NUMBER ARGUMENT…
says() {
	LD_LIBRARY_PATH=$BUILD "$dir/$1" "${@:2}" 2>"$dir/stderr"
	code=$?
	if [ $code -ne 1 ] || [ ! -s "$dir/stderr" ]; then
		fail "program $1 exits with $code: $(<"$dir/stderr")"
	fi
}
says 2 no-namespace
says 1 nowhere nothing
if command -v journalctl >/dev/null; then
	mkdir -p "$dir/usr/lib/systemd/catalog" "$dir/var/lib/systemd/catalog"
	cp $CATALOG "$dir/usr/lib/systemd/catalog/"
	journalctl --root="$dir" --update-catalog 2>"$dir/said" || fail "journalctl: $(<"$dir/said")"
	for id in $ids; do
		grep -q '^Subject:' < <(journalctl --root="$dir" --dump-catalog "$id" 2>/dev/null) || fail "journalctl finds no text for $id"
	done
fi
echo "$(wc -l <<<"$ids") MESSAGE_IDs, $links links; the programs say: $(<"$dir/stderr")"
exit $failed
