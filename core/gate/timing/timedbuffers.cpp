// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/timedbuffers.h"

#include "core/base/cipherrandom.h"

#include "core/gate/check/blendfor.h"
#include "core/gate/check/parallel.h"
#include "core/gate/check/randomorder.h"
#include "core/gate/timing/copyplaces.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace klineage::gate {

namespace {

constexpr std::size_t hostWorkspaceBytes = std::size_t{512} << 20; ///< of a side's
constexpr std::size_t hostRefillBytes = 256u << 20;                ///< of shared workspaces, within a sample

/// Behind what is used of a buffer, from the next word on: that is how it is refilled.
FillRegion slackOf(BufferId buffer, std::size_t usedBytes, std::size_t roomBytes)
{
    constexpr std::size_t word = 4;
    const std::size_t begin = std::min((usedBytes + word - 1) / word * word, roomBytes);
    return {buffer, begin, roomBytes - begin};
}

} // namespace

TimedBuffers::TimedBuffers(WorkerSession &session, std::vector<CaseInstancePtr> contents, DeviceJudge *judge)
    : m_session(session)
    , m_contents(std::move(contents))
    , m_known(m_contents)
    , m_blends(m_contents.front()->tensors.size())
    , m_judge(judge)
{}

TimedBuffers::TimedBuffers(WorkerSession &session, const workload::Workload &workload,
                           std::vector<CaseInstancePtr> contents, DeviceJudge *judge,
                           const std::vector<CaseInstancePtr> &hard)
    : TimedBuffers(session, std::move(contents), judge)
{
    m_known.insert(m_known.end(), hard.begin(), hard.end());
    const auto &tensors = m_contents.front()->tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i)
        m_blends[i] =
            blendFor(tensors[i], workload.distributionOf(workload.tensors.at(i), workload.cases.front()));
}

/// Of an allocation, so that all that can be reached of it is known.
std::size_t TimedBuffers::roomFor(std::size_t bytes) const
{
    return m_session.packsBuffers() ? placeBytes(bytes) : bytes;
}

/// Room for so many of the family's copies.
WorkerResult<void> TimedBuffers::makePlaces(Family &family, std::size_t copies)
{
    const std::size_t total = family.layout.total();
    if (!m_session.packsBuffers()) {
        while (family.copies.size() < copies) {
            const auto id = m_session.allocate(total);
            if (!id)
                return tl::unexpected(id.error());
            family.copies.push_back({*id, 0});
        }
        return {};
    }
    const CopyPlaces drawn = drawCopyPlaces(total, copies);
    family.placeBytes = drawn.placeBytes;
    const auto id = m_session.scatter(drawn.rangeBytes, drawn.placeBytes, drawn.offsets);
    if (!id)
        return tl::unexpected(id.error());
    for (const std::size_t offset : drawn.offsets)
        family.copies.push_back({*id, offset});
    const bool isTensor =
        family.layout.kind != BufferKind::Workspace; // of those only the zones are looked at
    if (!m_judge || !isTensor || !model().expected.onDevice || copies * total < DeviceJudge::leastBytes)
        return {};
    const std::size_t room = roomFor(std::max(total, DeviceJudge::leastBytes));
    const auto tray = m_session.allocate(room);
    if (!tray)
        return tl::unexpected(tray.error());
    family.opened = m_judge->open(m_session, *tray, room, model());
    if (!family.opened)
        return m_session.release(*tray);
    family.tray = *tray;
    m_slack.push_back({*tray, 0, room});
    return {};
}

WorkerResult<TimedBuffers::Family> TimedBuffers::makeFamily(BufferLayout layout,
                                                            std::span<const std::byte> content,
                                                            std::size_t count)
{
    Family family{std::move(layout), entropy(), false, {}, std::vector<std::size_t>(m_sets)};
    const std::size_t total = family.layout.total();
    if (auto made = makePlaces(family, count); !made)
        return tl::unexpected(made.error());
    for (std::size_t set = 0; set < m_sets; ++set)
        family.places[set] = set % count;
    const Place &first = family.copies.front();
    if (auto written = writeFirst(family, content); !written)
        return tl::unexpected(written.error());
    std::vector<CopyRange> ranges;
    for (std::size_t i = 1; i < count; ++i)
        ranges.push_back(
            {family.copies[i].buffer, family.copies[i].offset, first.buffer, first.offset, total});
    if (!ranges.empty()) {
        if (auto copied = m_session.copy(ranges); !copied)
            return tl::unexpected(copied.error());
    }
    return family;
}

WorkerResult<void> TimedBuffers::writeFirst(const Family &family, std::span<const std::byte> content)
{
    const Place &first = family.copies.front();
    const std::size_t total = family.layout.total();
    if (family.opened && m_judge->arm(*family.opened, 0, family.layout, family.key, model(), Fill::Garbage))
        return m_session.copy({{first.buffer, first.offset, family.tray, 0, total}});
    RawBytes poisoned;
    if (content.empty())
        poisoned = poison(family.layout, entropy(), Fill::Garbage);
    const auto room = m_session.staging(total);
    if (!room)
        return tl::unexpected(room.error());
    composeImage(family.layout, family.key, content.empty() ? std::span<const std::byte>(poisoned) : content,
                 *room);
    return m_session.uploadStaged(first.buffer, total, first.offset);
}

WorkerResult<void> TimedBuffers::uploadMasters(std::size_t tensor)
{
    auto &masters = m_masters.emplace_back();
    if (m_tensors[tensor].layout.kind != BufferKind::Input)
        return {};
    for (const CaseInstancePtr &content : m_known) {
        const auto &bytes = content->tensors[tensor].bytes;
        const std::size_t room = roomFor(std::max<std::size_t>(bytes.size(), 1));
        const auto id = m_session.allocate(room, !m_judge || bytes.size() < DeviceJudge::leastBytes);
        if (!id)
            return tl::unexpected(id.error());
        masters.push_back(*id);
        m_slack.push_back(slackOf(*id, bytes.size(), room));
        const auto opened = m_judge ? m_judge->open(m_session, *id, bytes.size(), *content) : nullptr;
        if (opened && m_judge->copy(*opened, 0, *content, content->tensors[tensor].name))
            continue;
        const auto staged = m_session.staging(bytes.size());
        if (!staged)
            return tl::unexpected(staged.error());
        parallelCopy(staged->data(), bytes);
        if (auto uploaded = m_session.uploadStaged(*id, bytes.size()); !uploaded)
            return uploaded;
    }
    return {};
}

WorkerResult<void> TimedBuffers::allocate(std::size_t sets)
{
    m_sets = sets;
    m_group.resize(sets);
    std::iota(m_group.begin(), m_group.end(), std::size_t{0});
    const auto &tensors = m_contents.front()->tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const bool input = tensors[i].role == workload::Role::Input;
        BufferLayout layout = layoutOf(tensors[i]);
        if (!input) {
            m_outputNames.push_back(tensors[i].name);
            m_outputRms.push_back(rootMeanSquare(model().expected.at(tensors[i].name)));
        }
        auto family = makeFamily(std::move(layout), tensors[i].bytes, sets); // an output has none
        if (!family)
            return tl::unexpected(family.error());
        m_tensors.push_back(std::move(*family));
        if (auto uploaded = uploadMasters(i); !uploaded)
            return uploaded;
    }
    // Where content is made anew for each sample none comes twice; on a host most sets have such.
    m_audited =
        m_session.packsBuffers() ? 0 : std::min(std::max<std::size_t>(1, sets / 2), m_contents.size());
    if (std::none_of(m_blends.begin(), m_blends.end(), [](const auto &blend) { return blend.has_value(); }))
        m_audited = sets; // integers alone: every set is a seed's content as it is
    return {};
}

WorkerResult<void> TimedBuffers::allocateWorkspaces(const std::string &side, const kernel::ResolvedPlan &plan)
{
    auto &families = m_workspaces[side];
    std::size_t together = 0;
    for (const kernel::ResolvedBuffer &workspace : plan.workspaces)
        together += static_cast<std::size_t>(workspace.bytes());
    const std::size_t affordable =
        std::max<std::size_t>(1, hostWorkspaceBytes / std::max<std::size_t>(1, together));
    const std::size_t copies = m_session.packsBuffers() ? m_sets : std::min(m_sets, affordable);
    for (const kernel::ResolvedBuffer &workspace : plan.workspaces) {
        BufferLayout layout{workspace.name, BufferKind::Workspace, workspace.dtype,
                            static_cast<std::size_t>(workspace.bytes())};
        auto family = makeFamily(std::move(layout), {}, copies);
        if (!family)
            return tl::unexpected(family.error());
        family->cleared = workspace.init == kernel::WorkspaceInit::Zero;
        families.push_back(std::move(*family));
    }
    return {};
}

std::size_t TimedBuffers::sharedBytes() const
{
    std::size_t bytes = 0;
    for (const auto &[side, families] : m_workspaces) {
        for (const Family &family : families)
            bytes += family.copies.size() < m_sets ? family.layout.bytes : 0;
    }
    return bytes;
}

std::optional<Blend> TimedBuffers::blendOf(std::size_t tensor, std::size_t set) const
{
    if (m_group[set] < m_audited || !m_blends[tensor])
        return std::nullopt;
    Blend blend = *m_blends[tensor];
    blend.key = contentKey(m_content, CipherRandom(m_key, 1 + tensor).bits(m_group[set]));
    return blend;
}

CopyRange TimedBuffers::rangeOf(std::size_t tensor, std::size_t set) const
{
    const BufferBinding to = m_tensors[tensor].binding(set);
    CopyRange range{to.buffer, to.offsetBytes, m_masters[tensor][firstContent(set)], 0,
                    m_tensors[tensor].layout.bytes};
    if (const auto blend = blendOf(tensor, set)) {
        range.with = m_masters[tensor][secondContent(set)];
        range.blend = *blend;
    }
    return range;
}

std::vector<CopyRange> TimedBuffers::knownRanges(std::size_t set, std::size_t known) const
{
    std::vector<CopyRange> ranges;
    for (std::size_t tensor = 0; tensor < m_tensors.size(); ++tensor) {
        const Family &family = m_tensors[tensor];
        if (family.layout.kind != BufferKind::Input)
            continue;
        const BufferBinding to = family.binding(set);
        ranges.push_back({to.buffer, to.offsetBytes, m_masters[tensor][known], 0, family.layout.bytes});
    }
    return ranges;
}

std::optional<TimedBuffers::Change> TimedBuffers::changeOf(std::size_t set, std::size_t known) const
{
    constexpr std::size_t unit = 16; ///< bytes
    constexpr std::size_t largestShare = 64;
    std::vector<std::size_t> changeable; // what is never blended may have an order of its own
    for (std::size_t tensor = 0; tensor < m_tensors.size(); ++tensor) {
        const BufferLayout &layout = m_tensors[tensor].layout;
        if (layout.kind == BufferKind::Input && m_blends[tensor] && layout.bytes >= unit)
            changeable.push_back(tensor);
    }
    if (changeable.empty() || m_known.size() < 2)
        return std::nullopt;
    const std::size_t tensor = changeable[entropy() % changeable.size()];
    const std::size_t other = (known + 1 + entropy() % (m_known.size() - 1)) % m_known.size();
    const Family &family = m_tensors[tensor];
    const std::size_t units = family.layout.bytes / unit;
    const std::size_t most = std::max<std::size_t>(1, units / largestShare);
    const std::size_t order = std::size_t{1} << (entropy() % static_cast<std::size_t>(std::bit_width(most)));
    const std::size_t count = std::min(order + entropy() % order, most);
    const std::size_t begin = unit * (entropy() % (units - count + 1));
    const BufferBinding to = family.binding(set);
    const auto slice = [&](std::size_t content) {
        return CopyRange{to.buffer, to.offsetBytes + begin, m_masters[tensor][content], begin, unit * count};
    };
    return Change{slice(other), slice(known)};
}

WorkerResult<void> TimedBuffers::restore(const std::vector<std::size_t> &sets)
{
    std::vector<CopyRange> ranges;
    for (const std::size_t set : sets) {
        for (std::size_t tensor = 0; tensor < m_tensors.size(); ++tensor) {
            if (m_tensors[tensor].layout.kind != BufferKind::Input)
                continue;
            const CopyRange range = rangeOf(tensor, set);
            if (range.with == 0) // the next sample makes the others anew
                ranges.push_back(range);
        }
    }
    return ranges.empty() ? WorkerResult<void>() : m_session.copy(ranges);
}

std::vector<std::vector<CopyRange>> TimedBuffers::contents() const
{
    std::vector<std::vector<CopyRange>> sets(m_sets);
    for (std::size_t tensor = 0; tensor < m_tensors.size(); ++tensor) {
        for (std::size_t set = 0; set < m_sets && m_tensors[tensor].layout.kind == BufferKind::Input; ++set)
            sets[set].push_back(rangeOf(tensor, set));
    }
    return sets;
}

bool TimedBuffers::hasIntegers() const
{
    const auto &tensors = m_contents.front()->tensors;
    return std::any_of(tensors.begin(), tensors.end(), [](const HostTensor &tensor) {
        return tensor.role == workload::Role::Input && !kernel::isFloat(tensor.dtype);
    });
}

WorkerResult<void> TimedBuffers::redraw(std::uint64_t key)
{
    m_key = key;
    m_content = 0;
    CipherRandom random(key);
    std::uint64_t counter = 0;
    const auto draw = [&] { return random.bits(counter++); };
    m_group = randomOrder(m_sets, draw);
    for (auto &family : m_tensors)
        family.places = randomOrder(m_sets, draw);
    for (auto &[side, families] : m_workspaces) {
        for (Family &family : families) {
            family.places = randomOrder(m_sets, draw);
            for (std::size_t &place : family.places)
                place %= family.copies.size();
        }
    }
    std::vector<CopyRange> copies;
    for (std::size_t tensor = 0; tensor < m_tensors.size(); ++tensor) {
        const Family &family = m_tensors[tensor];
        if (family.layout.kind != BufferKind::Input)
            continue;
        for (std::size_t set = 0; set < m_sets; ++set) {
            const CopyRange range = rangeOf(tensor, set);
            if (range.with == 0) // otherwise each sample has content of its own
                copies.push_back(range);
        }
    }
    return copies.empty() ? WorkerResult<void>() : m_session.copy(copies);
}

std::vector<BufferSet> TimedBuffers::bindings(const std::string &side) const
{
    std::vector<BufferSet> sets(m_sets);
    const auto bind = [&](const Family &family) {
        for (std::size_t set = 0; set < m_sets; ++set)
            sets[set][family.layout.name] = family.binding(set);
    };
    for (const Family &family : m_tensors)
        bind(family);
    if (const auto own = m_workspaces.find(side); own != m_workspaces.end()) {
        for (const Family &family : own->second)
            bind(family);
    }
    return sets;
}

FillSets TimedBuffers::fills(const std::string &side) const
{
    FillSets sets(m_sets);
    const auto add = [&](const Family &family, bool written) {
        for (std::size_t set = 0; set < m_sets; ++set) {
            const BufferBinding at = family.binding(set);
            sets[set].push_back({at.buffer, at.offsetBytes, family.layout.bytes, written});
        }
    };
    for (const Family &family : m_tensors) {
        if (family.layout.kind == BufferKind::Output)
            add(family, true);
    }
    // All of them, so that no side finds what another one left of the same content; large ones of a processor's take too long.
    for (const auto &[owner, families] : m_workspaces) {
        for (const Family &family : families) {
            const bool isLarge = family.layout.bytes > hostRefillBytes / 8 && !m_session.packsBuffers();
            if (owner == side ? !family.cleared || m_session.packsBuffers() : !isLarge)
                add(family, owner == side);
        }
    }
    return sets;
}

WorkerResult<BufferId> TimedBuffers::uploadZones(const Family &family)
{
    const std::vector<std::byte> zones = composeZones(family.layout, family.key);
    const std::size_t room = roomFor(zones.size());
    const auto id = m_session.allocate(room, true);
    if (!id)
        return id;
    const auto staged = m_session.staging(zones.size());
    if (!staged)
        return tl::unexpected(staged.error());
    std::copy(zones.begin(), zones.end(), staged->begin());
    if (auto uploaded = m_session.uploadStaged(*id, zones.size()); !uploaded)
        return tl::unexpected(uploaded.error());
    m_slack.push_back(slackOf(*id, zones.size(), room));
    return id;
}

WorkerResult<Guards> TimedBuffers::guards()
{
    Guards guards;
    if (!m_session.packsBuffers())
        return guards;
    const auto add = [&](Family &family) -> WorkerResult<void> {
        if (!family.zones) {
            const auto zones = uploadZones(family);
            if (!zones)
                return tl::unexpected(zones.error());
            family.zones = *zones;
        }
        const BufferLayout &layout = family.layout;
        const BufferId buffer = family.copies.front().buffer;
        GuardedCopies guarded{buffer, {}, layout.total(), layout.offset(), layout.bytes, *family.zones};
        for (const Place &place : family.copies) {
            guarded.places.push_back(place.offset);
            guards.slack.push_back(
                slackOf(buffer, place.offset + layout.total(), place.offset + family.placeBytes));
        }
        guards.copies.push_back(std::move(guarded));
        return {};
    };
    for (Family &family : m_tensors) {
        if (auto added = add(family); !added)
            return tl::unexpected(added.error());
    }
    for (auto &[side, families] : m_workspaces) {
        for (Family &family : families) {
            if (auto added = add(family); !added)
                return tl::unexpected(added.error());
        }
    }
    guards.slack.insert(guards.slack.end(), m_slack.begin(), m_slack.end());
    std::erase_if(guards.slack, [](const FillRegion &region) { return region.bytes == 0; });
    return guards;
}

OutputSets TimedBuffers::outputs() const
{
    OutputSets outputs;
    outputs.sets.resize(m_sets);
    for (const Family &family : m_tensors) {
        if (family.layout.kind != BufferKind::Output)
            continue;
        const std::size_t elements = family.layout.bytes / kernel::sizeOf(family.layout.dtype);
        outputs.layouts.push_back(tileLayout(family.layout.dtype, elements, 1));
        for (std::size_t set = 0; set < m_sets; ++set)
            outputs.sets[set].push_back(family.binding(set));
    }
    return outputs;
}

const std::vector<std::int64_t> &TimedBuffers::shapeOf(const std::string &tensor) const
{
    const auto &tensors = m_contents.front()->tensors;
    return std::find_if(tensors.begin(), tensors.end(), [&](const auto &t) { return t.name == tensor; })
        ->shape;
}

std::vector<HostTensor> TimedBuffers::tensorsOf(std::size_t set) const
{
    std::vector<HostTensor> tensors;
    for (const HostTensor &tensor : contentOf(set).tensors)
        tensors.push_back({tensor.name, tensor.role, tensor.dtype, tensor.shape, {}});
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (m_tensors[i].layout.kind != BufferKind::Input)
            continue;
        const std::span<const std::byte> first = m_contents[firstContent(set)]->tensors[i].bytes;
        const std::span<const std::byte> second = m_contents[secondContent(set)]->tensors[i].bytes;
        const std::size_t elements = tensors[i].elements();
        tensors[i].bytes.resize(first.size());
        const auto blend = blendOf(i, set);
        if (!blend) {
            parallelCopy(tensors[i].bytes.data(), first);
            continue;
        }
        parallelRanges(pieceCount(*blend, elements), std::max<std::size_t>(1, usualGrain / blend->piece),
                       [&](std::size_t begin, std::size_t end) {
                           blendPieces(*blend, first, second, tensors[i].bytes, begin, end);
                       });
    }
    return tensors;
}

std::size_t TimedBuffers::inputBytes() const
{
    std::size_t bytes = 0;
    for (const Family &family : m_tensors)
        bytes += family.layout.kind == BufferKind::Input ? family.layout.bytes : 0;
    return bytes;
}

} // namespace klineage::gate
