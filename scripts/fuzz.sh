#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh BUILD [NAME…]: runs each libFuzzer target (or those named) for FUZZ_SECONDS over its
# corpus; new inputs stay in the build folder. A finding stops the run and leaves its input there.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
shift
seconds=${FUZZ_SECONDS:-30}
if [ $# -eq 0 ]; then
    for target in "$build"/tests/fuzz/libfuzz_*; do
        [ -f "$target" ] && [ -x "$target" ] && set -- "$@" "${target##*/libfuzz_}"
    done
fi
[ $# -gt 0 ] || { echo "fuzz: no targets in $build" >&2; exit 1; }
for name in "$@"; do
    work="$build/fuzz-work/$name"
    mkdir -p "$work"
    echo "fuzz: $name for $seconds s"
    corpus=()
    [ -d "tests/fuzz/corpus/$name" ] && corpus=("tests/fuzz/corpus/$name")
    rc=0
    "$build/tests/fuzz/libfuzz_$name" -max_total_time="$seconds" -rss_limit_mb=2048 \
        -malloc_limit_mb=1024 -timeout=20 -artifact_prefix="$work/" -print_final_stats=1 "$work" \
        "${corpus[@]}" >"$work.log" 2>&1 || rc=$?
    grep -E 'ERROR|SUMMARY|stat::|ALARM|Test unit' "$work.log" || true
    if [ $rc -ne 0 ]; then
        echo "fuzz: $name failed ($rc): findings in $work, log in $work.log" >&2
        exit 1
    fi
done
