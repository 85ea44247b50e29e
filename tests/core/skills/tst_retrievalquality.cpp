// SPDX-License-Identifier: GPL-3.0-or-later
// Recall and precision of retrieval on the labelled set in tests/data/retrieval.
#include "tests/core/skills/labelledset.h"
#include "tests/paths.h"

#include <QTest>

using namespace klineage;
using namespace klineage::skills;
using namespace klineage::tests;

namespace {

constexpr double leastRecallAt8 = 0.97;
constexpr double leastPrecisionAtR = 0.95;

LabelledSet setOf(const char *file)
{
    return readLabelledSet(std::filesystem::path(klineage::test::sourcePath()) / "tests/data/retrieval",
                           std::string(file) + ".toml");
}

} // namespace

class TestRetrievalQuality : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        m_set = setOf("labels");
        QVERIFY(m_set.targets.size() >= 40);
        QVERIFY(m_set.library.size() >= 60);
    }

    /// The sets that retrieval may be changed because of. What was measured when the floors were set: recall@8 0.986 and 1.000,
    /// precision@R 0.964 and 0.970.
    void relevantCardsAreFound_data()
    {
        QTest::addColumn<QString>("file");
        QTest::newRow("labels") << "labels";
        QTest::newRow("blind-a") << "blind-a";
    }
    void relevantCardsAreFound()
    {
        QFETCH(QString, file);
        const LabelledSet set = setOf(qPrintable(file));
        const RetrievalIndex index(set.library, set.paths, set.workloads);
        const Figures figures = measure(set, index);
        qInfo("%zu targets, %zu cards: recall@8 %.3f, precision@R %.3f, recall of all taken %.3f, "
              "precision of all taken %.3f at %.1f cards a target",
              set.targets.size(), set.library.size(), figures.recallAt8, figures.precisionAtR, figures.recall,
              figures.precision, figures.taken);
        for (const std::string &miss : figures.misses)
            qInfo("not taken: %s", miss.c_str());
        QVERIFY(figures.recallAt8 >= leastRecallAt8);
        QVERIFY(figures.precisionAtR >= leastPrecisionAtR);
    }

    /// What came late is listed with what the score of an earlier card has more of.
    void lateCardsAreListed()
    {
        LabelledSet set;
        for (const auto &[name, target] :
             {std::pair{"near", "w/pocl/K00"}, {"far", "v/pocl/K00"}, {"retired", "w/pocl/K00"}}) {
            set.library.emplace_back();
            set.library.back().card.name = name;
            set.library.back().card.retired = std::string(name) == "retired";
            set.library.back().verifications.push_back(
                {"t", target, "0123456789abcdef", 1, "correct", true, true});
        }
        LabelledTarget one;
        one.title = "w/pocl";
        one.target.workload = "w";
        one.target.platform = "pocl";
        one.target.language = "opencl";
        one.relevant = {"far"};
        LabelledTarget found = one;
        found.relevant = {"near"};
        LabelledTarget never = one;
        never.relevant = {"near", "far", "retired"};
        set.targets = {one, found, never};
        const Figures figures = measure(set, RetrievalIndex(set.library));
        QCOMPARE(figures.misranked.size(), std::size_t{2});
        const Misranked &late = figures.misranked[0];
        QCOMPARE(late.late, std::string("far"));
        QCOMPARE(late.early, std::string("near"));
        QVERIFY(late.earlyScore > late.lateScore);
        QCOMPARE(late.why, std::string("workload +3.00"));
        QCOMPARE(figures.misranked[1].late, std::string("retired"));
        QCOMPARE(figures.misranked[1].why, std::string("was not taken"));
    }

    /// Each part of a target and of the index carries weight: without it the floor is not reached.
    void theFloorsFailWithoutContractsOrScope_data()
    {
        QTest::addColumn<int>("without");
        QTest::newRow("features") << 0;
        QTest::newRow("workload") << 1;
        QTest::newRow("platform and language") << 2;
        QTest::newRow("verifications") << 3;
    }
    void theFloorsFailWithoutContractsOrScope()
    {
        QFETCH(int, without);
        LabelledSet set = m_set;
        for (LabelledTarget &labelled : set.targets) {
            if (without == 0)
                labelled.target.features.clear();
            if (without == 1) {
                labelled.target.workload = "unknown";
                labelled.target.workloadTags.clear();
            }
            if (without == 2)
                labelled.target.platform = labelled.target.language = "unknown";
        }
        for (CardRecord &record : set.library) {
            if (without == 3)
                record.verifications.clear();
        }
        const Figures figures = measure(set, RetrievalIndex(set.library, set.paths, set.workloads));
        qInfo("recall@8 %.3f, precision@R %.3f", figures.recallAt8, figures.precisionAtR);
        QVERIFY(figures.precisionAtR < leastPrecisionAtR);
    }

private:
    LabelledSet m_set;
};

QTEST_GUILESS_MAIN(TestRetrievalQuality)
#include "tst_retrievalquality.moc"
