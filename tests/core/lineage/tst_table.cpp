// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/step.h"
#include "core/lineage/table.h"
#include "core/lineage/verify.h"
#include "tests/core/trialfixture.h"
#include "tests/paths.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <fstream>

using namespace klineage;
using namespace klineage::lineage;
using namespace klineage::tests;

namespace {

Lineage fixture()
{
    Result<Lineage> lineage = readLineage(std::filesystem::path(klineage::test::sourcePath())
                                          / "tests/data/workspace/workloads/toy/lineages/pocl");
    if (!lineage)
        qFatal("%s", lineage.error().message.c_str());
    return std::move(*lineage);
}

const TableRow &rowOf(const std::vector<TableRow> &rows, const std::string &id)
{
    const auto it = std::find_if(rows.begin(), rows.end(), [&](const TableRow &row) { return row.id == id; });
    if (it == rows.end())
        qFatal("no row %s", id.c_str());
    return *it;
}

bool anyFinding(const VerifyReport &report, const std::string &subject, const std::string &part)
{
    return std::any_of(report.findings.begin(), report.findings.end(), [&](const VerifyFinding &finding) {
        return finding.subject == subject && finding.message.find(part) != std::string::npos;
    });
}

} // namespace

class TestTable : public QObject
{
    Q_OBJECT

private slots:
    void rowsAreNewestFirstWithTriesAboveTheirParent()
    {
        const Lineage lineage = fixture();
        std::vector<std::string> ids;
        for (const TableRow &row : lineageTable(lineage))
            ids.push_back(row.id);
        QCOMPARE(ids, (std::vector<std::string>{"K02", "trial:00000000000000c1", "K01", "R01a", "K00"}));
    }

    void rowsAreWhatTheLineageFinds()
    {
        const Lineage lineage = fixture();
        for (const TableRow &row : lineageTable(lineage)) {
            const std::optional<RowRef> found = findRow(lineage, row.id);
            QVERIFY2(found, row.id.c_str());
            QCOMPARE(row.trial, found->trial);
            QVERIFY2(lineage.directory / row.file == found->file, row.file.c_str());
            QCOMPARE(row.step, lineage.transitionTo(row.id));
            QCOMPARE(row.attempt != nullptr, row.kind == TableRow::Kind::Attempt);
            QVERIFY(!row.attempt || row.attempt->id == row.id);
        }
    }

    void numbersComeFromTheTrials()
    {
        const Lineage lineage = fixture();
        const std::vector<TableRow> rows = lineageTable(lineage);
        const TableRow best = rowOf(rows, "K02");
        QCOMPARE(best.parent, std::string("K01"));
        QCOMPARE(best.latencyNs->value, 1600.0);
        QCOMPARE(best.speedupToParent->value, 2.5);
        QCOMPARE(*best.speedupToBaseline, 5.0);
        QCOMPARE(best.speedupToReference->value, 1.25);
        QCOMPARE(best.reference, std::string("onednn 2.6"));
        const TableRow first = rowOf(rows, "K00");
        QVERIFY(!first.speedupToParent);
        QCOMPARE(*first.speedupToBaseline, 1.0);
    }

    void whatWasNotMeasuredIsEmpty()
    {
        const Lineage lineage = fixture();
        const std::vector<TableRow> rows = lineageTable(lineage);
        const TableRow rejected = rowOf(rows, "R01a");
        QVERIFY(rejected.trial != nullptr);
        QVERIFY(!rejected.latencyNs && !rejected.speedupToParent && !rejected.speedupToBaseline
                && !rejected.speedupToReference);
    }

    void anotherBaselineChangesTotalsOnly()
    {
        const Lineage lineage = fixture();
        const std::vector<TableRow> rows = lineageTable(lineage, "K01");
        QCOMPARE(*rowOf(rows, "K02").speedupToBaseline, 2.5);
        QCOMPARE(*rowOf(rows, "K00").speedupToBaseline, 0.5);
        QCOMPARE(rowOf(rows, "K02").speedupToParent->value, 2.5);
    }

    void anUngatedStateHasARow()
    {
        Lineage lineage = fixture();
        lineage.states[1].trial.clear();
        const std::vector<TableRow> rows = lineageTable(lineage);
        QVERIFY(rowOf(rows, "K01").trial == nullptr);
        QVERIFY(!rowOf(rows, "K01").latencyNs);
    }

    /// What was tried on another device is set apart, and is compared with nothing of this one.
    void anotherDeviceIsSetApart()
    {
        Lineage lineage = fixture();
        const std::string device = lineage.trialOf(lineage.states.front())->environment.device;
        QCOMPARE(deviceOf(lineage), device);
        for (gate::Trial &trial : lineage.trials) {
            if (trial.id == "00000000000000c1" || trial.id == lineage.states.back().trial)
                trial.environment.device = "another CPU";
        }
        QCOMPARE(deviceOf(lineage), device); // of most states, not of the newest trial or the last state
        const std::vector<TableRow> rows = lineageTable(lineage);
        const TableRow &branch = rowOf(rows, "trial:00000000000000c1");
        QCOMPARE(branch.elsewhere, std::string("another CPU"));
        QVERIFY(branch.latencyNs && !branch.speedupToBaseline);
        QVERIFY(!rowOf(rows, "K02").speedupToBaseline);
        QVERIFY(rowOf(rows, "K01").elsewhere.empty() && rowOf(rows, "K01").speedupToBaseline);
        // Against a state of that device, those of it compare.
        const std::vector<TableRow> others = lineageTable(lineage, "K02");
        QVERIFY(rowOf(others, "trial:00000000000000c1").speedupToBaseline);
        QVERIFY(!rowOf(others, "K01").speedupToBaseline);
        // Nobody says where: nothing is elsewhere.
        QCOMPARE(elsewhere(nullptr, device), std::string());
        QCOMPARE(elsewhere(&lineage.trials.front(), {}), std::string());
        lineage.states.clear();
        lineage.trials.clear();
        QCOMPARE(deviceOf(lineage), std::string());
    }

    void ratiosOfMediansAreConservative()
    {
        const gate::Interval ratio = ratioOfMedians({200, 190, 210}, {100, 95, 105});
        QCOMPARE(ratio.value, 2.0);
        QCOMPARE(ratio.low, 190.0 / 105.0);
        QCOMPARE(ratio.high, 210.0 / 95.0);
        QCOMPARE(ratioOfMedians({}, {100, 95, 105}).value, 0.0);
    }

    void geometricMeanCountsWhatIsMissing()
    {
        Lineage without = fixture();
        without.states.back().trial.clear();
        Lineage slow = fixture();
        slow.states.pop_back(); // K* is K01: 0.5
        Lineage root = slow;
        root.states.erase(root.states.begin());
        const GeometricMean mean = referenceGeometricMean({fixture(), without, slow, root});
        QCOMPARE(mean.counted, 2);
        QCOMPARE(mean.missing, 2);
        QVERIFY(std::fabs(mean.value - std::sqrt(1.25 * 0.5)) < 1e-12);
        QCOMPARE(referenceGeometricMean({without}).counted, 0);
    }

    void theFixtureVerifies()
    {
        const VerifyReport report = verifyLineage(fixture());
        QVERIFY2(report.ok(), report.ok() ? "" : report.findings[0].message.c_str());
        QVERIFY(report.checks > 20);
    }

    void verifyFindsWhatIsNotEvidence()
    {
        const WorkspaceCopy copy;
        Lineage lineage = *readLineage(copy.lineage());
        lineage.trials[1].verdict.status = gate::VerdictStatus::Wrong; // K01
        lineage.trials[3].verdict.comparisons.erase(
            lineage.trials[3].verdict.comparisons.begin()); // K02, its parent
        lineage.trials[0].latencyNs.low = 0;                // K00
        lineage.transitions[1].summary.clear();
        lineage.attempts[0].trial = "00000000000000ff";
        const VerifyReport report = verifyLineage(lineage);
        QVERIFY(anyFinding(report, "K01", "'wrong'"));
        QVERIFY(anyFinding(report, "K02", "was not compared with the state before it"));
        QVERIFY(anyFinding(report, "K00", "no sound interval"));
        QVERIFY(anyFinding(report, "K01 → K02", "summary"));
        QVERIFY(anyFinding(report, "R01a", "not in trials.jsonl"));
        QCOMPARE(report.findings.size(), std::size_t{5});
    }

    void verifyReadsTheFiles()
    {
        const WorkspaceCopy copy;
        const Lineage lineage = *readLineage(copy.lineage());
        std::ofstream(copy.lineage() / "K01.cl") << "no plan";
        std::filesystem::remove(copy.lineage() / "K02.cl");
        std::ofstream(copy.lineage() / "K00.cl", std::ios::app) << "// changed\n";
        const VerifyReport report = verifyLineage(lineage);
        QVERIFY(anyFinding(report, "K00", "is not the one that trial"));
        QVERIFY(anyFinding(report, "K01", "K01.cl"));
        QVERIFY(anyFinding(report, "K02", "K02.cl"));
    }
};

QTEST_GUILESS_MAIN(TestTable)
#include "tst_table.moc"
