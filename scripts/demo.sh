#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# demo.sh BUILD: the main job on data it makes itself, into demo-out/.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf demo-out
exec "$1/tools/leat" demo --dir demo-out
