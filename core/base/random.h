// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace klineage {

/// A counter-based generator (SplitMix64's finalizer over key + counter·γ): any element can be made on any thread, in any order.
class CounterRandom
{
public:
    explicit constexpr CounterRandom(std::uint64_t key)
        : m_key(mix(key ^ 0x6a09e667f3bcc909ull))
    {}
    constexpr CounterRandom(std::uint64_t key, std::uint64_t stream)
        : m_key(mix(mix(key) + stream * 0xd1342543de82ef95ull))
    {}

    [[nodiscard]] constexpr std::uint64_t bits(std::uint64_t counter) const
    {
        return mix(m_key + counter * 0x9e3779b97f4a7c15ull);
    }
    /// Uniform in [0, 1), 53 bits.
    [[nodiscard]] constexpr double uniform(std::uint64_t counter) const
    {
        return static_cast<double>(bits(counter) >> 11) * 0x1p-53;
    }

private:
    static constexpr std::uint64_t mix(std::uint64_t z)
    {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    std::uint64_t m_key;
};

/// 64 bits from the operating system.
[[nodiscard]] std::uint64_t entropy();
/// 16 hex digits of it: what trials, review events and drafts are called.
[[nodiscard]] std::string randomId();

} // namespace klineage
