// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <filesystem>

namespace klineage::lineage {

struct Lineage;

/// Replaces the lineage.toml of a folder. What the old one has that a newer format brought is kept (core/files/README.md). Errors: Io, and
/// InvalidInput when that cannot be kept or the old one cannot be read.
[[nodiscard]] Status rewriteLineage(const std::filesystem::path &directory, const Lineage &lineage);

} // namespace klineage::lineage
