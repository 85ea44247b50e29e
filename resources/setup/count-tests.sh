#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Counts test functions in BUILD/test-results/*.xml (JUnit; one file a Qt test program, ctest.xml for the whole run):
# count-tests.sh BUILD
# Rows of a data table are one function. A function fails when a row fails and is skipped when all rows are. A program that
# left no complete results (it crashed or ran out of time) counts as one failed function; a test that is not a Qt test program
# counts as one function.
set -eu
build=$1
# "name status" for each test that was run; status is run, fail, notrun or disabled.
sed -n 's/.*<testcase name="\([^"]*\)".* status="\([^"]*\)".*/\1 \2/p' "$build/test-results/ctest.xml" |
while read -r program status; do
    results="$build/test-results/$program.xml"
    case $program in
        tst_*)
            grep -q '</testsuite>' "$results" 2>/dev/null || echo "BROKEN $program"
            [ ! -f "$results" ] || sed "s|<testcase |<testcase program=\"$program\" |" "$results"
            ;;
        *)
            echo "<testcase program=\"$program\" name=\"$program\"/>"
            case $status in
                run) ;;
                fail) echo "<failure >" ;;
                *) echo "<skipped />" ;;
            esac
            ;;
    esac
done | awk '
    function attribute(name) {
        return match($0, " " name "=\"[^\"]*\"") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4) : ""
    }
    function keep() {
        if (key == "")
            return
        seen[key] = 1
        if (state == "failed") bad[key] = 1
        else if (state == "passed") good[key] = 1
        key = ""
    }
    /^BROKEN / { failed++ }
    /<testcase / {
        keep()
        name = attribute("name")
        sub(/\(.*/, "", name)
        state = "passed"
        if (name != "initTestCase" && name != "cleanupTestCase")
            key = attribute("program") " " name
        else
            key = "fixture " attribute("program") " " name
    }
    /<(failure|error)[ >]/ { state = "failed" }
    /<skipped[ \/>]/ { if (state == "passed") state = "skipped" }
    END {
        keep()
        for (k in seen) {
            if (k in bad) failed++
            else if (k ~ /^fixture /) continue
            else if (k in good) passed++
            else skipped++
        }
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    }'
