// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/backend.h"

#include <cstddef>
#include <vector>

namespace klineage::gate::opencl {

/// What is filled before the runs of a sample: outputs and workspaces, of which several sets may have one together.
class Fills
{
public:
    void set(FillSets sets);
    [[nodiscard]] bool empty() const { return m_sets.empty(); }
    /// Some region is of several sets.
    [[nodiscard]] bool areShared() const { return m_areShared; }
    /// Of the sets that the run concerns, each region once.
    [[nodiscard]] std::vector<FillRegion> before(const TimedRun &run) const;
    /// What the sample's next run would find as earlier ones left it, when so many are done.
    [[nodiscard]] std::vector<FillRegion> between(const TimedRun &run, std::size_t done) const;

private:
    [[nodiscard]] const std::vector<FillRegion> &of(const TimedRun &run, std::size_t index) const
    {
        return m_sets[(run.first + index) % m_sets.size()];
    }

    FillSets m_sets;
    bool m_areShared = false;
};

} // namespace klineage::gate::opencl
