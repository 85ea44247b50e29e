#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Copies the runs of tests/data into a workspace: copyruns.sh SOURCE WORKSPACE. A trial that a lineage keeps too stands in tests/data as
# its id, the run's name of its file, and the lineage; here it becomes the whole line again. A file that three or more runs of an
# experiment have is one, and links to it; here each becomes a file again.
set -eu
source=$1
cp -rL "$source/tests/data/runs" "$source/tests/data/experiments" "$2"
for trials in "$2"/runs/*/trials.jsonl; do
    awk -v workloads="$source/workloads" '
        function field(name) { # the first of this name: no trial has it before its own
            if (!match($0, "\"" name "\":\"[^\"]*\""))
                return ""
            return substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 5)
        }
        function load(lineage,   path, split_at) {
            split_at = index(lineage, "/")
            path = workloads "/" substr(lineage, 1, split_at - 1) "/lineages/" substr(lineage, split_at + 1) "/trials.jsonl"
            while ((getline line < path) > 0)
                if (match(line, "\"id\":\"[^\"]*\""))
                    whole[lineage, substr(line, RSTART + 6, RLENGTH - 7)] = line
            close(path)
            loaded[lineage] = 1
        }
        !/^\{"id":"[^"]*","file":"[^"]*","lineage":"[^"]*"\}$/ { print; next }
        {
            id = field("id"); file = field("file"); lineage = field("lineage")
            if (!(lineage in loaded))
                load(lineage)
            if (!((lineage, id) in whole)) {
                print FILENAME ": " lineage " has no trial " id > "/dev/stderr"
                exit 1
            }
            line = whole[lineage, id]
            match(line, "\"file\":\"[^\"]*\"")
            print substr(line, 1, RSTART - 1) "\"file\":\"" file "\"" substr(line, RSTART + RLENGTH)
        }' "$trials" >"$trials.whole"
    mv "$trials.whole" "$trials"
done
