#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --append systemd.unit=emergency.target
# A system that ends in emergency mode, where it would wait for an administrator.
echo "never said"
