#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what is missing, builds, and starts the workbench: app/run.sh [ARGS for klineage]
set -eu

here=$(pwd)
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)

headless=no
for arg in "$@"; do
    case $arg in
        --screenshot | --screenshot=* | --report | --report=* | --help | -h | --version | -v) headless=yes ;;
    esac
done
if [ "$headless" = yes ]; then
    export QT_QPA_PLATFORM="${QT_QPA_PLATFORM:-offscreen}"
elif [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}${QT_QPA_PLATFORM:-}" ]; then
    cat >&2 <<'TEXT'
Cannot open the window: this session has no display (DISPLAY and WAYLAND_DISPLAY are not set).
  On a desktop, run this in a terminal of the desktop.
  Over ssh, connect with `ssh -X` and run it again.
  For a picture of the window:  ./app/run.sh --screenshot window.png
  Without a window at all:      ./build/release/bin/klineage-cli --help  (./tests/run.sh builds it)
TEXT
    exit 2
fi

"$root/resources/setup/install.sh" app
. "$root/resources/setup/build.sh"
[ -x "$root/build/release/bin/klineage" ] || echo "Building; the first time takes some minutes (log: build/release/build.log) ..." >&2
# Cached answers from a build without Qt must not keep the window out.
KLINEAGE_CMAKE_FLAGS="-DKLINEAGE_BUILD_UI=ON -DKLINEAGE_BUILD_TESTS=ON"
klineage_build release klineage klineage-cli klineage-gate

cd "$here"
exec "$root/build/release/bin/klineage" "$@"
