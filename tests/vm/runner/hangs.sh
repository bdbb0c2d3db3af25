#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --timeout 20
# A test that never ends.
. "$(dirname "$0")/../lib.sh"
echo "and waits"
sleep infinity
