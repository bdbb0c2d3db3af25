# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For build.sh: makes everything that the guest boots from, out of a kernel's packages. NEW is its
# scratch directory, with busybox-static's package in kernels/, ext4 makes an image, and module our module.

# The modules that the initramfs loads to mount the root file system. 9p comes later, from the root.
_boot_modules=(virtio_pci virtio_blk ext4)

# QEMU's machines have none of these, and they are most of the modules. The last row would load at
# each boot, for seconds, without use.
_no_modules=(
	drivers/gpu drivers/media drivers/infiniband drivers/iio drivers/isdn drivers/staging
	drivers/net/wireless drivers/net/ethernet drivers/scsi drivers/usb drivers/hwmon
	drivers/mtd drivers/input sound net/bluetooth net/wireless net/mac80211
	arch/x86/kvm arch/x86/crypto drivers/ata drivers/cpufreq 'drivers/block/floppy.*' drivers/i2c
)

# kernel DIRECTORY DEB…: makes DIRECTORY from the packages of one kernel.
kernel() {
	local guest=$1 deb tree version without=() folder
	shift

	tree=$NEW/tree-$(basename "$guest")
	mkdir -p "$guest" "$tree"

	for folder in "${_no_modules[@]}"; do
		without+=("--exclude=*/lib/modules/*/kernel/$folder")
	done
	for deb in "$@"; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$tree" "${without[@]}" --exclude=./usr/share
	done
	# Since 6.19 everything is below /usr, and vmlinuz is beside the modules.
	[ -d "$tree/lib" ] || ln -s usr/lib "$tree/lib"
	version=$(ls "$tree/lib/modules")
	mkdir "$tree/lib/modules/$version/updates"
	module "$version" "$tree/lib/modules/$version/updates"
	depmod -b "$tree" "$version"

	if [ -e "$tree/boot/vmlinuz-$version" ]; then
		cp "$tree/boot/vmlinuz-$version" "$guest/vmlinuz"
	else
		mv "$tree/lib/modules/$version/vmlinuz" "$guest/vmlinuz"
	fi
	echo "$version" >"$guest/version"
	ext4 "$tree/lib/modules/" "$guest/modules.ext4" 0
	_initramfs "$tree" "$version" >"$guest/initrd"
	rm -rf "$tree"
}

# _initramfs TREE VERSION: modules, in the order of their dependencies, and a script that loads
# them.
_initramfs() {
	local file fs=$1/initramfs

	mkdir -p "$fs"/{bin,dev,proc,root,modules}
	dpkg-deb --fsys-tarfile "$NEW"/kernels/busybox-static_*.deb |
		tar -x -O --wildcards '*/bin/busybox' >"$fs/bin/busybox"
	install -m 0755 guest/init.sh "$fs/init"
	chmod 0755 "$fs/bin/busybox"

	modprobe -d "$1" -S "$2" --show-depends --all "${_boot_modules[@]}" |
		sed -nE 's/^insmod ([^ ]+).*/\1/p' | awk '!seen[$0]++' |
		while IFS= read -r file; do
			_plain "$file" >"$fs/modules/$(basename "${file%.xz}")"
			basename "${file%.xz}" >>"$fs/modules/order"
		done
	(cd "$fs" && find . | cpio --quiet --owner=0:0 -o -H newc) | gzip -1
}

# The kernel cannot decompress modules that are loaded this early.
_plain() {
	case $1 in
	*.xz) xz -dc "$1" ;;
	*) cat "$1" ;;
	esac
}
