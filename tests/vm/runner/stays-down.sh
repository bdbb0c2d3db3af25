#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --append systemd.unit=emergency.target
# A system that ends up where an administrator would be asked for.
echo "never said"
