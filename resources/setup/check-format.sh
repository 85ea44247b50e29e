#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Says which C++ files clang-format would change. Only version 14 (Debian 12) decides: later ones break some lines elsewhere
# with the same settings. Set CLANG_FORMAT to use another program of that version.
set -eu
cd "$(dirname "$0")/../.."
formatter=${CLANG_FORMAT:-}
if [ -z "$formatter" ]; then
    formatter=clang-format
    ! command -v clang-format-14 >/dev/null 2>&1 || formatter=clang-format-14
fi
version=$("$formatter" --version 2>/dev/null | sed -n 's/.*version \([0-9]*\).*/\1/p')
if [ "$version" != 14 ]; then
    echo "The format is not checked: that takes clang-format 14, and here is ${version:-none}."
    exit 0
fi
find app core ui tests \( -name '*.h' -o -name '*.cpp' \) -print0 | xargs -0 "$formatter" --dry-run -Werror
