// SPDX-License-Identifier: GPL-3.0-or-later
// What keeps a card out of a retrieval, and what of its contract orders those that are taken.
#include "core/skills/retrieval/sources.h"
#include "core/skills/vocabulary.h"

#include <QTest>

#include <cmath>

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
        QTest::addColumn<QString>("tags"); // of the operator
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
                                                          << "matmul bf16"
                                                          << "needs sm_90a, which sm100 lacks";
        QTest::newRow("tensor memory") << "tensor_memory_sums"
                                       << "products"
                                       << "sm120"
                                       << "matmul bf16"
                                       << "needs tcgen05, which sm120 lacks";
        QTest::newRow("a division of a softmax") << "reciprocal_scale"
                                                 << "scaling pass"
                                                 << "sm90"
                                                 << "softmax_rows softmax rows"
                                                 << "";
        QTest::newRow("a division of a logarithm's softmax")
            << "reciprocal_scale"
            << "scaling pass"
            << "sm90"
            << "log_softmax_rows log softmax rows"
            << "acts on a division of every element, which the operator does not have";
        QTest::newRow("operands of a product") << "shared_tile"
                                               << "k-loop operand load"
                                               << "sm90"
                                               << "matmul f32"
                                               << "";
        QTest::newRow("a matrix that each output reads its own row of")
            << "shared_tile"
            << "k-loop operand load"
            << "sm90"
            << "matvec f32"
            << "acts on operands that many outputs share, which the operator does not have";
        QTest::newRow("tensor cores on f32")
            << "mma_fragments"
            << "products of the k-loop"
            << "sm90"
            << "matmul f32"
            << "acts on inputs of a type that tensor cores multiply exactly, which the operator does not have";
        QTest::newRow("tensor cores on bf16") << "mma_fragments"
                                              << "products of the k-loop"
                                              << "sm90"
                                              << "matmul bf16"
                                              << "";
        QTest::newRow("scaled blocks of eight bits") << "block_scales"
                                                     << "products"
                                                     << "sm100"
                                                     << "matmul f8e4m3 bf16"
                                                     << "";
        QTest::newRow("scaled blocks of sixteen bits")
            << "block_scales"
            << "products"
            << "sm100"
            << "matmul f16"
            << "acts on inputs of eight bits, which the operator does not have";
        QTest::newRow("a reduction of a scan")
            << "shuffle_sums"
            << "row reduction"
            << "sm90"
            << "cumsum f32"
            << "acts on a sum or maximum over a row, which the operator does not have";
    }
    void whatACardActsOnHasToBeThere()
    {
        QFETCH(QString, feature);
        QFETCH(QString, locus);
        QFETCH(QString, platform);
        QFETCH(QString, tags);
        QFETCH(QString, rule);
        CardRecord record = card("a", "w/sm90/K00");
        record.card.provides = {{locus.toStdString(), feature.toStdString()}};
        Target target = targetOf("w", "cuda", qPrintable(platform));
        for (const QString &tag : tags.split(QLatin1Char(' ')))
            target.workloadTags.push_back(tag.toStdString());
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

    /// What is there by another way is not brought in again; what needs it still has to have it.
    void whatAFeatureImpliesIsThere()
    {
        CardRecord stage = card("stage", "w/sm90/K00");
        stage.card.provides = {{"k-loop operand load", "shared_tile"}};
        CardRecord swizzle = card("swizzle", "w/sm90/K00");
        swizzle.card.requirements = stage.card.provides;
        const RetrievalIndex index({stage, swizzle});
        Target target = targetOf("w", "cuda", "sm90");
        QCOMPARE(names(index.find(target)), (Names{"stage"}));
        target.features = {{"global-to-shared copy", "tma_slabs"}};
        const Retrieval found = index.find(target);
        QVERIFY(found.taken.empty());
        for (const Blocked &blocked : found.blocked)
            QCOMPARE(blocked.isThere, blocked.card == "stage");
    }

    /// A card that names more families than it was verified on is behind one that shows what it names.
    void aFamilyThatNothingShowsCountsLess()
    {
        CardRecord wide = card("a-wide", "v/pocl/K00");
        wide.card.capability.families = {"attention", "contraction", "reduction"};
        CardRecord shown = card("b-shown", "u/pocl/K00");
        shown.card.capability.families = {"attention", "contraction", "reduction"};
        const RetrievalIndex index({wide, shown}, {}, {{"v", {"matmul"}}, {"u", {"attention", "softmax"}}});
        Target target = targetOf("w", "opencl", "pocl");
        target.families = {"attention", "contraction", "reduction"};
        const Retrieval found = index.find(target);
        QCOMPARE(names(found), (Names{"b-shown", "a-wide"}));
        // What the operators have in common is a third; the other two families are claims.
        QVERIFY(std::abs(found.taken[1].parts.family / found.taken[0].parts.family - 2.0 / 3) < 1e-9);
    }

    /// A card was verified on a workload on a platform, not on all of its workloads on all of its platforms.
    void aWorkloadAndAPlatformCountTogether()
    {
        CardRecord apart = card("a-apart", "w/pocl/K00");
        apart.card.capability.families = {"reduction"};
        apart.verifications.push_back({"t", "v/sm90/K00", "0123456789abcdef", 1, "correct", true, true});
        CardRecord together = card("b-together", "w/sm90/K00");
        together.card.capability.families = {"reduction"};
        const Retrieval found = RetrievalIndex({apart, together}).find(targetOf("w", "cuda", "sm90"));
        QCOMPARE(names(found), (Names{"b-together", "a-apart"}));
        // On another kind of device both of what it was verified on and where count less.
        QVERIFY(found.taken[1].parts.workload + found.taken[1].parts.platform
                <= 0.5 * (found.taken[0].parts.workload + found.taken[0].parts.platform));
    }

    /// A neighbour's verification is not behind one on another kind of device, of cards that say what they need.
    void anotherGenerationIsNearerThanAnotherKind()
    {
        CardRecord kind = card("a-kind", "w/pocl/K00");
        CardRecord generation = card("b-generation", "w/sm90/K00");
        for (CardRecord *record : {&kind, &generation})
            record->card.capability.families = {"reduction"};
        const Retrieval found = RetrievalIndex({kind, generation}).find(targetOf("w", "cuda", "sm100"));
        QCOMPARE(names(found), (Names{"b-generation", "a-kind"}));
    }

    /// Of cards that provide the same one is enough: the others come behind what brings something else.
    void alternativesComeLater()
    {
        CardRecord first = card("a-first", "w/pocl/K00");
        CardRecord second = card("b-second", "w/pocl/K00");
        for (CardRecord *record : {&first, &second})
            record->card.provides = {{"store", "in_background"}};
        CardRecord other = card("c-other", "w/pocl/K00");
        other.card.provides = {{"load", "wide"}};
        CardRecord nothing = card("d-nothing", "w/pocl/K00"); // says nothing of what it provides
        CardRecord nothingElse = card("e-nothing", "w/pocl/K00");
        const Retrieval found = RetrievalIndex({first, second, other, nothing, nothingElse})
                                    .find(targetOf("w", "opencl", "pocl"));
        QCOMPARE(names(found), (Names{"a-first", "c-other", "d-nothing", "e-nothing", "b-second"}));
        QVERIFY(found.taken.back().parts.alternative < 0);
        for (const Retrieved &one : found.taken)
            QCOMPARE(one.score, one.parts.sum());
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
