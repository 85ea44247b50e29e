// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace klineage::files {

/// SHA-256 (FIPS 180-4), fed in pieces. Names candidates and cache entries; not a defence of secrets.
class Sha256
{
public:
    Sha256();

    void update(std::string_view bytes);
    /// The digest of everything fed so far. Ends the computation: call it once.
    [[nodiscard]] std::array<std::uint8_t, 32> finish();

private:
    void compress(const std::uint8_t *block);

    std::array<std::uint32_t, 8> m_state;
    std::array<std::uint8_t, 64> m_block{};
    std::size_t m_used = 0; ///< bytes waiting in m_block
    std::uint64_t m_totalBytes = 0;
};

/// 64 lower-case hex digits.
[[nodiscard]] std::string sha256Hex(std::string_view bytes);
/// Whether a text looks like what that returns.
[[nodiscard]] bool isSha256Hex(std::string_view text);

} // namespace klineage::files
