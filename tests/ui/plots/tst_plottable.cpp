// SPDX-License-Identifier: GPL-3.0-or-later
// The tables behind the plots: the same numbers, by key, and as they are exported.
#include "tests/paths.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/pictures.h"
#include "tests/ui/common/sample.h"
#include "tests/ui/common/uitest.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/plots/manypoints.h"
#include "ui/plots/plotstyle.h"
#include "ui/plots/roofline/rooflinetable.h"
#include "ui/plots/roofline/rooflineview.h"
#include "ui/plots/runtrace.h"
#include "ui/plots/table/figurestack.h"
#include "ui/plots/table/plottableview.h"
#include "ui/plots/trajectorypanel.h"
#include "ui/style/format.h"

#include <QAbstractItemModelTester>
#include <QAction>
#include <QSignalSpy>
#include <QTest>

#include <algorithm>
#include <random>

#include <qcustomplot.h>

using namespace klineage;
using namespace klineage::ui;

namespace {

QString textAt(const PlotTable &table, std::size_t row, const QString &column)
{
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        if (table.columns[i].plain == column)
            return table.rows[row].cells[i].text;
    }
    return QStringLiteral("no such column");
}

QVariant valueAt(const PlotTable &table, std::size_t row, const QString &column)
{
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        if (table.columns[i].plain == column)
            return table.rows[row].cells[i].value;
    }
    return {};
}

bool isWhole(const PlotTable &table)
{
    return std::all_of(table.rows.begin(), table.rows.end(),
                       [&](const PlotTable::Row &row) { return row.cells.size() == table.columns.size(); });
}

} // namespace

class TestPlotTable : public UiTest
{
    Q_OBJECT

private slots:
    void theModelKeepsTextsAndNumbers()
    {
        PlotTableModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setTable(
            {{{QStringLiteral("Name"), {}, false}, {QStringLiteral("Speed"), QStringLiteral("speed_x")}},
             {{QStringLiteral("K1"),
               {QStringLiteral("K1"), PlotTable::Cell(1.23456, QStringLiteral("1.23×"))}},
              {{}, {QStringLiteral("none"), PlotTable::Cell()}}}});
        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(model.index(0, 1).data().toString(), QStringLiteral("1.23×"));
        QCOMPARE(model.index(0, 1).data(Qt::EditRole).toDouble(), 1.23456);
        QCOMPARE(model.index(1, 1).data().toString(), QStringLiteral("–"));
        QVERIFY(model.index(1, 1).data(Qt::EditRole).toString().isEmpty());
        QCOMPARE(model.headerData(0, Qt::Horizontal, Qt::EditRole).toString(), QStringLiteral("Name"));
        QCOMPARE(model.headerData(1, Qt::Horizontal, Qt::EditRole).toString(), QStringLiteral("speed_x"));
        QCOMPARE(model.rowOf(QStringLiteral("K1")), 0);
        QCOMPARE(model.rowOf({}), -1);
        model.setTable({});
        QCOMPARE(model.columnCount(), 0);
    }

    void theTrajectoryHasARowATrial()
    {
        const Workspace workspace = sampleWorkspace();
        const Trajectory trajectory = lineageTrajectory(workspace.lineages[0]);
        const PlotTable table = trajectoryTable(trajectory);
        QVERIFY(isWhole(table));
        QCOMPARE(table.rows.size(), trajectory.points.size());
        const std::vector<double> best = trajectory.runningBest();
        for (std::size_t i = 0; i < table.rows.size(); ++i) {
            const TrajectoryPoint &point = trajectory.points[i];
            QCOMPARE(table.rows[i].id, point.row);
            const bool hasSpeedup = point.kind != TrajectoryPoint::Kind::Failed;
            QCOMPARE(valueAt(table, i, QStringLiteral("speedup")).isValid(), hasSpeedup);
            if (hasSpeedup)
                QCOMPARE(valueAt(table, i, QStringLiteral("speedup")).toDouble(), point.speedup);
            QCOMPARE(textAt(table, i, QStringLiteral("running_best")),
                     best[i] > 0 ? formatSpeedup(best[i]) : QString());
        }
        QVERIFY(std::any_of(table.rows.begin(), table.rows.end(), [](const PlotTable::Row &row) {
            return row.cells[2].text == QStringLiteral("△ failed");
        }));
    }

    /// T turns to the table and back, and the focus goes with it; a row that is chosen there is chosen everywhere.
    void aKeyTurnsToTheTable()
    {
        WorkspaceModel workspace;
        Selection selection;
        workspace.setWorkspace(sampleWorkspace());
        selection.setLineage(QStringLiteral("toy/pocl"), QStringLiteral("K01"));
        TrajectoryPanel panel(&workspace, &selection);
        panel.resize(600, 300);
        panel.show();
        panel.activateWindow();
        QVERIFY(takeKeys(panel));
        panel.plot()->setFocus();
        auto *table = panel.findChild<PlotTableView *>();
        QVERIFY(!table->isVisible());
        QTest::keyClick(panel.plot(), Qt::Key_T);
        QVERIFY(table->isVisible() && table->hasFocus());
        QCOMPARE(table->model()->rowCount(), static_cast<int>(panel.trajectory().points.size()));
        QCOMPARE(table->currentIndex().data(PlotTableModel::IdRole).toString(), QStringLiteral("K01"));
        QTest::keyClick(table, Qt::Key_Down);
        QCOMPARE(selection.row(), table->currentIndex().data(PlotTableModel::IdRole).toString());
        QVERIFY(selection.row() != QLatin1String("K01"));
        selection.setRow(QStringLiteral("K03"));
        QCOMPARE(table->currentIndex().data(PlotTableModel::IdRole).toString(), QStringLiteral("K03"));
        // Where there is nothing to show, the message stays.
        selection.setLineage(QStringLiteral("toy/sm90"), QStringLiteral("K00"));
        QVERIFY(!table->isVisible() && !panel.plot()->isVisible());
        selection.setLineage(QStringLiteral("toy/pocl"), QStringLiteral("K01"));
        QVERIFY(table->isVisible());
        table->setFocus();
        QTest::keyClick(table, Qt::Key_T);
        QVERIFY(panel.plot()->isVisible() && panel.plot()->hasFocus());
        QVERIFY(table->accessibleName().contains(panel.plot()->accessibleName()));
    }

    void theRooflineHasStatesAndCeilings()
    {
        const Workspace workspace = openWorkspace(klineage::test::sourcePath()).value();
        const RooflineView view = rooflineOf(*workspace.findLineage("gemm/sm90"), QStringLiteral("K08"));
        const PlotTable table = rooflineTable(view);
        QVERIFY(isWhole(table));
        QCOMPARE(table.rows.size(), view.path.points.size() + view.path.ceilings.size());
        for (std::size_t i = 0; i < view.path.points.size(); ++i) {
            QCOMPARE(valueAt(table, i, QStringLiteral("per_second")).toDouble(),
                     view.path.points[i].perSecond);
            const double share = valueAt(table, i, QStringLiteral("percent_of_roof")).toDouble();
            QVERIFY(share > 0 && share < 100);
        }
        QCOMPARE(textAt(table, view.path.points.size(), QStringLiteral("name")),
                 QString::fromStdString(view.path.ceilings.front().name));
    }

    void stepsWithoutASpeedupAreRowsToo()
    {
        RunTrace trace;
        trace.run = QStringLiteral("r#1");
        trace.points = {{1, 0.01, 0, 0, RunTracePoint::Kind::Other, QStringLiteral("plan")},
                        {2, 0.02, 1.5, 1.5, RunTracePoint::Kind::Valid, QStringLiteral("valid")}};
        const PlotTable table = runTraceTable({trace});
        QVERIFY(isWhole(table));
        QCOMPARE(table.rows.size(), std::size_t{2});
        QCOMPARE(table.rows[1].id, QStringLiteral("r#1#2"));
        QVERIFY(!valueAt(table, 0, QStringLiteral("speedup")).isValid());
        QCOMPARE(valueAt(table, 1, QStringLiteral("speedup")).toDouble(), 1.5);
    }

    /// Many glyphs are the same picture as each drawn by itself.
    void manyPointsLookAsEachByItself()
    {
        QCustomPlot plot;
        plot.resize(400, 300);
        stylePlot(&plot, QApplication::palette());
        QVector<double> x;
        QVector<double> y;
        std::mt19937 random(3);
        std::normal_distribution<double> around(500, 180);
        for (int i = 0; i < 3000; ++i) {
            x.append(i);
            y.append(around(random));
        }
        const auto picture = [&](QCPGraph *graph) {
            stylePoints(graph, 0);
            graph->setData(x, y, true);
            plot.xAxis->setRange(-10, 3010);
            plot.yAxis->setRange(-10, 1010);
            plot.replot();
            const QImage image = plot.toPixmap(400, 300).toImage().convertToFormat(QImage::Format_RGB32);
            plot.clearPlottables();
            return image;
        };
        QCPGraph *plain = plot.addGraph();
        plain->setAdaptiveSampling(false);
        const QImage expected = picture(plain);
        const QImage stamped = picture(new ManyPoints(plot.xAxis, plot.yAxis));
        const auto inked = [](const QImage &image) {
            int count = 0;
            for (int row = 0; row < image.height(); ++row) {
                for (int column = 0; column < image.width(); ++column)
                    count += qGray(image.pixel(column, row)) < 200 ? 1 : 0;
            }
            return count;
        };
        // Places are those of pixels, so that an edge may be half a pixel off.
        QVERIFY(inked(expected) > 5000);
        QVERIFY2(std::abs(inked(stamped) - inked(expected)) < inked(expected) / 10,
                 qPrintable(QStringLiteral("%1, not %2").arg(inked(stamped)).arg(inked(expected))));
        QVERIFY2(likeness(expected, stamped) > 0.97,
                 qPrintable(QString::number(likeness(expected, stamped))));
    }
};

KLINEAGE_UI_TEST(TestPlotTable)
#include "tst_plottable.moc"
