#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Formats the C sources by .clang-format (version 14, as in Debian 12; others differ in details).
#   scripts/format.sh          formats the files that differ from main, and new ones
#   scripts/format.sh --all    formats all files
#   scripts/format.sh --check  changes nothing; lists the files that are not formatted, and exits with 1
set -euo pipefail
cd "$(dirname "$0")/.."
kinds=('*.c' '*.h')
tool=$(command -v clang-format-14 || command -v clang-format) || { echo "format: clang-format is not installed (Debian: clang-format-14)" >&2; exit 2; }
"$tool" --version | grep -q 'version 14\.' || { echo "format: $("$tool" --version) is not version 14: not used" >&2; exit 0; }
sources() { git "$@" -- "${kinds[@]}" | grep -v '/golden_' | sort -u; }
case "${1:-}" in
--check) sources ls-files | tr '\n' '\0' | xargs -0 -r "$tool" --dry-run -Werror 2>&1 | sed -n 's/:\([0-9]*\):[0-9]*: error:.*/:\1: not formatted: run scripts\/format.sh/p' | sort -u -t: -k1,1 |
    { ! grep .; } ;;
--all) sources ls-files | tr '\n' '\0' | xargs -0 -r "$tool" -i ;;
'') { sources diff --name-only --diff-filter=d main; sources ls-files -o --exclude-standard; } | tr '\n' '\0' | xargs -0 -r "$tool" -i ;;
*) echo "usage: scripts/format.sh [--all | --check]" >&2; exit 2 ;;
esac
