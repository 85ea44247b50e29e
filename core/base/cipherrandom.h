// SPDX-License-Identifier: GPL-3.0-or-later
//
// Random numbers that nobody can foretell from others: ChaCha20 (RFC 8439) keyed by a seed. The block function is our own, because the
// programs are carried as single files to machines that lack libsodium and libcrypto, and because sixteen blocks at a time cost less
// than the logarithms that follow; its test has the RFC's vectors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace klineage {

/// ChaCha20's block function for 16 consecutive counters. out[block * 16 + word]: words of the key stream, in the RFC's order. counter +
/// 15 must not wrap.
void chachaBlocks(const std::array<std::uint32_t, 8> &key, std::uint32_t counter,
                  const std::array<std::uint32_t, 3> &nonce, std::array<std::uint32_t, 256> &out);

/// A counter-based generator: any element can be made on any thread, in any order; in ascending order it is quick. An object is for one
/// thread.
class CipherRandom
{
public:
    explicit CipherRandom(std::uint64_t seed, std::uint64_t stream = 0);

    [[nodiscard]] std::uint64_t bits(std::uint64_t counter)
    {
        const std::uint64_t batch = counter / perBatch;
        if (batch != m_batch)
            fill(batch);
        const std::size_t at = 2 * static_cast<std::size_t>(counter % perBatch);
        return m_words[at] | std::uint64_t{m_words[at + 1]} << 32;
    }
    /// Uniform in [0, 1), 53 bits.
    [[nodiscard]] double uniform(std::uint64_t counter)
    {
        return static_cast<double>(bits(counter) >> 11) * 0x1p-53;
    }

private:
    static constexpr std::uint64_t perBatch = 128; ///< 16 blocks of 8
    void fill(std::uint64_t batch);

    std::array<std::uint32_t, 8> m_key;
    std::array<std::uint32_t, 2> m_stream;
    std::uint64_t m_batch = 0;
    std::array<std::uint32_t, 256> m_words{};
};

} // namespace klineage
