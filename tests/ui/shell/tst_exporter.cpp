// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/common/sample.h"
#include "tests/ui/common/uitest.h"
#include "ui/graph/lineagepanel.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/plots/trajectorypanel.h"
#include "ui/shell/exporter.h"

#include <QFile>
#include <QImage>
#include <QLabel>
#include <QStandardItemModel>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>

using namespace klineage;
using namespace klineage::ui;

namespace {

QByteArray bytesOf(const QString &fileName)
{
    QFile file(fileName);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

} // namespace

class TestExporter : public UiTest
{
    Q_OBJECT

private slots:
    void tablesAreWrittenAsTheyAreShown()
    {
        QStandardItemModel model(2, 3);
        model.setHorizontalHeaderLabels({QStringLiteral("a"), QStringLiteral("b, c"), QStringLiteral("d")});
        model.setItem(0, 0, new QStandardItem(QStringLiteral("plain")));
        model.setItem(0, 1, new QStandardItem(QStringLiteral("say \"x\"")));
        model.setItem(1, 0, new QStandardItem(QStringLiteral("two\nlines")));
        model.setItem(1, 2, new QStandardItem(QStringLiteral("hidden")));
        QTableView view;
        view.setModel(&model);
        view.setColumnHidden(2, true);
        QCOMPARE(tableAsCsv(view),
                 QStringLiteral("a,\"b, c\"\r\nplain,\"say \"\"x\"\"\"\r\n\"two\nlines\",\r\n"));
        model.setItem(1, 0, new QStandardItem(QStringLiteral("longer than others")));
        QCOMPARE(
            tableAsText(view),
            QStringLiteral("a                   b, c\nplain               say \"x\"\nlonger than others\n"));
    }

    void onlyOpenBranchesOfATreeAreWritten()
    {
        QStandardItemModel model;
        auto *open = new QStandardItem(QStringLiteral("open"));
        open->appendRow(new QStandardItem(QStringLiteral("child")));
        auto *closed = new QStandardItem(QStringLiteral("closed"));
        closed->appendRow(new QStandardItem(QStringLiteral("unseen")));
        model.appendRow(open);
        model.appendRow(closed);
        QTreeView view;
        view.setModel(&model);
        view.expand(open->index());
        QCOMPARE(tableAsCsv(view), QStringLiteral("open\r\n  child\r\nclosed\r\n"));
    }

    void aPanelBecomesEachKindOfFile()
    {
        const QTemporaryDir folder;
        WorkspaceModel workspace;
        Selection selection;
        workspace.setWorkspace(sampleWorkspace());
        selection.setLineage(QStringLiteral("toy/pocl"), QStringLiteral("K03"));
        LineagePanel panel(&workspace, &selection);
        panel.resize(700, 300);
        panel.show();
        QVERIFY(exportFilters(panel).contains(QLatin1String("*.csv")));
        for (const char *name : {"p.png", "p.svg", "p.pdf", "p.csv", "p.txt"})
            QCOMPARE(exportPanel(panel, folder.filePath(QLatin1String(name))), QString());
        const QImage image(folder.filePath(QStringLiteral("p.png")));
        QVERIFY(image.width() >= 2 * 960); // of paper, whatever the panel's size
        QCOMPARE(panel.size(), QSize(700, 300));
        QVERIFY(bytesOf(folder.filePath(QStringLiteral("p.svg"))).contains("<svg"));
        QVERIFY(bytesOf(folder.filePath(QStringLiteral("p.pdf"))).startsWith("%PDF"));
        const QString csv = QString::fromUtf8(bytesOf(folder.filePath(QStringLiteral("p.csv"))));
        QVERIFY(csv.contains(QLatin1String("openblas")));
        QVERIFY(csv.contains(QLatin1String("K03  unrolled")));
    }

    void plotsStayLinesAndText()
    {
        const QTemporaryDir folder;
        WorkspaceModel workspace;
        Selection selection;
        workspace.setWorkspace(sampleWorkspace());
        selection.setLineage(QStringLiteral("toy/pocl"), QStringLiteral("K03"));
        TrajectoryPanel panel(&workspace, &selection);
        panel.resize(500, 300);
        panel.show();
        const QString file = folder.filePath(QStringLiteral("t.svg"));
        QCOMPARE(exportPanel(panel, file), QString());
        const QByteArray svg = bytesOf(file);
        QVERIFY(svg.contains("Speedup over openblas"));
        QVERIFY(!svg.contains("<image"));
    }

    /// The numbers behind a plot, with all of their digits, although the plot is what is shown.
    void aPlotHasItsTable()
    {
        const QTemporaryDir folder;
        WorkspaceModel workspace;
        Selection selection;
        workspace.setWorkspace(sampleWorkspace());
        selection.setLineage(QStringLiteral("toy/pocl"), QStringLiteral("K03"));
        TrajectoryPanel panel(&workspace, &selection);
        panel.resize(500, 300);
        panel.show();
        QVERIFY(!visibleTable(panel));
        QVERIFY(exportFilters(panel).contains(QLatin1String("*.csv")));
        const QString file = folder.filePath(QStringLiteral("t.csv"));
        QCOMPARE(exportPanel(panel, file), QString());
        const QStringList lines = QString::fromUtf8(bytesOf(file)).split(QStringLiteral("\r\n"));
        QCOMPARE(lines.front(), QStringLiteral("trial,state,outcome,speedup,running_best"));
        QCOMPARE(lines.size(), static_cast<qsizetype>(panel.trajectory().points.size()) + 2); // header, end
        QVERIFY2(lines.contains(QStringLiteral("4,K03 unrolled,● valid,1.25,1.25")),
                 qPrintable(lines.join(u'|')));
        // A message has no numbers.
        selection.setLineage(QStringLiteral("toy/sm90"), QStringLiteral("K00"));
        QVERIFY(!exportedTable(panel));
        QVERIFY(!exportFilters(panel).contains(QLatin1String("*.csv")));
    }

    void whatCannotBeDoneIsSaid()
    {
        QLabel label(QStringLiteral("no table"));
        QVERIFY(!exportFilters(label).contains(QLatin1String("csv")));
        QVERIFY(exportPanel(label, QStringLiteral("x.csv")).contains(QLatin1String("shows no table")));
        QVERIFY(exportPanel(label, QStringLiteral("x.doc")).contains(QLatin1String("must end in")));
        QVERIFY(exportPanel(label, QStringLiteral("/proc/nowhere/x.png"))
                    .startsWith(QLatin1String("Cannot export")));
    }

    void aFileIsReplacedOnlyByAWholeOne()
    {
        const QTemporaryDir folder;
        const QString file = folder.filePath(QStringLiteral("p.csv"));
        {
            QFile old(file);
            QVERIFY(old.open(QIODevice::WriteOnly));
            old.write("old");
        }
        QLabel label;
        QVERIFY(!exportPanel(label, file).isEmpty());
        QCOMPARE(bytesOf(file), QByteArray("old"));
    }
};

KLINEAGE_UI_TEST(TestExporter)
#include "tst_exporter.moc"
