// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <string>

namespace klineage::kernel {

/// The bytes of a candidate file, at most maxCandidateBytes of them; whether it is one is another question (readCandidate).
[[nodiscard]] Result<std::string> readCandidateText(const std::filesystem::path &path);

} // namespace klineage::kernel
