#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks Ceph's monitor, storage daemon and S3 gateway into build-ceph/ for `make test-s3`. Nothing
# is installed: only packages that the system lacks are downloaded, and no service is started.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD/build-ceph
[ -x "$root/usr/bin/radosgw" ] && exit 0
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "test-s3: no Debian packages here: Ceph is left out"
    exit 0
fi
names=$(apt-get install --no-install-recommends -s ceph-mon ceph-osd radosgw ceph-common 2>/dev/null | awk '$1 == "Inst" { print $2 }')
if [ -z "$names" ]; then
    echo "test-s3: the packages of Ceph are not known here (apt-get update?): Ceph is left out"
    exit 0
fi
echo "test-s3: unpacking into build-ceph: ceph-mon ceph-osd radosgw ceph-common and what they need"
mkdir -p "$root/deb"
(
    cd "$root/deb"
    # shellcheck disable=SC2086
    apt-get download -qq $names 2>/dev/null
    for file in *.deb; do dpkg-deb -x "$file" "$root"; done
) || echo "test-s3: Ceph cannot be downloaded: it is left out"
rm -rf "$root/deb"
