// SPDX-License-Identifier: GPL-3.0-or-later
// The story's panel with the window's selection, and with a run that goes on.
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/sample.h"
#include "tests/ui/common/uitest.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/runs/runstore.h"
#include "ui/story/picture/picturecanvas.h"
#include "ui/story/picture/picturemodel.h"
#include "ui/story/storypanel.h"
#include "ui/story/windows/presenter.h"
#include "ui/style/theme.h"

#include <QAbstractItemModelTester>
#include <QAction>
#include <QApplication>
#include <QFile>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>

using namespace klineage;
using namespace klineage::ui;

namespace {

struct Panel {
    Panel()
    {
        workspace.setWorkspace(sampleWorkspace());
        selection.setLineage(QStringLiteral("toy/pocl"), QStringLiteral("K01"));
        panel.resize(1000, 500);
        panel.show();
        panel.activateWindow();
        panel.canvas()->setFocus();
        ready = takeKeys(panel);
    }
    [[nodiscard]] QString selectedRow() const
    {
        const int item = panel.canvas()->selected();
        return item < 0 ? QString() : panel.canvas()->picture().items[static_cast<std::size_t>(item)].row;
    }

    WorkspaceModel workspace;
    Selection selection;
    RunStore runs{&workspace};
    StoryPanel panel{&workspace, &selection, &runs};
    bool ready = false;
};

void writeLines(const QString &fileName, const QList<QByteArray> &lines)
{
    QFile file(fileName);
    QVERIFY(file.open(QIODevice::WriteOnly));
    for (const QByteArray &line : lines)
        file.write(line + '\n');
}

} // namespace

class TestStoryPanel : public UiTest
{
    Q_OBJECT

private slots:
    void followsAndLeadsTheSelection()
    {
        Panel shown;
        QVERIFY(shown.ready);
        QCOMPARE(shown.selectedRow(), "K01");
        shown.selection.setRow("K02");
        QCOMPARE(shown.selectedRow(), "K02");
        shown.selection.setHovered("R01a");
        QVERIFY(shown.panel.canvas()->hovered() >= 0);
        shown.selection.setHovered({});
        QCOMPARE(shown.panel.canvas()->hovered(), -1);

        PictureCanvas *canvas = shown.panel.canvas();
        const int attempt = canvas->picture().itemOf("toy/pocl", "R01a");
        QTest::mouseMove(canvas, canvas->pixelOf(attempt).toPoint());
        QCOMPARE(shown.selection.hovered(), "R01a");
        QTest::mouseClick(canvas, Qt::LeftButton, {}, canvas->pixelOf(attempt).toPoint());
        QCOMPARE(shown.selection.row(), "R01a");
        QTest::keyClick(canvas, Qt::Key_Home);
        QCOMPARE(shown.selection.row(), "K00");
        QTest::keyClick(canvas, Qt::Key_Right);
        QCOMPARE(shown.selection.row(), "K01");

        shown.selection.setLineage("toy/sm90", "K00");
        QVERIFY(canvas->picture().title.contains("nothing was timed"));
    }

    void tableSaysTheSame()
    {
        Panel shown;
        QVERIFY(shown.ready);
        const QAbstractItemModelTester tester(shown.panel.model(),
                                              QAbstractItemModelTester::FailureReportingMode::QtTest);
        QCOMPARE(shown.panel.table()->objectName(), "behindCanvas");
        QCOMPARE(shown.panel.model()->rowCount(), 7);
        QTest::keyClick(shown.panel.canvas(), Qt::Key_T);
        QVERIFY(shown.panel.showsTable());
        QVERIFY(shown.panel.table()->isVisible());
        QVERIFY(shown.panel.table()->hasFocus());
        QTest::keyClick(shown.panel.table(), Qt::Key_Down);
        QCOMPARE(shown.selection.row(), "R01a");
        QTest::keyClick(shown.panel.table(), Qt::Key_T);
        QVERIFY(!shown.panel.showsTable());
        for (const auto view : {StoryPanel::View::Graph, StoryPanel::View::Overlay,
                                StoryPanel::View::Speedups, StoryPanel::View::Trace}) {
            shown.panel.setView(view);
            QVERIFY(shown.panel.model()->rowCount() > 0);
            QVERIFY(shown.panel.canvas()->picture().message.isEmpty());
        }
        shown.panel.setView(StoryPanel::View::Steps);
        QVERIFY(!shown.panel.canvas()->picture().message.isEmpty()); // it says what to do
        shown.panel.setView(StoryPanel::View::Roundtrip);
        QTRY_VERIFY(
            shown.panel.canvas()->picture().message.contains("klineage-cli lineage roundtrip toy/pocl"));
    }

    /// What a run writes appears in the same picture, which stays where one looks.
    void aRunGrowsInThePicture()
    {
        Panel shown;
        QVERIFY(shown.ready);
        const QTemporaryDir folder;
        namespace fs = std::filesystem;
        const QString id = QStringLiteral("simulated-kernel-smith");
        const fs::path from =
            fs::path(klineage::test::sourcePath()) / "tests/data/searchruns" / id.toStdString();
        const fs::path to = fs::path(folder.path().toStdString()) / id.toStdString();
        fs::copy(from, to, fs::copy_options::recursive);
        fs::remove(to / "ending.toml");
        const QString stepsFile = QString::fromStdString((to / "steps.jsonl").string());
        QFile whole(stepsFile);
        QVERIFY(whole.open(QIODevice::ReadOnly));
        QList<QByteArray> lines = whole.readAll().split('\n');
        whole.close();
        lines.removeAll(QByteArray());
        QVERIFY(lines.size() > 10);
        writeLines(stepsFile, lines.mid(0, 6));

        shown.runs.openGuest(folder.path(), id);
        QTRY_VERIFY(shown.runs.current());
        PictureCanvas *canvas = shown.panel.canvas();
        QVERIFY(!shown.panel.showsRun()); // nobody asked for it
        canvas->setFocus();
        QTest::keyClick(canvas, Qt::Key_L);
        QVERIFY(shown.panel.showsRun());
        QTRY_VERIFY(canvas->picture().itemOf("run:" + id, "1") >= 0);
        shown.panel.setView(StoryPanel::View::Graph);
        const std::size_t before = canvas->picture().marks.size();
        QCOMPARE(before, std::size_t{6});
        QCOMPARE(shown.selectedRow(), "6");
        canvas->zoomBy(1.6);
        const double scale = canvas->view().xScale();

        writeLines(stepsFile, lines);
        shown.runs.refresh();
        QTRY_VERIFY(canvas->picture().marks.size() > before);
        QVERIFY(std::abs(canvas->view().xScale() / scale - 1) < 0.01);
        QTRY_COMPARE(shown.selectedRow(), QString::number(shown.runs.step()));

        shown.panel.setView(StoryPanel::View::Waterfall);
        const int first = canvas->picture().itemOf("run:" + id, "1");
        canvas->fit();
        QTest::mouseClick(canvas, Qt::LeftButton, {}, canvas->pixelOf(first).toPoint());
        QCOMPARE(shown.runs.step(), 1);
        shown.panel.setView(StoryPanel::View::Steps);
        QVERIFY(canvas->picture().message.isEmpty());
        QTest::keyClick(canvas, Qt::Key_1);
        QTest::keyClick(canvas, Qt::Key_L);
        QVERIFY(!shown.panel.showsRun());
        QVERIFY(canvas->picture().itemOf("toy/pocl", "K01") >= 0);
    }

    void everyViewHasANameAndACommand()
    {
        Panel shown;
        QVERIFY(shown.ready);
        const QStringList names = StoryPanel::viewNames();
        QCOMPARE(names.size(), static_cast<int>(StoryPanel::View::Roundtrip) + 1);
        for (qsizetype i = 0; i < names.size(); ++i) {
            QAction *action = nullptr;
            for (QAction *each : shown.panel.canvas()->actions()) {
                if (each->objectName() == QLatin1String("story.") + names[i])
                    action = each;
            }
            QVERIFY(action);
            action->trigger();
            QCOMPARE(static_cast<qsizetype>(shown.panel.view()), i);
        }
    }

    void hiddenPicturesAreNotMade()
    {
        WorkspaceModel workspace;
        Selection selection;
        RunStore runs(&workspace);
        StoryPanel panel(&workspace, &selection, &runs);
        workspace.setWorkspace(sampleWorkspace());
        selection.setLineage("toy/pocl", "K01");
        QVERIFY(panel.canvas()->picture().marks.empty());
        panel.show();
        QVERIFY(!panel.canvas()->picture().marks.empty());
    }

    void pagesFollowEachOther()
    {
        Panel shown;
        QVERIFY(shown.ready);
        shown.panel.present();
        Presenter *presenter = shown.panel.presenter();
        QVERIFY(takeKeys(*presenter));
        QCOMPARE(presenter->page(), 0); // whatever row the window was at
        QTest::keyClick(presenter, Qt::Key_Right);
        QVERIFY(presenter->heading().startsWith("K01"));
        QCOMPARE(presenter->pageCount(), 5);
        QVERIFY(presenter->isFullScreen());
        QTest::keyClick(presenter, Qt::Key_Right);
        QVERIFY(presenter->heading().startsWith("K02"));
        QCOMPARE(shown.selection.row(), "K02");
        QTest::keyClick(presenter, Qt::Key_Left);
        QVERIFY(presenter->heading().startsWith("K01"));
        QTest::keyClick(presenter, Qt::Key_End);
        QVERIFY(presenter->heading().contains("3 steps"));
        QTest::keyClick(presenter, Qt::Key_Right);
        QCOMPARE(presenter->page(), 4);
        QTest::keyClick(presenter, Qt::Key_Home);
        QCOMPARE(presenter->page(), 0);
        QTest::keyClick(presenter, Qt::Key_Space);
        QTest::keyClick(presenter, Qt::Key_Backspace);
        QCOMPARE(presenter->page(), 0);
        QTest::keyClick(presenter, Qt::Key_Escape);
        QVERIFY(!presenter->isVisible());
    }
};

KLINEAGE_UI_TEST(TestStoryPanel)
#include "tst_storypanel.moc"
