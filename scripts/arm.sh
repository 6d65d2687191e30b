#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# arm.sh BUILD: cross-builds for aarch64, runs the unit tests of dsp, codec, op and loader under
# qemu-user, and compares packs and digests with those of this machine. The arm64 libraries go to
# build-arm/sysroot, unpacked from Debian's packages by a private apt: the system gets the cross
# compiler and qemu, and no foreign architecture.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/build-arm
root=$work/sysroot
libraries=(libxxhash0 libxxhash-dev libjpeg62-turbo libjpeg62-turbo-dev zlib1g zlib1g-dev libzstd1
    libzstd-dev libjansson4 libjansson-dev libyaml-0-2 libyaml-dev liburing2 liburing-dev libspng0
    libspng-dev libwebp7 libwebpmux3 libwebpdemux2 libwebp-dev libcmocka0 libcmocka-dev)

install_tools() {
    command -v dpkg-deb >/dev/null || { echo "arm: needs a Debian-like machine" >&2; exit 2; }
    local tools=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
    dpkg-query -W -f='${Status}\n' "${tools[@]}" 2>/dev/null | grep -c 'ok installed' | grep -qx ${#tools[@]} && return
    echo "arm: installing Debian packages: ${tools[*]}"
    local sudo=()
    [ "$(id -u)" -eq 0 ] || sudo=(sudo)
    "${sudo[@]}" apt-get update -qq
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${tools[@]}" >/dev/null
}

# apt with separate lists and cache, for arm64 only.
private_apt() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=root \
        -o Dir::State="$work/apt/state" -o Dir::State::status="$work/apt/status" \
        -o Dir::Cache="$work/apt/cache" "$@"
}

make_sysroot() {
    [ -f "$root/done" ] && return
    echo "arm: unpacking arm64 libraries into ${root#"$PWD"/}"
    rm -rf "$root" "$work/apt"
    mkdir -p "$root" "$work/apt/state/lists/partial" "$work/apt/cache/archives/partial" "$work/apt/debs"
    : >"$work/apt/status"
    private_apt update
    (cd "$work/apt/debs" && private_apt download "${libraries[@]}")
    for deb in "$work"/apt/debs/*.deb; do dpkg-deb -x "$deb" "$root"; done
    # some are in /lib, and links to them are absolute
    local lib=$root/usr/lib/aarch64-linux-gnu link
    cp -a "$root"/lib/aarch64-linux-gnu/. "$lib"
    find "$lib" -maxdepth 1 -xtype l | while read -r link; do
        ln -sf "$(basename "$(readlink "$link")")" "$link"
    done
    touch "$root/done"
}

write_cross_file() {
    local lib=$root/usr/lib/aarch64-linux-gnu
    cat >"$work/qemu.sh" <<END
#!/bin/sh
exec qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=$lib:/usr/aarch64-linux-gnu/lib "\$@"
END
    chmod +x "$work/qemu.sh"
    cat >"$work/cross.ini" <<END
[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = '$work/qemu.sh'
[properties]
pkg_config_libdir = '$lib/pkgconfig:$root/usr/share/pkgconfig'
sys_root = '$root'
needs_exe_wrapper = true
[built-in options]
c_args = ['-I$root/usr/include', '-I$root/usr/include/aarch64-linux-gnu']
c_link_args = ['-L$lib', '-Wl,-rpath-link,$lib']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
}

build() {
    if [ ! -f "$work/out/build.ninja" ]; then
        rm -rf "$work/out"
        meson setup "$work/out" --cross-file "$work/cross.ini" --buildtype=release -Dhttp=disabled \
            -Dbench=false -Dfault=true >"$work/setup.log" 2>&1 || { tail -30 "$work/setup.log"; exit 1; }
    fi
    local wanted
    wanted=$(ninja -C "$work/out" -t targets all | sed -nE 's/^(tests\/unit\/(test_(dsp|codec|op|loader)_[a-z0-9_]+|[a-z]+\/fake_[a-z]+\.so)): .*/\1/p')
    # shellcheck disable=SC2086
    ninja -C "$work/out" tools/leat $wanted >"$work/build.log" 2>&1 || { tail -30 "$work/build.log"; exit 1; }
}

# Packs and digests of the same pictures, here and there.
compare() {
    local x86=$1 dir=$work/compare mode
    rm -rf "$dir"
    mkdir -p "$dir"
    "$x86" demo -d "$dir/demo" -n 64 --classes 4 -q >/dev/null
    for mode in tiled keep raw; do
        "$x86" pack "$dir/demo/photos" -o "$dir/x86-$mode.leat" --images $mode -q
        "$work/qemu.sh" "$work/out/tools/leat" pack "$dir/demo/photos" -o "$dir/arm-$mode.leat" --images $mode -q
        cmp "$dir/x86-$mode.leat" "$dir/arm-$mode.leat"
        "$x86" load "$dir/x86-$mode.leat" -b 16 -s 96 --digest --json | digest_of >"$dir/x86.digest"
        "$work/qemu.sh" "$work/out/tools/leat" load "$dir/x86-$mode.leat" -b 16 -s 96 --digest --json | digest_of >"$dir/arm.digest"
        cmp "$dir/x86.digest" "$dir/arm.digest"
        echo "arm: $mode: pack and digest $(cat "$dir/arm.digest") equal"
    done
}

digest_of() {
    python3 -c 'import json, sys; d = json.load(sys.stdin)["digest"]; assert d; print(d)'
}

install_tools
make_sysroot
write_cross_file
build
compare "$1/tools/leat"
suites=()
for s in dsp codec op loader; do suites+=(--suite "$s"); done
export LEAT_TEST_EMULATED=1 # memory and threads of the process are the emulator's as well
meson test -C "$work/out" --no-rebuild --print-errorlogs --timeout-multiplier 10 \
    --num-processes "$(nproc)" "${suites[@]}"
