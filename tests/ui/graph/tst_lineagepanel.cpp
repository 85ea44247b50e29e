// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/common/modal.h"
#include "tests/ui/common/sample.h"
#include "tests/ui/common/uitest.h"
#include "ui/graph/graphpainter.h"
#include "ui/graph/lineagedelegate.h"
#include "ui/graph/lineagepanel.h"
#include "ui/graph/lineageview.h"
#include "ui/models/lineagemodel.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QBuffer>
#include <QClipboard>
#include <QHeaderView>
#include <QImage>
#include <QPainter>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QSvgGenerator>
#include <QTest>

#include <cstdlib>
#include <functional>
#include <memory>

using namespace klineage;
using namespace klineage::ui;

namespace {

QImage painted(const LineageRow &row, bool isCurrent)
{
    QImage image(120, 24, QImage::Format_ARGB32);
    image.fill(Qt::transparent);
    QPainter painter(&image);
    paintGraphCell(&painter, QRectF(image.rect()), row, isCurrent);
    return image;
}

/// The texts that something paints.
QStringList writtenBy(const std::function<void(QPainter *)> &paint)
{
    QBuffer file;
    QSvgGenerator generator;
    generator.setOutputDevice(&file);
    generator.setSize({1000, 100});
    QPainter painter(&generator);
    paint(&painter);
    painter.end();
    static const QRegularExpression text(QStringLiteral("<text [^>]*>([^<]*)</text>"));
    QStringList texts;
    for (const QRegularExpressionMatch &match : text.globalMatch(QString::fromUtf8(file.data())))
        texts << match.captured(1).trimmed();
    return texts;
}

} // namespace

class TestLineagePanel : public UiTest
{
    Q_OBJECT

private slots:
    void theTitleTellsLineagesOfOnePlatformApart()
    {
        Shown shown;
        QCOMPARE(shown.panel->windowTitle(), QStringLiteral("toy · pocl"));
        Workspace walked = sampleWorkspace();
        walked.lineages.front().name = "walked";
        shown.workspace.setWorkspace(walked);
        shown.selection.setLineage(QStringLiteral("toy/pocl-walked"), QStringLiteral("K03"));
        QCOMPARE(shown.panel->windowTitle(), QStringLiteral("toy · pocl · walked"));
    }

    void keysWalkPinAndCopy()
    {
        Shown shown;
        shown.panel->activateWindow();
        QVERIFY(takeKeys(*shown.panel));
        shown.view->setFocus();
        shown.selection.setRow(QStringLiteral("K02"));
        QTest::keyClick(shown.view, Qt::Key_B);
        QCOMPARE(shown.selection.baseline(), QStringLiteral("K02"));
        QVERIFY(shown.view->baselineIsPinned());
        QTest::keyClick(shown.view, Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(QApplication::clipboard()->text(), QStringLiteral("toy/pocl/K02"));
        QSignalSpy opened(shown.panel.get(), &LineagePanel::openInEditorRequested);
        QTest::keyClick(shown.view, Qt::Key_Return);
        QCOMPARE(opened.value(0).value(1).toString(), QStringLiteral("K02"));
        // Rows of what was tried are passed by the steps, and walked into by an arrow.
        QTest::keyClick(shown.view, Qt::Key_Down);
        QVERIFY(shown.selection.row() != QLatin1String("K02"));
        shown.selection.setRow(QStringLiteral("K02"));
        shown.panel->step(1);
        QCOMPARE(shown.selection.row(), QStringLiteral("K01"));
    }

    void whatWasTriedPinsItsParent()
    {
        Shown shown;
        shown.selection.setRow(QStringLiteral("R01a"));
        shown.panel->toggleBaseline();
        QCOMPARE(shown.selection.baseline(), QStringLiteral("K01"));
    }

    void turningRoundKeepsTheRow()
    {
        Shown shown;
        shown.selection.setRow(QStringLiteral("K01"));
        QSignalSpy turned(shown.panel.get(), &LineagePanel::directionChanged);
        shown.panel->setDirection(Direction::Forward);
        QCOMPARE(turned.count(), 1);
        QCOMPARE(shown.selection.row(), QStringLiteral("K01"));
        QCOMPARE(shown.view->currentIndex().data(LineageModel::IdRole).toString(), QStringLiteral("K01"));
        QCOMPARE(shown.view->model()->index(0, 0).data(LineageModel::IdRole).toString(),
                 QStringLiteral("K00"));
    }

    void aLongReferenceLeavesTitlesTheirPlace()
    {
        Shown shown;
        shown.panel->resize(560, 400);
        const int before = shown.view->columnWidth(LineageModel::StepColumn);
        Workspace workspace = sampleWorkspace();
        for (gate::Trial &trial : workspace.lineages.front().trials) {
            for (gate::Comparison &comparison : trial.verdict.comparisons) {
                if (comparison.against == "openblas")
                    comparison.against = "library/attention_varlen_causal_of_groups";
            }
        }
        shown.workspace.setWorkspace(workspace);
        const auto *model = shown.view->model();
        QCOMPARE(model->headerData(LineageModel::ReferenceColumn, Qt::Horizontal).toString(),
                 QStringLiteral("vs library"));
        QVERIFY(!shown.view->isColumnHidden(LineageModel::ReferenceColumn));
        const int after = shown.view->columnWidth(LineageModel::StepColumn);
        QVERIFY2(after >= before - 60, qPrintable(QStringLiteral("%1, %2").arg(before).arg(after)));
        // Whole where there is room for a sentence.
        QVERIFY(model->headerData(LineageModel::ReferenceColumn, Qt::Horizontal, Qt::ToolTipRole)
                    .toString()
                    .contains(QLatin1String("library/attention_varlen_causal_of_groups")));
    }

    /// A mark beside the number, and a sentence in the tool tip; the mark has its place, so that no number is cut.
    void timesOfABusyMachineAreMarked()
    {
        Shown shown;
        const auto rowOf = [&shown](const char *id) {
            for (int row = 0; row < shown.view->model()->rowCount(); ++row) {
                if (shown.view->model()->index(row, 0).data(LineageModel::IdRole).toString()
                    == QLatin1String(id))
                    return row;
            }
            return -1;
        };
        const auto cell = [&](const char *id) {
            const QModelIndex index = shown.view->model()->index(rowOf(id), LineageModel::LatencyColumn);
            const QRect place = shown.view->visualRect(index);
            return shown.view->viewport()->grab(place).toImage().convertToFormat(QImage::Format_RGB32);
        };
        const auto hasMark = [&](const char *id) {
            const QImage image = cell(id);
            for (int y = 0; y < image.height(); ++y) {
                for (int x = 0; x < image.width(); ++x) {
                    const QColor color = image.pixelColor(x, y); // the mark's edges are blended
                    if (color.hsvSaturation() > 90
                        && std::abs(color.hsvHue() - Theme::current().warn.hsvHue()) < 15)
                        return true;
                }
            }
            return false;
        };
        const auto tip = [&](const char *id) {
            return shown.view->model()->index(rowOf(id), 0).data(Qt::ToolTipRole).toString();
        };
        const int before = shown.view->columnWidth(LineageModel::LatencyColumn);
        QVERIFY(!hasMark("K02") && !tip("K02").contains(QLatin1String("busy")));
        Workspace workspace = sampleWorkspace();
        for (gate::Trial &trial : workspace.lineages.front().trials) {
            if (trial.id != "tK02" && trial.id != "tR02a")
                continue;
            trial.surface = kernel::Surface::OpenCl;
            trial.environment.facts = {{"load_1min", "7.25"}, {"cpu_threads", "2"}};
        }
        shown.workspace.setWorkspace(workspace);
        QVERIFY(shown.view->columnWidth(LineageModel::LatencyColumn) > before);
        QVERIFY(hasMark("K02"));
        QVERIFY2(tip("K02").contains(QStringLiteral("a load of 7.3 on 2 threads")), qPrintable(tip("K02")));
        QVERIFY(!hasMark("K01") && !tip("K01").contains(QLatin1String("busy")));
        QVERIFY(!hasMark("R02a") && !tip("R02a").contains(QLatin1String("busy"))); // not timed
    }

    void noNumberIsEverCutOff_data()
    {
        QTest::addColumn<int>("width");
        for (const int width : {180, 210, 240, 300, 360, 440, 700})
            QTest::addRow("%d", width) << width;
    }

    void noNumberIsEverCutOff()
    {
        QFETCH(int, width);
        Shown shown;
        shown.panel->resize(width, 400);
        const QHeaderView *header = shown.view->horizontalHeader();
        int sum = 0;
        for (int column = 0; column < LineageModel::ColumnCount; ++column) {
            if (shown.view->isColumnHidden(column))
                continue;
            sum += shown.view->columnWidth(column);
            if (column != LineageModel::StepColumn && column != LineageModel::GateColumn)
                QVERIFY2(shown.view->columnWidth(column) >= header->sectionSizeHint(column),
                         qPrintable(header->model()->headerData(column, Qt::Horizontal).toString()));
        }
        if (width >= 210)
            QVERIFY2(sum <= shown.view->viewport()->width(), qPrintable(QString::number(sum)));
        QVERIFY(!shown.view->isColumnHidden(LineageModel::LatencyColumn));
        if (width >= 700)
            QVERIFY(!shown.view->isColumnHidden(LineageModel::ReferenceColumn));
    }

    /// A date or a figure that is cut says something wrong: where there is no room for what was tried and what came of it, the time stands alone,
    /// and the change gives way to it.
    void aBranchKeepsItsTime()
    {
        Workspace workspace = sampleWorkspace();
        for (gate::Trial &trial : workspace.lineages.front().trials)
            trial.time = "2026-01-31T12:34:56.000Z";
        Shown shown;
        shown.workspace.setWorkspace(workspace);
        const auto *model = qobject_cast<const LineageModel *>(shown.view->model());
        int branch = 0;
        while (branch < model->rowCount() && model->row(branch).kind != lineage::TableRow::Kind::Branch)
            ++branch;
        QVERIFY(branch < model->rowCount());
        const QString whole = model->row(branch).title;
        const QString time = whole.section(u' ', -1);
        QVERIFY2(whole.contains(u' ') && time.contains(u':'), qPrintable(whole));
        const QString outcome = whole.section(titleSeparator(), 0, 0);
        QCOMPARE(outcome, QStringLiteral("undecided"));
        auto *delegate = qobject_cast<LineageDelegate *>(shown.view->itemDelegate());
        bool wasShort = false;
        for (int room = shown.view->fontMetrics().horizontalAdvance(time) + 10; room < 200; room += 5) {
            const QStringList written = writtenBy([&](QPainter *painter) {
                QStyleOptionViewItem option;
                option.initFrom(shown.view);
                option.rect = QRect(0, 0, delegate->titleLeft() + room, 24);
                delegate->paint(painter, option, model->index(branch, LineageModel::StepColumn));
            });
            QVERIFY2(written.contains(whole) + written.contains(outcome) + written.contains(time) == 1,
                     qPrintable(written.join(u'|')));
            wasShort = wasShort || written.contains(time);
        }
        QVERIFY(wasShort);
        for (int width = 180; width < 500; width += 4) {
            shown.panel->resize(width, 400);
            if (!shown.view->isColumnHidden(LineageModel::ChangeColumn))
                QVERIFY2(shown.view->columnWidth(LineageModel::StepColumn) - delegate->titleLeft()
                             > shown.view->fontMetrics().horizontalAdvance(time),
                         qPrintable(QString::number(width)));
        }
    }

    void nodesDifferInShapeAndTheCurrentOneHasARing()
    {
        LineageRow row;
        QList<QImage> images;
        for (const NodeShape shape : {NodeShape::Best, NodeShape::State, NodeShape::Ungated,
                                      NodeShape::Failed, NodeShape::Rejected, NodeShape::Branch}) {
            row.graph.node = shape;
            row.graph.lane = shape == NodeShape::Rejected || shape == NodeShape::Branch ? 1 : 0;
            const QImage image = painted(row, false);
            QVERIFY(!images.contains(image));
            images << image;
            QVERIFY(painted(row, true) != image);
        }
    }

private:
    struct Shown {
        Shown()
        {
            workspace.setWorkspace(sampleWorkspace());
            panel = std::make_unique<LineagePanel>(&workspace, &selection);
            selection.setLineage(QStringLiteral("toy/pocl"), QStringLiteral("K03"));
            panel->resize(440, 400);
            panel->show();
            view = panel->findChild<LineageView *>();
            view->setFocus();
        }
        WorkspaceModel workspace;
        Selection selection;
        std::unique_ptr<LineagePanel> panel;
        LineageView *view = nullptr;
    };
};

KLINEAGE_UI_TEST(TestLineagePanel)
#include "tst_lineagepanel.moc"
