// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/outline/declarations.h"
#include "core/kernel/outline/hostcode.h"

/// Internal to deviceSourceOf().
namespace klineage::kernel {

using HostValues = std::map<std::string, std::string, std::less<>>;

/// What names of the file are set to, outside of functions.
[[nodiscard]] HostValues globalValues(const CodeScan &scan);

/// Those of a host function's body, with its variables beside the file's names.
void readLaunches(std::span<const CodeToken> body, const HostValues &globals,
                  std::vector<HostLaunch> &launches);

} // namespace klineage::kernel
