#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Holds the gate's hardware counters against those of Nsight Compute on the same launches of the same kernels:
#
#   tests/gate/ncu/compare.sh KLINEAGE_GATE WORKLOAD CANDIDATE...
#
# prints one JSON line a candidate and metric, with the relative difference, and fails when one that is held ("held": true) is above
# 5 %. Both sides look at the third of three runs over buffers that the caches cannot hold, and leave caches and clocks alone
# (--cache-control none, --clock-control none), so both find the cache as the run before left it. Nsight Compute reads these metrics
# in one pass: it neither replays the kernel nor saves and restores memory. Writes alone are not held: on an H200 they differ by
# a steady 9 MB a launch, presumably what each profiler itself has left unwritten in the L2.
# Needs a GPU whose counters may be read, and ncu on PATH.
set -u
[ $# -ge 3 ] || { sed -n '3,14s/^# \{0,1\}//p' "$0" >&2; exit 2; }
gate=$1 workload=$2
shift 2
limit=0.05
names=(dram_bytes dram_read_bytes dram_write_bytes tensor_cycles)
chip_names=(dram__bytes.sum dram__bytes_read.sum dram__bytes_write.sum sm__pipe_tensor_cycles_active.sum)
held=" dram_bytes tensor_cycles "
status=0

# The sum of a metric over the kernels of a run, from the gate's JSON.
ours() {
    grep -o "\"name\":\"$1\",\"unit\":\"[^\"]*\",\"value\":[^}]*" <<< "$json" | awk -F: '{ sum += $NF } END { printf "%.10g", sum }'
}

# The same from ncu's table: a line of names, a line of units, then a line a launch.
theirs() {
    grep '^"' <<< "$table" | sed 's/^"//; s/"$//; s/","/\t/g' | awk -F'\t' -v name="$1" '
        NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) column = i }
        NR > 2 && column { gsub(/,/, "", $column); sum += $column }
        END { printf "%.10g", sum }'
}

for candidate; do
    json=$("$gate" counters "$workload" "$candidate") || { status=1; continue; }
    launches=$(grep -o '"kernels":\[[^]]*\]' <<< "$json" | grep -o '"' | wc -l)
    launches=$((launches / 2 - 1)) # without the key
    table=$(ncu --target-processes all --clock-control none --cache-control none --launch-skip $((2 * launches)) \
        --launch-count "$launches" --csv --page raw --print-units base --metrics "$(IFS=,; echo "${chip_names[*]}")" \
        "$gate" counters "$workload" "$candidate" --launch-only 2>&1) || { echo "$table" >&2; status=1; continue; }
    for i in "${!names[@]}"; do
        awk -v candidate="$(basename "$candidate")" -v metric="${names[i]}" -v gate="$(ours "${names[i]}")" \
            -v ncu="$(theirs "${chip_names[i]}")" -v limit=$limit -v all="$held" 'BEGIN {
                held = index(all, " " metric " ") > 0
                difference = ncu == 0 ? (gate != 0) : gate / ncu - 1
                printf "{\"candidate\":\"%s\",\"metric\":\"%s\",\"gate\":%.10g,\"ncu\":%.10g,\"difference\":%.5f,\"held\":%s}\n",
                    candidate, metric, gate, ncu, difference, held ? "true" : "false"
                exit held && (difference > limit || difference < -limit)
            }' || status=1
    done
done
exit $status
