#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Replays every run in tests/data (runs, experiments) from its recorded replies and trials, in a copy of the workspace:
# replay.sh KLINEAGE_CLI SOURCE.
# Each must come to its recorded steps, byte for byte but for their times. Needs no device and no network.
set -eu
cli=$1
source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r "$source/workloads" "$source/skills" "$folder"
"$source/tests/data/copyruns.sh" "$source" "$folder"
status=0
for run in "$folder"/runs/*/ "$folder"/experiments/*/runs/*/; do
    echo "$(basename "$run"):"
    "$cli" run replay "$run" --workspace "$folder" || status=1
done
exit $status
