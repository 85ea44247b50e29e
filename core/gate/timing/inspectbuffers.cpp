// SPDX-License-Identifier: GPL-3.0-or-later
//
// What runs left in the buffers of a set.
#include "core/gate/timing/timedbuffers.h"

#include <algorithm>
#include <utility>

namespace klineage::gate {

TimedBuffers::Spot TimedBuffers::spotOf(const BufferBinding &byte) const
{
    const auto search = [&](const Family &family) -> std::optional<Spot> {
        const std::size_t total = family.layout.total();
        for (std::size_t set = 0; set < m_sets; ++set) {
            const Place &place = family.of(set);
            if (place.buffer != byte.buffer || byte.offsetBytes < place.offset
                || byte.offsetBytes - place.offset >= total)
                continue;
            const std::size_t at = byte.offsetBytes - place.offset;
            const std::size_t front = family.layout.offset();
            return Spot{family.layout.name, set, at >= front && at - front < family.layout.bytes};
        }
        return std::nullopt;
    };
    for (const Family &family : m_tensors) {
        if (const auto spot = search(family))
            return *spot;
    }
    for (const auto &[side, families] : m_workspaces) {
        for (const Family &family : families) {
            if (const auto spot = search(family))
                return *spot;
        }
    }
    return {};
}

WorkerResult<bool> TimedBuffers::zonesAreWhole(const Family &family, const Place &place)
{
    const BufferLayout &layout = family.layout;
    const std::size_t front = layout.offset();
    const std::size_t behind = front + layout.bytes;
    std::vector<std::byte> zones;
    for (const auto &[begin, end] : {std::pair{std::size_t{0}, front}, {behind, layout.total()}}) {
        const auto zone = m_session.download(place.buffer, end - begin, place.offset + begin);
        if (!zone)
            return tl::unexpected(zone.error());
        zones.insert(zones.end(), zone->begin(), zone->end());
    }
    return !findZoneHit(layout, family.key, zones);
}

WorkerResult<std::optional<Finding>> TimedBuffers::inspect(std::size_t set, const std::string &side)
{
    return inspect(set, side, contentOf(set), true);
}

WorkerResult<std::optional<Finding>> TimedBuffers::inspectKnown(std::size_t set, const std::string &side,
                                                                std::size_t known, bool withInputs)
{
    return inspect(set, side, *m_known[known], withInputs);
}

WorkerResult<std::optional<Finding>> TimedBuffers::inspect(std::size_t set, const std::string &side,
                                                           const CaseInstance &content, bool withInputs)
{
    std::optional<Finding> worst;
    OutputJudge judge(content);
    m_precision = {};
    const auto look = [&](const Family &family, const HostTensor *tensor) -> WorkerResult<void> {
        const Place &place = family.of(set);
        if (family.opened) {
            if (auto copied =
                    m_session.copy({{family.tray, 0, place.buffer, place.offset, family.layout.total()}});
                !copied)
                return copied;
            if (m_judge->isRight(*family.opened, 0, family.layout, family.key, content)) {
                if (tensor && family.layout.kind == BufferKind::Output
                    && content.tolerance.beforeRounding > 0)
                    m_precision.add(tensor->name, m_judge->beforeRounding());
                return {};
            }
        }
        if (!tensor) {
            const auto whole = zonesAreWhole(family, place);
            if (!whole)
                return tl::unexpected(whole.error());
            if (*whole)
                return {};
        }
        const auto image = m_session.download(place.buffer, family.layout.total(), place.offset);
        if (!image)
            return tl::unexpected(image.error());
        auto finding = judgeBuffer(family.layout, family.key, tensor, judge, *image, {});
        if (finding && (!worst || static_cast<int>(finding->kind) < static_cast<int>(worst->kind)))
            worst = std::move(finding);
        return {};
    };
    for (std::size_t i = 0; i < m_tensors.size(); ++i) {
        if (!withInputs && m_tensors[i].layout.kind == BufferKind::Input)
            continue;
        if (auto looked = look(m_tensors[i], &content.tensors[i]); !looked)
            return tl::unexpected(looked.error());
    }
    if (const auto own = m_workspaces.find(side); own != m_workspaces.end()) {
        for (const Family &family : own->second) {
            if (auto looked = look(family, nullptr); !looked)
                return tl::unexpected(looked.error());
        }
    }
    m_precision.add(judge.precision());
    return worst;
}

} // namespace klineage::gate
