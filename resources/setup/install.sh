#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what a build needs and this machine lacks: resources/setup/install.sh [app|tests|package]
# Only packages of the system's own release are used. When nothing is missing it returns at once, without the network.
set -eu

purpose=${1:-app}
root=$(cd "$(dirname "$0")/../.." && pwd)
private="$root/build/deps/syntax-highlighting"

# One line a need; of several names divided by | the first that the release knows is installed.
needs="
g++
cmake
ninja-build
ccache
pkg-config|pkgconf
nlohmann-json3-dev
libtomlplusplus-dev
libfmt-dev
libcli11-dev
libexpected-dev
libgit2-dev
libsqlite3-dev
libcurl4-openssl-dev
opencl-c-headers
qt6-base-dev
qt6-svg-dev
qtkeychain-qt6-dev
libqcustomplot-dev
ocl-icd-libopencl1
pocl-opencl-icd
libopenblas0-pthread
libdnnl3.6|libdnnl2|libdnnl-dev
fontconfig
"
# A linker for hundreds of test programs. Real ssh and a real Slurm of one node, for the tests of the pool.
if [ "$purpose" = tests ]; then
    needs="$needs
mold
openssh-client
openssh-server
python3-jsonschema
slurmctld
slurmd
slurm-client
munge
"
fi
# What CPack asks for the dependencies of a package.
if [ "$purpose" = package ]; then
    needs="$needs
dpkg-dev
file
gzip
"
fi
# The format is checked with the version of Debian 12 alone.
if [ "$purpose" = tests ] && grep -q '^VERSION_ID="12"' /etc/os-release 2>/dev/null; then
    needs="$needs
clang-format-14
"
fi

say() { printf '%s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

if ! command -v dpkg-query >/dev/null 2>&1; then
    say "This is not a Debian system: nothing is installed. README.md lists the libraries that the build needs."
    exit 0
fi

installed() {
    # A package that is named for its architecture counts, one that was removed does not.
    dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

any_installed() {
    for name in $(printf %s "$1" | tr '|' ' '); do
        if installed "$name"; then return 0; fi
    done
    return 1
}

have_syntax_highlighting() {
    installed libkf6syntaxhighlighting-dev \
        || { [ -e "$private/lib/libKSyntaxHighlighting.so" ] && [ -e "$private/include/KSyntaxHighlighting/Repository" ]; }
}

missing=""
for need in $needs; do
    any_installed "$need" || missing="$missing $need"
done
if [ -z "$missing" ] && have_syntax_highlighting; then
    exit 0
fi

as_root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || fail "Cannot install packages: neither root nor sudo. Install as root:$missing"
    as_root=sudo
fi

log=$(mktemp)
work=$(mktemp -d)
trap 'rm -rf "$log" "$work"' EXIT
quietly() {
    "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "Cannot install packages: '$*' failed. See the lines above."; }
}
known() { apt-cache show --no-all-versions "$1" 2>/dev/null | grep -q '^Package:'; }

say "Installing missing packages ..."
quietly $as_root apt-get update -q

packages=""
for need in $missing; do
    chosen=""
    for name in $(printf %s "$need" | tr '|' ' '); do
        if known "$name"; then chosen=$name; break; fi
    done
    [ -n "$chosen" ] || fail "Cannot install $need: this release has no such package. KLineage needs Debian 12, 13 or later."
    packages="$packages $chosen"
done
if ! have_syntax_highlighting && known libkf6syntaxhighlighting-dev; then
    packages="$packages libkf6syntaxhighlighting-dev"
fi
if [ -n "$packages" ]; then
    # shellcheck disable=SC2086
    quietly $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages
fi

# Debian 12 has no package of KSyntaxHighlighting for Qt 6, but the package qtcreator carries the library and the headers of the
# Qt 5 build fit it. Both are unpacked into the build folder; neither is installed.
if ! have_syntax_highlighting; then
    say "Fetching a private copy of KSyntaxHighlighting ..."
    cd "$work"
    quietly apt-get download -q -o APT::Sandbox::User=root qtcreator libkf5syntaxhighlighting-dev
    for package in ./*.deb; do
        quietly dpkg -x "$package" unpacked
    done
    rm -rf "$private"
    mkdir -p "$private/lib" "$private/include"
    library=$(find unpacked -name 'libKSyntaxHighlighting.so.*' -type f | head -n 1)
    [ -n "$library" ] || fail "Cannot find KSyntaxHighlighting in the package qtcreator of this release."
    # The name the loader asks for: the soname, with the major version only.
    soname=$(find unpacked -name 'libKSyntaxHighlighting.so.[0-9]*' -exec basename {} \; | sort | head -n 1)
    cp "$library" "$private/lib/$soname"
    ln -s "$soname" "$private/lib/libKSyntaxHighlighting.so"
    cp -R unpacked/usr/include/KF5/KSyntaxHighlighting/. "$private/include/"
    cd "$root"
fi
