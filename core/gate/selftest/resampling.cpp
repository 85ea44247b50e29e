// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/selftest/resampling.h"

#include "core/base/random.h"
#include "core/gate/timing/rounds.h"
#include "core/trial/trial.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

namespace klineage::gate {

namespace {

constexpr std::size_t fewestRecorded = 6; ///< blocks

const std::vector<double> *samplesOf(const Trial &trial, const std::string &subject)
{
    const auto found = std::find_if(trial.samples.begin(), trial.samples.end(),
                                    [&](const Samples &samples) { return samples.subject == subject; });
    return found == trial.samples.end() ? nullptr : &found->ns;
}

Noise noiseOf(const std::vector<double> &candidate, const std::vector<double> &copy)
{
    Noise noise;
    const std::size_t rounds = std::min(candidate.size(), copy.size());
    for (std::size_t i = 0; i + resampledRounds <= rounds; i += resampledRounds) {
        auto &block = noise.emplace_back();
        for (std::size_t j = i; j < i + resampledRounds; ++j)
            block.push_back(copy[j] / candidate[j]);
    }
    return noise;
}

/// Blocks of one drawn trial.
class Draws
{
public:
    Draws(const Noise &noise, std::uint64_t seed)
        : m_noise(noise)
        , m_random(seed)
    {}

    std::vector<double> block()
    {
        const auto &block = m_noise[next() % m_noise.size()];
        const bool exchanged = next() % 2 == 0;
        std::vector<double> drawn;
        for (std::size_t i = 0; i < block.size(); ++i) {
            const double ratio = block[next() % block.size()];
            drawn.push_back(exchanged ? 1 / ratio : ratio);
        }
        return drawn;
    }

private:
    std::uint64_t next() { return m_random.bits(m_counter++); }

    const Noise &m_noise;
    CounterRandom m_random;
    std::uint64_t m_counter = 0;
};

struct Drawn {
    Change change = Change::Undecided;
    std::size_t blocks = 0;
};

/// As Profiler has it: blocks are added until the rule says stop; the change is decided from all of them.
Drawn drawnTrial(const Noise &noise, std::uint64_t seed, const ResampleOptions &options)
{
    Draws draws(noise, seed);
    std::vector<TimedSubject> subjects(3);
    const char *const names[] = {"candidate", "copy", "parent"};
    for (std::size_t i = 0; i < subjects.size(); ++i)
        subjects[i].name = names[i];
    RoundState state;
    std::optional<double> spread;
    StopRule rule;
    rule.quick = options.quick;
    rule.targetHalfWidth = options.targetHalfWidth;
    while (true) {
        const auto copy = draws.block();
        const auto parent = draws.block();
        for (std::size_t i = 0; i < copy.size(); ++i) {
            subjects[0].ns.push_back(1e4 * (1 + options.slower));
            subjects[1].ns.push_back(1e4 * (1 + options.slower) * copy[i]);
            subjects[2].ns.push_back(1e4 * parent[i % parent.size()]);
        }
        state.blockEnds.push_back(subjects.front().ns.size());
        if (state.blockEnds.size() < fewestBlocks)
            continue;
        rule.timeIsUp = state.blockEnds.size() >= options.mostBlocks;
        const double width = widestHalfWidth(subjects, state);
        spread = copySpread(subjects, state);
        if (!stopReason(subjects, state, rule, width, spread).empty())
            break;
    }
    const auto ratios = pairedRatios(subjects[2].ns, subjects[0].ns);
    return {decide(blockedMedian(ratios, state.blockEnds, 1, finalResamples), ratios.size(), spread),
            state.blockEnds.size()};
}

} // namespace

Result<std::vector<Noise>> recordedNoise(const std::filesystem::path &workloads, const std::string &platform)
{
    std::error_code problem;
    std::vector<std::filesystem::path> files;
    for (const auto &workload : std::filesystem::directory_iterator(workloads, problem)) {
        const auto file = workload.path() / "lineages" / platform / "trials.jsonl";
        std::error_code none;
        if (std::filesystem::is_regular_file(file, none))
            files.push_back(file);
    }
    if (problem)
        return fail(ErrorCode::NotFound,
                    "Cannot list " + workloads.string() + ": " + problem.message() + '.');
    std::sort(files.begin(), files.end());
    std::vector<Noise> all;
    for (const auto &file : files) {
        std::ifstream lines(file);
        for (std::string line; std::getline(lines, line);) {
            const auto trial = parseTrial(line, file.string());
            if (!trial)
                return tl::unexpected(trial.error());
            const auto *candidate = samplesOf(*trial, "candidate");
            const auto *copy = samplesOf(*trial, "copy");
            if (candidate && copy
                && std::min(candidate->size(), copy->size()) >= fewestRecorded * resampledRounds)
                all.push_back(noiseOf(*candidate, *copy));
        }
        if (lines.bad())
            return fail(ErrorCode::Io, "Cannot read " + file.string() + ".");
    }
    return all;
}

double floorOf(const Noise &noise)
{
    std::vector<double> all;
    std::vector<std::size_t> ends;
    for (const auto &block : noise) {
        all.insert(all.end(), block.begin(), block.end());
        ends.push_back(all.size());
    }
    return noiseFloor(blockedMedian(all, ends));
}

ResampleCounts resample(const std::vector<Noise> &noises, const ResampleOptions &options)
{
    std::vector<Drawn> drawn(static_cast<std::size_t>(std::max(options.trials, 1)));
    std::atomic<std::size_t> next{0};
    {
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
            threads.emplace_back([&] {
                for (std::size_t j = next++; j < drawn.size(); j = next++)
                    drawn[j] = drawnTrial(noises[j % noises.size()], options.seed + j, options);
            });
    }
    ResampleCounts counts;
    std::vector<std::size_t> blocks;
    for (const Drawn &one : drawn) {
        counts.gains += one.change == Change::Gain ? 1 : 0;
        counts.losses += one.change == Change::Loss ? 1 : 0;
        counts.undecided += one.change == Change::Undecided ? 1 : 0;
        blocks.push_back(one.blocks);
    }
    std::sort(blocks.begin(), blocks.end());
    counts.blocksP50 = blocks[blocks.size() / 2];
    counts.blocksP95 = blocks[blocks.size() * 95 / 100];
    return counts;
}

} // namespace klineage::gate
