#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test.sh BUILD: every test of the tree. Ends with "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1
failed=0

python=build-python/pytest.xml
rm -f "$python"
meson test -C "$build" --no-rebuild --print-errorlogs --num-processes "$(nproc)" || failed=1
# the tests of the package need these; without a Python package index they may be missing
if .venv/bin/python -c 'import numpy, pytest, PIL, mesonpy' 2>/dev/null; then
    scripts/python.sh --junitxml="$python" || failed=1
else
    echo "test: NumPy, pytest, Pillow or meson-python is missing in .venv: the Python tests are skipped"
fi
python3 - "$build" "$python" <<'PY'
import json, os, sys, xml.etree.ElementTree as xml
ok = bad = skip = 0
for line in open(sys.argv[1] + "/meson-logs/testlog.json"):
    result = json.loads(line)["result"]
    ok += result in ("OK", "EXPECTEDFAIL")
    skip += result == "SKIP"
    bad += result not in ("OK", "EXPECTEDFAIL", "SKIP")
if os.path.exists(sys.argv[2]):
    for suite in xml.parse(sys.argv[2]).iter("testsuite"):
        wrong = int(suite.get("failures")) + int(suite.get("errors"))
        ok += int(suite.get("tests")) - wrong - int(suite.get("skipped"))
        bad += wrong
        skip += int(suite.get("skipped"))
print(f"{ok} passed, {bad} failed, {skip} skipped")
PY
exit $failed
