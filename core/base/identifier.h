// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <string_view>

namespace klineage {

/// A C identifier of at most 64 characters: what tunables, tensors, axes and kernels may be called.
[[nodiscard]] inline bool isIdentifier(std::string_view name)
{
    const auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !name.empty() && name.size() <= 64 && isLetter(name[0])
           && std::all_of(name.begin(), name.end(),
                          [&](char c) { return isLetter(c) || (c >= '0' && c <= '9'); });
}

/// A file-name-safe word of at most 64 characters: [a-z0-9_-], what workloads, cases and platforms may be
/// called.
[[nodiscard]] inline bool isSlug(std::string_view name)
{
    return !name.empty() && name.size() <= 64 && name[0] != '-'
           && std::all_of(name.begin(), name.end(), [](char c) {
                  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
              });
}

} // namespace klineage
