# SPDX-License-Identifier: GPL-3.0-or-later
# Read by app/run.sh and tests/run.sh: klineage_build PRESET [TARGET …]. Quiet when all is well; the log is build/PRESET/build.log.
# Needs $root, the repository.

klineage_build() {
    preset=$1
    shift
    log="$root/build/$preset/build.log"
    mkdir -p "$root/build/$preset"
    set -- ${1:+--target "$@"}
    # shellcheck disable=SC2086
    if ! (cd "$root" && cmake --preset "$preset" ${KLINEAGE_CMAKE_FLAGS:-}) >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        echo "Cannot configure the build: see the lines above; all of them are in $log" >&2
        return 1
    fi
    if ! (cd "$root" && cmake --build "build/$preset" --parallel "${KLINEAGE_JOBS:-$(nproc)}" "$@") >>"$log" 2>&1; then
        grep -nE 'error:|FAILED:' "$log" | head -n 20 >&2 || true
        tail -n 40 "$log" >&2
        echo "Cannot build: see the lines above; all of them are in $log" >&2
        return 1
    fi
}
