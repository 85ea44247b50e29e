// SPDX-License-Identifier: GPL-3.0-or-later
// What keeps a card out of a retrieval, and what of its contract orders those that are taken.
#include "core/skills/retrieval/sources.h"
#include "core/skills/vocabulary.h"

#include <QTest>

using namespace klineage;
using namespace klineage::skills;

namespace {

using Names = std::vector<std::string>;

CardRecord card(const std::string &name, const std::string &target)
{
    CardRecord record;
    record.card.name = name;
    record.card.category = "tiling";
    record.verifications.push_back({"t", target, "0123456789abcdef", 1, "correct", true, true});
    return record;
}

Target targetOf(const char *workload, const char *language, const char *platform)
{
    Target target;
    target.workload = workload;
    target.language = language;
    target.platform = platform;
    return target;
}

Names names(const Retrieval &retrieval)
{
    Names out;
    for (const Retrieved &one : retrieval.taken)
        out.push_back(one.card);
    return out;
}

} // namespace

class TestRetrievalRules : public QObject
{
    Q_OBJECT

private slots:
    void whatACardActsOnHasToBeThere_data()
    {
        QTest::addColumn<QString>("feature");
        QTest::addColumn<QString>("locus");
        QTest::addColumn<QString>("platform");
        QTest::addColumn<QString>("oracle");
        QTest::addColumn<QString>("rule"); // empty: taken
        QTest::newRow("exponentials of a softmax") << "exp2_folded"
                                                   << "exp"
                                                   << "sm90"
                                                   << "softmax_rows"
                                                   << "";
        QTest::newRow("exponentials of a sum") << "exp2_folded"
                                               << "exp"
                                               << "sm90"
                                               << "sum_rows"
                                               << "acts on exponentials, which the operator does not have";
        QTest::newRow("a k-loop of a sum") << "unrolled"
                                           << "the k-loop"
                                           << "sm90"
                                           << "sum_rows"
                                           << "acts on a k-loop, which the operator does not have";
        QTest::newRow("an operator of no known family") << "exp2_folded"
                                                        << "exp"
                                                        << "sm90"
                                                        << "mystery"
                                                        << "";
        QTest::newRow("a locus that names no part") << "wide_loads"
                                                    << "expansion"
                                                    << "sm90"
                                                    << "sum_rows"
                                                    << "";
        QTest::newRow("an instruction of the device") << "tma_slabs"
                                                      << "copy"
                                                      << "sm90"
                                                      << "sum_rows"
                                                      << "";
        QTest::newRow("an instruction of later devices") << "tma_slabs"
                                                         << "copy"
                                                         << "sm80"
                                                         << "sum_rows"
                                                         << "needs tma, which sm80 lacks";
        QTest::newRow("an instruction of another device") << "wgmma_sums"
                                                          << "products"
                                                          << "sm100"
                                                          << "matmul"
                                                          << "needs sm_90a, which sm100 lacks";
        QTest::newRow("tensor memory") << "tensor_memory_sums"
                                       << "products"
                                       << "sm120"
                                       << "matmul"
                                       << "needs tcgen05, which sm120 lacks";
    }
    void whatACardActsOnHasToBeThere()
    {
        QFETCH(QString, feature);
        QFETCH(QString, locus);
        QFETCH(QString, platform);
        QFETCH(QString, oracle);
        QFETCH(QString, rule);
        CardRecord record = card("a", "w/sm90/K00");
        record.card.provides = {{locus.toStdString(), feature.toStdString()}};
        Target target = targetOf("w", "cuda", qPrintable(platform));
        target.workloadTags = {oracle.toStdString()};
        target.families = Vocabulary::instance().familiesOf(target.workloadTags);
        const Retrieval found = RetrievalIndex({record}).find(target);
        QCOMPARE(found.taken.size(), std::size_t(rule.isEmpty() ? 1 : 0));
        if (!rule.isEmpty())
            QCOMPARE(found.blocked.at(0).rules, (Names{rule.toStdString()}));
    }

    /// A card that says what it needs is of use elsewhere, one that says nothing is where it was verified.
    void aSilentCardStaysInItsLanguage()
    {
        const CardRecord silent = card("silent", "w/pocl/K00");
        CardRecord portable = card("portable", "w/pocl/K00");
        portable.card.capability.families = {"reduction"};
        Target target = targetOf("w", "opencl", "pocl");
        QCOMPARE(RetrievalIndex({silent, portable}).find(target).taken.size(), std::size_t{2});
        target.language = "cuda";
        target.platform = "sm90";
        const Retrieval found = RetrievalIndex({silent, portable}).find(target);
        QCOMPARE(names(found), (Names{"portable"}));
        QCOMPARE(found.blocked.at(0).rules,
                 (Names{"was not verified in cuda, and does not say what it needs"}));
    }

    /// What goes on from the code stands before what begins anew, and what is of all of the operator before what is of a part of it.
    void theOrderFollowsTheContract()
    {
        CardRecord begins = card("begins", "w/pocl/K00");
        CardRecord goesOn = card("goes-on", "w/pocl/K00");
        goesOn.card.requirements = {{"k-loop", "tile"}};
        Target target = targetOf("w", "opencl", "pocl");
        target.features = {{"k-loop", "tile"}};
        QCOMPARE(names(RetrievalIndex({begins, goesOn}).find(target)), (Names{"goes-on", "begins"}));

        CardRecord part = card("a-part", "v/pocl/K00");
        part.card.capability.families = {"contraction"};
        CardRecord all = card("b-all", "v/pocl/K00");
        all.card.capability.families = {"contraction", "reduction"};
        target.families = {"contraction", "reduction"};
        QCOMPARE(names(RetrievalIndex({part, all}).find(target)), (Names{"b-all", "a-part"}));
    }

    /// What a code shows counts as applied, with what it builds on.
    void codeHasFeatures()
    {
        CardRecord ring = card("ring", "w/sm90/K00");
        ring.card.category = "software_pipelining";
        ring.card.requirements = {{"shared operand rows", "swizzled_chunks"}};
        ring.card.provides = {{"global-to-shared copy", "slab_ring"}};
        CardRecord swizzle = card("swizzle", "w/sm90/K00");
        swizzle.card.category = "vectorization";
        swizzle.card.requirements = {{"accumulator", "register_block"}};
        swizzle.card.provides = {{"shared operand rows", "swizzled_chunks"}};
        CardRecord block = card("block", "w/sm90/K00");
        block.card.category = "register_blocking";
        block.card.provides = {{"accumulator", "register_block"}};
        CardRecord tma = card("tma", "w/sm90/K00");
        tma.card.category = "bulk_copy";
        tma.card.requirements = ring.card.provides;
        tma.card.provides = {{"global-to-shared copy", "tma_slabs"}};
        const std::vector<CardRecord> library{block, ring, swizzle, tma};
        const RetrievalIndex index(library);

        Target naive = targetOf("w", "cuda", "sm90");
        describeFeatures(naive, "// no cp.async here\nfor (int k = 0; k < K; ++k) sum += a[k] * b[k];",
                         library);
        QVERIFY(naive.features.empty() && naive.priorActions.empty());
        QCOMPARE(names(index.find(naive)), (Names{"block"}));

        Target halfWay = targetOf("w", "cuda", "sm90");
        describeFeatures(halfWay, "asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\");", library);
        QCOMPARE(halfWay.features.size(), std::size_t{3});
        QCOMPARE(halfWay.priorActions, (Names{"register_blocking", "software_pipelining", "vectorization"}));
        const Retrieval found = index.find(halfWay);
        QCOMPARE(names(found), (Names{"tma"}));
        for (const Blocked &blocked : found.blocked)
            QVERIFY(blocked.isThere);
        QVERIFY(!index.find(naive).blocked.at(0).isThere);

        describeFeatures(halfWay, "cp.async.cg", library); // what is known is not said twice
        QCOMPARE(halfWay.features.size(), std::size_t{3});
    }

    /// The same sign in another operator's code: a product that uses mma.sync has no softmax that the card of attention builds on.
    void codeShowsNothingOfOtherFamilies()
    {
        CardRecord chain = card("chain", "w/sm90/K00");
        chain.card.capability.families = {"attention"};
        chain.card.requirements = {{"walk over the keys", "online_softmax"}};
        chain.card.provides = {{"both products", "register_patches"}};
        Target target = targetOf("w", "cuda", "sm90");
        target.families = {"contraction"};
        describeFeatures(target, "mma.sync", {chain});
        QVERIFY(target.features.empty() && target.priorActions.empty());
        target.families = {"contraction", "attention"};
        describeFeatures(target, "mma.sync", {chain});
        QCOMPARE(target.features.size(), std::size_t{2});
    }
};

QTEST_GUILESS_MAIN(TestRetrievalRules)
#include "tst_retrievalrules.moc"
