// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/seedpool.h"

#include "core/base/random.h"

#include <algorithm>

namespace klineage::gate {

std::vector<std::uint64_t> SeedPool::draw(int count)
{
    std::vector<std::uint64_t> seeds;
    if (m_size <= 0) {
        for (int i = 0; i < count; ++i)
            seeds.push_back(entropy());
        return seeds;
    }
    while (m_seeds.size() < static_cast<std::size_t>(std::max(m_size, count)))
        m_seeds.push_back(entropy());
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
        std::swap(m_seeds[i], m_seeds[i + CounterRandom(entropy()).bits(i) % (m_seeds.size() - i)]);
    return {m_seeds.begin(), m_seeds.begin() + count};
}

bool SeedPool::has(std::uint64_t seed) const
{
    return std::find(m_seeds.begin(), m_seeds.end(), seed) != m_seeds.end();
}

Result<CaseInstancePtr> SeedPool::instance(const workload::Workload &workload, std::uint64_t seed,
                                           const ExpectedSource &expected)
{
    const std::string text = workload::writeWorkload(workload);
    if (text != m_text) {
        m_text = text;
        m_workload = std::make_shared<workload::Workload>(workload);
        m_instances.clear();
    }
    auto &kept = m_instances[seed];
    if (!kept) {
        auto made = makeInstance(*m_workload, m_workload->cases.front(), seed, expected);
        if (!made)
            return made;
        kept = std::move(*made);
    }
    return kept;
}

} // namespace klineage::gate
