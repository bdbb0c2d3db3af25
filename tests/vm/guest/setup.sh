#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# build.sh calls this with a root directory that has all packages: turns it into a guest.

set -eu -o pipefail
root=$1
here=$(cd "$(dirname "$0")" && pwd)

echo guest >"$root/etc/hostname"
printf '127.0.0.1 localhost guest\n' >"$root/etc/hosts"
: >"$root/etc/fstab"
# Avoids a first boot, which does one-time work that no test should wait for.
rm -f "$root/etc/machine-id"
systemd-machine-id-setup --root="$root" >/dev/null 2>&1

# The guest fetches nothing, and tests install packages with all their documentation.
: >"$root/etc/apt/sources.list"
rm -f "$root"/etc/apt/apt.conf.d/99mmdebstrap "$root"/etc/dpkg/dpkg.cfg.d/99mmdebstrap

install -D -m 0755 "$here/agent.sh" "$root/usr/lib/vm/agent"
install -D -m 0755 "$here/boot-failed.sh" "$root/usr/lib/vm/boot-failed"
install -m 0644 "$here/vm-agent.service" "$root/etc/systemd/system/"
for unit in emergency rescue; do
	install -D -m 0644 "$here/boot-failed.conf" \
		"$root/etc/systemd/system/$unit.service.d/boot-failed.conf"
done
mkdir -p "$root/usr/lib/modules"

systemctl --quiet --root="$root" enable vm-agent.service
systemctl --quiet --root="$root" disable rasdaemon.service ras-mc-ctl.service
systemctl --quiet --root="$root" mask apt-daily.timer apt-daily-upgrade.timer \
	dpkg-db-backup.timer fstrim.timer e2scrub_all.timer e2scrub_reap.service

# None of them has anything to do here, and a package that is installed makes systemd run them several times.
mkdir -p "$root/etc/systemd/system-generators"
for generator in "$root"/usr/lib/systemd/system-generators/*; do
	ln -s /dev/null "$root/etc/systemd/system-generators/${generator##*/}"
done
