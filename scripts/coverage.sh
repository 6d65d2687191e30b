#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# coverage.sh BUILD: runs the tests of a coverage build and prints lines covered per room.
set -euo pipefail
cd "$(dirname "$0")/.."
meson test -C "$1" --no-rebuild >/dev/null || true
for room in src/*/; do
    gcovr --root . --filter "$room" --object-directory "$1" --exclude-unreachable-branches \
        --print-summary --output /dev/null "$1" 2>/dev/null | sed -n "s|^lines: |${room%/}: |p"
done
