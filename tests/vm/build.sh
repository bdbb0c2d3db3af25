#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Makes the guest that tests/vm/run.sh boots: tests/vm/build.sh [BUILD]
#
#   BUILD/vm/guest -> CACHE/guest-KEY
#     root.ext4                          a Debian of this machine's release
#     6.1/{vmlinuz,initrd,modules.ext4}  a kernel of it, and perhaps another; among the modules is
#                                        ours, aux-pattern
#     emulator/                          QEMU and its firmware, if this machine's is too old
#
# and, for tests that ask for it, the newest kernel that Debian packages, of any of its releases:
# tests/vm/build.sh --newest [BUILD]
#
#   BUILD/vm/newest -> CACHE/newest-KEY
#     newest/{vmlinuz,initrd,modules.ext4,version}
#
# CACHE is $PERFPERSIST_CACHE, or /var/cache/perfpersist-tests: it outlives the build and serves all
# clones on this machine. KEY names the packages and these scripts; another key is another guest.
# A guest is built under another name and then renamed, so a guest that is there is complete. One
# build runs at a time. The two guests that were used last stay, and any that a test runs from;
# others are removed. `make clean` removes the link alone; `rm -r` of CACHE is always safe.
#
# All of it comes from Debian's packages, which this machine's own apt fetches from its configured
# sources. This needs root, but no loop device and no network in the guest. Exit 77, with the
# reason, where such a guest is impossible.

set -eE -u -o pipefail
export LC_ALL=C.UTF-8
kind=guest
if [ "${1-}" = --newest ]; then
	kind=newest
	shift
fi
BUILD=$(realpath -m "${1:-${BUILD:-$(dirname "$0")/../../build}}")
cd "$(dirname "$0")"
. ./kernel.sh
. ./module.sh

# Kernels: the release's own, and one that is newer. Not the "cloud" ones: they lack 9p and mce.
kernels=(linux-image-amd64 linux-image-6.12-amd64)

# Packages that tests need besides a bootable system: perfpersist's dependencies, so that its
# packages install in seconds, what unit tests are linked with, and tools for inspection.
packages=(
	systemd systemd-sysv udev dbus apt kmod passwd procps util-linux
	libbpf1 libdw1 libelf1 libinih1 libsystemd0 libtraceevent1
	bpftool jq bash-completion rasdaemon linux-perf libsubunit0
)

skip() {
	echo "$*"
	exit 77
}

for tool in apt-get mmdebstrap mke2fs cpio modprobe depmod xz qemu-img qemu-system-x86_64; do
	PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null || skip "$tool is not installed (make deps)"
done
[ "$(dpkg --print-architecture)" = amd64 ] || skip "the guest is amd64's, and this machine is not"
[ "$(id -u)" -eq 0 ] || skip "needs root"
PATH=$PATH:/usr/sbin:/sbin

VM=$BUILD/vm
CACHE=${PERFPERSIST_CACHE:-/var/cache/perfpersist-tests}
mkdir -p "$VM"
mkdir -p "$CACHE" || skip "cannot make $CACHE: PERFPERSIST_CACHE may name another directory"
CACHE=$(realpath "$CACHE")
exec {lock}>"$CACHE/lock"
flock "$lock"

# use GUEST: for this build. The guest's time stamp is that of its last use.
use() {
	touch "$1"
	ln -sfn "$1" "$VM/$kind"
	# `make clean` must work for the user who built the rest.
	chown -h --reference="$BUILD" "$VM" "$VM/$kind"
}

# ── is it there already ──────────────────────────────────────────────────────────────────

# Everything that determines apt's answers below. Asking apt takes seconds, reading its files does
# not.
asked() {
	{
		cat build.sh kernel.sh module.sh guest/* aux-pattern/*
		qemu-system-x86_64 --version
		find /etc/apt /var/lib/apt/lists -type f -printf '%p %s %T@\n' 2>/dev/null | sort
		# This machine's apt does not know the newest kernel: the script asks for it once a
		# day.
		[ "$kind" = guest ] || date --utc +%F
	} | sha256sum
}

there=$(grep -lxF "$(asked)" "$CACHE/$kind"-*/asked 2>/dev/null | head -n 1) || true
if [ -n "$there" ]; then
	use "${there%/asked}"
	exit 0
fi

# ── which packages ───────────────────────────────────────────────────────────────────────

NEW=$CACHE/new
cleanup() {
	local job
	job=$(jobs -p)
	[ -z "$job" ] || kill "$job" 2>/dev/null || true
	wait
	rm -rf --one-file-system "$NEW"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
cleanup
mkdir -p "$NEW/guest" "$NEW/archive/partial" "$NEW/kernels" "$NEW/builder"

# As on a machine without any installed package.
apt_from_nothing() {
	apt-get -qq -y -o Dir::State::status=/dev/null -o APT::Install-Recommends=false "$@"
}

# For meta packages the package of the kernel itself; nothing for packages that apt does not know.
kernel_packages() {
	apt-cache depends --important "${kernels[@]}" 2>/dev/null |
		sed -nE 's/^ +Depends: (linux-image-[0-9].*)/\1/p'
}

# One line per file: its address, name, size, hash.
files_of_root() {
	apt_from_nothing --print-uris install '?essential' "${packages[@]}"
}

files_of_kernels() {
	local names
	mapfile -t names < <(kernel_packages)
	[ ${#names[@]} -gt 0 ] || return
	apt-get -qq --print-uris download busybox-static "${names[@]}"
}

# other_releases RELEASE…: from here on apt knows these alone: from the same mirror, through separate
# lists and a separate cache, so that this machine's apt is unaffected.
other_releases() {
	local mirror release

	mkdir -p "$NEW"/apt/{lists,cache/archives}/partial
	apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
		awk '$1 == "Debian" && $2 == "main" && $3 !~ /security/ { print $3; exit }' |
		while IFS= read -r mirror; do
			for release; do
				echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main"
			done
		done >"$NEW/apt/sources.list"
	# By default apt does not choose backports; here the highest version wins.
	printf 'Package: *\nPin: release o=*\nPin-Priority: 500\n' >"$NEW/apt/preferences"
	APT_CONFIG=$NEW/apt/config
	cat >"$APT_CONFIG" <<-END
		Dir::Etc::sourcelist "$NEW/apt/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferences "$NEW/apt/preferences";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::State::lists "$NEW/apt/lists";
		Dir::State::status "/dev/null";
		Dir::Cache "$NEW/apt/cache";
		Acquire::Languages "none";
	END
	export APT_CONFIG
}

# Backports can be newer than sid.
[ "$kind" != newest ] || other_releases sid trixie-backports

# Before 8.1 QEMU can run an instruction after another CPU has replaced it (mended by its commit
# deba78709ae8). Kernels patch themselves by way of an int3, and panic at one that they know nothing
# of: with tracepoints that are switched on and off, within seconds. One that does not run is old, too.
is_old() {
	local version
	version=$("$1" --version | sed -nE '1s/.* version ([0-9.]+).*/\1/p')
	[[ ! $version =~ ^([0-9]+)\.([0-9]+) ]] || ((BASH_REMATCH[1] * 100 + BASH_REMATCH[2] < 801))
}

files_of_emulator() (
	is_old qemu-system-x86_64 || return 0
	other_releases "$(. /etc/os-release && echo "$VERSION_CODENAME")-backports"
	apt-get -qq update && apt-get -qq --print-uris download qemu-system-x86 qemu-system-data seabios
)

# A newer one from this release's backports, on the libraries of this machine's own.
emulator() (
	local deb tree=$NEW/emulator program=usr/bin/qemu-system-x86_64

	mkdir "$tree"
	if [ -n "$emulator_files" ] && APT_CONFIG=$NEW/apt/config download "$tree" "$emulator_files"; then
		for deb in "$tree"/*.deb; do
			dpkg-deb -x "$deb" "$tree"
		done
		if ! is_old "$tree/$program"; then
			mkdir "$NEW/guest/emulator"
			cd "$tree"
			cp -a --parents "$program" usr/share/qemu usr/share/seabios "$NEW/guest/emulator"
			return
		fi
	fi
	! is_old qemu-system-x86_64 ||
		echo "QEMU is older than 8.1 here, and apt has no newer one that runs: guests may panic" >&2
)

# Since 6.19 linux-image-V is empty, and the kernel is in three other packages.
files_of_newest() {
	local version
	version=$(apt-cache depends --important linux-image-amd64 2>/dev/null |
		sed -nE 's/^ +Depends: linux-image-([0-9].*)/\1/p')
	[ -n "$version" ] &&
		apt-get -qq --print-uris download busybox-static "linux-base-$version" \
			"linux-binary-$version" "linux-modules-$version"
}

# What compiles modules for these kernels: see module.sh. Headers may depend on a kernel. apt does not
# print what its cache has, so it looks into an empty one.
files_of_builder() {
	local headers
	mapfile -t headers < <(sed -nE "s/^[^ ]+ linux-(image|binary)-([0-9][^_]*)_.*/linux-headers-\\2/p" <<<"$kernel_files")
	apt_from_nothing -o Dir::Cache::archives="$NEW/archive" --print-uris \
		install '?essential' binutils make "${headers[@]}" |
		grep -v " linux-image-"
}

ask() {
	case $kind in
	guest)
		emulator_files=$(files_of_emulator) || true
		root_files=$(files_of_root) && kernel_files=$(files_of_kernels)
		;;
	newest) root_files='' emulator_files='' && kernel_files=$(files_of_newest) ;;
	esac && builder_files=$(files_of_builder)
}

if ! ask 2>/dev/null; then
	apt-get -qq update || true
	ask || case $kind in
	guest) skip "apt here knows not all packages of the guest: ${kernels[0]} ${packages[*]}" ;;
	newest) skip "apt here cannot tell which kernel is Debian's newest: $(cat "$NEW/apt/sources.list")" ;;
	esac
fi

# Addresses may differ between mirrors, but not the files.
key=$({
	cut -d ' ' -f 2- <<<"$root_files"$'\n'"$kernel_files"$'\n'"$builder_files"$'\n'"$emulator_files" | sort
	cat build.sh kernel.sh module.sh guest/* aux-pattern/*
} | sha256sum | cut -c 1-16)

guest=$CACHE/$kind-$key

if [ -e "$guest" ]; then
	asked >"$guest/asked"
	use "$guest"
	exit 0
fi

# ── making it ────────────────────────────────────────────────────────────────────────────

# download DIRECTORY FILES: these packages, of which apt has printed the files.
download() {
	local names
	mapfile -t names < <(cut -d ' ' -f 2 <<<"$2" | cut -d _ -f 1)
	(cd "$1" && apt-get -qq -o APT::Sandbox::User=root download "${names[@]}" >&2)
}

# fetch: all packages, into archive/, kernels/ and builder/.
fetch() {
	if [ "$kind" = guest ]; then
		apt_from_nothing -o Dir::Cache::archives="$NEW/archive" -o APT::Keep-Downloaded-Packages=true \
			--download-only install '?essential' "${packages[@]}" >&2 || return
	fi
	download "$NEW/kernels" "$kernel_files" && download "$NEW/builder" "$builder_files"
}

# archive CODENAME: turns the fetched packages into an archive that mmdebstrap can install from.
archive() (
	cd "$NEW/archive"
	rm -rf partial lock
	dpkg-scanpackages --multiversion . 2>/dev/null >Packages
	cat >Release <<-END
		Suite: $1
		Codename: $1
		Architectures: amd64
		SHA256:
		 $(sha256sum Packages | cut -d ' ' -f 1) $(stat -c %s Packages) Packages
	END
)

# ext4 DIRECTORY IMAGE SPARE: makes an image of it, with so many MiB to spare.
ext4() {
	local size
	size=$(du -sm --apparent-size "$1" | cut -f 1)
	mke2fs -q -t ext4 -O ^has_journal -E root_owner=0:0 -d "$1" "$2" $((size * 5 / 4 + 16 + $3))M >/dev/null
}

root() {
	local codename include
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	archive "$codename"
	include=$(IFS=, && echo "${packages[*]}")
	# In a mount namespace, so that no mount remains, whatever happens.
	unshare --mount mmdebstrap --quiet --mode=root --variant=apt --include="$include" \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		"$codename" "$NEW/root" "deb [trusted=yes] copy://$NEW/archive ./"
	guest/setup.sh "$NEW/root"
	ext4 "$NEW/root" "$NEW/guest/root.ext4" 1024
}

kernels() {
	local deb
	builder
	for deb in "$NEW"/kernels/linux-image-*.deb; do
		[[ $(basename "$deb") =~ ^linux-image-([0-9]+\.[0-9]+) ]]
		kernel "$NEW/guest/${BASH_REMATCH[1]}" "$deb"
	done
}

fetch || { apt-get -qq update && fetch; }
case $kind in
guest)
	kernels &
	root
	emulator
	wait "$!"
	;;
newest)
	builder
	kernel "$NEW/guest/newest" "$NEW"/kernels/linux-*.deb
	;;
esac
asked >"$NEW/guest/asked"
# Without this a machine that crashes could leave a guest with holes under its final name.
find "$NEW/guest" -type f -exec sync {} +
mv "$NEW/guest" "$guest"
use "$guest"

# A running test locks the guest that it uses.
find "$CACHE" -maxdepth 1 -name "$kind-*" -printf '%T@ %p\n' | sort -rn | tail -n +3 | cut -d ' ' -f 2- |
	while IFS= read -r old; do
		flock --nonblock --exclusive "$old" rm -rf --one-file-system "$old" || true
	done
