// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/cipherrandom.h"

#include "core/base/vectorclones.h"

namespace klineage {

namespace {

constexpr std::size_t lanes = 16;
constexpr std::size_t words = 16;

constexpr std::uint32_t low(std::uint64_t value)
{
    return static_cast<std::uint32_t>(value);
}
constexpr std::uint32_t high(std::uint64_t value)
{
    return static_cast<std::uint32_t>(value >> 32);
}

} // namespace

// Macros: a function compiled for one processor is not inlined into one for another.
#define KLINEAGE_ROTATED(x, n) (((x) << (n)) | ((x) >> (32 - (n))))
#define KLINEAGE_QUARTER_ROUND(a, b, c, d) \
    for (std::size_t lane = 0; lane < lanes; ++lane) { \
        x[a][lane] += x[b][lane]; \
        x[d][lane] = KLINEAGE_ROTATED(x[d][lane] ^ x[a][lane], 16); \
        x[c][lane] += x[d][lane]; \
        x[b][lane] = KLINEAGE_ROTATED(x[b][lane] ^ x[c][lane], 12); \
        x[a][lane] += x[b][lane]; \
        x[d][lane] = KLINEAGE_ROTATED(x[d][lane] ^ x[a][lane], 8); \
        x[c][lane] += x[d][lane]; \
        x[b][lane] = KLINEAGE_ROTATED(x[b][lane] ^ x[c][lane], 7); \
    }

KLINEAGE_VECTOR_CLONES
void chachaBlocks(const std::array<std::uint32_t, 8> &key, std::uint32_t counter,
                  const std::array<std::uint32_t, 3> &nonce, std::array<std::uint32_t, 256> &out)
{
    const std::uint32_t state[words] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, key[0], key[1],
                                        key[2],     key[3],     key[4],     key[5],     key[6], key[7],
                                        counter,    nonce[0],   nonce[1],   nonce[2]};
    std::uint32_t x[words][lanes];
    for (std::size_t word = 0; word < words; ++word) {
        for (std::size_t lane = 0; lane < lanes; ++lane)
            x[word][lane] = state[word] + (word == 12 ? static_cast<std::uint32_t>(lane) : 0u);
    }
    for (int doubleRound = 0; doubleRound < 10; ++doubleRound) {
        KLINEAGE_QUARTER_ROUND(0, 4, 8, 12)
        KLINEAGE_QUARTER_ROUND(1, 5, 9, 13)
        KLINEAGE_QUARTER_ROUND(2, 6, 10, 14)
        KLINEAGE_QUARTER_ROUND(3, 7, 11, 15)
        KLINEAGE_QUARTER_ROUND(0, 5, 10, 15)
        KLINEAGE_QUARTER_ROUND(1, 6, 11, 12)
        KLINEAGE_QUARTER_ROUND(2, 7, 8, 13)
        KLINEAGE_QUARTER_ROUND(3, 4, 9, 14)
    }
    for (std::size_t word = 0; word < words; ++word) {
        for (std::size_t lane = 0; lane < lanes; ++lane)
            out[lane * words + word] =
                x[word][lane] + state[word] + (word == 12 ? static_cast<std::uint32_t>(lane) : 0u);
    }
}

#undef KLINEAGE_QUARTER_ROUND
#undef KLINEAGE_ROTATED

// The key beyond the seed says what the numbers are for.
CipherRandom::CipherRandom(std::uint64_t seed, std::uint64_t stream)
    : m_key{low(seed), high(seed), 0x6e696c6b, 0x65676165, 0x706e6920, 0x00737475, 0, 1}
    , m_stream{low(stream), high(stream)}
{
    fill(0);
}

void CipherRandom::fill(std::uint64_t batch)
{
    m_batch = batch;
    const std::uint64_t block = batch * lanes;
    chachaBlocks(m_key, low(block), {high(block), m_stream[0], m_stream[1]}, m_words);
}

} // namespace klineage
