#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Installs missing packages: conf/deps.sh GROUP…
#
#   build     compiling, and `make demo` (which needs umount)
#   package   Debian packages
#   test      tests and benchmarks
#   guest     the machine that tests/vm boots
#
# make calls it first in each target that needs a group. On Debian and Ubuntu it uses apt, as root or
# through sudo. Elsewhere it says what is needed, and continues if nothing is missing.
#
# It prints nothing when nothing is missing. It must run on a machine that has only make and bash.

set -u -o pipefail
export LC_ALL=C

# Each word is one need: package names, of which the first that the system knows is used.
declare -A group=(
	[build]="gcc make pkg-config clang libc6-dev linux-libc-dev bpftool|linux-tools-generic
		libbpf-dev libelf-dev libdw-dev libsystemd-dev libinih-dev libtraceevent-dev zlib1g-dev mount"
	[package]="debhelper dpkg-dev lintian"
	[test]="check jq strace bpftrace shellcheck util-linux systemtap-sdt-dev
		libclang-rt-dev|libclang-rt-14-dev|libclang-common-14-dev linux-perf|linux-tools-generic
		clang-format clang-tidy groff-base mandoc bash-completion zsh chromium protobuf-compiler"
	[guest]="qemu-system-x86 qemu-utils mmdebstrap e2fsprogs cpio kmod dpkg-dev xz-utils"
)
# The guest's packages are for amd64; elsewhere its tests are skipped.
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || group[guest]=

needs=()
for name in "$@"; do
	[ -n "${group[$name]+known}" ] || { echo "usage: conf/deps.sh build|package|test|guest…" >&2; exit 2; }
	read -r -d '' -a words <<<"${group[$name]}"
	needs+=("${words[@]}")
done
[ ${#needs[@]} -gt 0 ] || exit 0

say() {
	printf 'deps: %s\n' "$*" >&2
}

# Not Debian: pkg-config and the commands themselves show what exists.
foreign() {
	local missing=() x

	for x in gcc make pkg-config clang bpftool; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$x" >/dev/null || missing+=("$x")
	done
	for x in libsystemd libbpf inih libelf libdw libtraceevent zlib check; do
		pkg-config --exists "$x" 2>/dev/null || missing+=("$x (pkg-config)")
	done
	# Its options are variables as Debian builds it; elsewhere they can be fixed when it is compiled.
	printf '#include <ini.h>\nint *line = &ini_max_line;\n' | gcc -fsyntax-only -x c - 2>/dev/null ||
		missing+=("inih with ini_max_line and its like, as Debian patches it")
	[ ${#missing[@]} -eq 0 ] && exit 0

	say "this is neither Debian nor Ubuntu; please install, by whatever names it has here:"
	printf '  %s\n' "${missing[@]}" >&2
	say "the tests also use: jq strace bpftrace perf shellcheck setpriv, and clang's libFuzzer"
	exit 1
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	foreign
fi

# ── what is missing ──────────────────────────────────────────────────────────────────────

declare -A installed=()
all=()
for need in "${needs[@]}"; do
	IFS='|' read -ra names <<<"$need"
	all+=("${names[@]}")
done
while read -r name status; do
	[ "$status" = installed ] && installed[$name]=1
done < <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${all[@]}" 2>/dev/null)

missing=()
for need in "${needs[@]}"; do
	IFS='|' read -ra names <<<"$need"
	for name in "${names[@]}"; do
		[ -n "${installed[$name]-}" ] && continue 2
	done
	missing+=("$need")
done
[ ${#missing[@]} -eq 0 ] && exit 0

# ── install it ───────────────────────────────────────────────────────────────────────────

known() {
	apt-cache policy "$1" 2>/dev/null | grep '^  Candidate: [^(]' >/dev/null
}

# Sets packages to the names that are to be installed; fails if apt knows none for some need.
choose() {
	local need name names

	packages=()
	for need in "${missing[@]}"; do
		IFS='|' read -ra names <<<"$need"
		for name in "${names[@]}"; do
			known "$name" && packages+=("$name") && continue 2
		done
		unknown=$need
		return 1
	done
}

sudo=()
if [ "$(id -u)" -ne 0 ]; then
	if command -v sudo >/dev/null; then
		sudo=(sudo)
		[ -t 0 ] || sudo+=(-n)
	else
		choose || packages=("${missing[@]%%|*}")
		say "packages are missing, and without sudo they have to be installed by root:"
		printf '  apt-get install -y --no-install-recommends %s\n' "${packages[*]}" >&2
		exit 1
	fi
fi

apt() {
	"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q \
		-o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$@" </dev/null
}

updated=
update() {
	[ -n "$updated" ] && return 1
	updated=1
	say "reading the lists of packages"
	apt -qq update >&2
}

if ! choose; then
	update
	if ! choose; then
		say "apt knows no package '${unknown//|/\' or \'}'; see the list in conf/deps.sh"
		exit 1
	fi
fi

say "installing ${packages[*]}"
# A stale list names files that the mirror no longer has: update it and try again.
if ! apt -qq install -y --no-install-recommends "${packages[@]}" >&2; then
	if ! update || ! apt -qq install -y --no-install-recommends "${packages[@]}" >&2; then
		say "apt-get failed; what is needed is: ${packages[*]}"
		exit 1
	fi
fi
