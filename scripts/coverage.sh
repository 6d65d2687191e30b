#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# coverage.sh BUILD: runs the tests of a coverage build and prints lines covered per room.
set -euo pipefail
cd "$(dirname "$0")/.."
meson test -C "$1" --no-rebuild >/dev/null || true
# Not /dev/null: gcovr tries its output file out and removes it, which root is allowed to do.
page=$(mktemp)
trap 'rm -f "$page"' EXIT
for room in src/*/; do
    gcovr --root . --filter "$room" --object-directory "$1" --exclude-unreachable-branches \
        --print-summary --output "$page" "$1" 2>/dev/null | sed -n "s|^lines: |${room%/}: |p"
done
