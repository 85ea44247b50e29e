#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every layout, light and dark, at one and at one and a half times, on a small and on a large screen, into a folder to look through:
#   resources/screenshots/matrix.sh FOLDER [PROGRAM]
set -eu
[ $# -ge 1 ] || { echo "usage: $0 FOLDER [PROGRAM]" >&2; exit 2; }
root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
program=${2:-$root/build/release/bin/klineage}
mkdir -p "$1"
out=$(cd "$1" && pwd)
export QT_QPA_PLATFORM=offscreen
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/klineage"
cp -r "$root/workloads" "$root/skills" "$folder/klineage"
"$root/tests/data/copyruns.sh" "$root" "$folder/klineage"
for layout in review curate run demo code; do
    case $layout in
    run) open=experiment:cards-against-none ;;
    *) open=gemm/sm90/K08 ;;
    esac
    for theme in light dark; do
        for scale in 1 1.5; do
            for size in 1366x768 2560x1440; do
                # A picture is as large as the screen: in units of the scale that is less.
                units=$(awk -v s="$size" -v f="$scale" 'BEGIN { split(s, p, "x"); printf "%dx%d", p[1] / f, p[2] / f }')
                "$program" --workspace "$folder/klineage" --screenshot "$out/$layout-$theme-$scale-$size.png" \
                    --size "$units" --scale "$scale" --theme "$theme" --layout "$layout" --open "$open" ||
                    echo "no picture of $layout $theme $scale $size" >&2
            done
        done
    done
done
