#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The other way round: pack.sh FOLDER takes an experiment that has run (experiment.toml, preregistered.toml, runs/) into tests/data/experiments: its
# plan as it is, its runs as one runs.tar.xz, some forty times smaller because prompts repeat what they show.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
to=$here/$(basename "$1")
mkdir -p "$to"
cp "$1/experiment.toml" "$1/preregistered.toml" "$to"
find "$1/runs" -name .lock -delete
tar c --sort=name --owner=0 --group=0 --numeric-owner -C "$1" runs | xz -9e -T1 >"$to/runs.tar.xz"
