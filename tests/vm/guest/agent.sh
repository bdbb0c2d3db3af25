#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# In the guest: mounts the build machine's shared directories, and starts the test from there.
#
#   tests     the tree's tests/, read-only
#   build     the parts of the build that tests may need, read-only
#   out       for results

modprobe -a 9pnet_virtio 9p virtio_console
for share in tests build out; do
	mkdir -p "/run/vm/$share"
	mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 "$share" "/run/vm/$share" || exit
done
exec bash /run/vm/tests/vm/session.sh
