// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/store.h"
#include "tests/core/trialfixture.h"
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/sample.h"
#include "tests/ui/common/uitest.h"
#include "ui/models/libraryfilter.h"
#include "ui/models/librarymodel.h"
#include "ui/models/lineagemodel.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/format.h"

#include <QAbstractItemModelTester>
#include <QRandomGenerator>
#include <QSignalSpy>
#include <QTest>

using namespace klineage;
using namespace klineage::ui;

class TestModels : public UiTest
{
    Q_OBJECT

private slots:
    void initTestCase() { m_shipped = openWorkspace(klineage::test::sourcePath()).value(); }

    void libraryListsEveryLineageAndCard()
    {
        LibraryModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.refresh(m_shipped);
        for (const lineage::Lineage &lineage : m_shipped.lineages)
            QVERIFY(model.find(LibraryModel::Kind::Lineage, QString::fromStdString(lineage.key())).isValid());
        for (const skills::CardRecord &card : m_shipped.cards)
            QVERIFY(model.find(LibraryModel::Kind::Card, QString::fromStdString(card.card.name)).isValid());
        QVERIFY(!model.find(LibraryModel::Kind::Card, QStringLiteral("no-such-card")).isValid());
    }

    void workloadsWithoutALineageComeLast()
    {
        LibraryModel model;
        model.refresh(m_shipped);
        const auto sectionOf = [&](const char *workload) {
            return model.find(LibraryModel::Kind::Workload, QLatin1String(workload))
                .parent()
                .data(LibraryModel::KeyRole)
                .toString();
        };
        QCOMPARE(sectionOf("gemm"), QStringLiteral("workloads"));
        QCOMPARE(sectionOf("heldout-mm-2048"), QStringLiteral("without-lineage"));
        const QModelIndex last = model.index(model.rowCount() - 1, 0);
        QCOMPARE(last.data(LibraryModel::KeyRole).toString(), QStringLiteral("without-lineage"));
        QCOMPARE(last.data(LibraryModel::ValueRole).toInt(), model.rowCount(last));
    }

    void libraryShowsWhatTheStrongestStateHasComeTo()
    {
        LibraryModel model;
        model.refresh(m_shipped);
        int compared = 0;
        for (const lineage::Lineage &lineage : m_shipped.lineages) {
            const gate::Trial *last = lineage.trialOf(lineage.states.back());
            const gate::Comparison *reference = last ? last->referenceComparison() : nullptr;
            if (!reference)
                continue;
            const QString shown =
                model.find(LibraryModel::Kind::Lineage, QString::fromStdString(lineage.key()))
                    .data(LibraryModel::ValueRole)
                    .toString();
            if (lineage.states.size() == 1) { // a root alone has come to nothing yet
                QCOMPARE(shown, QString::fromStdString(lineage.states.back().id) + QStringLiteral(" alone"));
                continue;
            }
            QVERIFY2(shown.startsWith(formatSpeedup(reference->speedup.value) + QLatin1Char(' ')),
                     qPrintable(QString::fromStdString(lineage.key()) + QLatin1String(": ") + shown));
            ++compared;
        }
        QVERIFY(compared > 5);
    }

    void libraryKeepsItsContractUnderRandomChanges()
    {
        LibraryModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        LibraryFilter filter(&model);
        const QAbstractItemModelTester filterTester(&filter,
                                                    QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QStringList queries{{},
                                  QStringLiteral("row"),
                                  QStringLiteral("life:hypo lint:warning,clean"),
                                  QStringLiteral("softmax"),
                                  QStringLiteral("platform:sm90 needs:tma rgstr")};
        QRandomGenerator random(11);
        for (int i = 0; i < 60; ++i) {
            Workspace changed = m_shipped;
            while (!changed.cards.empty() && random.bounded(3))
                changed.cards.erase(changed.cards.begin()
                                    + random.bounded(static_cast<int>(changed.cards.size())));
            while (!changed.lineages.empty() && random.bounded(2))
                changed.lineages.pop_back();
            model.refresh(changed);
            filter.setQuery(queries[random.bounded(static_cast<int>(queries.size()))]);
        }
        model.refresh({});
        filter.setQuery({});
    }

    /// What an earlier key found out is kept, and says what one who begins with the whole query finds.
    void aKeyReadsOnlyWhatItMayChange()
    {
        LibraryModel model;
        model.refresh(m_shipped);
        LibraryFilter typed(&model);
        const auto sameAsFresh = [&] {
            LibraryFilter fresh(&model);
            fresh.setQuery(QString::fromStdString(m_typed));
            return fresh.cards().shown == typed.cards().shown && fresh.cards().all == typed.cards().all
                   && fresh.rowCount() == typed.rowCount();
        };
        QRandomGenerator random(5);
        for (const char *query : {"tile shared k-loop", "life:hypo,admitted lint:errors platform:sm90",
                                  "tlshrd", "row needs:tma,warps x"}) {
            const std::string whole = query;
            std::size_t length = 0;
            while (length < whole.size()) {
                length = std::min(whole.size(), length + 1);
                if (length > 2 && random.bounded(4) == 0)
                    length -= 2;
                m_typed = whole.substr(0, length);
                typed.setQuery(QString::fromStdString(m_typed));
                QVERIFY2(sameAsFresh(), m_typed.c_str());
            }
            Workspace fewer = m_shipped; // what was found out of other rows does not count
            fewer.cards.resize(fewer.cards.size() / 2);
            model.refresh(fewer);
            typed.setQuery(QString::fromStdString(m_typed));
            QVERIFY2(sameAsFresh(), m_typed.c_str());
            model.refresh(m_shipped);
            typed.setQuery({});
        }
        typed.setQuery(QStringLiteral("platform:sm9"));
        const int all = typed.looks();
        const int left = typed.cards().shown;
        QVERIFY(all > left && left > 0);
        typed.setQuery(QStringLiteral("platform:sm90"));
        QCOMPARE(typed.looks(), left);
        typed.setQuery(QStringLiteral("platform:sm9"));
        QCOMPARE(typed.looks(), 0);
        QCOMPARE(typed.cards().shown, left);
    }

    /// What a facet's menu says of a word is what is left when the word is chosen, beside what is chosen of the other facets.
    void facetsCountWhatTheyLeave()
    {
        LibraryModel model;
        model.refresh(m_shipped);
        LibraryFilter filter(&model);
        for (const QString &base : {QString(), QStringLiteral("platform:sm90"), QStringLiteral("register")}) {
            for (const Facet facet : allFacets) {
                filter.setQuery(base);
                if (!filter.query().of(facet).empty())
                    continue;
                const auto counts = filter.counts(facet);
                for (const auto &[word, count] : counts) {
                    const auto next = counts.upper_bound(word);
                    if (count == 0 || (next != counts.end() && next->first.starts_with(word)))
                        continue; // nothing is left, so letters apart are tried; or it begins another word
                    filter.setQuery(QString::fromStdString(toggled(base.toStdString(), facet, word)));
                    QVERIFY2(filter.cards().shown == count, word.c_str());
                }
            }
        }
        filter.setQuery(QStringLiteral("viewed:no"));
        QCOMPARE(filter.cards().shown, static_cast<int>(m_shipped.cards.size())); // nobody knows of any
        QCOMPARE(filter.counts(Facet::Viewed).at("no"), filter.cards().all);
    }

    void lineageRowsAreTheTable()
    {
        const lineage::Lineage &lineage = *m_shipped.findLineage("gemm/sm90");
        LineageModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.refresh(&lineage, {}, Direction::Backward);
        QCOMPARE(model.rowCount(),
                 static_cast<int>(lineage.states.size() + lineage.attempts.size() + lineage.branches.size()));
        const int wrong = model.rowOf(QStringLiteral("R07a"));
        QVERIFY(wrong >= 0 && !model.row(wrong).isCorrect);
        QVERIFY(model.row(wrong).latency.isEmpty());
        QCOMPARE(model.neighbourState(QStringLiteral("K10"), 1), QStringLiteral("K09"));
        QCOMPARE(model.neighbourState(QStringLiteral("K10"), -1), QStringLiteral("K11"));
        QVERIFY(model.neighbourState(QString::fromStdString(lineage.states.back().id), -1).isEmpty());
    }

    void forwardTurnsTheOrderRound()
    {
        const lineage::Lineage &lineage = *m_shipped.findLineage("sgemm/pocl");
        LineageModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.refresh(&lineage, {}, Direction::Backward);
        const int backward = model.rowOf(QStringLiteral("K00"));
        model.refresh(&lineage, {}, Direction::Forward);
        QVERIFY(model.rowOf(QStringLiteral("K00")) < backward);
        QCOMPARE(model.neighbourState(QStringLiteral("K00"), 1), QStringLiteral("K01"));
    }

    void pinningABaselineChangesOnlyItsColumn()
    {
        const lineage::Lineage &lineage = *m_shipped.findLineage("sgemm/pocl");
        LineageModel model;
        model.refresh(&lineage, {}, Direction::Backward);
        const LineageRow before = model.row(model.rowOf(QStringLiteral("K03")));
        model.refresh(&lineage, QStringLiteral("K02"), Direction::Backward);
        const LineageRow after = model.row(model.rowOf(QStringLiteral("K03")));
        QCOMPARE(after.latency, before.latency);
        QVERIFY(after.toBaseline != before.toBaseline);
        QCOMPARE(model.baseline(), QStringLiteral("K02"));
    }

    void lineageKeepsItsContractUnderRandomChanges()
    {
        LineageModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        QRandomGenerator random(13);
        for (int i = 0; i < 60; ++i) {
            lineage::Lineage changed =
                m_shipped.lineages[random.bounded(static_cast<quint32>(m_shipped.lineages.size()))];
            while (!changed.attempts.empty() && random.bounded(2))
                changed.attempts.pop_back();
            if (random.bounded(2))
                addBranch(changed, "00000000000000" + std::to_string(10 + random.bounded(80)),
                          changed.states.front().id);
            model.refresh(random.bounded(8) ? &changed : nullptr, {},
                          random.bounded(2) ? Direction::Backward : Direction::Forward);
        }
    }

    void selectionSaysOnlyWhatChanged()
    {
        Selection selection;
        QSignalSpy rows(&selection, &Selection::rowChanged);
        QSignalSpy lineages(&selection, &Selection::lineageChanged);
        QSignalSpy baselines(&selection, &Selection::baselineChanged);
        selection.setLineage(QStringLiteral("gemm/sm90"), QStringLiteral("K03"));
        selection.setBaseline(QStringLiteral("K01"));
        selection.setLineage(QStringLiteral("gemm/sm90"), QStringLiteral("K03"));
        QCOMPARE(rows.count(), 1);
        QCOMPARE(lineages.count(), 1);
        QCOMPARE(selection.baseline(), QStringLiteral("K01"));
        selection.setLineage(QStringLiteral("sgemm/pocl"), QStringLiteral("K03"));
        QVERIFY(selection.baseline().isEmpty());
        QCOMPARE(baselines.count(), 2);
    }

    void aFolderThatIsNoWorkspaceIsSaid()
    {
        WorkspaceModel model;
        QSignalSpy failed(&model, &WorkspaceModel::failed);
        model.open(QStringLiteral("/proc/nonexistent/folder"));
        QTRY_COMPARE(failed.count(), 1);
        QVERIFY(!model.isLoaded());
    }

    void onlyTheCardThatWasWrittenIsReadAgainAndNotOnThisThread()
    {
        const tests::WorkspaceCopy copy;
        WorkspaceModel model;
        model.openNow(QString::fromStdString(copy.root().string()));
        const QString name = QStringLiteral("stage-rows");
        QVERIFY(model.card(name));
        const std::size_t reviews = model.card(name)->reviews.size();
        QSignalSpy loaded(&model, &WorkspaceModel::loaded);
        QSignalSpy cards(&model, &WorkspaceModel::cardChanged);
        QSignalSpy lineages(&model, &WorkspaceModel::lineageChanged);
        skills::Review review;
        review.author = "a person";
        review.verdict = skills::ReviewVerdict::Approve;
        QVERIFY(skills::CardStore(copy.skills()).review("stage-rows", review));
        bool done = false;
        model.readChanges([&] {
            done = true;
            QCOMPARE(cards.count(), 1); // told before
        });
        QCOMPARE(model.card(name)->reviews.size(), reviews); // nothing was read yet
        QTRY_VERIFY(done);
        QCOMPARE(model.card(name)->reviews.size(), reviews + 1);
        QCOMPARE(cards[0][0].toString(), name);
        QCOMPARE(lineages.count() + loaded.count(), 0);

        QVERIFY(lineage::appendTrial(copy.lineage(), tests::makeTrial("0000000000000777", "a text")));
        model.readChanges();
        QTRY_COMPARE(lineages.count(), 1);
        QCOMPARE(lineages[0][0].toString(), QStringLiteral("toy/pocl"));
        QCOMPARE(cards.count() + loaded.count(), 1);
    }

    void whatIsReadWaitsWhileItIsHeld()
    {
        const tests::WorkspaceCopy copy;
        WorkspaceModel model;
        QSignalSpy loaded(&model, &WorkspaceModel::loaded);
        model.hold();
        model.open(QString::fromStdString(copy.root().string()));
        QTest::qWait(300); // it is read meanwhile, or later
        QVERIFY(model.isReading() && !model.isLoaded());
        model.release();
        QTRY_VERIFY(model.isLoaded());
        QVERIFY(!model.isReading());
        model.release();
        QCOMPARE(loaded.count(), 1);
    }

    void changesAreReadAfterTheWorkspace()
    {
        const tests::WorkspaceCopy copy;
        WorkspaceModel model;
        QSignalSpy loaded(&model, &WorkspaceModel::loaded);
        bool done = false;
        model.open(QString::fromStdString(copy.root().string()));
        model.readChanges([&] {
            done = true;
            QCOMPARE(loaded.count(), 1);
        });
        QTRY_VERIFY(done);
        // Of a workspace that was replaced meanwhile nothing arrives, but whoever asked is told.
        done = false;
        std::filesystem::remove_all(copy.skills() / "stage-rows");
        model.readChanges([&] { done = true; });
        model.setWorkspace({});
        QTRY_VERIFY(done);
        QCOMPARE(loaded.count(), 2);
    }

private:
    std::string m_typed;
    Workspace m_shipped;
};

KLINEAGE_UI_TEST(TestModels)
#include "tst_models.moc"
