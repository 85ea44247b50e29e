#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Says which C++ files clang-format would change. Set CLANG_FORMAT to use another program.
set -eu
cd "$(dirname "$0")/../.."
formatter=${CLANG_FORMAT:-clang-format}
if ! command -v "$formatter" >/dev/null 2>&1; then
    echo "No clang-format here: the format is not checked." >&2
    exit 0
fi
find app core ui tests \( -name '*.h' -o -name '*.cpp' \) -print0 | xargs -0 "$formatter" --dry-run -Werror
