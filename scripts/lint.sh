#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Style (tests/lint/style.py), the order of the rooms (tests/lint/rooms.py), and the whole tree
# with warnings as errors: GCC and Clang, with all optional libraries and with none.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 tests/lint/rooms.py
python3 tests/lint/style.py
for cc in gcc clang; do
    CC=$cc scripts/build.sh "build-lint-$cc" -Dwerror=true -Dpython=true --buildtype=debugoptimized
done
CC=gcc scripts/build.sh build-lint-bare -Dwerror=true --buildtype=release -During=disabled -Dpng=disabled \
    -Dwebp=disabled -Dhttp=disabled -Dcurl=disabled -Dtests=false -Dbench=false
echo "lint: clean"
