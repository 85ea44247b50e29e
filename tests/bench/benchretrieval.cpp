// SPDX-License-Identifier: GPL-3.0-or-later
// Retrieval over 100,000 cards: time of a query, memory of the index; recall and precision on the labelled set.
#include "bench.h"

#include "core/skills/retrieval/sources.h"
#include "core/workspace/workspace.h"
#include "tests/core/skills/labelledset.h"
#include "tests/paths.h"

#include <array>
#include <cstdio>
#include <random>

#include <ctime>
#include <malloc.h>

namespace klineage::bench {

namespace {

using namespace klineage::skills;
using tests::Figures;
using tests::LabelledSet;

constexpr std::size_t cardCount = 100'000;
constexpr int pathCount = 2'000;
constexpr int workloadCount = 400;
constexpr int queryCount = 2'000;

/// A skewed choice: few names are common, many are rare, as in a grown library.
class Random
{
public:
    std::size_t below(std::size_t limit) { return m_random() % limit; }
    std::size_t skewed(std::size_t limit)
    {
        const double at = std::uniform_real_distribution<double>(0, 1)(m_random);
        return static_cast<std::size_t>(at * at * static_cast<double>(limit));
    }
    std::string of(const char *prefix, std::size_t limit) { return prefix + std::to_string(skewed(limit)); }

private:
    std::mt19937_64 m_random{20240607};
};

std::string platform(Random &random)
{
    static const std::vector<std::string> names = {"sm90",
                                                   "pocl",
                                                   "sm100",
                                                   "sm80",
                                                   "sm120",
                                                   "sm89",
                                                   "sm86",
                                                   "opencl-nvidia-cuda",
                                                   "opencl-intel-r-opencl",
                                                   "sm75"};
    return names[random.skewed(names.size())];
}

std::vector<std::string> actions(Random &random)
{
    std::vector<std::string> out;
    for (std::size_t i = random.below(9); i > 0; --i)
        out.push_back(random.of("action_", 40));
    return out;
}

std::vector<Feature> features(Random &random, std::size_t most)
{
    std::vector<Feature> out;
    for (std::size_t i = random.below(most + 1); i > 0; --i)
        out.push_back({random.of("locus number ", 60), random.of("feature_", 50)});
    return out;
}

CardRecord makeCard(std::size_t number, Random &random)
{
    CardRecord record;
    Card &card = record.card;
    card.name = "synthetic-card-" + std::to_string(number);
    card.category = random.of("action_", 40);
    card.locus = random.of("locus number ", 60);
    card.scope.priorActions = actions(random);
    card.requirements = features(random, 2);
    card.provides = features(random, 2);
    card.conflicts = features(random, 1);
    for (std::size_t i = random.below(10) == 0 ? 0 : 1 + random.below(2); i > 0; --i)
        record.verifications.push_back(
            {"2026-01-01T00:00:00Z", random.of("workload_", workloadCount) + '/' + platform(random) + "/K01",
             "0123456789abcdef", 1, "correct", true, true});
    if (record.verifications.empty()) // a hypothesis
        card.scope = {{random.of("workload_", workloadCount)}, {"cuda"}, {platform(random)}, actions(random)};
    return record;
}

Target makeTarget(Random &random)
{
    Target target;
    target.workload = random.of("workload_", workloadCount + workloadCount / 10);
    target.platform = platform(random);
    target.language = target.platform.starts_with("sm") ? "cuda" : "opencl";
    target.priorActions = actions(random);
    target.features = features(random, 12);
    for (int i = 0; i < 6; ++i)
        target.workloadTags.push_back(random.of("tag ", 80));
    return target;
}

struct Sources {
    std::vector<CardRecord> library;
    std::vector<LineagePath> paths;
    std::vector<WorkloadTags> workloads;
};

Sources makeSources(const LabelledSet &labelled, const Workspace &shipped, Random &random)
{
    Sources sources{labelled.library, labelled.paths, labelled.workloads};
    for (const CardRecord &record : shipped.cards) {
        sources.library.push_back(record);
        sources.library.back().card.name += "-shipped";
    }
    while (sources.library.size() < cardCount)
        sources.library.push_back(makeCard(sources.library.size(), random));
    for (int i = 0; i < pathCount; ++i) {
        LineagePath path;
        path.workload = random.of("workload_", workloadCount);
        path.platform = platform(random);
        path.lineage = path.workload + '/' + path.platform;
        for (std::size_t step = 4 + random.below(8); step > 0; --step) {
            path.cards.push_back(sources.library[random.below(sources.library.size())].card.name);
            path.categories.push_back(random.of("action_", 40));
        }
        sources.paths.push_back(std::move(path));
    }
    for (int i = 0; i < workloadCount; ++i) {
        WorkloadTags tags{"workload_" + std::to_string(i), {}};
        for (int tag = 0; tag < 8; ++tag)
            tags.tags.push_back(random.of("tag ", 80));
        sources.workloads.push_back(std::move(tags));
    }
    return sources;
}

/// Milliseconds of this thread's own work so far.
double ownMilliseconds()
{
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// Resident memory, MB.
double residentMb()
{
    long pages = 0;
    if (std::FILE *file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%*s %ld", &pages) != 1)
            pages = 0;
        std::fclose(file);
    }
    return static_cast<double>(pages) * 4096 / 1e6;
}

void measureSpeed(Reporter &reporter, const LabelledSet &labelled, const Workspace &shipped)
{
    Random random;
    ::malloc_trim(0);
    const double before = residentMb();
    auto sources = std::make_unique<Sources>(makeSources(labelled, shipped, random));
    const double library = residentMb() - before;
    std::unique_ptr<RetrievalIndex> index;
    const double build = millisecondsOf([&] {
        index = std::make_unique<RetrievalIndex>(sources->library, sources->paths, sources->workloads);
    });
    const double both = residentMb() - before;
    sources.reset();
    ::malloc_trim(0);
    const double alone = residentMb() - before;

    std::vector<Target> targets;
    for (const tests::LabelledTarget &one : labelled.targets)
        targets.push_back(one.target);
    for (const lineage::Lineage &lineage : shipped.lineages) {
        for (const lineage::State &state : lineage.states)
            targets.push_back(targetAt(lineage, state.id, shipped.cards).value());
    }
    while (targets.size() < queryCount)
        targets.push_back(makeTarget(random));
    std::vector<double> first;
    std::vector<double>
        samples; // the least of three runs of each, so that what else runs on the machine is left out
    std::vector<double> own;
    std::size_t taken = 0;
    for (const Target &target : targets) {
        const double started = ownMilliseconds();
        first.push_back(millisecondsOf([&] { taken += index->find(target).taken.size(); }));
        own.push_back(ownMilliseconds() - started);
        samples.push_back(first.back());
        for (int again = 0; again < 2; ++again)
            samples.back() =
                std::min(samples.back(), millisecondsOf([&] { static_cast<void>(index->find(target)); }));
    }

    const QString note =
        QStringLiteral("%1 cards, %2 lineages, %3 queries, %4 cards taken a query")
            .arg(index->size())
            .arg(pathCount + labelled.paths.size())
            .arg(targets.size())
            .arg(static_cast<double>(taken) / static_cast<double>(targets.size()), 0, 'f', 1);
    reporter.info(QStringLiteral("retrieval.find_p50"), percentile(samples, 0.5), QStringLiteral("ms"), note);
    reporter.atMost(QStringLiteral("retrieval.find_p99"), percentile(samples, 0.99), QStringLiteral("ms"), 5,
                    note);
    reporter.info(QStringLiteral("retrieval.find_p99_once"), percentile(first, 0.99), QStringLiteral("ms"),
                  QStringLiteral("of the first runs, on a machine as busy as it is"));
    reporter.info(QStringLiteral("retrieval.find_cpu_p99"), percentile(own, 0.99), QStringLiteral("ms"),
                  QStringLiteral("processor time of the first runs"));
    reporter.info(QStringLiteral("retrieval.build"), build, QStringLiteral("ms"),
                  QStringLiteral("the index, once a library"));
    reporter.atMost(QStringLiteral("retrieval.index_rss"), alone, QStringLiteral("MB"), 300,
                    QStringLiteral("resident memory that the index adds, its library freed"));
    reporter.info(QStringLiteral("retrieval.library_rss"), library, QStringLiteral("MB"),
                  QStringLiteral("the records that it was made of, without texts and carriers"));
    reporter.atMost(QStringLiteral("retrieval.peak_rss"), both, QStringLiteral("MB"), 300,
                    QStringLiteral("both at once, while the index is made"));
}

/// A file of tests/data/retrieval, and whether retrieval may be changed because of what it shows.
struct Set {
    const char *name;
    bool isKeptAside;
};
constexpr std::array sets{Set{"labels", false}, Set{"blind-a", false}, Set{"blind-b", true}};

void measureQuality(Reporter &reporter, const std::filesystem::path &folder, const Set &set)
{
    const LabelledSet labelled = tests::readLabelledSet(folder, std::string(set.name) + ".toml");
    const Figures figures =
        tests::measure(labelled, RetrievalIndex(labelled.library, labelled.paths, labelled.workloads));
    const QString name = QStringLiteral("retrieval.%1.").arg(QLatin1String(set.name));
    const QString note = QStringLiteral("%1 labelled targets, %2 cards")
                             .arg(static_cast<int>(labelled.targets.size()) - figures.bare)
                             .arg(labelled.library.size());
    reporter.atLeast(name + QStringLiteral("recall_at_8"), figures.recallAt8, {}, 0.97, note);
    reporter.atLeast(name + QStringLiteral("precision_at_r"), figures.precisionAtR, {}, 0.95,
                     note + QStringLiteral("; of as many first cards as are relevant"));
    reporter.info(name + QStringLiteral("recall"), figures.recall, {},
                  note + QStringLiteral("; of all cards taken"));
    reporter.info(name + QStringLiteral("precision"), figures.precision, {},
                  note + QStringLiteral("; of all cards taken, %1 a target").arg(figures.taken, 0, 'f', 1));
    if (figures.bare > 0) {
        reporter.info(name + QStringLiteral("taken_of_bare"), figures.takenOfBare, {},
                      QStringLiteral("cards that a target gets which has no relevant one; %1 of them")
                          .arg(figures.bare));
    }
    if (set.isKeptAside) {
        reporter.detail(
            name + QStringLiteral("misranked"),
            QStringLiteral("%1 cards came late; which ones is kept aside").arg(figures.misranked.size()));
        return;
    }
    for (const tests::Misranked &one : figures.misranked) {
        reporter.detail(name + QStringLiteral("misranked"),
                        QStringLiteral("%1: %2 (%3) behind %4 (%5): %6")
                            .arg(QString::fromStdString(one.title), QString::fromStdString(one.late))
                            .arg(one.lateScore, 0, 'f', 2)
                            .arg(QString::fromStdString(one.early))
                            .arg(one.earlyScore, 0, 'f', 2)
                            .arg(QString::fromStdString(one.why)));
    }
}

void runLabels(Reporter &reporter)
{
    for (const Set &set : sets)
        measureQuality(reporter, std::filesystem::path(klineage::test::sourcePath()) / "tests/data/retrieval",
                       set);
}

void run(Reporter &reporter)
{
    const std::filesystem::path root = klineage::test::sourcePath();
    const Result<Workspace> shipped = openWorkspace(root);
    if (!shipped) {
        reporter.missing(QStringLiteral("retrieval.find_p99"),
                         QString::fromStdString(shipped.error().message));
        return;
    }
    measureSpeed(reporter, tests::readLabelledSet(root / "tests/data/retrieval"), *shipped);
    runLabels(reporter);
}

const Group group("retrieval", "cards for a target out of 100,000, and how good they are", &run);
const Group labels("labels", "how good the cards for labelled targets are: the end of retrieval, alone",
                   &runLabels, true);

} // namespace

} // namespace klineage::bench
