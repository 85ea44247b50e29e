#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes build/sysroot/bullseye for the preset gpu-static: the C library of Debian 11 and the headers that the gate is built from.
# Needs debootstrap, as root; nothing is installed. KLINEAGE_DEBIAN names another mirror.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
sysroot="$root/build/sysroot/bullseye"
done="$sysroot/.klineage-2"
[ ! -e "$done" ] || exit 0
command -v debootstrap >/dev/null 2>&1 || PATH="$PATH:/usr/sbin:/sbin"
command -v debootstrap >/dev/null 2>&1 || { echo "Cannot make a sysroot: install debootstrap." >&2; exit 1; }

mirror=${KLINEAGE_DEBIAN:-$(grep -hm1 '^URIs:' /etc/apt/sources.list.d/*.sources 2>/dev/null | cut -d' ' -f2 || true)}
[ -n "$mirror" ] || { echo "Cannot make a sysroot: name a Debian mirror in KLINEAGE_DEBIAN." >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$sysroot"
mkdir -p "$sysroot" "$work/own"

# Only fetched and unpacked: nothing of it is ever run.
debootstrap --foreign --variant=minbase --include=libc6-dev bullseye "$work/debian" "$mirror" \
    >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
for name in libc6 libc6-dev libcrypt1 libcrypt-dev; do
    for package in "$work"/debian/var/cache/apt/archives/"${name}"_*.deb; do
        dpkg -x "$package" "$sysroot"
    done
done
# Headers of the kernel, and libraries of headers alone, are those of this system.
(cd "$work/own" && apt-get download -q -o APT::Sandbox::User=root \
    linux-libc-dev nlohmann-json3-dev libcli11-dev libexpected-dev libtomlplusplus-dev libfmt-dev opencl-c-headers >"$work/log" 2>&1) \
    || { tail -n 20 "$work/log" >&2; exit 1; }
for package in "$work"/own/*.deb; do
    dpkg -x "$package" "$sysroot"
done
# toml++ and fmt have a shared library too, of a newer system; without their CMake packages the headers do all the work.
find "$sysroot" \( -name 'libtomlplusplus*' -o -name 'tomlplusplus*' -o -name 'libfmt*' -o -path '*/cmake/fmt' \) -prune -exec rm -rf {} +
# Absolute links would lead out of it.
find "$sysroot" -type l | while read -r link; do
    target=$(readlink "$link")
    case $target in
        /*) ln -sfn "$sysroot$target" "$link" ;;
    esac
done
for folder in lib lib64; do
    [ -e "$sysroot/$folder" ] || ln -s "usr/$folder" "$sysroot/$folder"
done
touch "$done"
echo "$sysroot"
