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
constexpr double leastPrecisionAtR = 0.9;

} // namespace

class TestRetrievalQuality : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        m_set = readLabelledSet(std::filesystem::path(klineage::test::sourcePath()) / "tests/data/retrieval");
        QVERIFY(m_set.targets.size() >= 40);
        QVERIFY(m_set.library.size() >= 60);
    }

    /// The floors leave a few cards of room for changes that trade one target for another; what was measured when they were set is
    /// 1.000 and 0.941.
    void relevantCardsAreFound()
    {
        const RetrievalIndex index(m_set.library, m_set.paths, m_set.workloads);
        const Figures figures = measure(m_set, index);
        qInfo("%zu targets, %zu cards: recall@8 %.3f, precision@R %.3f, recall of all taken %.3f, "
              "precision of all taken %.3f at %.1f cards a target",
              m_set.targets.size(), m_set.library.size(), figures.recallAt8, figures.precisionAtR,
              figures.recall, figures.precision, figures.taken);
        for (const std::string &miss : figures.misses)
            qInfo("not taken: %s", miss.c_str());
        QVERIFY(figures.recallAt8 >= leastRecallAt8);
        QVERIFY(figures.precisionAtR >= leastPrecisionAtR);
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
