#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A test that skips.
. "$(dirname "$0")/../lib.sh"
skip "not on a Tuesday"
