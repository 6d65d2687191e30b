#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test.sh BUILD: every test of the tree. Ends with "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1
failed=0

meson test -C "$build" --no-rebuild --print-errorlogs --num-processes "$(nproc)" || failed=1
read -r ok bad skip < <(python3 - "$build" <<'PY'
import json, sys
ok = bad = skip = 0
for line in open(sys.argv[1] + "/meson-logs/testlog.json"):
    result = json.loads(line)["result"]
    ok += result in ("OK", "EXPECTEDFAIL")
    skip += result == "SKIP"
    bad += result not in ("OK", "EXPECTEDFAIL", "SKIP")
print(ok, bad, skip)
PY
)

if [ -f python/tests/conftest.py ] && [ -x .venv/bin/python ]; then
    scripts/python.sh || failed=1
fi
echo "$ok passed, $bad failed, $skip skipped"
exit $failed
