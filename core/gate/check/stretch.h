// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/cipherrandom.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace klineage::gate {

inline constexpr std::uint64_t ownerStream = std::uint64_t{3} << 32; // no tensor's

/// One group of heads over a stretch of tokens; see Distribution::headGroups.
class Stretch
{
public:
    /// shape: [batch, token, head, …]
    Stretch(std::span<const std::int64_t> shape, std::int64_t headGroups, std::uint64_t seed)
        : m_tokens(static_cast<std::uint64_t>(shape[1]))
        , m_heads(static_cast<std::uint64_t>(shape[2]))
    {
        constexpr std::uint64_t stretchStream = ownerStream + 3; // no tensor's
        constexpr std::uint64_t mostHalvings = 4;
        for (std::size_t i = 3; i < shape.size(); ++i)
            m_inner *= static_cast<std::uint64_t>(shape[i]);
        CipherRandom random(seed, stretchStream);
        m_groups = std::min(static_cast<std::uint64_t>(headGroups), m_heads);
        m_group = random.bits(0) % m_groups;
        m_length = std::max<std::uint64_t>(1, m_tokens >> (1 + random.bits(1) % mostHalvings));
        m_begin = random.bits(2) % (m_tokens - m_length + 1);
    }

    [[nodiscard]] bool has(std::uint64_t element) const
    {
        const std::uint64_t head = element / m_inner % m_heads;
        const std::uint64_t token = element / (m_inner * m_heads) % m_tokens;
        return token - m_begin < m_length && head * m_groups / m_heads == m_group;
    }

private:
    std::uint64_t m_tokens;
    std::uint64_t m_heads;
    std::uint64_t m_inner = 1;
    std::uint64_t m_groups = 1;
    std::uint64_t m_group = 0;
    std::uint64_t m_begin = 0;
    std::uint64_t m_length = 1;
};

} // namespace klineage::gate
