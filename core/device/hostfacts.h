// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>

namespace klineage::gate {

/// Facts about this machine for Environment::facts: "cpu", "cpu_threads", "kernel", "load_1min", "cpu_mhz" when it is known.
[[nodiscard]] std::map<std::string, std::string> hostFacts();

} // namespace klineage::gate
