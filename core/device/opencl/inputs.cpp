// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/inputs.h"

#include "core/device/opencl/guardedmemory.h"

#include <set>
#include <utility>

namespace klineage::gate::opencl {

Status Inputs::set(const std::vector<std::vector<CopyRange>> &sets, const PagesOf &pagesOf)
{
    std::map<BufferId, std::span<std::byte>> wanted;
    m_sets.clear();
    for (const std::vector<CopyRange> &inputs : sets) {
        m_sets.push_back({inputs, 0});
        for (const CopyRange &input : inputs) {
            for (const BufferId buffer : {input.to, input.from, input.with}) {
                if (const std::span<std::byte> pages = pagesOf(buffer); !pages.empty())
                    wanted[buffer] = pages;
            }
        }
    }
    std::swap(m_protected, wanted); // now those before
    for (const auto &[buffer, pages] : wanted) {
        if (m_protected.contains(buffer))
            continue;
        if (auto let = opencl::letWrite(pages, true); !let)
            return let;
    }
    for (const auto &[buffer, pages] : m_protected) {
        if (wanted.contains(buffer))
            continue;
        if (auto let = opencl::letWrite(pages, false); !let)
            return let;
    }
    return {};
}

Status Inputs::letWrite(std::span<const CopyRange> ranges, bool allowed) const
{
    std::set<BufferId> done;
    for (const CopyRange &range : ranges) {
        const auto pages = m_protected.find(range.to);
        if (pages == m_protected.end() || !done.insert(range.to).second)
            continue;
        if (auto let = opencl::letWrite(pages->second, allowed); !let)
            return let;
    }
    return {};
}

Result<std::vector<CopyRange>> Inputs::missing(const TimedRun &run)
{
    std::vector<CopyRange> ranges;
    if (run.content == 0)
        return ranges;
    if (m_sets.empty())
        return fail(ErrorCode::Internal, "Cannot make content: nobody has said how.");
    const std::size_t count = run.setsConcerned(m_sets.size());
    for (std::size_t i = 0; i < count; ++i) {
        Set &set = m_sets[(run.first + i) % m_sets.size()];
        if (std::exchange(set.held, run.content) == run.content)
            continue;
        for (CopyRange range : set.inputs) {
            if (range.with == 0)
                continue;
            range.blend.key = contentKey(run.content, range.blend.key);
            ranges.push_back(range);
        }
    }
    return ranges;
}

std::vector<CopyRange> Inputs::concernedBy(const TimedRun &run, std::size_t mostBytes) const
{
    std::vector<CopyRange> ranges;
    std::size_t bytes = 0;
    const std::size_t count = run.setsConcerned(m_sets.size());
    for (std::size_t i = 0; i < count; ++i) {
        for (const CopyRange &input : m_sets[(run.first + i) % m_sets.size()].inputs) {
            bytes += input.bytes;
            ranges.push_back(input);
        }
    }
    return bytes > mostBytes ? std::vector<CopyRange>() : ranges;
}

} // namespace klineage::gate::opencl
