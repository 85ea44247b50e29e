// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace klineage::gate {

/// A provider of vendor references, and whether this machine has it.
struct InstalledReference {
    std::string provider; ///< as in workload.toml
    std::string version;  ///< empty: it is missing
    std::string problem;  ///< why, and what to do
};

/// Every provider, in a fixed order. Loads the libraries into this process for their versions and starts python3 for those of its
/// packages; needs no device.
[[nodiscard]] std::vector<InstalledReference> installedReferences();

} // namespace klineage::gate
