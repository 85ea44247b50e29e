#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds the libFuzzer programs and runs them one after the other: run.sh [SECONDS [TARGET...]]. SECONDS are of all in sum (3600),
# TARGETs are all (candidate, card, …). A line each; exits 0 only when nothing was found.
set -eu

root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
cd "$root"
total=3600
[ $# -eq 0 ] || { total=$1; shift; }
[ $# -gt 0 ] || set -- $(sed -n 's/^_klineage_fuzz(\([a-z]*\) .*/\1/p' tests/fuzz/CMakeLists.txt)

command -v clang++ >/dev/null 2>&1 || { echo "Cannot build: install clang, and libclang-rt-14-dev on Debian 12." >&2; exit 1; }
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz

seconds=$((total / $#))
[ "$seconds" -gt 0 ] || seconds=1
out=build/fuzz/findings
mkdir -p "$out"
failed=no
for target; do
    log=$out/$target.log
    status=0
    nice -n 19 "build/fuzz/bin/fuzz_$target" "-max_total_time=$seconds" "-artifact_prefix=$out/$target-" -print_final_stats=1 \
        -rss_limit_mb=3000 -timeout=30 >"$log" 2>&1 || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    if [ "$status" -eq 0 ]; then
        echo "$target: ${runs:-?} runs in $seconds s, nothing found"
    else
        failed=yes
        echo "$target: FOUND SOMETHING after ${runs:-?} runs: $log"
        grep -m 3 -E 'ERROR|SUMMARY|runtime error|Test unit written' "$log" || tail -n 3 "$log"
    fi
done
[ "$failed" = no ]
