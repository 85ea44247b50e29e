// SPDX-License-Identifier: GPL-3.0-or-later
// The story in the real window: every key of it pressed, its pictures exported, two states of two lineages compared.
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/common/writtentexts.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/diff/view/diffview.h"
#include "ui/profile/profilemodel.h"
#include "ui/shell/centre.h"
#include "ui/shell/exporter.h"
#include "ui/story/picture/picturecanvas.h"
#include "ui/story/picture/picturemodel.h"
#include "ui/story/picture/picturepainter.h"
#include "ui/story/storypanel.h"
#include "ui/story/windows/comparewindow.h"
#include "ui/story/windows/presenter.h"
#include "ui/style/tickmenu.h"

#include <QFile>
#include <QImage>
#include <QScreen>
#include <QSvgRenderer>
#include <QTimer>
#include <QToolButton>
#include <QWheelEvent>

using namespace klineage;
using namespace klineage::ui;

namespace {

StoryPanel *storyOf(const RealWindow &real)
{
    return qobject_cast<StoryPanel *>(real.window->panel(QStringLiteral("story")));
}

QByteArray fileBytes(const QString &name)
{
    QFile file(name);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

} // namespace

class TestStoryJourney : public UiTest
{
    Q_OBJECT

private slots:
    void everyKeyOfThePicture()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        real.press(Qt::Key_4, Qt::ControlModifier | Qt::AltModifier); // the layout Demo
        StoryPanel *story = storyOf(real);
        QTRY_VERIFY(story->isVisible());
        PictureCanvas *canvas = story->canvas();
        real.focus("story");
        QVERIFY(real.hasFocus("story"));
        QCOMPARE(canvas->selected(), canvas->picture().itemOf("gemm/sm90", "K08"));

        using View = StoryPanel::View;
        const std::pair<Qt::Key, View> views[] = {{Qt::Key_2, View::Graph},    {Qt::Key_3, View::Overlay},
                                                  {Qt::Key_4, View::Speedups}, {Qt::Key_5, View::Trace},
                                                  {Qt::Key_6, View::Steps},    {Qt::Key_7, View::Roundtrip},
                                                  {Qt::Key_1, View::Waterfall}};
        for (const auto &[key, view] : views) {
            real.press(key);
            QCOMPARE(story->view(), view);
        }
        real.press(Qt::Key_T);
        QVERIFY(story->showsTable());
        real.press(Qt::Key_T);
        QVERIFY(!story->showsTable());
        real.press(Qt::Key_L);
        QVERIFY(!story->showsRun()); // there is no run, and the status bar says so

        real.press(Qt::Key_Plus);
        QVERIFY(!canvas->view().isFitted());
        real.press(Qt::Key_Minus);
        QVERIFY(canvas->view().isFitted());
        const QPointF at = canvas->pixelOf(canvas->selected());
        QWheelEvent wheel(at, canvas->mapToGlobal(at), {}, {0, 360}, Qt::NoButton, Qt::ControlModifier,
                          Qt::NoScrollPhase, false);
        QApplication::sendEvent(canvas, &wheel);
        QVERIFY(!canvas->view().isFitted());
        real.press(Qt::Key_F);
        QVERIFY(canvas->view().isFitted());

        // The picture leads the window: diff, card and lineage follow.
        real.press(Qt::Key_Right);
        QCOMPARE(real.row(), "R08a");
        real.press(Qt::Key_Right);
        QCOMPARE(real.row(), "K09");
        real.press(Qt::Key_Home);
        QCOMPARE(real.row(), "K00");
        real.press(Qt::Key_End);
        const lineage::Lineage *gemm = real.window->workspace()->lineage(QStringLiteral("gemm/sm90"));
        QCOMPARE(real.row(), QString::fromStdString(gemm->states.back().id));
        for (int i = 0; i < 40 && real.row() != "K10"; ++i) // past what was tried from it
            real.press(Qt::Key_Left);
        QCOMPARE(real.row(), "K10");
        // And it follows: a step anywhere is a step here.
        real.press(Qt::Key_Right, Qt::ControlModifier);
        QCOMPARE(real.row(), "K09");
        QCOMPARE(canvas->selected(), canvas->picture().itemOf("gemm/sm90", "K09"));
        QVERIFY(real.settle());
        // Letters of the window act here too.
        real.press(Qt::Key_B);
        QCOMPARE(real.selection()->baseline(), "K09");
        real.press(Qt::Key_B);
        real.press(Qt::Key_Return);
        QCOMPARE(real.window->centre()->page(), "diff");
        QTest::mouseMove(canvas, canvas->pixelOf(canvas->picture().itemOf("gemm/sm90", "K03")).toPoint());
        QCOMPARE(real.selection()->hovered(), "K03");
    }

    /// Trial by trial: the picture, its table, and what each was timed beside.
    void roundtripsOfTheLineage()
    {
        const RealWindow real(QStringLiteral("conv2d-f16/sm90/K02"));
        QVERIFY(real.ready);
        QVERIFY(real.window->showStory(QStringLiteral("waterfall")));
        QVERIFY(!real.window->showStory(QStringLiteral("nothing")));
        StoryPanel *story = storyOf(real);
        real.focus("story");
        real.press(Qt::Key_7);
        PictureCanvas *canvas = story->canvas();
        QTRY_VERIFY(story->isUpToDate() && canvas->picture().message.isEmpty());
        const QString key = QStringLiteral("roundtrip:conv2d-f16/sm90");
        const int repaired = canvas->picture().itemOf(key, "none-t2.2");
        QVERIFY(repaired >= 0);
        QTest::mouseMove(canvas, canvas->pixelOf(repaired).toPoint());
        QCOMPARE(canvas->hovered(), repaired);
        QVERIFY(canvas->accessibleDescription().contains("NVIDIA H200"));
        // A click goes to the last state, which it was timed beside, and stays with the trial.
        QTest::mouseClick(canvas, Qt::LeftButton, {}, canvas->pixelOf(repaired).toPoint());
        const std::string last = real.window->workspace()->lineage("conv2d-f16/sm90")->states.back().id;
        QCOMPARE(real.row(), QString::fromStdString(last));
        QCOMPARE(canvas->selected(), repaired);
        real.press(Qt::Key_Right);
        QCOMPARE(canvas->selected(), repaired + 1);
        real.press(Qt::Key_Return);
        QCOMPARE(real.window->centre()->page(), "diff");

        real.focus("story");
        real.press(Qt::Key_T);
        QVERIFY(story->showsTable() && story->table()->isVisible());
        const int rows = story->model()->rowCount();
        QCOMPARE(static_cast<std::size_t>(rows), canvas->picture().items.size());
        real.press(Qt::Key_Down);
        QCOMPARE(story->table()->currentIndex().row(), story->model()->rowOf(canvas->selected()));
        const QTemporaryDir folder;
        const QString csv = folder.filePath("roundtrip.csv");
        QCOMPARE(exportPanel(*story, csv), QString());
        QVERIFY(fileBytes(csv).startsWith("arm,trial,try,outcome,share_of_last_state"));
        QCOMPARE(fileBytes(csv).count("\r\n"), rows + 1);
        real.press(Qt::Key_T);
        const QString svg = folder.filePath("roundtrip.svg");
        QCOMPARE(exportPanel(*story, svg), QString());
        QVERIFY(QSvgRenderer(fileBytes(svg)).isValid());

        // Another lineage: none is recorded, and it says how to make one.
        real.selection()->setLineage("softmax/pocl", "K01");
        QTRY_VERIFY(canvas->picture().message.contains("lineage roundtrip softmax/pocl --ask"));
    }

    /// On a small screen labels are left out or stand elsewhere: none on another one, none cut.
    void noTextStandsOnAnother_data()
    {
        QTest::addColumn<QString>("layout");
        QTest::addColumn<QString>("open");
        QTest::addColumn<QSize>("size");
        const QSize laptop(1366, 768);
        QTest::newRow("demo") << "demo"
                              << "gemm/sm90/K05" << laptop;
        QTest::newRow("demo, many branches") << "demo"
                                             << "fmha/sm90/K05" << laptop;
        QTest::newRow("demo, roundtrips") << "demo"
                                          << "conv2d-f16/sm90/K02" << laptop;
        QTest::newRow("review") << "review"
                                << "gemm/sm90/K05" << laptop;
        QTest::newRow("review, roundtrips") << "review"
                                            << "conv2d-f16/sm90/K02" << laptop;
        QTest::newRow("smaller") << "review"
                                 << "fmha/sm90/K05" << QSize(1100, 700);
        QTest::newRow("large") << "demo"
                               << "gemm/sm90/K05" << QSize(1600, 1000);
    }

    void noTextStandsOnAnother()
    {
        QFETCH(QString, layout);
        QFETCH(QString, open);
        QFETCH(QSize, size);
        const RealWindow real(open, size, layout);
        QVERIFY(real.ready);
        QVERIFY(real.window->showStory(QStringLiteral("waterfall")));
        const StoryPanel *story = storyOf(real);
        const PictureCanvas *canvas = story->canvas();
        real.focus("story");
        for (const Qt::Key view :
             {Qt::Key_1, Qt::Key_2, Qt::Key_3, Qt::Key_4, Qt::Key_5, Qt::Key_6, Qt::Key_7}) {
            real.press(view);
            QVERIFY(real.settle());
            if (!canvas->picture().message.isEmpty())
                continue;
            for (const Qt::Key zoom : {Qt::Key_F, Qt::Key_Plus, Qt::Key_Plus}) {
                real.press(zoom);
                TextRecorder recorder(canvas->size());
                QPainter painter(&recorder);
                paintPicture(painter, canvas->picture(), canvas->view(),
                             {canvas->size(), canvas->font(), canvas->selected(), -1, {}});
                painter.end();
                QVERIFY(!recorder.texts().empty());
                const QString touching = touchingTexts(recorder.texts(), canvas->rect());
                QVERIFY2(touching.isEmpty(),
                         qPrintable(QStringLiteral("%1 %2").arg(char(view)).arg(touching)));
            }
        }
    }

    /// Several lineages are ticked in one go, with keys and with the mouse, and their curves stay in sight.
    void manyLineagesAreTicked()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"), {1366, 768}, QStringLiteral("demo"));
        QVERIFY(real.ready);
        QVERIFY(real.window->showStory(QStringLiteral("overlay")));
        StoryPanel *story = storyOf(real);
        QTRY_VERIFY(story->isVisible());
        const PictureCanvas *canvas = story->canvas();
        auto *menu = story->findChild<TickMenu *>();
        QToolButton *button = nullptr;
        for (QToolButton *each : story->findChildren<QToolButton *>()) {
            if (each->menu() == menu)
                button = each;
        }
        QVERIFY(button && button->isVisible());
        const std::size_t before = canvas->picture().legend.size();
        bool isKeptByKeys = false;
        bool isKeptByMouse = false;
        std::size_t ticked = 0;
        std::size_t unticked = 0;
        bool isGone = false;
        QTimer::singleShot(200, real.window.get(), [&] { // the click below returns when the menu is closed
            if (QApplication::activePopupWidget() != menu)
                return;
            QList<QAction *> left;
            for (QAction *action : menu->actions()) {
                if (action->isCheckable() && !action->isChecked())
                    left << action;
            }
            const auto step = [&](QAction *to) {
                for (int i = 0; i < 200 && menu->activeAction() != to; ++i)
                    real.press(Qt::Key_Down);
            };
            step(left[0]);
            real.press(Qt::Key_Return);
            step(left[1]);
            real.press(Qt::Key_Space);
            isKeptByKeys = menu->isVisible() && left[0]->isChecked() && left[1]->isChecked();
            step(left[2]); // in view, where the menu is longer than the screen
            for (int i = 0; i < 2; ++i) {
                QTest::mouseMove(menu, menu->actionGeometry(left[2]).center());
                QTest::mouseClick(menu, Qt::LeftButton, {}, menu->actionGeometry(left[2]).center());
                (i == 0 ? ticked : unticked) = canvas->picture().legend.size();
            }
            isKeptByMouse = menu->isVisible() && !left[2]->isChecked();
            for (QAction *action : left.mid(2)) {
                step(action);
                real.press(Qt::Key_Return);
            }
            real.press(Qt::Key_Escape);
            isGone = !menu->isVisible();
        });
        QTest::mouseClick(button, Qt::LeftButton);
        QTRY_VERIFY(isGone);
        QVERIFY(isKeptByKeys && isKeptByMouse);
        QCOMPARE(ticked, before + 3);
        QCOMPARE(unticked, before + 2);
        QVERIFY(canvas->picture().legend.size() > 12);
        QVERIFY(canvas->picture().lines.size() > 12);
        QVERIFY2(
            canvas->view().plot().height() > 0.45 * canvas->height(),
            qPrintable(QStringLiteral("%1 of %2").arg(canvas->view().plot().height()).arg(canvas->height())));
    }

    void aPresentationFromTheKeyboard()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        real.press(Qt::Key_F5, Qt::ShiftModifier);
        Presenter *presenter = storyOf(real)->presenter();
        QVERIFY(presenter && presenter->isVisible());
        QVERIFY(takeKeys(*presenter));
        QCOMPARE(presenter->size(), presenter->screen()->size());
        QVERIFY(presenter->heading().startsWith("K00")); // a story is told from its beginning
        real.press(Qt::Key_Right);
        QVERIFY(presenter->heading().startsWith("K01"));
        QCOMPARE(real.row(), "K01");
        real.press(Qt::Key_Right);
        real.press(Qt::Key_Right);
        real.press(Qt::Key_PageUp);
        QVERIFY(presenter->heading().startsWith("K02"));
        real.press(Qt::Key_A); // a letter of the window means nothing here
        QVERIFY(!real.record("specialize-warpgroups").standingReview());
        real.press(Qt::Key_End);
        QVERIFY(presenter->heading().contains("13 steps"));
        real.press(Qt::Key_Escape);
        QVERIFY(!presenter->isVisible());
    }

    /// Two picks by name: first of one lineage, which the whole window compares, then of two.
    void twoStatesAreCompared()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        real.press(Qt::Key_D, Qt::ControlModifier | Qt::ShiftModifier);
        real.type("gemm/sm90/K05");
        real.press(Qt::Key_Return);
        real.type("gemm/sm90/K10");
        real.press(Qt::Key_Return);
        QCOMPARE(real.selection()->row(), "K10");
        QCOMPARE(real.selection()->baseline(), "K05");
        QVERIFY(real.settle());

        real.press(Qt::Key_D, Qt::ControlModifier | Qt::ShiftModifier);
        real.type("softmax/pocl/K04");
        real.press(Qt::Key_Return);
        real.type("softmax/sm90/K09");
        real.press(Qt::Key_Return);
        CompareWindow *window = storyOf(real)->comparison();
        QVERIFY(window && window->isVisible());
        QVERIFY(takeKeys(*window));
        QTRY_VERIFY(window->view()->document() != nullptr);
        QTRY_VERIFY(window->view()->hunkCount() > 0);
        QVERIFY(window->profile()->rowCount() > 0);
        QVERIFY(window->note().contains("do not compare")); // a CPU and a GPU
        const int before = window->view()->currentHunk();
        real.press(Qt::Key_F8);
        QVERIFY(window->view()->currentHunk() > before);
        real.press(Qt::Key_F8, Qt::ShiftModifier);
        real.press(Qt::Key_S);
        QCOMPARE(window->left().lineage, "softmax/sm90");
        QCOMPARE(window->right().row, "K04");
        real.press(Qt::Key_Escape);
        QVERIFY(!window->isVisible());
    }

    void picturesLeaveAsFiles()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        real.press(Qt::Key_4, Qt::ControlModifier | Qt::AltModifier);
        StoryPanel *story = storyOf(real);
        QTRY_VERIFY(story->isVisible());
        const QTemporaryDir folder;
        QVERIFY(exportFilters(*story).contains("*.csv"));
        const QString svg = folder.filePath("story.svg");
        const QString csv = folder.filePath("story.csv");
        const QString png = folder.filePath("story.png");
        for (const QString &name : {svg, csv, png, folder.filePath("story.pdf")})
            QCOMPARE(exportPanel(*story, name), QString());
        const QByteArray drawing = fileBytes(svg);
        QVERIFY(QSvgRenderer(drawing).isValid());
        QVERIFY(!drawing.contains("<image"));
        QVERIFY(drawing.count("<text") > 20);
        const QByteArray table = fileBytes(csv);
        QVERIFY(table.startsWith("state,title,tried_from"));
        QCOMPARE(table.count("\r\n"), story->model()->rowCount() + 1);
        QVERIFY(table.contains("specialize-warpgroups"));
        QVERIFY(!QImage(png).isNull());
        QVERIFY(!fileBytes(folder.filePath("story.pdf")).contains("/Subtype /Image"));
    }
};

KLINEAGE_UI_TEST(TestStoryJourney)
#include "tst_storyjourney.moc"
