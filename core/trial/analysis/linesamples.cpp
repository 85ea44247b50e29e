// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/linesamples.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace klineage::gate {

namespace {

constexpr int mostLines =
    1 << 20; // lines beyond count as outside of the file: the table below is as long as the last one
constexpr std::int64_t mostSamples = std::int64_t{1} << 50; // of one figure, so that no sum overflows
constexpr std::string_view issuing = "selected";
constexpr std::string_view allSamples = "pc_samples"; // the metric

struct Words {
    std::string_view reason;
    std::string_view brief; ///< for a column
    std::string_view words; ///< to follow "waited for"
};

// As the samples of the program counter name them (CUPTI), by which NVIDIA's profilers explain them.
constexpr Words stallWords[] = {
    {"barrier", "a barrier", "other warps at a barrier"},
    {"branch_resolving", "a branch", "a branch to be resolved"},
    {"dispatch_stall", "dispatch", "the dispatcher"},
    {"drain", "stores to drain", "its writes to memory before it ends"},
    {"gmma", "warpgroup products", "asynchronous products of the warpgroup"},
    {"imc_miss", "constant cache", "constants that were not in the cache"},
    {"lg_throttle", "load/store queue full",
     "the load/store queue, full of global and local memory instructions"},
    {"long_scoreboard", "global memory", "global, local or texture memory"},
    {"math_pipe_throttle", "math pipe full", "an arithmetic pipe that is full"},
    {"membar", "a memory fence", "a memory fence"},
    {"mio_throttle", "shared queue full", "the queue of shared memory and special functions, which is full"},
    {"misc", "other reasons", "other reasons"},
    {"no_instruction", "instruction fetch", "instructions to be fetched"},
    {"no_instructions", "instruction fetch", "instructions to be fetched"},
    {"not_selected", "its turn", "its turn, while another warp issued"},
    {"short_scoreboard", "shared memory", "shared memory or special functions"},
    {"sleeping", "a sleep", "the end of a sleep"},
    {"tex_throttle", "texture queue full", "the queue of texture instructions, which is full"},
    {"wait", "fixed latency", "the fixed latency of the instruction before"},
    {"warpgroup_arrive", "its warpgroup", "the warpgroup or its asynchronous products"},
    {"selected", "nothing: it issued", "nothing: it issued"},
};

const Words *findWords(std::string_view reason)
{
    const auto *found = std::find_if(std::begin(stallWords), std::end(stallWords),
                                     [reason](const Words &words) { return words.reason == reason; });
    return found == std::end(stallWords) ? nullptr : found;
}

} // namespace

LineSamples::LineSamples(const Trial &trial)
{
    std::set<std::string> kernels;
    for (const Hotspot &spot : trial.hotspots) {
        const std::int64_t samples = std::clamp(spot.samples, std::int64_t{0}, mostSamples);
        m_total += samples;
        kernels.insert(spot.kernel);
        if (spot.line < 1 || spot.line > mostLines)
            continue;
        Line &line = m_lines[spot.line];
        line.samples += samples;
        for (const auto &[reason, count] : spot.stalls)
            line.stalls[reason] += std::clamp(count, std::int64_t{0}, mostSamples);
    }
    m_kernelCount = static_cast<int>(kernels.size());
    // A trial lists the lines with most samples; this one counts all.
    for (const Metric &metric : trial.metrics) {
        if (m_total > 0 && metric.name == allSamples && metric.value < static_cast<double>(mostSamples))
            m_total = std::max(m_total, static_cast<std::int64_t>(metric.value));
    }
    if (m_lines.empty())
        return;
    m_upTo.resize(static_cast<std::size_t>(m_lines.rbegin()->first) + 1);
    std::int64_t sum = 0;
    auto next = m_lines.begin();
    for (std::size_t i = 0; i < m_upTo.size(); ++i) {
        if (next->first == static_cast<int>(i))
            sum += (next++)->second.samples;
        m_upTo[i] = sum;
    }
}

std::int64_t LineSamples::in(const LineSpan &lines) const
{
    if (lines.count <= 0 || m_upTo.empty())
        return 0;
    const auto upTo = [this](std::int64_t line) {
        const auto last = static_cast<std::int64_t>(m_upTo.size()) - 1;
        return m_upTo[static_cast<std::size_t>(std::clamp(line, std::int64_t{0}, last))];
    };
    return upTo(std::int64_t{lines.first} + lines.count - 1) - upTo(std::int64_t{lines.first} - 1);
}

double LineSamples::share(const LineSpan &lines) const
{
    return isEmpty() ? 0 : static_cast<double>(in(lines)) / static_cast<double>(m_total);
}

int LineSamples::hottest(const LineSpan &lines) const
{
    int line = 0;
    std::int64_t most = 0;
    const auto end = m_lines.lower_bound(lines.first + std::max(0, lines.count));
    for (auto at = m_lines.lower_bound(lines.first); at != end; ++at) {
        if (at->second.samples > most) {
            most = at->second.samples;
            line = at->first;
        }
    }
    return line;
}

std::map<std::string, std::int64_t> LineSamples::reasons(const LineSpan &lines) const
{
    std::map<std::string, std::int64_t> sums;
    const auto end = m_lines.lower_bound(lines.first + std::max(0, lines.count));
    for (auto at = m_lines.lower_bound(lines.first); at != end; ++at) {
        for (const auto &[reason, samples] : at->second.stalls)
            sums[reason] += samples;
    }
    return sums;
}

std::vector<StallCount> LineSamples::stalls(const LineSpan &lines) const
{
    std::vector<StallCount> counts;
    for (const auto &[reason, samples] : reasons(lines)) {
        if (reason != issuing && samples > 0)
            counts.push_back({reason, samples});
    }
    std::stable_sort(counts.begin(), counts.end(),
                     [](const StallCount &a, const StallCount &b) { return a.samples > b.samples; });
    return counts;
}

std::int64_t LineSamples::issued(const LineSpan &lines) const
{
    const auto sums = reasons(lines);
    const auto found = sums.find(std::string(issuing));
    return found == sums.end() ? 0 : found->second;
}

std::string stallInWords(std::string_view reason)
{
    const Words *found = findWords(reason);
    return std::string(found ? found->words : reason);
}

std::string stallInBrief(std::string_view reason)
{
    const Words *found = findWords(reason);
    return std::string(found ? found->brief : reason);
}

} // namespace klineage::gate
