#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what is missing, then checks everything: format, core under the sanitizers, all tests of the release build.
# The last line counts test functions. Exits 0 only when all is well. KLINEAGE_WERROR=ON makes warnings errors, as .ci/run does.
set -eu

root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
cd "$root"
failed=no
complain() { echo "$*" >&2; failed=yes; }

"$root/resources/setup/install.sh" tests
. "$root/resources/setup/build.sh"

# Tests copy whole workspaces, which takes several times as long on a disk: in memory, where that may hold programs and has room.
scratch=""
if [ -z "${TMPDIR:-}" ] && [ "$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 6 ]; then
    scratch=$(mktemp -d /dev/shm/klineage-tests.XXXXXX 2>/dev/null) || scratch=""
fi
if [ -n "$scratch" ]; then
    printf '#!/bin/sh\n' >"$scratch/runs" && chmod +x "$scratch/runs"
    if "$scratch/runs" 2>/dev/null && [ "$(df -k --output=avail "$scratch" | tail -n 1)" -ge 4194304 ]; then
        export TMPDIR="$scratch"
    fi
fi
sanitized=""
leave() {
    if [ -n "$sanitized" ]; then
        kill "$sanitized" 2>/dev/null || true
        wait "$sanitized" 2>/dev/null || true
    fi
    [ -z "$scratch" ] || rm -rf "$scratch" || true
}
trap leave EXIT
trap 'exit 130' INT TERM

"$root/resources/setup/check-format.sh" || complain "The format check failed."

# What the tests under the sanitizers wait for is time in which the release build goes on.
echo "Building core under the sanitizers (log: build/asan/build.log) and testing it beside what follows (build/asan/test.log) ..."
werror="-DKLINEAGE_WERROR=${KLINEAGE_WERROR:-OFF}"
KLINEAGE_CMAKE_FLAGS="-DKLINEAGE_BUILD_TESTS=ON $werror"
if klineage_build asan; then
    ctest --preset asan >build/asan/test.log 2>&1 &
    sanitized=$!
else
    complain "The sanitizer build failed."
fi

echo "Building everything (log: build/release/build.log) ..."
KLINEAGE_CMAKE_FLAGS="-DKLINEAGE_BUILD_UI=ON -DKLINEAGE_BUILD_TESTS=ON $werror"
built=yes
klineage_build release || built=no
if [ -n "$sanitized" ]; then
    if wait "$sanitized"; then
        export KLINEAGE_FUZZ_RUNS=1000 # each parser has just read all of its mutations, which are the same here
    else
        tail -n 60 build/asan/test.log
        complain "Tests failed under the sanitizers: all of it is in build/asan/test.log"
    fi
fi
sanitized=""
[ "$built" = yes ] || exit 1
rm -rf build/release/test-results
mkdir -p build/release/test-results
ctest --preset release --output-junit test-results/ctest.xml || failed=yes

count=$("$root/resources/setup/count-tests.sh" build/release)
[ "$failed" = no ] || echo "Not all is well: see the messages above."
echo "$count"
case $count in
    *", 0 failed, "*) ;;
    *) failed=yes ;;
esac
[ "$failed" = no ]
