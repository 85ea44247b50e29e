#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The window gates on the GPU of a machine that has no Qt:
#   tests/gpu/window.sh collect build/release FOLDER         here: the test program, the gate and the libraries that they need …
#   tests/gpu/window.sh pack FOLDER window.tar.xz            … in one file
#   tests/gpu/window.sh run window.tar.xz PICTURES           there, in a checkout: opens a state, edits it, Ctrl+Enter, looks at the verdict
# The machines need the same architecture, and there a glibc and a libstdc++ as new as here. Exit status: the test's.
set -eu

collect() {
    build=$1
    folder=$2
    mkdir -p "$folder/bin/tests" "$folder/lib" "$folder/plugins/platforms" "$folder/plugins/imageformats" "$folder/plugins/iconengines"
    cp "$build/bin/klineage-gate" "$folder/bin"
    cp "$build/bin/tests/tst_windowgate" "$folder/bin/tests"
    plugins=$(qtpaths6 --query QT_INSTALL_PLUGINS 2>/dev/null || qmake6 -query QT_INSTALL_PLUGINS)
    cp "$plugins/platforms/libqoffscreen.so" "$folder/plugins/platforms"
    cp "$plugins/imageformats/libqsvg.so" "$folder/plugins/imageformats"
    cp "$plugins/iconengines/libqsvgicon.so" "$folder/plugins/iconengines"
    # The C and C++ libraries are that machine's own: it may load others that want them newer.
    find "$folder" -type f \( -name '*.so' -o -perm -u+x \) -exec ldd {} \; | awk '$3 ~ /^\// { print $3 }' | sort -u |
        grep -Ev '/(libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s|ld-linux[^/]*)\.so' |
        while read -r library; do cp -L "$library" "$folder/lib"; done
    find "$folder" -type f -exec strip --strip-unneeded {} \; 2>/dev/null || true
    cat >"$folder/fonts.conf" <<'CONF'
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig><dir>/usr/share/fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
CONF
}

pack() {
    tar -C "$1" -cJf "$2" .
    echo "$2: $(wc -c <"$2") bytes"
}

run() {
    bundle=$(realpath "$1")
    mkdir -p "$2"
    pictures=$(realpath "$2")
    source=${KLINEAGE_TEST_SOURCE:-$(realpath "$(dirname "$0")/../..")}
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    if command -v xz >/dev/null; then
        tar -C "$folder" -xJf "$bundle"
    else
        python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$bundle" "$folder"
    fi
    status=0
    KLINEAGE_TEST_SOURCE=$source KLINEAGE_TEST_PROGRAMS=$folder/bin KLINEAGE_PICTURES=$pictures \
        QT_QPA_PLATFORM=offscreen QT_PLUGIN_PATH=$folder/plugins FONTCONFIG_FILE=$folder/fonts.conf \
        XDG_CACHE_HOME=${XDG_CACHE_HOME:-$folder/cache} QTEST_FUNCTION_TIMEOUT=600000 \
        "$folder/bin/tests/tst_windowgate" -o "$pictures/windowgate.txt,txt" -o -,txt || status=$?
    return $status
}

case ${1-} in
collect) collect "$2" "$3" ;;
pack) pack "$2" "$3" ;;
run) run "$2" "$3" ;;
*)
    sed -n '3,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
