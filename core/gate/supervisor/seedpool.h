// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/caseinstance.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace klineage::gate {

/// Seeds of timed cases. Without a size each trial draws new ones; with one they are drawn from as many as that, and what the oracle made of
/// those for the newest workload is kept. One thread.
class SeedPool
{
public:
    explicit SeedPool(int size)
        : m_size(size)
    {}

    [[nodiscard]] std::vector<std::uint64_t> draw(int count);
    [[nodiscard]] bool has(std::uint64_t seed) const;
    /// Of the workload's timed case, made once. Its pointers to the case are into a copy of the workload that is kept as long.
    [[nodiscard]] Result<CaseInstancePtr> instance(const workload::Workload &workload, std::uint64_t seed,
                                                   const ExpectedSource &expected);

private:
    const int m_size;
    std::vector<std::uint64_t> m_seeds;
    std::string m_text; ///< of the workload
    std::shared_ptr<const workload::Workload> m_workload;
    std::map<std::uint64_t, CaseInstancePtr> m_instances;
};

} // namespace klineage::gate
