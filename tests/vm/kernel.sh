# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For build.sh: from a kernel's package all that the guest boots from. NEW is its scratch
# directory, with busybox-static's package in kernels/, and ext4 makes an image.

# What the initramfs loads to get at the root file system. 9p comes later, from the root.
_boot_modules=(virtio_pci virtio_blk ext4)

# No machine that QEMU makes has these, and they are most of what there is. The last row would be
# loaded at each boot, for seconds, and used by nothing.
_no_modules=(
	drivers/gpu drivers/media drivers/infiniband drivers/iio drivers/isdn drivers/staging
	drivers/net/wireless drivers/net/ethernet drivers/scsi drivers/usb drivers/hwmon
	drivers/mtd drivers/input sound net/bluetooth net/wireless net/mac80211
	arch/x86/kvm arch/x86/crypto drivers/ata drivers/cpufreq 'drivers/block/floppy.*' drivers/i2c
)

# kernel DEB GUEST: makes GUEST/6.1/ (or what version it is) of it.
kernel() {
	local deb=$1 name guest tree version without=() folder

	name=$(basename "$deb")
	[[ $name =~ ^linux-image-([0-9]+\.[0-9]+) ]]
	guest=$2/${BASH_REMATCH[1]}
	tree=$NEW/${BASH_REMATCH[1]}
	mkdir -p "$guest" "$tree"

	for folder in "${_no_modules[@]}"; do
		without+=("--exclude=./lib/modules/*/kernel/$folder")
	done
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$tree" "${without[@]}" ./boot ./lib/modules
	version=$(ls "$tree/lib/modules")
	depmod -b "$tree" "$version"

	cp "$tree/boot/vmlinuz-$version" "$guest/vmlinuz"
	ext4 "$tree/lib/modules" "$guest/modules.ext4" 0
	_initramfs "$tree" "$version" >"$guest/initrd"
	rm -rf "$tree"
}

# _initramfs TREE VERSION: modules, in the order that they need, and a script that loads them.
_initramfs() {
	local file fs=$1/initramfs

	mkdir -p "$fs"/{bin,dev,proc,root,modules}
	dpkg-deb --fsys-tarfile "$NEW"/kernels/busybox-static_*.deb |
		tar -x -O ./bin/busybox >"$fs/bin/busybox"
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

# The kernel's own decompressor is not for what is loaded this early.
_plain() {
	case $1 in
	*.xz) xz -dc "$1" ;;
	*) cat "$1" ;;
	esac
}
