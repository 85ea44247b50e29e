// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/terms.h"

#include "core/base/cipherrandom.h"

#include <algorithm>

namespace klineage::gate {

namespace {

constexpr std::uint64_t termStreams = (std::uint64_t{3} << 32) + 32; // no tensor's
constexpr double pairShare = 1.0 / 16;
// Far enough apart that few terms are added up on the way, and too far for sixteen of them to be added up at once; or within such sixteen, what comes of
// which looks as usual.
constexpr std::uint64_t nearest = 17;
constexpr std::uint64_t farthest = 64;

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
    CipherRandom random(seed, termStreams);
    m_first = random.bits(0) % m_terms;
    std::uint64_t distance = std::max<std::uint64_t>(1, m_terms / 2);
    if (m_terms > 2 * nearest && m_d.isNear) {
        m_second = m_first ^ (1 + random.bits(1) % (nearest - 2)); // of the same aligned sixteen
        if (m_second < m_terms)
            return;
    }
    if (m_terms > 2 * nearest)
        distance = nearest + random.bits(1) % (std::min(farthest, m_terms / 2) - nearest + 1);
    m_second = (m_first + distance) % m_terms;
}

std::optional<double> LargeTerms::at(std::size_t index, double value) const
{
    const std::size_t term = m_d.sumsDown ? index / m_rowLength % m_terms : index % m_rowLength;
    if (m_d.spike != 0)
        return term == m_first ? std::optional(m_d.spike * value) : std::nullopt;
    if (m_d.pair == 0 || m_first == m_second || (term != m_first && term != m_second))
        return std::nullopt;
    // The same for both terms: of a row of the first operand, of a column of the second.
    const std::uint64_t line = m_d.sumsDown ? index % m_rowLength : index / m_rowLength;
    CipherRandom random(m_seed, termStreams + (m_d.isSecond ? 2 : 1));
    if (!m_d.isSecond && random.uniform(3 * line) >= pairShare)
        return std::nullopt;
    const double sign = random.bits(3 * line + 1) % 2 == 0 ? 1 : -1;
    const double size = sign * (0.5 + random.uniform(3 * line + 2));
    if (m_d.isSecond)
        return size;
    return term == m_first ? m_d.pair * size : -m_d.pair * size;
}

} // namespace klineage::gate
