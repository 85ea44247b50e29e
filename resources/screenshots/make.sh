#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the pictures of the README from the shipped lineages: resources/screenshots/make.sh [PROGRAM]
set -eu
root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
program=${1:-$root/build/release/bin/klineage}
export QT_QPA_PLATFORM=offscreen
# A workspace that has the recorded runs and experiments too.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/klineage"
cp -r "$root/workloads" "$root/skills" "$folder/klineage"
"$root/tests/data/copyruns.sh" "$root" "$folder/klineage"
shot() { # NAME ARGS...
    name=$1
    shift
    "$program" --workspace "$folder/klineage" --screenshot "$root/resources/screenshots/$name.png" "$@"
}
shot review-dark --size 1600x1000 --theme dark --layout review --open gemm/sm90/K08
shot review-light --size 1600x1000 --theme light --layout review --open sgemm/pocl/K03
shot curate-dark --size 1600x1000 --theme dark --layout curate --open softmax/sm90/K06
shot experiments-dark --size 1600x1000 --theme dark --layout run --open experiment:cards-against-none
shot run-light --size 1600x1000 --theme light --layout run --open softmax/pocl/K03
shot story-dark --size 1600x1000 --theme dark --layout demo --open gemm/sm90/K08
