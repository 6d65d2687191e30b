#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Style (tests/lint/style.py), plain English (tests/lint/english.py), the order of the modules
# (tests/lint/modules.py), names (names.py), unused functions (dead.py), private headers of the command
# (private.py), options in messages (options.py), clang-format (scripts/format.sh), the form of commits
# (tests/lint/commits.py), spelling, and the whole tree with warnings as errors: GCC and Clang, with all optional libraries and with none.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 tests/lint/modules.py
python3 tests/lint/names.py
python3 tests/lint/dead.py
python3 tests/lint/private.py
python3 tests/lint/options.py
python3 tests/lint/commits.py
python3 tests/lint/style.py
scripts/format.sh --check
python3 tests/lint/english.py
codespell -q 3 -I tests/lint/not_misspelt.txt -S '*/corpus/*,*/data/*,*.pyc,*/__pycache__' \
    README.md CHANGELOG.md CONTRIBUTING.md docs include src tools python/leat python/src bench scripts tests/lint examples
for cc in gcc clang; do
    CC=$cc scripts/build.sh "build-lint-$cc" -Dwerror=true -Dpython=true --buildtype=debugoptimized
done
CC=gcc scripts/build.sh build-lint-bare -Dwerror=true --buildtype=release -During=disabled -Dpng=disabled \
    -Dwebp=disabled -Dtiff=disabled -Davif=disabled -Djxl=disabled -Dheif=disabled -Dhttp=disabled -Dcurl=disabled -Dtests=false -Dbench=false
echo "lint: clean"
