# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For build.sh: builds the module in aux-pattern/ for a guest's kernel. A kernel's headers want the
# compiler and the tools of their own release, which this machine may not have, or cannot run. So all
# of these are unpacked, not installed, and run in a root of their own. NEW is the scratch directory,
# with the packages in builder/.

# builder: makes that root, $NEW/builder.root.
builder() {
	local root=$NEW/builder.root folder deb

	mkdir -p "$root"/{dev,proc,tmp} "$root"/usr/{bin,sbin,lib,lib64}
	for folder in bin sbin lib lib64; do
		ln -s "usr/$folder" "$root/$folder"
	done
	for deb in "$NEW"/builder/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" |
			tar -x -C "$root" --keep-directory-symlink --exclude='./usr/share/*' \
				--exclude='./boot/*' --exclude='*/vmlinux'
	done
	# The package's script would make this link.
	[ -e "$root/usr/bin/awk" ] || ln -s mawk "$root/usr/bin/awk"
}

# module VERSION DIRECTORY: builds it for this kernel, into DIRECTORY.
module() {
	local root=$NEW/builder.root place=/aux-pattern-$1

	cp -r aux-pattern "$root$place"
	# In a mount namespace, so that no mount remains.
	unshare --mount sh -c '
		mount --bind /dev "$1/dev" && mount --bind /proc "$1/proc" &&
			exec chroot "$1" make --silent -C "$2" M="$3" modules' \
		- "$root" "/lib/modules/$1/build" "$place" >"$NEW/module.log" 2>&1 || {
		cat "$NEW/module.log" >&2
		return 1
	}
	strip --strip-debug -o "$2/aux-pattern.ko" "$root$place/aux-pattern.ko"
}
