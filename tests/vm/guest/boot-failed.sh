#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Replaces the administrator's shell: prints what failed on the console, and exits.

exec >/dev/console 2>&1
echo "vm: boot failed"
systemctl --no-legend --plain --failed
journalctl --boot --no-pager --priority=warning --output=cat | tail -n 30
systemctl poweroff --force --force
