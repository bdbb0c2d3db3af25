#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Clang builds the whole tree without warnings, as gcc does.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}

command -v clang >/dev/null || { echo "clang is not installed"; exit 77; }
make --no-print-directory -j2 BUILD="$BUILD/clang" CC=clang programs tests
