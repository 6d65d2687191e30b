#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# build.sh DIR [meson options]: configures once, then builds. Prints the log only when it fails.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ ! -f "$dir/build.ninja" ]; then
    rm -rf "$dir"
    meson setup "$dir" "$@" >"$log" 2>&1 || { cat "$log"; exit 1; }
fi
ninja -C "$dir" >"$log" 2>&1 || { cat "$log"; exit 1; }
echo "built $dir"
