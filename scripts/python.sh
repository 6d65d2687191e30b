#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# python.sh [pytest arguments]: builds the extension into the source tree's own package folder
# under build-python/, and runs the Python tests with it. TORCH=0 leaves out what needs torch,
# JAX=1 adds what needs JAX; pytest's summary says what was skipped and why.
set -euo pipefail
cd "$(dirname "$0")/.."
# meson of .venv where there is one: the extension is built for the Python that runs it
PATH=$PWD/.venv/bin:$PATH
scripts/build.sh build-python -Dpython=true -Dtests=false -Dbench=false --buildtype=debugoptimized
rm -rf build-python/site
meson install -C build-python --tags python-runtime --destdir "$PWD/build-python/site" >/dev/null
site=$(dirname "$(find build-python/site -type d -name leat -path '*-packages/leat' | head -n 1)")
export PYTHONPATH=$PWD/$site
[ "${TORCH:-1}" = 1 ] || echo "python: TORCH=0: tests of torch, Lightning and Accelerate are skipped"
[ "${JAX:-0}" = 1 ] || echo "python: JAX=0: tests of JAX are skipped"
exec .venv/bin/python -m pytest "$@"
