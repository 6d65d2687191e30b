#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench.sh BUILD: the benchmarks that need nothing but this tree. The comparisons with other
# systems are bench/vs_*: each makes its own environment and says how to run it.
set -euo pipefail
cd "$(dirname "$0")/.."
exec meson test -C "$1" --benchmark --no-rebuild --verbose
