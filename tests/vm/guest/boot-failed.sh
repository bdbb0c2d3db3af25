#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# In place of a shell for the administrator: says on the console what failed, and ends.

exec >/dev/console 2>&1
echo "vm: boot failed"
systemctl --no-legend --plain --failed
journalctl --boot --no-pager --priority=warning --output=cat | tail -n 30
systemctl poweroff --force --force
