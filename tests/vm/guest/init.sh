#!/bin/busybox sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=dash
#
# The initramfs' only script: mounts the root file system and the kernel's modules, and hands over.

b=/bin/busybox
$b mount -t devtmpfs dev /dev
while read -r module; do
	$b insmod "/modules/$module"
done </modules/order

until [ -b /dev/vda ] && [ -b /dev/vdb ]; do
	$b usleep 50000
done
$b mount -t ext4 /dev/vda /root
$b mount -t ext4 -o ro /dev/vdb /root/usr/lib/modules
$b mount -o move /dev /root/dev
exec $b switch_root /root /sbin/init
