#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Every source file names its licence in its first two lines: GPL-2.0-only for code that runs in the
# kernel, LGPL-2.1-or-later for all other code. A header that both sides include may have either.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

wrong=0 n=0
while read -r file; do
	case $file in
	proto/*.bpf.h) want='(GPL-2.0-only|LGPL-2.1-or-later)' ;;
	*.bpf.c | *.bpf.h | tests/vm/aux-pattern/*) want=GPL-2.0-only ;;
	daemon/engine/bpf/*.h) want='(GPL-2.0-only|LGPL-2.1-or-later)' ;;
	*) want=LGPL-2.1-or-later ;;
	esac
	n=$((n + 1))
	one='' two=''
	{ read -r one; read -r two; } <"$file"
	if ! [[ "$one $two " =~ SPDX-License-Identifier:\ ${want}[[:space:]] ]]; then
		echo "$file: its first lines must say SPDX-License-Identifier: $want"
		wrong=1
	fi
done < <(find client conf daemon docs proto tests \( -name '*.[ch]' -o -name '*.sh' -o -name '*.def' \) | sort)
[ "$wrong" -eq 0 ] && echo "$n files name their licence"
exit "$wrong"
