// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/mcp/offers.h"

#include <filesystem>

namespace klineage::cli {

/// The formats of candidates and workloads, the loop, and each workload and card of the workspace as resources; how to begin as prompts.
/// The workspace is read anew each time.
[[nodiscard]] mcp::Offers workspaceOffers(const std::filesystem::path &workspace);

} // namespace klineage::cli
