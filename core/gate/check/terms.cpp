// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/terms.h"

#include "core/base/cipherrandom.h"

#include "core/gate/check/randomorder.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace klineage::gate {

namespace {

constexpr std::uint64_t termStreams = (std::uint64_t{3} << 32) + 32; // no tensor's
constexpr double pairShare = 1.0 / 16;
constexpr std::size_t scaledTerms = 2; ///< one in so many
constexpr int mostOctavesUp = 13;      ///< what is usual stays within half precision
constexpr std::size_t driftBlock =
    64; ///< or twice as much: as many as are added up before somebody adds to a sum of more bits
// Far enough apart that few terms are added up on the way, and too far for sixteen of them to be added up at once; or within two, four, eight or
// sixteen that may be, what comes of which looks as usual: each row has one of these.
constexpr std::uint64_t nearest = 17;
constexpr std::uint64_t farthest = 64;
constexpr std::uint64_t widest = 16;
constexpr std::uint64_t widths = 4; ///< 2, 4, 8, 16

} // namespace

std::size_t termsOf(const HostTensor &tensor, const workload::Distribution &distribution)
{
    const bool isDown = distribution.sumsDown && tensor.shape.size() > 1;
    return distribution.terms > 0 ? static_cast<std::size_t>(distribution.terms)
           : isDown               ? static_cast<std::size_t>(tensor.shape[tensor.shape.size() - 2])
                                  : tensor.rowLength();
}

LargeTerms::LargeTerms(const HostTensor &tensor, const workload::Distribution &distribution,
                       std::uint64_t seed)
    : m_d(distribution)
    , m_rowLength(tensor.rowLength())
    , m_terms(termsOf(tensor, distribution))
    , m_seed(seed)
{
    if (!any())
        return;
    if (m_d.drift != 0 || m_d.termOctaves != 0) {
        m_d.drift != 0 ? drawDrift() : drawOctaves();
        return;
    }
    CipherRandom random(seed, termStreams);
    if (m_terms > 2 * nearest && m_d.pair != 0 && m_d.isNear) {
        const std::uint64_t blocks = m_terms / widest;
        const std::uint64_t count = std::min(widths, blocks);
        const std::uint64_t start = random.bits(0);
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t block = (start + i * (blocks / count)) % blocks;
            const std::uint64_t width = std::uint64_t{2} << ((start + i) % widths);
            const std::uint64_t first = block * widest + random.bits(2 * i + 2) % widest;
            m_pairs.push_back({first, first ^ (1 + random.bits(2 * i + 3) % (width - 1))});
        }
        return;
    }
    const std::uint64_t first = random.bits(0) % m_terms;
    std::uint64_t distance = std::max<std::uint64_t>(1, m_terms / 2);
    if (m_terms > 2 * nearest)
        distance = nearest + random.bits(1) % (std::min(farthest, m_terms / 2) - nearest + 1);
    m_pairs.push_back({first, (first + distance) % m_terms});
}

/// Blocks of four kinds, as many of each: up in both operands, down in both, and up in one alone. What they add up to is nothing, and a row of either has
/// as many of both.
void LargeTerms::drawDrift()
{
    CipherRandom random(m_seed, termStreams + 3);
    std::size_t length = driftBlock << (random.bits(0) % 2);
    while (length > 1 && 8 * length > m_terms)
        length /= 2;
    const std::size_t blocks = m_terms / length / 4 * 4;
    std::uint64_t counter = 1;
    const auto order = randomOrder(blocks, [&] { return random.bits(counter++); });
    m_first.assign(m_terms, 0);
    m_second.assign(m_terms, 0);
    for (std::size_t i = 0; i < blocks; ++i) {
        const auto first = static_cast<float>(i % 4 < 2 ? m_d.drift : -m_d.drift);
        const auto second = static_cast<float>(i % 2 == 0 ? m_d.drift : -m_d.drift);
        for (std::size_t term = order[i] * length; term < (order[i] + 1) * length; ++term) {
            m_first[term] = first;
            m_second[term] = second;
        }
    }
}

void LargeTerms::drawOctaves()
{
    CipherRandom random(m_seed, termStreams + 4);
    std::uint64_t counter = 0;
    const auto order = randomOrder(m_terms, [&] { return random.bits(counter++); });
    m_factors.assign(m_terms, 1);
    for (std::size_t i = 0; i < std::max<std::size_t>(1, m_terms / scaledTerms); ++i) {
        const bool isLarge = (random.bits(counter++) % 2 == 0) != m_d.isSecond;
        m_factors[order[i]] =
            std::ldexp(1.0F, isLarge ? std::min(m_d.termOctaves, mostOctavesUp) : -m_d.termOctaves);
    }
}

std::size_t LargeTerms::termAt(std::size_t index) const
{
    const std::size_t term = m_d.sumsDown ? index / m_rowLength : index % m_rowLength;
    return term % m_terms;
}

std::optional<double> LargeTerms::at(std::size_t index, double value) const
{
    const std::size_t term = termAt(index);
    if (m_d.drift != 0) {
        const bool isOther =
            m_d.classRows > 0 && index / m_rowLength / static_cast<std::size_t>(m_d.classRows) % 2 == 1;
        return value + ((m_d.isSecond || isOther) ? m_second : m_first)[term];
    }
    if (m_d.termOctaves != 0)
        return m_factors[term] == 1 ? std::nullopt : std::optional(m_factors[term] * value);
    if (m_d.spike != 0)
        return term == m_pairs.front().first ? std::optional(m_d.spike * value) : std::nullopt;
    const auto has = [&](const Pair &pair) {
        return pair.first != pair.second && (term == pair.first || term == pair.second);
    };
    const auto pair = std::find_if(m_pairs.begin(), m_pairs.end(), has);
    if (m_d.pair == 0 || pair == m_pairs.end())
        return std::nullopt;
    // The same for both terms: of a row of the first operand, of a column of the second.
    const std::uint64_t line = m_d.sumsDown ? index % m_rowLength : index / m_rowLength;
    CipherRandom random(m_seed, termStreams + (m_d.isSecond ? 2 : 1));
    if (!m_d.isSecond
        && (random.uniform(4 * line) >= pairShare
            || random.bits(4 * line + 3) % m_pairs.size()
                   != static_cast<std::size_t>(std::distance(m_pairs.begin(), pair))))
        return std::nullopt;
    const double sign = random.bits(4 * line + 1) % 2 == 0 ? 1 : -1;
    const double size = sign * (0.5 + random.uniform(4 * line + 2));
    if (m_d.isSecond)
        return size;
    return term == pair->first ? m_d.pair * size : -m_d.pair * size;
}

} // namespace klineage::gate
