// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/runid.h"

#include "core/files/utctime.h"

#include <algorithm>

namespace klineage::run {

std::string freshRunId(const std::filesystem::path &runsDirectory, const Settings &settings)
{
    std::string what = settings.workload.empty() ? "run" : settings.workload;
    what += '-' + (settings.policy.empty() ? std::string(toString(settings.kind)) : settings.policy);
    std::replace(what.begin(), what.end(), '_', '-');
    std::string time;
    for (const char c : files::nowUtc().substr(0, 19)) {
        if (c >= '0' && c <= '9')
            time += c;
    }
    const std::string base = what.substr(0, 40) + '-' + time.substr(0, 8) + '-' + time.substr(8);
    std::string id = base;
    std::error_code ignored;
    for (int number = 2; std::filesystem::exists(runsDirectory / id, ignored); ++number)
        id = base + '-' + std::to_string(number);
    return id;
}

} // namespace klineage::run
