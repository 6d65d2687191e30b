#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs.sh: builds the manual into build-docs/site. Reference pages are generated from the command's
# own help, the docstrings, the public headers and the table of ops. Warnings are errors.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/.venv/bin:$PATH
.venv/bin/python -c 'import mkdocs' 2>/dev/null || {
    echo "docs: installing into .venv: mkdocs"
    .venv/bin/python -m pip install -q --disable-pip-version-check 'mkdocs>=1.6,<2'
}
scripts/build.sh build-python -Dpython=true -Dtests=false -Dbench=false --buildtype=debugoptimized
rm -rf build-python/site build-docs
meson install -C build-python --tags python-runtime --destdir "$PWD/build-python/site" >/dev/null
site=$(dirname "$(find build-python/site -type d -name leat -path '*-packages/leat' | head -n 1)")
PYTHONPATH=$PWD/$site .venv/bin/python scripts/docs_pages.py build-docs/src
.venv/bin/python -m mkdocs build --strict --quiet
echo "docs: build-docs/site/index.html"
