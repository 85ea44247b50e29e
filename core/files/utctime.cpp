// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/utctime.h"

#include <cstdio>
#include <ctime>

namespace klineage::files {

std::string formatUtc(std::chrono::system_clock::time_point time)
{
    const auto whole = std::chrono::floor<std::chrono::seconds>(time);
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(time - whole).count();
    const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char date[40] = {};
    const std::size_t length = std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
    char fraction[8] = {};
    std::snprintf(fraction, sizeof fraction, ".%03dZ", static_cast<int>(milliseconds));
    return std::string(date, length) + fraction;
}

std::string nowUtc()
{
    return formatUtc(std::chrono::system_clock::now());
}

} // namespace klineage::files
