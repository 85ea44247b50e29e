#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Unpacks recorded runs that ship as one archive: unpack.sh EXPERIMENT [FOLDER]. runs.tar.xz of tests/data/experiments/EXPERIMENT becomes
# runs/ there, which git ignores, or, with its plan, EXPERIMENT/ in FOLDER. Then `klineage-cli experiment show FOLDER/EXPERIMENT` and the window read it as any other.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
from=$here/$1
to=${2:+$2/$1}
to=${to:-$from}
mkdir -p "$to"
[ "$to" = "$from" ] || for file in experiment.toml preregistered.toml; do
    if [ -f "$from/$file" ]; then cp "$from/$file" "$to"; fi
done
rm -rf "$to/runs"
tar xJf "$from/runs.tar.xz" -C "$to"
