#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh BUILD: runs each libFuzzer target for FUZZ_SECONDS over its corpus; new inputs stay in
# the build folder. A finding stops the run and leaves its input there.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
seconds=${FUZZ_SECONDS:-30}
found=0
for target in "$build"/tests/fuzz/fuzz_*; do
    [ -f "$target" ] && [ -x "$target" ] || continue
    found=1
    name=$(basename "$target")
    name=${name#fuzz_}
    work="$build/fuzz-work/$name"
    mkdir -p "$work"
    echo "fuzz: $name for $seconds s"
    corpus=()
    [ -d "tests/fuzz/corpus/$name" ] && corpus=("tests/fuzz/corpus/$name")
    "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -malloc_limit_mb=1024 -timeout=20 \
        -artifact_prefix="$work/" -print_final_stats=1 "$work" "${corpus[@]}" 2>&1 |
        grep -E 'ERROR|SUMMARY|stat::|ALARM|Test unit' || true
    if ls "$work"/crash-* "$work"/oom-* "$work"/timeout-* "$work"/leak-* >/dev/null 2>&1; then
        echo "fuzz: findings in $work" >&2
        exit 1
    fi
done
[ $found = 1 ] || { echo "fuzz: no targets in $build" >&2; exit 1; }
