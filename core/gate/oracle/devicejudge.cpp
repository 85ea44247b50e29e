// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/oracle/devicejudge.h"

#include "core/gate/oracle/kernels.h"

#include <algorithm>
#include <cstring>

namespace klineage::gate {

namespace {

constexpr std::size_t elementsOfBlock = 65536;             // of compare.cu
constexpr std::size_t bytesOfBlock = std::size_t{1} << 20; // of same.cu

/// Whether the judge's kernels take elements of it: f32, f16 and bf16, the first of what the oracle's take.
bool isJudged(kernel::DType dtype)
{
    const std::int64_t type = oracle::elementType(dtype);
    return type >= 0 && type <= oracle::elementType(kernel::DType::BF16);
}

std::size_t blocksOf(std::size_t amount, std::size_t block)
{
    return (amount + block - 1) / block;
}

/// Whether its kernels can judge what the instance's output holds.
bool canCompare(const CaseInstance &instance, const std::string &tensor)
{
    const auto &content = instance.expected.onDevice;
    return content && content->output == tensor && content->expected && !instance.tolerance.exact
           && instance.tolerance.rowSum <= 0 && !instance.selection;
}

} // namespace

ComparisonTotals totalsOf(std::span<const ComparedBlock> blocks)
{
    ComparisonTotals totals;
    for (const ComparedBlock &block : blocks) {
        totals.errorSquares += block.errorSquares;
        totals.expectedSquares += block.expectedSquares;
        totals.unroundedSquares += block.unroundedSquares;
        totals.largestError = std::max(totals.largestError, block.largestError);
        if (block.mismatches > 0 && totals.mismatches == 0)
            totals.first = static_cast<std::size_t>(block.first);
        totals.mismatches += static_cast<std::size_t>(block.mismatches);
    }
    return totals;
}

void DeviceJudge::beginTrial(bool wanted, std::stop_token stop)
{
    m_wanted = wanted;
    m_stop = std::move(stop);
    m_why.clear();
    m_looks = 0;
}

bool DeviceJudge::works(const Status &status)
{
    if (!status)
        m_why = status.error().message;
    return status.has_value();
}

bool DeviceJudge::isUsable(const Opened &buffer) const
{
    return m_wanted && m_why.empty() && buffer.generation() == m_device->generation();
}

Result<WorkerSession *> DeviceJudge::session()
{
    const std::uint64_t before = m_device->generation();
    auto session = m_device->session(m_stop);
    if (session && m_device->generation() != before)
        return fail(ErrorCode::Unavailable, "its process had to be started again");
    return session;
}

Result<BufferId> DeviceJudge::scratch(WorkerSession &session, std::size_t bytes)
{
    if (m_scratch && m_scratchOf == m_device->generation() && bytes <= m_scratchBytes)
        return *m_scratch;
    if (m_scratch)
        m_device->release(*m_scratch, m_scratchOf);
    const auto made = session.allocate(bytes);
    if (!made)
        return trustedFailure(made.error());
    m_scratch = *made;
    m_scratchBytes = bytes;
    m_scratchOf = m_device->generation();
    return *made;
}

DeviceJudge::OpenedPtr DeviceJudge::open(WorkerSession &worker, BufferId buffer, std::size_t bytes,
                                         const CaseInstance &instance)
{
    const auto &content = instance.expected.onDevice;
    if (!m_wanted || !m_why.empty() || bytes < leastBytes || !content)
        return nullptr;
    const auto lock = m_device->lock();
    if (!content->isThere())
        return nullptr;
    const auto handle = worker.share(buffer);
    if (!handle) {
        m_why = handle.error().error.message;
        return nullptr;
    }
    const auto mine = session();
    if (!mine) {
        m_why = mine.error().message;
        return nullptr;
    }
    const auto opened = (*mine)->adopt(*handle, bytes);
    if (!opened) {
        m_why = opened.error().error.message;
        return nullptr;
    }
    return std::make_shared<const Opened>(m_device, *opened, m_device->generation());
}

Status DeviceJudge::writeZones(WorkerSession &session, const Opened &buffer, std::size_t at,
                               const BufferLayout &layout, std::uint64_t key)
{
    const auto zones = composeZones(layout, key);
    const auto room = scratch(session, zones.size());
    if (!room)
        return tl::unexpected(room.error());
    const auto staged = session.staging(zones.size());
    if (!staged)
        return trustedFailure(staged.error());
    std::memcpy(staged->data(), zones.data(), zones.size());
    if (auto uploaded = session.uploadStaged(*room, zones.size()); !uploaded)
        return trustedFailure(uploaded.error());
    const auto copied = session.copy({{buffer.id(), at, *room, 0, redZoneBytes},
                                      {buffer.id(), at + layout.offset() + layout.bytes, *room, redZoneBytes,
                                       zones.size() - redZoneBytes}});
    return copied ? Status() : trustedFailure(copied.error());
}

Status DeviceJudge::poisonContent(const Opened &buffer, std::size_t at, const BufferLayout &layout,
                                  std::uint64_t key, Fill fill)
{
    kernel::Bindings sizes;
    sizes["ELEMENTS"] = static_cast<std::int64_t>(layout.bytes / kernel::sizeOf(layout.dtype));
    sizes["KEY"] = static_cast<std::int64_t>(key);
    sizes["GARBAGE"] = std::int64_t{fill == Fill::Garbage ? 1 : 0};
    sizes["WORD"] = fill == Fill::Word ? std::int64_t{poisonWord(key)} : 0;
    return m_device->run(
        {oracle::poisonCu, "poison.cu", {{"WIDE", 1}, {"TYPE", oracle::elementType(layout.dtype)}}},
        {{"target", {buffer.id(), at + layout.offset()}}}, sizes, m_stop);
}

bool DeviceJudge::copy(const Opened &buffer, std::size_t at, const CaseInstance &instance,
                       const std::string &tensor)
{
    const auto &content = instance.expected.onDevice;
    const auto lock = m_device->lock();
    if (!isUsable(buffer) || !content || !content->isThere() || !content->inputs.contains(tensor))
        return false;
    const auto mine = session();
    if (!mine)
        return works(tl::unexpected(mine.error()));
    std::size_t bytes = 0;
    for (const HostTensor &host : instance.tensors)
        bytes = host.name == tensor ? host.bytes.size() : bytes;
    const auto copied = (*mine)->copy({{buffer.id(), at, content->inputs.at(tensor), 0, bytes}});
    return works(copied ? Status() : trustedFailure(copied.error()));
}

bool DeviceJudge::arm(const Opened &buffer, std::size_t at, const BufferLayout &layout, std::uint64_t key,
                      const CaseInstance &instance, Fill fill)
{
    const auto lock = m_device->lock();
    const bool input = layout.kind == BufferKind::Input;
    if (!isUsable(buffer) || (!input && !isJudged(layout.dtype)))
        return false;
    const auto mine = session();
    if (!mine)
        return works(tl::unexpected(mine.error()));
    if (!works(writeZones(**mine, buffer, at, layout, key)))
        return false;
    return input ? copy(buffer, at + layout.offset(), instance, layout.name)
                 : works(poisonContent(buffer, at, layout, key, fill));
}

Result<bool> DeviceJudge::zonesAreRight(WorkerSession &session, const Opened &buffer, std::size_t at,
                                        const BufferLayout &layout, std::uint64_t key)
{
    const std::size_t bytes = layout.total() - layout.bytes;
    const auto room = scratch(session, bytes);
    if (!room)
        return tl::unexpected(room.error());
    if (auto copied = session.copy(
            {{*room, 0, buffer.id(), at, redZoneBytes},
             {*room, redZoneBytes, buffer.id(), at + layout.offset() + layout.bytes, bytes - redZoneBytes}});
        !copied)
        return trustedFailure(copied.error());
    const auto zones = session.download(*room, bytes);
    if (!zones)
        return trustedFailure(zones.error());
    return !findZoneHit(layout, key, *zones);
}

Result<bool> DeviceJudge::inputIsRight(WorkerSession &session, const Opened &buffer, std::size_t at,
                                       const BufferLayout &layout, BufferId content)
{
    const std::size_t blocks = blocksOf(layout.bytes, bytesOfBlock);
    const auto room = scratch(session, blocks * sizeof(std::int64_t));
    if (!room)
        return tl::unexpected(room.error());
    kernel::Bindings sizes;
    sizes["BYTES"] = static_cast<std::int64_t>(layout.bytes);
    if (auto ran = m_device->run(
            {oracle::sameCu, "same.cu", {{"WIDE", 1}}},
            {{"a", {buffer.id(), at + layout.offset()}}, {"b", {content, 0}}, {"counts", {*room, 0}}}, sizes,
            m_stop);
        !ran)
        return tl::unexpected(ran.error());
    const auto counts = session.download(*room, blocks * sizeof(std::int64_t));
    if (!counts)
        return trustedFailure(counts.error());
    return std::all_of(counts->begin(), counts->end(), [](std::byte byte) { return byte == std::byte{}; });
}

Result<bool> DeviceJudge::outputIsRight(WorkerSession &session, const Opened &buffer, std::size_t at,
                                        const BufferLayout &layout, const CaseInstance &instance)
{
    const DeviceContent &content = *instance.expected.onDevice;
    const std::size_t elements = layout.bytes / kernel::sizeOf(layout.dtype);
    std::vector<ComparedBlock> blocks(blocksOf(elements, elementsOfBlock));
    const std::size_t bytes = blocks.size() * sizeof(ComparedBlock);
    const auto room = scratch(session, bytes);
    if (!room)
        return tl::unexpected(room.error());
    kernel::Bindings sizes;
    sizes["ELEMENTS"] = static_cast<std::int64_t>(elements);
    sizes["ABSOLUTE"] = instance.tolerance.atol * content.rms;
    sizes["RELATIVE"] = instance.tolerance.rtol;
    if (auto ran =
            m_device->run({oracle::compareCu,
                           "compare.cu",
                           {{"WIDE", content.wide ? 1 : 0}, {"TYPE", oracle::elementType(layout.dtype)}}},
                          {{"out", {buffer.id(), at + layout.offset()}},
                           {"expected", {*content.expected, 0}},
                           {"partials", {*room, 0}}},
                          sizes, m_stop);
        !ran)
        return tl::unexpected(ran.error());
    const auto got = session.download(*room, bytes);
    if (!got)
        return trustedFailure(got.error());
    std::memcpy(blocks.data(), got->data(), bytes);
    const ComparisonTotals totals = totalsOf(blocks);
    m_beforeRounding = errorBeforeRounding(totals);
    return holds(totals, layout.dtype, elements, instance.tolerance);
}

bool DeviceJudge::isRight(const Opened &buffer, std::size_t at, const BufferLayout &layout, std::uint64_t key,
                          const CaseInstance &instance)
{
    const auto lock = m_device->lock();
    const auto &content = instance.expected.onDevice;
    const bool input = layout.kind == BufferKind::Input;
    const bool output = layout.kind == BufferKind::Output;
    if (!isUsable(buffer) || !content || !content->isThere()
        || (input && !content->inputs.contains(layout.name))
        || (output && (!canCompare(instance, layout.name) || !isJudged(layout.dtype))))
        return false;
    const auto mine = session();
    if (!mine)
        return works(tl::unexpected(mine.error()));
    Result<bool> right = zonesAreRight(**mine, buffer, at, layout, key);
    if (right && *right && input)
        right = inputIsRight(**mine, buffer, at, layout, content->inputs.at(layout.name));
    if (right && *right && output)
        right = outputIsRight(**mine, buffer, at, layout, instance);
    if (!right)
        return works(tl::unexpected(right.error()));
    ++m_looks;
    return *right;
}

std::string DeviceJudge::summary() const
{
    std::string text;
    if (m_looks > 0)
        text = "device: " + std::to_string(m_looks) + " buffers looked at";
    if (!m_why.empty())
        text += (text.empty() ? "cpu: " : "; then cpu: ") + m_why;
    return text;
}

} // namespace klineage::gate
