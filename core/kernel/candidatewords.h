// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/candidate.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace klineage::kernel {

/// Words of the plan and what they mean; the reader and the writer share them, so that they cannot drift
/// apart.
template <typename T>
using Words = std::vector<std::pair<std::string, T>>;

inline const Words<WorkspaceInit> initWords = {{"poison", WorkspaceInit::Poison},
                                               {"zero", WorkspaceInit::Zero}};
inline const Words<Swizzle> swizzleWords = {
    {"none", Swizzle::None}, {"32B", Swizzle::B32}, {"64B", Swizzle::B64}, {"128B", Swizzle::B128}};
inline const Words<L2Promotion> promotionWords = {{"none", L2Promotion::None},
                                                  {"64B", L2Promotion::B64},
                                                  {"128B", L2Promotion::B128},
                                                  {"256B", L2Promotion::B256}};
inline const Words<TensorMapFill> fillWords = {{"zero", TensorMapFill::Zero}, {"nan", TensorMapFill::Nan}};
inline const Words<ScalarType> scalarWords = {
    {"int", ScalarType::Int32},    {"uint", ScalarType::UInt32},   {"long", ScalarType::Int64},
    {"ulong", ScalarType::UInt64}, {"float", ScalarType::Float32}, {"double", ScalarType::Float64}};

template <typename T>
[[nodiscard]] const std::string &wordOf(const Words<T> &words, T value)
{
    for (const auto &word : words) {
        if (word.second == value)
            return word.first;
    }
    return words.front().first;
}

} // namespace klineage::kernel
