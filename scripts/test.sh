#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test.sh BUILD: every test of the tree. Up to three tests that fail run once more, alone. One that passes then is
# listed as unstable, which is a defect, but not a failure. Ends with "N passed, N failed, N skipped, N unstable".
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1
again=3
failed=0

# Counts the results in logs, or lists what failed.
results() { python3 scripts/results.py "$@"; }

c=("$build/meson-logs/first.json")
rm -f "$build"/meson-logs/{testlog,first,second}.json
meson test -C "$build" --no-rebuild --print-errorlogs --num-processes "$(nproc)"
code=$?
cp "$build/meson-logs/testlog.json" "${c[0]}"
mapfile -t names < <(results --failed "${c[0]}")
[ $code -eq 0 ] || [ ${#names[@]} -gt 0 ] || failed=1  # it ended without naming a test
if [ ${#names[@]} -gt 0 ] && [ ${#names[@]} -le $again ]; then
    echo "test: once more, alone: ${names[*]}"
    meson test -C "$build" --no-rebuild --print-errorlogs --num-processes 1 "${names[@]}"
    c+=("$build/meson-logs/second.json")
    cp "$build/meson-logs/testlog.json" "${c[1]}"
fi

python=()
# the tests of the package need these; without a Python package index they may be missing
if .venv/bin/python -c 'import numpy, pytest, PIL, mesonpy' 2>/dev/null; then
    python=(build-python/pytest.xml)
    rm -f build-python/pytest*.xml
    scripts/python.sh --junitxml="${python[0]}"
    code=$?
    mapfile -t names < <(results --failed "${python[0]}")
    [ $code -eq 0 ] || [ ${#names[@]} -gt 0 ] || failed=1
    if [ ${#names[@]} -gt 0 ] && [ ${#names[@]} -le $again ]; then
        echo "test: once more, alone: ${names[*]}"
        python+=(build-python/pytest-second.xml)
        scripts/python.sh --junitxml="${python[1]}" "${names[@]}"
    fi
else
    echo "test: NumPy, pytest, Pillow or meson-python is missing in .venv: the Python tests are skipped"
fi
results "${c[@]}" ${python[@]+"${python[@]}"} || failed=1
exit $failed
