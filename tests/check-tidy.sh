#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# clang-tidy finds nothing in the product's C, by the checks that .clang-tidy chooses.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}

command -v clang-tidy >/dev/null || { echo "clang-tidy is not installed"; exit 77; }
make --no-print-directory -j2 BUILD="$BUILD" programs "$BUILD/compile_flags.txt" >/dev/null || exit 1
# Programs for the kernel are clang's own, and no libc's.
git ls-files client daemon proto | grep '\.c$' | grep -v '\.bpf\.c$' | xargs -P "$(nproc)" -n 8 clang-tidy --quiet -p "$BUILD" 2>/dev/null
