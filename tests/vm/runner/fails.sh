#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A test that fails with its own message.
. "$(dirname "$0")/../lib.sh"
echo "so far so good"
expect_eq 1 2 "the sum"
