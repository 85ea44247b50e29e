// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/paths.h"

namespace klineage::test {

std::string sourcePath(std::string_view below)
{
    return KLINEAGE_SOURCE_DIR + std::string(below);
}

std::string programPath(std::string_view below)
{
    return KLINEAGE_BIN_DIR + std::string(below);
}

bool isSanitized()
{
#ifdef KLINEAGE_SANITIZED
    return true;
#else
    return false;
#endif
}

} // namespace klineage::test
