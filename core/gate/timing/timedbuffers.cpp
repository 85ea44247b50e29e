// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/timedbuffers.h"

#include "core/base/cipherrandom.h"

#include "core/gate/check/parallel.h"
#include "core/gate/check/randomorder.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace klineage::gate {

TimedBuffers::TimedBuffers(WorkerSession &session, std::vector<CaseInstancePtr> contents)
    : m_session(session)
    , m_contents(std::move(contents))
{}

WorkerResult<TimedBuffers::Family> TimedBuffers::makeFamily(BufferLayout layout,
                                                            std::span<const std::byte> content)
{
    Family family{std::move(layout), entropy(), false, {}, std::vector<std::size_t>(m_sets)};
    const std::size_t total = family.layout.total();
    for (std::size_t i = 0; i < m_sets; ++i) {
        const auto id = m_session.allocate(total);
        if (!id)
            return tl::unexpected(id.error());
        family.buffers.push_back(*id);
    }
    std::iota(family.places.begin(), family.places.end(), std::size_t{0});
    const auto room = m_session.staging(total);
    if (!room)
        return tl::unexpected(room.error());
    composeImage(family.layout, family.key, content, *room);
    if (auto uploaded = m_session.uploadStaged(family.buffers.front(), total); !uploaded)
        return tl::unexpected(uploaded.error());
    std::vector<CopyRange> copies;
    for (std::size_t i = 1; i < m_sets; ++i)
        copies.push_back({family.buffers[i], 0, family.buffers.front(), 0, total});
    if (!copies.empty()) {
        if (auto copied = m_session.copy(copies); !copied)
            return tl::unexpected(copied.error());
    }
    return family;
}

WorkerResult<void> TimedBuffers::uploadMasters(std::size_t tensor)
{
    auto &masters = m_masters.emplace_back();
    if (m_tensors[tensor].layout.kind != BufferKind::Input)
        return {};
    for (const CaseInstancePtr &content : m_contents) {
        const auto &bytes = content->tensors[tensor].bytes;
        const auto id = m_session.allocate(std::max<std::size_t>(bytes.size(), 1));
        if (!id)
            return tl::unexpected(id.error());
        const auto room = m_session.staging(bytes.size());
        if (!room)
            return tl::unexpected(room.error());
        parallelCopy(room->data(), bytes);
        if (auto uploaded = m_session.uploadStaged(*id, bytes.size()); !uploaded)
            return uploaded;
        masters.push_back(*id);
    }
    return {};
}

WorkerResult<void> TimedBuffers::allocate(std::size_t sets)
{
    m_sets = sets;
    m_group.resize(sets);
    std::iota(m_group.begin(), m_group.end(), std::size_t{0});
    bool structured =
        false; // integers are offsets and the like: they are never rotated, nor what belongs to them
    const auto &tensors = m_contents.front()->tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const bool input = tensors[i].role == workload::Role::Input;
        structured |= input && !kernel::isFloat(tensors[i].dtype);
        BufferLayout layout = layoutOf(tensors[i]);
        RawBytes poisoned;
        if (!input) {
            poisoned = poison(layout, entropy(), Fill::Garbage);
            m_outputNames.push_back(tensors[i].name);
            m_outputRms.push_back(rootMeanSquare(m_contents.front()->expected.at(tensors[i].name)));
        }
        auto family = makeFamily(std::move(layout), input ? std::span<const std::byte>(tensors[i].bytes)
                                                          : std::span<const std::byte>(poisoned));
        if (!family)
            return tl::unexpected(family.error());
        m_tensors.push_back(std::move(*family));
        if (auto uploaded = uploadMasters(i); !uploaded)
            return uploaded;
    }
    m_audited = structured ? sets : std::min(sets, m_contents.size());
    return {};
}

WorkerResult<void> TimedBuffers::allocateWorkspaces(const std::string &side, const kernel::ResolvedPlan &plan)
{
    auto &families = m_workspaces[side];
    for (const kernel::ResolvedBuffer &workspace : plan.workspaces) {
        BufferLayout layout{workspace.name, BufferKind::Workspace, workspace.dtype,
                            static_cast<std::size_t>(workspace.bytes())};
        const auto content = poison(layout, entropy(), Fill::Garbage);
        auto family = makeFamily(std::move(layout), content);
        if (!family)
            return tl::unexpected(family.error());
        family->cleared = workspace.init == kernel::WorkspaceInit::Zero;
        families.push_back(std::move(*family));
    }
    return {};
}

/// Bytes by which a group's copy of a tensor is rotated: a random number of rows (of elements, when there is but one row).
std::size_t TimedBuffers::rotation(std::size_t tensor, std::size_t set, std::uint64_t key) const
{
    const std::size_t group = m_group[set];
    const HostTensor &host = m_contents.front()->tensors[tensor];
    if (group < m_audited || host.elements() < 2)
        return 0;
    const std::size_t elementBytes = kernel::sizeOf(host.dtype);
    const std::size_t rows = host.elements() / host.rowLength();
    const std::size_t unit = rows > 1 ? host.rowLength() * elementBytes : elementBytes;
    const std::size_t units = host.bytes.size() / unit;
    return unit * (1 + CipherRandom(key, tensor).bits(group) % (units - 1));
}

WorkerResult<void> TimedBuffers::redraw(std::uint64_t key)
{
    m_key = key;
    CipherRandom random(key);
    std::uint64_t counter = 0;
    const auto draw = [&] { return random.bits(counter++); };
    m_group = randomOrder(m_sets, draw);
    for (auto &family : m_tensors)
        family.places = randomOrder(m_sets, draw);
    for (auto &[side, families] : m_workspaces) {
        for (Family &family : families)
            family.places = randomOrder(m_sets, draw);
    }
    std::vector<CopyRange> copies;
    for (std::size_t tensor = 0; tensor < m_tensors.size(); ++tensor) {
        const Family &family = m_tensors[tensor];
        if (family.layout.kind != BufferKind::Input)
            continue;
        for (std::size_t set = 0; set < m_sets; ++set) {
            const BufferId to = family.buffers[family.places[set]];
            const BufferId from = m_masters[tensor][m_group[set] % m_contents.size()];
            const std::size_t shift = rotation(tensor, set, key);
            const std::size_t offset = family.layout.offset();
            const std::size_t rest = family.layout.bytes - shift;
            copies.push_back({to, offset, from, shift, rest});
            if (shift > 0)
                copies.push_back({to, offset + rest, from, 0, shift});
        }
    }
    return copies.empty() ? WorkerResult<void>() : m_session.copy(copies);
}

std::vector<BufferSet> TimedBuffers::bindings(const std::string &side) const
{
    std::vector<BufferSet> sets(m_sets);
    const auto bind = [&](const Family &family) {
        for (std::size_t set = 0; set < m_sets; ++set)
            sets[set][family.layout.name] = {family.buffers[family.places[set]], family.layout.offset()};
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
    const auto add = [&](const Family &family) {
        for (std::size_t set = 0; set < m_sets; ++set)
            sets[set].push_back(
                {family.buffers[family.places[set]], family.layout.offset(), family.layout.bytes});
    };
    for (const Family &family : m_tensors) {
        if (family.layout.kind == BufferKind::Output)
            add(family);
    }
    if (const auto own = m_workspaces.find(side); own != m_workspaces.end()) {
        for (const Family &family : own->second) {
            if (!family.cleared)
                add(family);
        }
    }
    return sets;
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
            outputs.sets[set].push_back({family.buffers[family.places[set]], family.layout.offset()});
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
    std::vector<HostTensor> tensors = contentOf(set).tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (m_tensors[i].layout.kind == BufferKind::Input)
            std::rotate(tensors[i].bytes.begin(),
                        tensors[i].bytes.begin() + static_cast<std::ptrdiff_t>(rotation(i, set, m_key)),
                        tensors[i].bytes.end());
    }
    return tensors;
}

WorkerResult<std::optional<Finding>> TimedBuffers::inspect(std::size_t set, const std::string &side)
{
    std::optional<Finding> worst;
    const CaseInstance &content = contentOf(set);
    OutputJudge judge(content);
    const auto look = [&](const Family &family, const HostTensor *tensor) -> WorkerResult<void> {
        const auto image = m_session.download(family.buffers[family.places[set]], family.layout.total());
        if (!image)
            return tl::unexpected(image.error());
        auto finding = judgeBuffer(family.layout, family.key, tensor, judge, *image, {});
        if (finding && (!worst || static_cast<int>(finding->kind) < static_cast<int>(worst->kind)))
            worst = std::move(finding);
        return {};
    };
    for (std::size_t i = 0; i < m_tensors.size(); ++i) {
        if (auto looked = look(m_tensors[i], &content.tensors[i]); !looked)
            return tl::unexpected(looked.error());
    }
    if (const auto own = m_workspaces.find(side); own != m_workspaces.end()) {
        for (const Family &family : own->second) {
            if (auto looked = look(family, nullptr); !looked)
                return tl::unexpected(looked.error());
        }
    }
    return worst;
}

} // namespace klineage::gate
