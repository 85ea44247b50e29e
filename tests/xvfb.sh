#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs the journeys of the window on a real X server with a real window manager, none of which is anybody's screen:
#   tests/xvfb.sh [BUILD FOLDER] [TEST...]
# KLINEAGE_XVFB_SIZE is the size of the screen, 2600x1800 if not said. 77: skipped, Xvfb or openbox is missing.
set -u
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
build=${1:-$root/build/release}
[ $# -gt 0 ] && shift
for need in Xvfb openbox; do
    command -v $need >/dev/null || { echo "skipped: $need is not installed (Debian: apt install xvfb openbox)"; exit 77; }
done
if [ $# -gt 0 ]; then
    tests=$*
else
    tests="$(cd "$build/bin/tests" && ls | grep -E '^tst_[a-z]+journey$') tst_largeststep tst_smallscreen tst_randomevents"
fi

folder=$(mktemp -d)
server=
manager=
end() {
    [ -n "$manager" ] && kill "$manager" 2>/dev/null
    [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 130' INT TERM

# The server picks a display that is free and says which.
mkfifo "$folder/display"
Xvfb -displayfd 3 -screen 0 "${KLINEAGE_XVFB_SIZE:-2600x1800}x24" -nolisten tcp 3>"$folder/display" 2>"$folder/server.log" &
server=$!
read -r number <"$folder/display"
[ -n "$number" ] || { cat "$folder/server.log"; echo "Xvfb did not start."; exit 1; }
export DISPLAY=":$number"
unset WAYLAND_DISPLAY
export QT_QPA_PLATFORM=xcb XDG_CACHE_HOME="$folder/cache" XDG_CONFIG_HOME="$folder/config"
openbox --sm-disable 2>"$folder/manager.log" &
manager=$!
# Ready once it answers for the root window.
tries=0
while command -v xprop >/dev/null && ! xprop -root _NET_SUPPORTING_WM_CHECK 2>/dev/null | grep -q 'window id'; do
    tries=$((tries + 1))
    [ $tries -gt 100 ] && { cat "$folder/manager.log"; echo "openbox did not start."; exit 1; }
    sleep 0.1
done
command -v xprop >/dev/null || sleep 1

failed=
for test in $tests; do
    if "$build/bin/tests/$test" -o "$folder/$test.txt,txt" >"$folder/$test.out" 2>&1; then
        printf '%-24s %s\n' "$test" "$(grep -h '^Totals' "$folder/$test.txt")"
    else
        printf '%-24s failed\n' "$test"
        grep -hE -A4 '^(FAIL|QFATAL|XPASS)|Received' "$folder/$test.txt" "$folder/$test.out" | head -60
        failed="$failed $test"
    fi
done
if [ -n "$failed" ]; then
    echo "Failed on the X server:$failed"
    exit 1
fi
