// SPDX-License-Identifier: GPL-3.0-or-later
//
// How often the rule that stops and decides a comparison errs, on noise that was recorded: the rounds of a candidate and its copy in the
// library's trials on a GPU. A trial is drawn anew from the blocks of a recorded one, and the rounds within them. Which of the two sides of
// a block is which is a coin's, because placement is drawn for each block: so there is no difference, whatever one block shows. A
// hundred trials here; KLINEAGE_RESAMPLED_TRIALS=10000 draws as many as the bar of one false in a hundred was set for.
#include "core/base/random.h"
#include "core/gate/timing/rounds.h"
#include "core/trial/trial.h"
#include "tests/paths.h"

#include <QTest>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace klineage;
using namespace klineage::gate;

namespace {

constexpr std::size_t blockRounds = 5;
constexpr std::size_t mostBlocks = 60;

/// Ratios of a recorded candidate to its copy, by block.
using Noise = std::vector<std::vector<double>>;

const std::vector<double> *named(const Trial &trial, const std::string &subject)
{
    for (const Samples &samples : trial.samples) {
        if (samples.subject == subject)
            return &samples.ns;
    }
    return nullptr;
}

/// Trials with at least six blocks of five rounds.
std::vector<Noise> recorded()
{
    const std::filesystem::path library = std::filesystem::path(klineage::test::sourcePath()) / "workloads";
    std::vector<Noise> all;
    for (const char *workload :
         {"conv2d-f16", "gemm", "softmax", "layernorm", "topk", "gdn", "gemm-decode"}) {
        std::ifstream lines(library / workload / "lineages/sm90/trials.jsonl");
        for (std::string line; std::getline(lines, line);) {
            const auto trial = parseTrial(line, workload);
            const auto *candidate = trial ? named(*trial, "candidate") : nullptr;
            const auto *copy = trial ? named(*trial, "copy") : nullptr;
            if (!candidate || !copy || candidate->size() < 6 * blockRounds)
                continue;
            Noise noise;
            for (std::size_t i = 0; i + blockRounds <= candidate->size(); i += blockRounds) {
                auto &block = noise.emplace_back();
                for (std::size_t j = i; j < i + blockRounds; ++j)
                    block.push_back((*copy)[j] / (*candidate)[j]);
            }
            all.push_back(std::move(noise));
        }
    }
    return all;
}

std::vector<double> drawnBlock(const Noise &noise, CounterRandom &random, std::uint64_t &counter)
{
    const auto &block = noise[random.bits(counter++) % noise.size()];
    const bool exchanged = random.bits(counter++) % 2 == 0;
    std::vector<double> drawn;
    for (std::size_t i = 0; i < block.size(); ++i) {
        const double ratio = block[random.bits(counter++) % block.size()];
        drawn.push_back(exchanged ? 1 / ratio : ratio);
    }
    return drawn;
}

struct Drawn {
    Change change = Change::Undecided;
    std::size_t blocks = 0;
};

/// As Profiler has it: blocks are added until the rule says stop; the change is decided from all of them. slower: how much longer the
/// candidate takes than its parent.
Drawn drawnTrial(const Noise &noise, std::uint64_t seed, const StopRule &asked, double slower)
{
    CounterRandom random(seed);
    std::uint64_t counter = 0;
    std::vector<TimedSubject> subjects(3);
    const char *const names[] = {"candidate", "copy", "parent"};
    for (std::size_t i = 0; i < subjects.size(); ++i)
        subjects[i].name = names[i];
    RoundState state;
    std::optional<double> spread;
    while (true) {
        const auto copy = drawnBlock(noise, random, counter);
        const auto parent = drawnBlock(noise, random, counter);
        for (std::size_t i = 0; i < blockRounds; ++i) {
            subjects[0].ns.push_back(1e4 * (1 + slower));
            subjects[1].ns.push_back(1e4 * (1 + slower) * copy[i]);
            subjects[2].ns.push_back(1e4 * parent[i]);
        }
        state.blockEnds.push_back(subjects.front().ns.size());
        if (state.blockEnds.size() < fewestBlocks)
            continue;
        StopRule rule = asked;
        rule.timeIsUp = state.blockEnds.size() >= mostBlocks;
        const double width = widestHalfWidth(subjects, state);
        spread = copySpread(subjects, state);
        if (!stopReason(subjects, state, rule, width, spread).empty())
            break;
    }
    const auto ratios = pairedRatios(subjects[2].ns, subjects[0].ns);
    return {decide(blockedMedian(ratios, state.blockEnds, 1, finalResamples), ratios.size(), spread),
            state.blockEnds.size()};
}

struct Counts {
    int gains = 0;
    int losses = 0;
    int undecided = 0;
    double blocks = 0;
};

/// So many trials, each from one of the recorded ones in turn.
Counts drawnTrials(const std::vector<Noise> &noises, int count, const StopRule &rule, double slower,
                   std::uint64_t seed)
{
    std::vector<Drawn> drawn(static_cast<std::size_t>(count));
    std::atomic<std::size_t> next{0};
    {
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
            threads.emplace_back([&] {
                for (std::size_t j = next++; j < drawn.size(); j = next++)
                    drawn[j] = drawnTrial(noises[j % noises.size()], seed + j, rule, slower);
            });
    }
    Counts counts;
    for (const Drawn &one : drawn) {
        counts.gains += one.change == Change::Gain ? 1 : 0;
        counts.losses += one.change == Change::Loss ? 1 : 0;
        counts.undecided += one.change == Change::Undecided ? 1 : 0;
        counts.blocks += static_cast<double>(one.blocks) / count;
    }
    qInfo("%d trials from %zu recorded ones: %d gains, %d losses, %d undecided, %.1f blocks each", count,
          noises.size(), counts.gains, counts.losses, counts.undecided, counts.blocks);
    return counts;
}

/// Trials for the time that a test may take; KLINEAGE_RESAMPLED_TRIALS says how many instead.
int trialCount()
{
    constexpr int usual = 100;
    return qEnvironmentVariableIntValue("KLINEAGE_RESAMPLED_TRIALS") > 0
               ? qEnvironmentVariableIntValue("KLINEAGE_RESAMPLED_TRIALS")
               : usual;
}

} // namespace

class TestResampling : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        m_noises = recorded();
        QVERIFY2(m_noises.size() >= 40, qPrintable(QString::number(m_noises.size())));
    }

    /// At most one in a hundred comparisons of a kernel with itself says gain or loss, whether it stops when certain or at a width.
    void sameIsSame_data()
    {
        QTest::addColumn<bool>("quick");
        QTest::newRow("quick") << true;
        QTest::newRow("to a half-width") << false;
    }
    void sameIsSame()
    {
        QFETCH(bool, quick);
        StopRule rule;
        rule.quick = quick;
        const int count = quick ? trialCount() : std::max(1, trialCount() / 4);
        const Counts counts = drawnTrials(m_noises, count, rule, 0, quick ? 1 : 1'000'000);
        QVERIFY(counts.gains + counts.losses <= std::max(1, count / 100));
    }

    /// Half a percent is found in 57 of 60, where noise is such that it can be: on recorded trials whose copies were within 0.12 %.
    void halfAPercentIsFound()
    {
        std::vector<Noise> quiet;
        for (const Noise &noise : m_noises) {
            std::vector<double> all;
            std::vector<std::size_t> ends;
            for (const auto &block : noise) {
                all.insert(all.end(), block.begin(), block.end());
                ends.push_back(all.size());
            }
            if (noiseFloor(blockedMedian(all, ends)) < 0.0012)
                quiet.push_back(noise);
        }
        QVERIFY(quiet.size() >= 10);
        StopRule rule;
        rule.targetHalfWidth = 0.001;
        const int count = 60;
        const Counts counts = drawnTrials(quiet, count, rule, 0.005, 2'000'000);
        QCOMPARE(counts.gains, 0);
        QVERIFY(counts.losses >= count * 57 / 60);
    }

private:
    std::vector<Noise> m_noises;
};

QTEST_GUILESS_MAIN(TestResampling)
#include "tst_resampling.moc"
