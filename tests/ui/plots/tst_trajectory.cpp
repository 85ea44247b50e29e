// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/patience.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/plots/plotstyle.h"
#include "ui/plots/trajectorypanel.h"
#include "ui/style/format.h"

#include <QSignalSpy>
#include <QTest>

#include <cmath>

#include <qcustomplot.h>

using namespace klineage;
using namespace klineage::ui;

namespace {

gate::Trial trial(const char *id, gate::VerdictStatus status, double ns, double vsReference)
{
    gate::Trial trial;
    trial.id = id;
    trial.verdict.status = status;
    trial.latencyNs = {ns, ns, ns};
    if (vsReference > 0)
        trial.verdict.comparisons.push_back(
            {"openblas", "0.3", {vsReference, vsReference, vsReference}, 1, gate::Change::Gain});
    return trial;
}

lineage::Lineage sample(bool withReference)
{
    using gate::VerdictStatus;
    lineage::Lineage lineage;
    lineage.workload = "sgemm";
    lineage.platform = "pocl";
    lineage.states = {
        {"K00", "K00.cl", "naive", "a"}, {"K01", "K01.cl", "tiles", "b"}, {"K02", "K02.cl", "best", "d"}};
    lineage.attempts = {{"R01a", "K01", "R01a.cl", "wrong one", "tiling", "k-loop", "wrong", "c"}};
    lineage.trials = {trial("a", VerdictStatus::Correct, 400, withReference ? 0.1 : 0),
                      trial("b", VerdictStatus::Correct, 200, withReference ? 0.2 : 0),
                      trial("c", VerdictStatus::Wrong, 0, 0),
                      trial("x", VerdictStatus::Correct, 1, withReference ? 9 : 0),
                      trial("d", VerdictStatus::Correct, 100, withReference ? 0.15 : 0)};
    return lineage;
}

} // namespace

class TestTrajectory : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support)")));
    }

    void takesOnlyNamedTrialsInFileOrder()
    {
        const Trajectory trajectory = lineageTrajectory(sample(true));
        QCOMPARE(trajectory.points.size(), std::size_t(4));
        QCOMPARE(trajectory.points[2].row, QStringLiteral("R01a"));
        QCOMPARE(trajectory.points[3].row, QStringLiteral("K02"));
        QCOMPARE(trajectory.reference, QStringLiteral("openblas"));
    }

    /// However low or narrow it is, no number stands on another, and no name is cut.
    void axesAreSpared()
    {
        QCustomPlot plot;
        plot.xAxis->setRange(0, 35);
        plot.yAxis->setRange(0, 1.3);
        plot.xAxis->setLabel(QStringLiteral("Trial on a device with a long name, in the order recorded"));
        plot.yAxis->setLabel(QStringLiteral("Speedup over a library"));
        stylePlot(&plot, QPalette());
        spareAxes(&plot);
        plot.show();
        for (const QSize size :
             {QSize(900, 600), QSize(260, 90), QSize(120, 400), QSize(400, 60), QSize(900, 600)}) {
            plot.resize(size);
            plot.replot();
            QTest::qWait(10);
            const QFontMetrics metrics(plot.yAxis->tickLabelFont());
            for (QCPAxis *axis : {plot.xAxis, plot.yAxis}) {
                const bool isAcross = axis == plot.xAxis;
                const bool isNumbered = axis->tickLabelColor().alpha() > 0;
                const QVector<double> ticks = isNumbered ? axis->tickVector() : QVector<double>();
                for (qsizetype i = 1; i < ticks.size(); ++i) {
                    const double apart =
                        std::abs(axis->coordToPixel(ticks[i]) - axis->coordToPixel(ticks[i - 1]));
                    const int room = isAcross ? metrics.horizontalAdvance(axis->tickVectorLabels().value(i))
                                              : metrics.ascent();
                    QVERIFY2(apart > room, qPrintable(QStringLiteral("%1 x %2: %3 of %4")
                                                          .arg(size.width())
                                                          .arg(size.height())
                                                          .arg(apart)
                                                          .arg(room)));
                }
                const bool isLong =
                    metrics.horizontalAdvance(axis->label()) > (isAcross ? size.width() : size.height());
                QVERIFY(!isLong || axis->labelColor().alpha() == 0);
                QVERIFY(size.width() < 900 || (isNumbered && axis->labelColor().alpha() == 255));
            }
        }
    }

    void failuresArePointsAtZero()
    {
        const Trajectory trajectory = lineageTrajectory(sample(true));
        QCOMPARE(trajectory.points[2].kind, TrajectoryPoint::Kind::Failed);
        QCOMPARE(trajectory.points[2].speedup, 0.0);
    }

    void runningBestNeverFallsAndIgnoresFailures()
    {
        const auto best = lineageTrajectory(sample(true)).runningBest();
        QCOMPARE(best, (std::vector<double>{0.1, 0.2, 0.2, 0.2}));
    }

    /// The states below the last were gated without the reference: its time is known, and they have their place.
    void whatIsNotPairedIsDrawnApart()
    {
        lineage::Lineage lineage = sample(false);
        lineage.trials.back().verdict.comparisons.push_back(
            {"openblas", "0.3", {0.8, 0.8, 0.8}, 80, gate::Change::Loss});
        lineage.trials.push_back(trial("e", gate::VerdictStatus::Correct, 50, 0));
        lineage.branches.push_back({"e", "K02", "branches/e.cl"});
        const Trajectory trajectory = lineageTrajectory(lineage);
        QCOMPARE(trajectory.points.size(), std::size_t(5));
        QCOMPARE(trajectory.points[0].kind, TrajectoryPoint::Kind::Unpaired);
        QCOMPARE(trajectory.points[0].speedup, 0.2);
        QCOMPARE(trajectory.points[3].kind, TrajectoryPoint::Kind::Valid);
        QCOMPARE(trajectory.points[4].speedup, 1.6);
        // A quicker day lifts no best above what was seen side by side.
        QCOMPARE(trajectory.runningBest(), (std::vector<double>{0.2, 0.4, 0.4, 0.8, 0.8}));
        QCOMPARE(trajectoryTable(trajectory).rows[0].cells[2].text, QStringLiteral("○ valid, not paired"));
    }

    void withoutAReferenceItIsOverTheFirstState()
    {
        const Trajectory trajectory = lineageTrajectory(sample(false));
        QCOMPARE(trajectory.reference, QStringLiteral("K0"));
        QCOMPARE(trajectory.points[3].speedup, 4.0);
    }

    /// One device on the axes; what was timed on another is told with its name, and has no speedup here.
    void anotherDeviceIsNotDrawn()
    {
        lineage::Lineage lineage = sample(true);
        for (gate::Trial &trial : lineage.trials)
            trial.environment.device = "NVIDIA H200";
        gate::Trial here = trial("e", gate::VerdictStatus::Correct, 9e6, 40);
        here.environment.device = "AMD EPYC";
        lineage.trials.push_back(here);
        lineage.branches.push_back({"e", "K02", "branches/e.cl"});
        const Trajectory trajectory = lineageTrajectory(lineage);
        QCOMPARE(trajectory.device, QStringLiteral("NVIDIA H200"));
        QCOMPARE(trajectory.points.size(), std::size_t(4));
        QCOMPARE(trajectory.runningBest().back(), 0.2);
        QCOMPARE(trajectory.elsewhereInWords(), QStringLiteral("1 trial on AMD EPYC is not drawn"));
        const PlotTable table = trajectoryTable(trajectory);
        QCOMPARE(table.rows.size(), std::size_t(5));
        QVERIFY(table.rows.back().cells[2].text.contains(formatLatency(9e6) + QLatin1String(" on AMD EPYC")));
        QVERIFY(!table.rows.back().cells[3].value.isValid());
    }

    void anEmptyLineageSaysWhatToDo()
    {
        WorkspaceModel workspace;
        Selection selection;
        TrajectoryPanel panel(&workspace, &selection);
        QVERIFY(panel.trajectory().points.empty());
        QVERIFY(!panel.findChild<QCustomPlot *>()->isVisible());
    }

    void hoverAndClickReachTheSelection()
    {
        Workspace value;
        value.lineages = {sample(true)};
        WorkspaceModel workspace;
        workspace.setWorkspace(value);
        Selection selection;
        TrajectoryPanel panel(&workspace, &selection);
        selection.setLineage(QStringLiteral("sgemm/pocl"), QStringLiteral("K00"));
        panel.resize(600, 300);
        panel.show();
        QVERIFY(QTest::qWaitForWindowExposed(&panel));
        panel.plot()->replot(QCustomPlot::rpImmediateRefresh);
        const QPoint second(static_cast<int>(panel.plot()->xAxis->coordToPixel(2)),
                            static_cast<int>(panel.plot()->yAxis->coordToPixel(0.2)));
        QCOMPARE(panel.pointAt(second), 1);
        QTest::mouseMove(panel.plot(), second);
        QTRY_COMPARE(selection.hovered(), QStringLiteral("K01"));
        QTest::mouseClick(panel.plot(), Qt::LeftButton, {}, second);
        QCOMPARE(selection.row(), QStringLiteral("K01"));
        QCOMPARE(panel.pointAt(QPoint(1, 1)), -1);
        // Who cannot see it hears the point and what it is about.
        const QString words = panel.plot()->accessibleDescription();
        QVERIFY2(words.startsWith(QLatin1String("K01")) && words.contains(QLatin1String(" trials, "))
                     && words.contains(panel.trajectory().reference),
                 qPrintable(words));
        // Nothing stays lit when the mouse goes elsewhere.
        selection.setHovered(QStringLiteral("K00"));
        QEvent leave(QEvent::Leave);
        QApplication::sendEvent(&panel, &leave);
        QVERIFY(selection.hovered().isEmpty());
    }
};

QTEST_MAIN(TestTrajectory)
#include "tst_trajectory.moc"
