// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/hostfacts.h"

#include <cstdlib>
#include <fstream>
#include <sys/utsname.h>
#include <thread>

namespace klineage::gate {

namespace {

/// The value of the first "name : value" line of /proc/cpuinfo with that name; empty when there is none.
std::string cpuInfo(const std::string &name)
{
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const auto colon = line.find(": ");
        if (colon != std::string::npos && line.compare(0, name.size(), name) == 0)
            return line.substr(colon + 2);
    }
    return {};
}

} // namespace

std::map<std::string, std::string> hostFacts()
{
    std::map<std::string, std::string> facts;
    if (const std::string model = cpuInfo("model name"); !model.empty())
        facts["cpu"] = model;
    if (const std::string clock = cpuInfo("cpu MHz"); !clock.empty())
        facts["cpu_mhz"] = clock;
    facts["cpu_threads"] = std::to_string(std::thread::hardware_concurrency());
    struct utsname system = {};
    if (::uname(&system) == 0)
        facts["kernel"] = std::string(system.sysname) + " " + system.release;
    double load = 0;
    if (::getloadavg(&load, 1) == 1)
        facts["load_1min"] = std::to_string(load).substr(0, 4);
    return facts;
}

} // namespace klineage::gate
