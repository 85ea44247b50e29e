// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/backend.h"

#include <functional>
#include <map>
#include <span>
#include <vector>

namespace klineage::gate::opencl {

/// The inputs of all sets that are timed: what they hold, and that no run writes to them, nor to what timed contents are made of. Who tries
/// dies of it.
class Inputs
{
public:
    using PagesOf =
        std::function<std::span<std::byte>(BufferId)>; ///< empty: the buffer has no pages of its own

    /// In place of those before, which anybody may write to again.
    [[nodiscard]] Status set(const std::vector<std::vector<CopyRange>> &sets, const PagesOf &pagesOf);
    /// The buffer is about to go; without it no set is whole.
    void forget(BufferId buffer)
    {
        if (m_protected.erase(buffer) > 0)
            m_sets.clear();
    }
    [[nodiscard]] bool protects(BufferId buffer) const { return m_protected.contains(buffer); }

    /// Whether what the ranges are put into can be written.
    [[nodiscard]] Status letWrite(std::span<const CopyRange> ranges, bool allowed) const;
    /// What has to be made so that the sets which the run concerns hold its content; from now on they are taken to hold it.
    [[nodiscard]] Result<std::vector<CopyRange>> missing(const TimedRun &run);
    /// All of these sets; none when there are more bytes than that.
    [[nodiscard]] std::vector<CopyRange> concernedBy(const TimedRun &run, std::size_t mostBytes) const;

private:
    struct Set {
        std::vector<CopyRange> inputs;
        std::uint64_t held = 0; ///< TimedRun::content
    };
    std::vector<Set> m_sets;
    std::map<BufferId, std::span<std::byte>> m_protected;
};

} // namespace klineage::gate::opencl
