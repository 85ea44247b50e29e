#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The wall between what a candidate can touch and what decides is checked when configuring: a planted include across it, and one
# against another arrow, must make that fail. What this build leaves out where libgit2 is missing is not asked for. arrows.sh SOURCE CMAKE
set -eu

source=$1
cmake=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/tree"
for entry in "$source"/*; do
    name=$(basename "$entry")
    case $name in build | core) ;; *) ln -s "$entry" "$work/tree/$name" ;; esac
done
cp -R "$source/core" "$work/tree/core"

configure() {
    "$cmake" -S "$work/tree" -B "$work/build" -G Ninja -DKLINEAGE_BUILD_UI=OFF -DKLINEAGE_BUILD_TESTS=OFF >"$work/log" 2>&1
}
# plant FILE HEADER: configuring must fail, and name both.
plant() {
    cp "$work/tree/$1" "$work/kept"
    echo "#include \"$2\"" >>"$work/tree/$1"
    if configure; then
        echo "$1 includes $2, and configuring says nothing" >&2
        exit 1
    fi
    # CMake breaks its lines where it likes.
    said=$(tr -s ' \n' ' ' <"$work/log")
    case $said in
        *"$1 includes $2"*) ;;
        *) echo "Configuring failed for another reason:" >&2; cat "$work/log" >&2; exit 1 ;;
    esac
    cp "$work/kept" "$work/tree/$1"
}

configure || { cat "$work/log" >&2; exit 1; }
plant core/device/hostfacts.cpp core/gate/supervisor/supervisor.h
plant core/device/cuda/driver.h core/gate/check/oracle.h
plant core/trial/trial.h core/gate/supervisor/job.h
plant core/policy/policy.h core/run/journal.h
configure || { cat "$work/log" >&2; exit 1; }

# A bare GPU server has no libgit2: what shows diffs is left out, the gate and its tests are not.
rm -rf "$work/build"
PKG_CONFIG_LIBDIR="$work/nothing" configure || { cat "$work/log" >&2; exit 1; }
isBuilt() {
    sed -n "s|^build app/[a-z]*/all: phony||p" "$work/build/build.ninja" | grep -q "bin/$1"
}
isBuilt klineage-gate || { echo "without libgit2 there is no gate" >&2; exit 1; }
isBuilt klineage-cli && { echo "without libgit2 there is a klineage-cli" >&2; exit 1; }
echo "4 planted includes were found"
