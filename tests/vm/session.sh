#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# In the guest, called by its agent after the boot: runs the test, reports its result, and turns the
# guest off.

cd /run/vm || exit
test=$(cat out/test)
phase=$(cat out/phase)

export LC_ALL=C.UTF-8 HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
touch out/begun
PHASE=$phase bash "tests/$test" </dev/null >>out/stdout 2>>out/stderr
code=$?

if [ "$code" -eq 0 ] && [ -e out/next ]; then
	systemctl --no-block reboot
	exit
fi
case $code in
0 | 77) ;;
*) journalctl --boot --no-pager --output=short-monotonic >out/journal ;;
esac
echo "$code" >out/code
systemctl poweroff --force --force
