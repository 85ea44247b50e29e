// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/paths.h"

#include <cstdlib>

namespace klineage::test {

namespace {

std::string placeOf(const char *variable, const char *configured)
{
    const char *moved = std::getenv(variable);
    return moved && *moved == '/' ? moved : configured;
}

} // namespace

std::string sourcePath(std::string_view below)
{
    return placeOf("KLINEAGE_TEST_SOURCE", KLINEAGE_SOURCE_DIR) + std::string(below);
}

std::string programPath(std::string_view below)
{
    return placeOf("KLINEAGE_TEST_PROGRAMS", KLINEAGE_BIN_DIR) + std::string(below);
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
