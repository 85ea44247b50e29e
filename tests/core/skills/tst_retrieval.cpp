// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/retrieval.h"
#include "core/skills/retrieval/similarity.h"
#include "core/skills/retrieval/sources.h"
#include "tests/paths.h"

#include <QTest>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <set>
#include <thread>
#include <tuple>

using namespace klineage;
using namespace klineage::skills;

namespace {

Verification success(const std::string &target)
{
    return {"2026-01-01T00:00:00Z", target, "0123456789abcdef", 1, "correct", true, true};
}

/// A card that roundtrips on the given targets admitted.
CardRecord card(const std::string &name, const std::string &category, const std::vector<std::string> &targets,
                const std::vector<std::string> &priorActions = {})
{
    CardRecord record;
    record.card.name = name;
    record.card.category = category;
    record.card.scope.priorActions = priorActions;
    for (const std::string &target : targets)
        record.verifications.push_back(success(target));
    return record;
}

Target pocl(const std::string &workload, std::vector<std::string> priorActions = {})
{
    Target target;
    target.workload = workload;
    target.language = "opencl";
    target.platform = "pocl";
    target.priorActions = std::move(priorActions);
    return target;
}

std::vector<std::string> names(const Retrieval &retrieval)
{
    std::vector<std::string> out;
    for (const Retrieved &one : retrieval.taken)
        out.push_back(one.card);
    return out;
}

const Retrieved *taken(const Retrieval &retrieval, const std::string &name)
{
    for (const Retrieved &one : retrieval.taken) {
        if (one.card == name)
            return &one;
    }
    return nullptr;
}

const Blocked *blocked(const Retrieval &retrieval, const std::string &name)
{
    for (const Blocked &one : retrieval.blocked) {
        if (one.card == name)
            return &one;
    }
    return nullptr;
}

std::string textOf(const std::vector<Reason> &reasons, Dimension dimension)
{
    for (const Reason &reason : reasons) {
        if (reason.dimension == dimension)
            return reason.text;
    }
    return {};
}

using Names = std::vector<std::string>;

} // namespace

class TestRetrieval : public QObject
{
    Q_OBJECT

private slots:
    void anEmptyLibraryHasNothing()
    {
        const RetrievalIndex index{std::vector<CardRecord>()};
        QCOMPARE(index.size(), std::size_t{0});
        QVERIFY(index.find(pocl("sgemm")).taken.empty());
        QVERIFY(index.find({}).blocked.empty());
    }

    void platformsResembleWithinAFamilyOnly_data()
    {
        QTest::addColumn<QString>("a");
        QTest::addColumn<QString>("b");
        QTest::addColumn<double>("similarity");
        QTest::newRow("the same") << "sm90"
                                  << "sm90" << 1.0;
        QTest::newRow("the same major number") << "sm86"
                                               << "sm89" << 0.8;
        QTest::newRow("neighbours") << "sm90"
                                    << "sm100" << 0.5;
        QTest::newRow("there is no 11") << "sm100"
                                        << "sm120" << 0.5;
        QTest::newRow("three apart") << "sm75"
                                     << "sm100" << 0.25;
        QTest::newRow("another kind") << "sm90"
                                      << "pocl" << 0.0;
        QTest::newRow("the same device, another driver") << "sm90"
                                                         << "opencl-nvidia-cuda" << 0.0;
        QTest::newRow("two of no family") << "opencl-a"
                                          << "opencl-b" << 0.0;
        QTest::newRow("no number") << "smart"
                                   << "sm90" << 0.0;
        QTest::newRow("a number and more") << "sm90a"
                                           << "sm90" << 0.0;
        QTest::newRow("none") << ""
                              << "" << 0.0;
    }
    void platformsResembleWithinAFamilyOnly()
    {
        QFETCH(QString, a);
        QFETCH(QString, b);
        QFETCH(double, similarity);
        QCOMPARE(platformSimilarity(a.toStdString(), b.toStdString()), similarity);
        QCOMPARE(platformSimilarity(b.toStdString(), a.toStdString()), similarity);
    }

    void missingActionsWeighMoreThanExtraOnes()
    {
        QCOMPARE(priorSimilarity(0, 0, 0), 1.0);
        QCOMPARE(priorSimilarity(3, 0, 0), 1.0);
        QVERIFY(priorSimilarity(1, 0, 2) > priorSimilarity(1, 1, 0));
        QVERIFY(priorSimilarity(2, 1, 0) > priorSimilarity(1, 2, 0));
        QCOMPARE(priorSimilarity(0, 1, 0), 0.5);
    }

    void wordsAreNormalized()
    {
        QCOMPARE(normalized("  K-Loop \t operand\nload "), std::string("k-loop operand load"));
        QCOMPARE(normalized(" "), std::string());
    }

    void scopeIsWhatWasVerified()
    {
        CardRecord record = card("a", "tiling", {"sgemm/pocl/K02", "gemm/sm90/K00"}, {"claimed"});
        record.card.scope.cases = {"claimed"};
        record.verifications.push_back(success("softmax/pocl/K00"));
        record.verifications.back().status = "wrong";
        record.verifications.push_back(success("conv/pocl/K00"));
        record.verifications.back().expectedEffectObserved = false;
        const Scope alone = verifiedScope(record);
        QCOMPARE(alone.cases, (Names{"sgemm", "gemm"}));
        QCOMPARE(alone.platforms, (Names{"pocl", "sm90"}));
        QCOMPARE(alone.languages, (Names{"opencl", "cuda"}));
        QCOMPARE(alone.priorActions, (Names{"claimed"}));

        const LineagePath path{"sgemm/pocl", "sgemm",         "pocl",
                               {"", "", ""}, {"x", "y", "z"}, {"K01", "K02", "K03"}};
        const LineagePath other{"gemm/sm90", "gemm", "sm90", {""}, {"x"}, {"K01"}};
        QCOMPARE(verifiedScope(record, {path, other}).priorActions, (Names{"x", "y"}));
        QCOMPARE(verifiedScope(card("b", "tiling", {})), Scope());
    }

    void claimsCountForHypothesesOnly()
    {
        CardRecord hypothesis = card("guess", "tiling", {});
        hypothesis.card.scope = {{"sgemm"}, {"opencl"}, {"pocl"}, {}};
        CardRecord admitted = card("proven", "tiling", {"softmax/pocl/K00"});
        admitted.card.scope = {{"sgemm"}, {"opencl"}, {"pocl"}, {}};
        const RetrievalIndex index({hypothesis, admitted});

        const Retrieval strict = index.find(pocl("sgemm"));
        QCOMPARE(names(strict), (Names{"proven"}));
        QCOMPARE(textOf(taken(strict, "proven")->reasons, Dimension::Case), std::string());
        QVERIFY(blocked(strict, "guess") != nullptr);
        QCOMPARE(blocked(strict, "guess")->rules.front(),
                 std::string("is a hypothesis: no held-out roundtrip has admitted it"));

        RetrievalOptions options;
        options.hypotheses = true;
        const Retrieval open = index.find(pocl("sgemm"), options);
        QCOMPARE(names(open), (Names{"guess", "proven"}));
        QCOMPARE(textOf(open.taken[0].reasons, Dimension::Case),
                 std::string("claimed on sgemm, the same workload"));
        QVERIFY(open.blocked.empty());
    }

    void aRoundtripOnAContributingStateAdmitsNothing()
    {
        CardRecord record = card("a", "tiling", {"sgemm/pocl/K00"});
        record.verifications[0].heldOut = false;
        const RetrievalIndex index({record});
        QVERIFY(index.find(pocl("sgemm")).taken.empty());
    }

    void everyDimensionSaysWhy()
    {
        const RetrievalIndex index({card("a", "tiling", {"sgemm/pocl/K03"}, {"blocking"})},
                                   {{"sgemm/pocl", "sgemm", "pocl", {"", "a"}, {"blocking", "tiling"}, {}}});
        const Retrieval found = index.find(pocl("sgemm", {"blocking"}));
        QCOMPARE(found.taken.size(), std::size_t{1});
        const auto &reasons = found.taken[0].reasons;
        QCOMPARE(reasons.size(), std::size_t{5});
        QCOMPARE(textOf(reasons, Dimension::Case), std::string("verified on sgemm, the same workload"));
        QCOMPARE(textOf(reasons, Dimension::Language), std::string("verified in opencl"));
        QCOMPARE(textOf(reasons, Dimension::Platform), std::string("verified on pocl, the same platform"));
        QCOMPARE(textOf(reasons, Dimension::PriorActions),
                 std::string("verified after blocking, which the code has"));
        QCOMPARE(textOf(reasons, Dimension::Path),
                 std::string("the next step along sgemm/pocl after blocking"));
        QCOMPARE(found.taken[0].score, 3 + 0.5 + 3 + 1 + 0.6);
        for (const Reason &reason : reasons)
            QCOMPARE(reason.rank, 1);
    }

    void workloadsResembleByTags()
    {
        const std::vector<CardRecord> library = {card("near", "tiling", {"gemm/other/K00"}),
                                                 card("far", "tiling", {"sort/other/K00"})};
        const std::vector<WorkloadTags> tags = {{"gemm", {"matmul", "bf16", "2 inputs"}},
                                                {"sort", {"sort", "f32", "1 input"}},
                                                {"batched", {"MatMul", "f32", "2 inputs"}}};
        const RetrievalIndex index(library, {}, tags);
        Target target;
        target.workload = "batched";
        const Retrieval known = index.find(target);
        QCOMPARE(textOf(taken(known, "near")->reasons, Dimension::Case),
                 std::string("verified on gemm, which is 45 % like batched by its tags"));
        QCOMPARE(textOf(taken(known, "far")->reasons, Dimension::Case), std::string()); // 1 of 5: too little

        target.workload = "unheard-of";
        QCOMPARE(textOf(taken(index.find(target), "near")->reasons, Dimension::Case), std::string());
        target.workloadTags = {"matmul", "bf16", "2 inputs"};
        const Retrieval told = index.find(target);
        QCOMPARE(textOf(taken(told, "near")->reasons, Dimension::Case),
                 std::string("verified on gemm, which is 90 % like unheard-of by its tags"));
    }

    void contractsBlock_data()
    {
        QTest::addColumn<QStringList>("features");
        QTest::addColumn<QString>("rule"); // empty: taken
        QTest::newRow("met") << QStringList{"k-loop:tile"} << "";
        QTest::newRow("met, written otherwise") << QStringList{" K-Loop :TILE"} << "";
        QTest::newRow("missing") << QStringList{}
                                 << "requires tile at k-loop, which the code does not provide";
        QTest::newRow("at another locus")
            << QStringList{"epilogue:tile"} << "requires tile at k-loop, which the code does not provide";
        QTest::newRow("provided in part") << QStringList{"k-loop:tile", "k-loop:ring"} << "";
        QTest::newRow("provided at another locus")
            << QStringList{"k-loop:tile", "store:ring", "store:mask"} << "";
        QTest::newRow("already provided") << QStringList{"k-loop:tile", "k-loop:ring", "k-loop:mask"}
                                          << "already provided: the code has mask at k-loop";
        QTest::newRow("in conflict") << QStringList{"k-loop:tile", "grid:persistent"}
                                     << "conflicts with persistent at grid, which the code provides";
    }
    void contractsBlock()
    {
        QFETCH(QStringList, features);
        QFETCH(QString, rule);
        CardRecord record = card("a", "pipeline", {"sgemm/pocl/K00"});
        record.card.requirements = {{"k-loop", "tile"}};
        record.card.provides = {{"k-loop", "ring"}, {"K-loop", "mask"}};
        record.card.conflicts = {{"grid", "persistent"}};
        const RetrievalIndex index({record});
        Target target = pocl("sgemm");
        for (const QString &feature : features)
            target.features.push_back(
                {feature.section(':', 0, 0).toStdString(), feature.section(':', 1).toStdString()});
        const Retrieval found = index.find(target);
        QCOMPARE(found.taken.size(), std::size_t(rule.isEmpty() ? 1 : 0));
        QCOMPARE(found.blocked.size(), std::size_t(rule.isEmpty() ? 0 : 1));
        if (!rule.isEmpty()) {
            const Names &rules = found.blocked[0].rules;
            QVERIFY2(std::find(rules.begin(), rules.end(), rule.toStdString()) != rules.end(),
                     rules.front().c_str());
            QVERIFY(!found.blocked[0].reasons.empty());
        }
    }

    void retiredAndRejectedCardsAreBlocked()
    {
        CardRecord retired = card("retired", "tiling", {"sgemm/pocl/K00"});
        retired.card.retired = true;
        retired.card.scope = {{"sgemm"}, {"opencl"}, {"pocl"}, {}};
        CardRecord rejected = card("rejected", "tiling", {"sgemm/pocl/K00"});
        rejected.card.scope = retired.card.scope;
        rejected.reviews.push_back({"r1", "", "Ada", 1, ReviewVerdict::Reject, "unsound", "", ""});
        RetrievalOptions options;
        options.hypotheses = true;
        const Retrieval found = RetrievalIndex({retired, rejected}).find(pocl("sgemm"), options);
        QVERIFY(found.taken.empty());
        QCOMPARE(blocked(found, "retired")->rules, (Names{"is retired"}));
        QCOMPARE(blocked(found, "rejected")->rules, (Names{"is rejected by its standing review"}));

        rejected.reviews.push_back({"r2", "", "Ada", 1, ReviewVerdict::Revert, "", "r1", ""});
        QCOMPARE(names(RetrievalIndex({rejected}).find(pocl("sgemm"))), (Names{"rejected"}));
    }

    void pathsGoOnFromWhereTheTargetStands_data()
    {
        QTest::addColumn<QStringList>("done");
        QTest::addColumn<QStringList>("features");
        QTest::addColumn<QStringList>("next"); // by rank in the path
        QTest::newRow("naive") << QStringList{} << QStringList{} << QStringList{"p1", "p2", "p3", "p4"};
        QTest::newRow("one done") << QStringList{"blocking"} << QStringList{}
                                  << QStringList{"p2", "p3", "p4"};
        QTest::newRow("one of two vectorizations")
            << QStringList{"blocking", "vectorization"} << QStringList{} << QStringList{"p3", "p4"};
        QTest::newRow("both") << QStringList{"blocking", "vectorization", "vectorization"} << QStringList{}
                              << QStringList{"p4"};
        QTest::newRow("out of order")
            << QStringList{"prefetch"} << QStringList{} << QStringList{"p1", "p2", "p3"};
        QTest::newRow("known by its feature")
            << QStringList{} << QStringList{"f1"} << QStringList{"p2", "p3", "p4"};
        QTest::newRow("all") << QStringList{"blocking", "vectorization", "vectorization", "prefetch"}
                             << QStringList{} << QStringList{};
    }
    void pathsGoOnFromWhereTheTargetStands()
    {
        QFETCH(QStringList, done);
        QFETCH(QStringList, features);
        QFETCH(QStringList, next);
        const Names categories{"blocking", "vectorization", "vectorization", "prefetch"};
        std::vector<CardRecord> library;
        for (int i = 0; i < 4; ++i) {
            // Verified far away, so that only the path can take them.
            library.push_back(card("p" + std::to_string(i + 1), categories[static_cast<std::size_t>(i)],
                                   {"elsewhere/other/K00"}, {"q1", "q2", "q3", "q4", "q5"}));
            library.back().card.provides = {{"somewhere", "f" + std::to_string(i + 1)}};
        }
        const RetrievalIndex index(
            library, {{"sgemm/pocl", "sgemm", "pocl", {"p1", "p2", "p3", "p4"}, categories, {}}});
        Target target = pocl("sgemm");
        for (const QString &action : done)
            target.priorActions.push_back(action.toStdString());
        for (const QString &feature : features)
            target.features.push_back({"somewhere", feature.toStdString()});
        const Retrieval found = index.find(target);
        Names expected;
        for (const QString &name : next)
            expected.push_back(name.toStdString());
        QCOMPARE(names(found), expected); // nearest next step first
        for (const Retrieved &one : found.taken)
            QCOMPARE(one.reasons.front().dimension, Dimension::Path);
    }

    void pathsOfOtherPlatformsDoNotLead()
    {
        const RetrievalIndex index({card("a", "tiling", {"elsewhere/other/K00"}, {"q1", "q2"})},
                                   {{"sgemm/sm90", "sgemm", "sm90", {"a"}, {"tiling"}, {}}});
        QVERIFY(index.find(pocl("sgemm")).taken.empty());
    }

    void blockedCardsTakeNoPlace()
    {
        std::vector<CardRecord> library;
        for (int i = 0; i < 20; ++i) { // the first ten of them, which are nearer, are blocked
            library.push_back(card("c" + std::to_string(10 + i), "tiling", {"sgemm/pocl/K00"},
                                   i < 10 ? Names{} : Names{"other"}));
            if (i < 10)
                library.back().card.requirements = {{"k-loop", "tile"}};
        }
        RetrievalOptions options;
        options.perDimension = 3;
        options.mostBlocked = 5;
        const Retrieval found = RetrievalIndex(library).find(pocl("sgemm"), options);
        QCOMPARE(names(found), (Names{"c20", "c21", "c22"}));
        QCOMPARE(found.blocked.size(), std::size_t{5});
        for (const Blocked &one : found.blocked)
            QVERIFY(one.card < "c20");
    }

    /// What lies behind the last card taken was no near miss.
    void farBlockedCardsAreNotListed()
    {
        std::vector<CardRecord> library = {card("good", "tiling", {"sgemm/pocl/K00"}),
                                           card("worse", "tiling", {"softmax/pocl/K00"})};
        library[1].card.requirements = {{"k-loop", "tile"}};
        RetrievalOptions options;
        options.perDimension = 1;
        const Retrieval found = RetrievalIndex(library).find(pocl("sgemm"), options);
        QCOMPARE(names(found), (Names{"good"}));
        QVERIFY(found.blocked.empty());
    }

    /// Against a plain reading of the definition, on random libraries.
    void theIndexAgreesWithTheDefinition()
    {
        std::mt19937 random(11);
        const auto pick = [&](std::initializer_list<const char *> from) {
            return std::string(from.begin()[random() % from.size()]);
        };
        for (int round = 0; round < 60; ++round) {
            std::vector<CardRecord> library;
            for (int i = 0; i < 60; ++i)
                library.push_back(
                    card("c" + std::to_string(100 + i), "tiling",
                         {pick({"a", "b", "c", "d"}) + '/' + pick({"pocl", "sm90", "sm100", "x"}) + "/K01"},
                         {pick({"p", "q"}), pick({"q", "r", "s"})}));
            Target target;
            target.workload = pick({"a", "b", "z"});
            target.platform = pick({"pocl", "sm90"});
            target.language = std::string(languageOfPlatform(target.platform));
            target.priorActions = {pick({"p", "q", "r"})};
            RetrievalOptions options;
            options.perDimension = 1 + static_cast<int>(random() % 6);
            const Retrieval found = RetrievalIndex(library).find(target, options);

            std::set<std::string> expected;
            for (int dimension = 0; dimension < 4; ++dimension) {
                std::vector<std::tuple<double, double, std::string>> order;
                for (const CardRecord &record : library) {
                    const Scope scope = verifiedScope(record);
                    // These cards say nothing of what they need.
                    if (!scope.languages.empty() && scope.languages[0] != target.language)
                        continue;
                    std::set<std::string> own(scope.priorActions.begin(), scope.priorActions.end());
                    const std::size_t shared = own.count(target.priorActions[0]);
                    const std::array parts{
                        scope.cases[0] == target.workload ? 1.0 : 0.0,
                        !scope.languages.empty() && scope.languages[0] == target.language ? 1.0 : 0.0,
                        platformSimilarity(scope.platforms[0], target.platform),
                        priorSimilarity(shared, own.size() - shared, 1 - shared)};
                    const double own1 = parts[static_cast<std::size_t>(dimension)];
                    const double kind = parts[2] == 0 ? 0.5 : 1; // of device
                    if (own1 >= (dimension == 3 ? 0.5 : 0.2))
                        order.emplace_back(-own1,
                                           -(3 * kind * parts[0] + 0.5 * parts[1] + 3 * parts[2] + parts[3]),
                                           record.card.name);
                }
                std::sort(order.begin(), order.end());
                // Of cards that are equal in everything any may be taken: compare the scores, not the names.
                for (std::size_t i = 0;
                     i < order.size() && i < static_cast<std::size_t>(options.perDimension); ++i)
                    expected.insert(QString::number(dimension).toStdString() + ' '
                                    + std::to_string(std::get<0>(order[i])) + ' '
                                    + std::to_string(std::get<1>(order[i])) + ' ' + std::to_string(i + 1));
            }
            std::set<std::string> got;
            for (const Retrieved &one : found.taken) {
                for (const Reason &reason : one.reasons)
                    got.insert(std::to_string(static_cast<int>(reason.dimension)) + ' '
                               + std::to_string(-reason.similarity) + ' ' + std::to_string(-one.score) + ' '
                               + std::to_string(reason.rank));
            }
            QCOMPARE(got, expected);
        }
    }

    void findIsSafeInManyThreads()
    {
        std::vector<CardRecord> library;
        for (int i = 0; i < 200; ++i)
            library.push_back(card("c" + std::to_string(i), "tiling",
                                   {"w" + std::to_string(i % 7) + "/pocl/K00"},
                                   {"p" + std::to_string(i % 5)}));
        const RetrievalIndex index(library);
        const Names expected = names(index.find(pocl("w3", {"p2"})));
        std::vector<std::thread> threads;
        std::atomic<int> different = 0;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&] {
                for (int i = 0; i < 50; ++i)
                    different += names(index.find(pocl("w3", {"p2"}))) == expected ? 0 : 1;
            });
        for (std::thread &thread : threads)
            thread.join();
        QCOMPARE(different.load(), 0);
        QVERIFY(!expected.empty());
    }

    void aStateIsATarget()
    {
        const auto lineage = lineage::readLineage(std::filesystem::path(klineage::test::sourcePath())
                                                  / "workloads/sgemm/lineages/pocl");
        QVERIFY(lineage.has_value());
        CardRecord block = card("block-outputs-in-registers", "register_blocking", {});
        block.card.provides = {{"accumulator", "register_block"}};
        const auto target = targetAt(*lineage, "K02", {block});
        QVERIFY(target.has_value());
        QCOMPARE(target->workload, std::string("sgemm"));
        QCOMPARE(target->language, std::string("opencl"));
        QCOMPARE(target->platform, std::string("pocl"));
        QCOMPARE(target->priorActions, (Names{"register_blocking", "vectorization"}));
        QCOMPARE(target->features, block.card.provides);
        QVERIFY(targetAt(*lineage, "K00", {block})->priorActions.empty());
        QVERIFY(!targetAt(*lineage, "K99", {block}).has_value());

        const LineagePath path = pathOf(*lineage);
        QCOMPARE(path.lineage, std::string("sgemm/pocl"));
        QCOMPARE(path.states.front(), std::string("K01"));
        QCOMPARE(path.cards.size(), path.categories.size());
    }

    void workloadsHaveTags()
    {
        const auto workload =
            workload::readWorkload(std::filesystem::path(klineage::test::sourcePath()) / "workloads/gemm");
        QVERIFY(workload.has_value());
        const Names tags = tagsOf(*workload).tags;
        for (const char *tag : {"matmul_nt", "matmul", "nt", "bf16", "2 inputs", "input of rank 2"})
            QVERIFY2(std::find(tags.begin(), tags.end(), tag) != tags.end(), tag);
    }
};

QTEST_GUILESS_MAIN(TestRetrieval)
#include "tst_retrieval.moc"
