// SPDX-License-Identifier: GPL-3.0-or-later
//
// Timing of subjects: graph replays between events, with the clocks read around them, and the energy of a long replay.
#include "core/base/random.h"
#include "core/device/cuda/cudabackend.h"
#include "core/device/cuda/nvml.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace klineage::gate::cuda {

namespace {

constexpr double betweenReadingsNs = 10e6; ///< of the energy counter
constexpr std::size_t smallVariableBytes = std::size_t{16} << 10;
constexpr std::uint32_t haveMet =
    0x80000000; ///< what blocks that have met every second time leave of a word; any other word is nobody's to change

} // namespace

Status CudaBackend::enqueueRuns(Entry &entry, const TimedRun &run)
{
    const std::size_t count = entry.subject->setCount();
    for (std::size_t i = 0; i < static_cast<std::size_t>(run.repeats); ++i) {
        if (auto enqueued = entry.subject->enqueue(m_stream.get(), (run.first + i) % count); !enqueued)
            return enqueued;
    }
    return {};
}

Result<CUgraphExec> CudaBackend::replay(Entry &entry, const TimedRun &run)
{
    const std::size_t first = run.first % entry.subject->setCount();
    for (const Replay &replay : entry.replays) {
        if (replay.repeats == run.repeats && replay.first == first)
            return launchable(replay.captured);
    }
    auto captured = captureGraph(m_driver, m_stream.get(), [&] { return enqueueRuns(entry, run); });
    if (!captured)
        return tl::unexpected(captured.error());
    return launchable(entry.replays.emplace_back(Replay{first, run.repeats, std::move(*captured)}).captured);
}

/// For one sample alone. The parameters of a graph's launches lie in memory that kernels can write to: in a graph that is there for longer, a
/// candidate could change its parent's, and count its own replays, by which it knows a sample whose graph is new. Uploaded, never replayed
/// untimed: the sets may hold what is timed next already.
Result<CUgraphExec> CudaBackend::launchable(const Graph &captured)
{
    m_launched = ExecutableGraph();
    auto graph = instantiateGraph(m_driver, captured);
    if (!graph)
        return tl::unexpected(graph.error());
    if (auto sent = m_driver.check(m_driver.graphUpload(graph->get(), m_stream.get()), "upload a graph");
        !sent)
        return tl::unexpected(sent.error());
    if (auto done = m_driver.check(m_driver.streamSynchronize(m_stream.get()), "upload a graph"); !done)
        return tl::unexpected(done.error());
    m_launched = std::move(*graph);
    return m_launched.get();
}

/// With the change midway among its runs: no pause tells it from a sample that is timed, and no launch is the last before the change.
Result<CUgraphExec> CudaBackend::splitGraph(Entry &entry, const std::vector<Part> &parts, const TimedRun &run)
{
    const bool copiesAlone =
        std::all_of(run.then.begin(), run.then.end(), [](const CopyRange &range) { return range.with == 0; });
    if (!copiesAlone)
        return fail(ErrorCode::Internal, "Cannot change inputs midway: they are to be made of two contents.");
    const auto captured = captureGraph(m_driver, m_stream.get(), [&]() -> Status {
        if (auto done = enqueueRuns(entry, parts.front().run); !done)
            return done;
        if (auto done = enqueueCopies(run.then); !done)
            return done;
        return enqueueRuns(entry, parts.back().run);
    });
    if (!captured)
        return tl::unexpected(captured.error());
    return launchable(*captured);
}

/// The sample, or what comes before the change midway and what behind it where its runs are launched one by one.
Result<std::vector<CudaBackend::Part>> CudaBackend::partsOf(Entry &entry, const TimedRun &run)
{
    std::vector<Part> parts;
    const auto add = [&](std::size_t first, int repeats) {
        TimedRun &part = parts.emplace_back().run;
        part.subject = run.subject;
        part.first = first;
        part.repeats = repeats;
    };
    add(run.first, run.isSplit() ? run.midway : run.repeats);
    if (run.isSplit())
        add(run.first + static_cast<std::size_t>(run.midway), run.repeats - run.midway);
    if (run.isSplit() && run.replay) {
        const auto graph = splitGraph(entry, parts, run);
        if (!graph)
            return tl::unexpected(graph.error());
        parts.resize(1);
        parts.front().graph = *graph;
        return parts;
    }
    for (Part &part : parts) {
        if (!run.replay)
            continue;
        const auto made = replay(entry, part.run);
        if (!made)
            return tl::unexpected(made.error());
        part.graph = *made;
    }
    return parts;
}

/// Where a set does not hold what the run wants to find in it. A run that does not visit all sets finds all of them made anew: nobody looks
/// at the inputs of idle ones, in which the side before could have left results for this one.
Status CudaBackend::makeContents(const TimedRun &run)
{
    if (run.content == 0)
        return {};
    if (m_contents.empty())
        return fail(ErrorCode::Internal, "Cannot make content: nobody has said how.");
    std::vector<BlendJob> jobs;
    const bool idle = static_cast<std::size_t>(run.repeats) < m_contents.size();
    const std::size_t count = idle ? m_contents.size() : run.setsConcerned(m_contents.size());
    for (std::size_t i = 0; i < count; ++i) {
        Contents &set = m_contents[(run.first + i) % m_contents.size()];
        if (std::exchange(set.held, run.content) == run.content && !idle)
            continue;
        for (BlendJob job : set.jobs) {
            job.key = contentKey(run.content, job.key);
            jobs.push_back(job);
        }
    }
    if (auto made = m_helpers.blend(m_stream.get(), jobs); !made)
        return made;
    return m_driver.check(m_driver.streamSynchronize(m_stream.get()), "make the content of buffers");
}

Result<TimedSample> CudaBackend::time(const TimedRun &run)
{
    const auto found = m_held.subjectToTime(run);
    if (!found)
        return tl::unexpected(found.error());
    Entry &subject = **found;
    const std::size_t concerned = run.setsConcerned(subject.subject->setCount());
    const auto parts = partsOf(subject, run);
    if (!parts)
        return tl::unexpected(parts.error());
    if (auto made = makeContents(run); !made)
        return tl::unexpected(made.error());
    if (auto put = run.known.empty() ? Status() : copy(run.known); !put)
        return tl::unexpected(put.error());
    const bool helped = m_helpers.installed();
    const bool watched = helped && run.fillWord != 0 && !subject.outputs.empty();
    const auto before =
        watched ? inputSums(entropy(), subject.subject->meets()) : Result<InputSums>(InputSums());
    if (!before)
        return tl::unexpected(before.error());
    if (helped && run.fillWord != 0) {
        // Before samples of every side, when one of them needs it: they find the device equally busy when their own work arrives.
        const bool usesLocal = m_held.anySubject([](const Entry &each) { return each.subject->usesLocal(); });
        if (auto filled = m_helpers.refill(m_stream.get(), subject.fills, run.fillWord, usesLocal); !filled)
            return tl::unexpected(filled.error());
    }
    Status done = helped ? m_helpers.mark(m_stream.get(), 0) : Status();
    m_driver.eventRecord(m_begin.get(), m_stream.get());
    for (std::size_t i = 0; i < parts->size() && done; ++i) {
        const Part &part = (*parts)[i];
        if (i > 0)
            done = enqueueCopies(run.then);
        if (done)
            done = part.graph
                       ? m_driver.check(m_driver.graphLaunch(part.graph, m_stream.get()), "replay a graph")
                       : enqueueRuns(subject, part.run);
    }
    m_driver.eventRecord(m_end.get(), m_stream.get());
    if (done && helped)
        done = m_helpers.mark(m_stream.get(), 1);
    if (done)
        done = m_driver.check(m_driver.streamSynchronize(m_stream.get()), "finish the kernel");
    if (!done)
        return tl::unexpected(done.error());
    float elapsedMs = 0;
    if (auto read = m_driver.check(m_driver.eventElapsedTime(&elapsedMs, m_begin.get(), m_end.get()),
                                   "read the timing events");
        !read)
        return tl::unexpected(read.error());
    TimedSample sample{static_cast<double>(elapsedMs) * 1e6, helped ? m_helpers.clockMhz() : 0};
    if (watched) {
        auto looked = m_helpers.look(m_stream.get(), subject.outputs, run.first, concerned, run.fillWord);
        if (!looked)
            return tl::unexpected(looked.error());
        sample.prints = std::move(*looked);
        auto changed = touched(subject, run);
        if (!changed)
            return tl::unexpected(changed.error());
        sample.touched = *changed;
        if (!sample.touched) {
            auto input = changedInput(*before, run);
            if (!input)
                return tl::unexpected(input.error());
            sample.touched = *input;
        }
    }
    return sample;
}

Result<CudaBackend::InputSums> CudaBackend::inputSums(std::uint64_t key, bool meets)
{
    InputSums sums{key, {}, {}, {}, {}};
    for (const Contents &set : m_contents)
        sums.regions.insert(sums.regions.end(), set.inputs.begin(), set.inputs.end());
    sums.regions.insert(sums.regions.end(), m_driverPieces.begin(), m_driverPieces.end());
    std::vector<Region> &met = meets ? sums.metRegions : sums.regions;
    met.insert(met.end(), m_meetingPieces.begin(), m_meetingPieces.end());
    sums.regions = m_helpers.cut(sums.regions);
    auto added = m_helpers.sums(m_stream.get(), sums.regions, key);
    if (!added)
        return tl::unexpected(added.error());
    sums.values = std::move(*added);
    auto addedMet = m_helpers.sums(m_stream.get(), sums.metRegions, key, haveMet);
    if (!addedMet)
        return tl::unexpected(addedMet.error());
    sums.met = std::move(*addedMet);
    return sums;
}

/// Of any set, run or not, but what was changed midway: no run may write to one, and what slows another side down there leaves all results as
/// they are.
Result<std::optional<BufferBinding>> CudaBackend::changedInput(const InputSums &before, const TimedRun &run)
{
    const auto after = m_helpers.sums(m_stream.get(), before.regions, before.key);
    if (!after)
        return tl::unexpected(after.error());
    for (std::size_t i = 0; i < after->size(); ++i) {
        const Region &region = before.regions[i];
        if ((*after)[i] == before.values[i])
            continue;
        const auto place = m_held.placeOf(region.address);
        const bool ours = run.isSplit() && place
                          && std::any_of(run.then.begin(), run.then.end(), [&](const CopyRange &range) {
                                 return range.to == place->buffer
                                        && range.toOffset < place->offsetBytes + region.bytes
                                        && place->offsetBytes < range.toOffset + range.bytes;
                             });
        if (!place)
            return BufferBinding{0, m_variables.size()};
        if (!ours)
            return place;
    }
    const auto met = m_helpers.sums(m_stream.get(), before.metRegions, before.key, haveMet);
    if (!met)
        return tl::unexpected(met.error());
    if (*met != before.met)
        return BufferBinding{0, m_variables.size()};
    return std::optional<BufferBinding>();
}

Result<std::optional<BufferBinding>> CudaBackend::touched(const Entry &entry, const TimedRun &run)
{
    const bool all = entropy() % 16 == 0; // large tables are looked at now and then
    std::vector<Held> held;
    for (const Variable &variable : m_variables) {
        if (all || variable.held.size() <= smallVariableBytes)
            held.push_back({variable.address, variable.held});
    }
    const auto address = m_helpers.touched(
        m_stream.get(), entry.fills.untouchedBy(run.first, static_cast<std::size_t>(run.repeats)),
        run.fillWord, held);
    if (!address)
        return tl::unexpected(address.error());
    for (std::size_t i = 0; i < m_variables.size(); ++i) {
        if (*address >= m_variables[i].address
            && *address - m_variables[i].address < m_variables[i].held.size())
            return BufferBinding{0, i};
    }
    return *address == 0 ? std::optional<BufferBinding>() : m_held.placeOf(*address);
}

/// Begins and ends at a step of the counter, which moves some ten times a second.
Result<EnergyReading> CudaBackend::energy(const TimedRun &run, double seconds)
{
    using Clock = std::chrono::steady_clock;
    if (!nvmlEnergyJoules(m_pciBusId))
        return fail(ErrorCode::Unavailable, "NVML does not tell the energy of this device.");
    const auto first = time(run);
    if (!first)
        return tl::unexpected(first.error());
    const auto subject = m_held.subject(run.subject);
    if (!subject)
        return tl::unexpected(subject.error());
    const auto graph = replay(**subject, run);
    if (!graph)
        return tl::unexpected(graph.error());
    const int launches = std::clamp(static_cast<int>(betweenReadingsNs / first->ns), 1, 10'000);
    EnergyReading reading;
    double last = -1;
    double begun = -1;
    Clock::time_point beginTime;
    for (const auto entered = Clock::now();;) {
        for (int i = 0; i < launches; ++i)
            m_driver.graphLaunch(*graph, m_stream.get());
        if (auto done = m_driver.check(m_driver.streamSynchronize(m_stream.get()), "finish the kernel");
            !done)
            return tl::unexpected(done.error());
        const double now = nvmlEnergyJoules(m_pciBusId).value_or(last);
        const auto at = Clock::now();
        if (begun >= 0)
            reading.runs += static_cast<std::int64_t>(launches) * run.repeats;
        if (last >= 0 && now > last) {
            if (begun < 0) {
                begun = now;
                beginTime = at;
            } else {
                const double step = now - last;
                reading.resolutionJoules =
                    reading.resolutionJoules == 0 ? step : std::min(reading.resolutionJoules, step);
                reading.joules = now - begun;
                reading.seconds = std::chrono::duration<double>(at - beginTime).count();
                if (reading.seconds >= seconds)
                    return reading;
            }
        }
        last = now;
        if (std::chrono::duration<double>(at - entered).count() > 2 * seconds + 2)
            return fail(ErrorCode::Unavailable, "The energy counter of this device does not move.");
    }
}

} // namespace klineage::gate::cuda
