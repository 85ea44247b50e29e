// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/backend.h"

#include <algorithm>
#include <map>
#include <utility>

namespace klineage::gate {

/// What a backend made for its supervisor, by the numbers that the supervisor knows it by; no two things of a backend have the same.
/// Module and Memory are handles. An Entry has a `subject`: a pointer to what has setCount(), version() and metrics().
template <typename Module, typename Memory, typename Entry>
class Holdings
{
public:
    using RawModule = decltype(std::declval<const Module &>().get());
    using RawMemory = decltype(std::declval<const Memory &>().get());

    ModuleId addModule(Module module)
    {
        m_modules[m_nextId] = std::move(module);
        return m_nextId++;
    }
    BufferId addBuffer(Memory memory, std::size_t bytes)
    {
        m_buffers[m_nextId] = {std::move(memory), bytes};
        return m_nextId++;
    }
    template <typename Subject>
    SubjectId addSubject(Subject subject)
    {
        m_subjects[m_nextId].subject = std::move(subject);
        return m_nextId++;
    }
    bool eraseModule(ModuleId module) { return m_modules.erase(module) > 0; }
    void eraseBuffer(BufferId buffer) { m_buffers.erase(buffer); }
    void eraseSubject(SubjectId subject) { m_subjects.erase(subject); }

    /// action: completes "Cannot …".
    [[nodiscard]] Result<RawModule> module(ModuleId id, const std::string &action) const
    {
        const auto found = m_modules.find(id);
        if (found == m_modules.end())
            return fail(ErrorCode::Internal, "Cannot " + action + ": its module is not loaded.");
        return found->second.get();
    }
    /// A buffer of at least so many bytes.
    [[nodiscard]] Result<RawMemory> memory(BufferId id, std::size_t bytes) const
    {
        const auto found = m_buffers.find(id);
        if (found == m_buffers.end() || bytes > found->second.bytes)
            return fail(ErrorCode::Internal,
                        "Cannot use " + std::to_string(bytes) + " bytes: no such buffer, or it is smaller.");
        return found->second.memory.get();
    }
    [[nodiscard]] std::size_t bytesOf(BufferId id) const { return m_buffers.at(id).bytes; }
    /// Which byte it is, where memory has addresses.
    [[nodiscard]] std::optional<BufferBinding> placeOf(RawMemory address) const
    {
        for (const auto &[id, buffer] : m_buffers) {
            if (address >= buffer.memory.get() && address - buffer.memory.get() < buffer.bytes)
                return BufferBinding{id, static_cast<std::size_t>(address - buffer.memory.get())};
        }
        return std::nullopt;
    }

    [[nodiscard]] Result<Entry *> subject(SubjectId id)
    {
        const auto found = m_subjects.find(id);
        if (found == m_subjects.end())
            return fail(ErrorCode::Internal,
                        "Cannot run subject " + std::to_string(id) + ": it does not exist.");
        return &found->second;
    }
    /// One that has this set.
    [[nodiscard]] Result<Entry *> subjectOn(SubjectId id, std::size_t set)
    {
        auto found = subject(id);
        if (found && set >= (*found)->subject->setCount())
            return fail(ErrorCode::Internal,
                        "Cannot run on buffer set " + std::to_string(set) + ": there is no such set.");
        return found;
    }
    /// One whose sets have a list of regions each.
    [[nodiscard]] Result<Entry *> subjectToFill(SubjectId id, const FillSets &fills)
    {
        auto found = subject(id);
        if (found && fills.size() != (*found)->subject->setCount())
            return fail(ErrorCode::Internal, "Cannot refill: there is not one list of regions for each set.");
        return found;
    }
    /// One whose sets have a list of outputs each.
    [[nodiscard]] Result<Entry *> subjectToLookAt(SubjectId id, const OutputSets &outputs)
    {
        auto found = subject(id);
        if (found && outputs.sets.size() != (*found)->subject->setCount())
            return fail(ErrorCode::Internal,
                        "Cannot look at outputs: there is not one list of them for each set.");
        return found;
    }
    [[nodiscard]] Result<Entry *> subjectToTime(const TimedRun &run)
    {
        auto found = subject(run.subject);
        if (found && (run.repeats < 1 || run.repeats > 100'000))
            return fail(ErrorCode::Internal,
                        "Cannot time " + std::to_string(run.repeats) + " repeats: expected 1 to 100000.");
        return found;
    }
    template <typename Predicate>
    [[nodiscard]] bool anySubject(const Predicate &predicate) const
    {
        return std::any_of(m_subjects.begin(), m_subjects.end(),
                           [&](const auto &held) { return predicate(held.second); });
    }
    [[nodiscard]] std::string version(SubjectId id) const
    {
        const auto found = m_subjects.find(id);
        return found == m_subjects.end() ? std::string() : found->second.subject->version();
    }
    [[nodiscard]] std::vector<Metric> metrics(SubjectId id) const
    {
        const auto found = m_subjects.find(id);
        return found == m_subjects.end() ? std::vector<Metric>() : found->second.subject->metrics();
    }

    /// Hands each range to copy(to, from, range), or to blend(to, from, with, range), after it was seen to lie within its buffers.
    template <typename Enqueue, typename Blending>
    [[nodiscard]] Status copyEach(std::span<const CopyRange> ranges, const Enqueue &copy,
                                  const Blending &blend) const
    {
        for (const CopyRange &range : ranges) {
            const auto from = memory(range.from, range.fromOffset + range.bytes);
            const auto to = memory(range.to, range.toOffset + range.bytes);
            const auto with = range.with == 0 ? from : memory(range.with, range.fromOffset + range.bytes);
            if (!from || !to || !with)
                return tl::unexpected(!from ? from.error() : !to ? to.error() : with.error());
            if (Status done = range.with == 0 ? copy(*to, *from, range) : blend(*to, *from, *with, range);
                !done)
                return done;
        }
        return {};
    }

private:
    struct Buffer {
        Memory memory;
        std::size_t bytes = 0;
    };
    // Subjects use modules and buffers, and are let go first.
    std::map<BufferId, Buffer> m_buffers;
    std::map<ModuleId, Module> m_modules;
    std::map<SubjectId, Entry> m_subjects;
    std::uint32_t m_nextId = 1;
};

} // namespace klineage::gate
