// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/checkedset.h"

#include "core/base/random.h"
#include "core/gate/check/parallel.h"

#include <algorithm>
#include <cstring>

namespace klineage::gate {

namespace {

constexpr std::size_t largeInputBytes = std::size_t{32} << 20;

constexpr std::size_t largeWorkspaceBytes = std::size_t{256} << 20;

/// Fills and looks that take too long to be done for each launch are done once for both launches of a check.
bool isLarge(const BufferLayout &layout)
{
    return (layout.kind == BufferKind::Input && layout.bytes >= largeInputBytes)
           || (layout.kind == BufferKind::Workspace && layout.bytes >= largeWorkspaceBytes);
}

} // namespace

BufferLayout layoutOf(const HostTensor &tensor)
{
    const bool input = tensor.role == workload::Role::Input;
    return {tensor.name, input ? BufferKind::Input : BufferKind::Output, tensor.dtype,
            tensor.elements() * kernel::sizeOf(tensor.dtype)};
}

CheckedSet::CheckedSet(WorkerSession &session, CaseInstancePtr instance, DeviceJudge *judge)
    : m_session(session)
    , m_instance(std::move(instance))
    , m_judge(judge)
{}

std::size_t CheckedSet::tensorBytes(const CaseInstance &instance)
{
    std::size_t bytes = 0;
    for (const HostTensor &tensor : instance.tensors)
        bytes += layoutOf(tensor).total();
    return bytes;
}

WorkerResult<BufferBinding> CheckedSet::allocate(BufferLayout layout, const HostTensor *tensor)
{
    const auto id = m_session.allocate(layout.total());
    if (!id)
        return tl::unexpected(id.error());
    const std::size_t offset = layout.offset();
    auto opened = m_judge ? m_judge->open(m_session, *id, layout.total(), *m_instance) : nullptr;
    m_buffers.push_back({std::move(layout), *id, 0, tensor, {}, std::move(opened)});
    return BufferBinding{*id, offset};
}

WorkerResult<void> CheckedSet::allocateTensors()
{
    for (const HostTensor &tensor : m_instance->tensors) {
        const auto binding = allocate(layoutOf(tensor), &tensor);
        if (!binding)
            return tl::unexpected(binding.error());
        m_tensorBindings[tensor.name] = *binding;
    }
    return {};
}

WorkerResult<BufferSet> CheckedSet::addPlan(const kernel::ResolvedPlan &plan)
{
    BufferSet bindings = m_tensorBindings;
    for (const kernel::ResolvedBuffer &workspace : plan.workspaces) {
        const auto binding = allocate({workspace.name, BufferKind::Workspace, workspace.dtype,
                                       static_cast<std::size_t>(workspace.bytes())},
                                      nullptr);
        if (!binding)
            return tl::unexpected(binding.error());
        bindings[workspace.name] = *binding;
    }
    return bindings;
}

WorkerResult<void> CheckedSet::upload(Buffer &buffer, Fill fill)
{
    const bool input = buffer.layout.kind == BufferKind::Input;
    RawBytes poisoned;
    if (!input)
        poisoned = poison(buffer.layout, buffer.key, fill);
    const auto room = m_session.staging(buffer.layout.total());
    if (!room)
        return tl::unexpected(room.error());
    composeImage(buffer.layout, buffer.key,
                 input ? std::span<const std::byte>(buffer.tensor->bytes)
                       : std::span<const std::byte>(poisoned),
                 *room);
    if (auto uploaded = m_session.uploadStaged(buffer.id, buffer.layout.total()); !uploaded)
        return uploaded;
    if (buffer.layout.kind == BufferKind::Output)
        buffer.poison = std::move(poisoned);
    return {};
}

WorkerResult<void> CheckedSet::arm(Fill fill)
{
    m_fill = fill;
    for (Buffer &buffer : m_buffers) {
        if (buffer.key != 0 && !buffer.armedThere && isLarge(buffer.layout))
            continue;
        buffer.key = entropy();
        buffer.armedThere =
            buffer.opened && m_judge->arm(*buffer.opened, 0, buffer.layout, buffer.key, *m_instance, fill);
        if (buffer.armedThere)
            continue;
        if (auto uploaded = upload(buffer, fill); !uploaded)
            return uploaded;
    }
    return {};
}

namespace {

std::optional<Finding> judgeContent(const BufferLayout &layout, const HostTensor &tensor, OutputJudge &judge,
                                    std::span<const std::byte> content, PoisonImage poison)
{
    Finding finding;
    finding.buffer = layout.name;
    finding.bufferKind = layout.kind;
    if (layout.kind == BufferKind::Input) {
        if (parallelEqual(content, tensor.bytes))
            return std::nullopt;
        finding.kind = Finding::Kind::InputChanged;
        const auto difference = std::mismatch(content.begin(), content.end(), tensor.bytes.begin());
        const auto byte = static_cast<std::size_t>(difference.first - content.begin());
        finding.element = elementName(tensor.name, tensor.shape, byte / kernel::sizeOf(tensor.dtype));
        return finding;
    }
    finding.check = judge.compare(tensor, content, poison);
    if (finding.check.ok())
        return std::nullopt;
    finding.kind = Finding::Kind::Mismatch;
    finding.tolerance = judge.instance().tolerance;
    finding.element = elementName(tensor.name, tensor.shape, finding.check.index);
    return finding;
}

} // namespace

std::optional<Finding> judgeBuffer(const BufferLayout &layout, std::uint64_t key, const HostTensor *tensor,
                                   OutputJudge &judge, std::span<const std::byte> image, PoisonImage poison)
{
    if (const auto hit = findRedZoneHit(layout, key, image)) {
        Finding finding;
        finding.kind = Finding::Kind::RedZone;
        finding.buffer = layout.name;
        finding.bufferKind = layout.kind;
        finding.redZone = *hit;
        return finding;
    }
    return tensor ? judgeContent(layout, *tensor, judge, contentOf(layout, image), poison) : std::nullopt;
}

WorkerResult<std::optional<Finding>> CheckedSet::inspect(Look look)
{
    std::optional<Finding> worst;
    OutputJudge judge(*m_instance);
    m_precision = {};
    for (Buffer &buffer : m_buffers) {
        if (look == Look::ForNow && !buffer.armedThere && isLarge(buffer.layout))
            continue;
        auto found = inspect(buffer, judge);
        if (!found)
            return tl::unexpected(found.error());
        auto &finding = *found;
        if (finding)
            buffer.key = 0;
        // Memory faults explain wrong results, so they are told first.
        if (finding && (!worst || static_cast<int>(finding->kind) < static_cast<int>(worst->kind)))
            worst = std::move(finding);
    }
    m_precision.add(judge.precision());
    return worst;
}

WorkerResult<std::optional<Finding>> CheckedSet::inspect(Buffer &buffer, OutputJudge &judge)
{
    if (buffer.armedThere && m_judge->isRight(*buffer.opened, 0, buffer.layout, buffer.key, *m_instance)) {
        if (buffer.layout.kind == BufferKind::Output && m_instance->tolerance.beforeRounding > 0)
            m_precision.add(buffer.layout.name, m_judge->beforeRounding());
        return std::nullopt;
    }
    if (buffer.armedThere && buffer.layout.kind == BufferKind::Output)
        buffer.poison = poison(buffer.layout, buffer.key, m_fill); // as the judge made it
    const auto image = m_session.download(buffer.id, buffer.layout.total());
    if (!image)
        return tl::unexpected(image.error());
    return judgeBuffer(buffer.layout, buffer.key, buffer.tensor, judge, *image, buffer.poison);
}

WorkerResult<void> CheckedSet::release()
{
    for (Buffer &buffer : m_buffers) {
        buffer.opened.reset();
        if (auto released = m_session.release(buffer.id); !released)
            return released;
    }
    m_buffers.clear();
    return {};
}

} // namespace klineage::gate
