#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test_s3.sh BUILD: every operation on buckets against three S3 servers: SeaweedFS, Ceph and rclone.
# Prints a table of the results. A server that is not installed is left out, and named.
set -euo pipefail
cd "$(dirname "$0")/.."
LEAT=$PWD/$1/tools/leat exec "$PWD/.venv/bin/python" tests/remote/conformance.py -v
