// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/utctime.h"

#include <fmt/core.h>

#include <ctime>
#include <string_view>

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
    return fmt::format("{}.{:03}Z", std::string_view(date, length), milliseconds);
}

std::string nowUtc()
{
    return formatUtc(std::chrono::system_clock::now());
}

} // namespace klineage::files
