// SPDX-License-Identifier: GPL-3.0-or-later
// The first window on a screen that is smaller than it was designed for.
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/uitest.h"
#include "ui/begin/newlineagedialog.h"
#include "ui/begin/welcomepage.h"
#include "ui/cards/verdictbar.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/shell/centre.h"
#include "ui/shell/docks/layouts.h"
#include "ui/shell/mainwindow.h"

#include <QApplication>
#include <QDockWidget>
#include <QPushButton>
#include <QScreen>
#include <QTemporaryDir>

#include <cstdio>

using namespace klineage;
using namespace klineage::ui;

class TestSmallScreen : public UiTest
{
    Q_OBJECT

    /// What asks for more than others.
    static QString widest(const MainWindow &window)
    {
        QStringList names;
        for (const QWidget *one : window.findChildren<QWidget *>()) {
            if (one->isVisible() && one->minimumSizeHint().width() >= 200)
                names << QStringLiteral("%1 %2 %3")
                             .arg(QString::fromLatin1(one->metaObject()->className()), one->objectName())
                             .arg(one->minimumSizeHint().width());
        }
        return names.join(QStringLiteral(", "));
    }

private slots:
    void theWindowFits()
    {
        const QSize available = QGuiApplication::primaryScreen()->availableSize();
        if (available != QSize(1366, 768))
            QSKIP("This Qt's offscreen platform has a screen of its own size.");
        MainWindow window;
        window.show();
        window.openWorkspace(QString::fromStdString(klineage::test::sourcePath()));
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QTRY_VERIFY(window.workspace()->isLoaded() && window.isSettled());
        QVERIFY2(window.width() <= 1366 && window.height() <= 768,
                 qPrintable(QStringLiteral("%1 x %2").arg(window.width()).arg(window.height())));
        window.beginLineage();
        auto *dialog = window.findChild<NewLineageDialog *>();
        QTRY_VERIFY(dialog->isVisible());
        QVERIFY2(dialog->width() <= 1366 && dialog->height() <= 768,
                 qPrintable(QStringLiteral("%1 x %2").arg(dialog->width()).arg(dialog->height())));
        for (const QPushButton *button : dialog->findChildren<QPushButton *>())
            QVERIFY2(!button->isVisible() || button->width() >= button->sizeHint().width(),
                     qPrintable(button->text()));
    }

    /// 1366 × 768 at one and a half times: no layout asks for more, no verdict is cut off.
    void everyLayoutFitsALaptopAtOneAndAHalf()
    {
        constexpr QSize screen(910, 512);
        MainWindow window;
        window.resize(screen);
        window.show();
        window.openWorkspace(QString::fromStdString(klineage::test::sourcePath()));
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QTRY_VERIFY(window.workspace()->isLoaded() && window.isSettled());
        window.selection()->setLineage(QStringLiteral("gemm/sm90"), QStringLiteral("K08"));
        for (const WindowLayout &layout : windowLayouts()) {
            QVERIFY(window.applyLayout(layout.id));
            window.resize(screen);
            QTRY_VERIFY(window.isSettled());
            QVERIFY2(window.width() <= screen.width() && window.height() <= screen.height(),
                     qPrintable(QStringLiteral("%1: %2 x %3; %4")
                                    .arg(layout.id)
                                    .arg(window.width())
                                    .arg(window.height())
                                    .arg(widest(window))));
            const auto *bar = window.findChild<VerdictBar *>();
            for (const QPushButton *button : bar->findChildren<QPushButton *>()) {
                const QRect place(button->mapTo(bar, QPoint(0, 0)), button->size());
                QVERIFY2(
                    !button->isVisible()
                        || (bar->rect().contains(place) && button->height() >= button->sizeHint().height()),
                    qPrintable(layout.id + QLatin1Char(' ') + button->text()));
            }
        }
    }

    void nothingMovesAfterTheFirstPaint()
    {
        MainWindow window;
        const auto places = [&window] {
            QStringList all;
            for (const QDockWidget *dock : window.findChildren<QDockWidget *>()) {
                const QRect r = dock->geometry();
                if (dock->isVisible() && r.right() >= 0)
                    all << QStringLiteral("%1 %2,%3 %4x%5")
                               .arg(dock->objectName())
                               .arg(r.x())
                               .arg(r.y())
                               .arg(r.width())
                               .arg(r.height());
            }
            return all.join(QLatin1Char('\n'));
        };
        QString atFirst;
        connect(&window, &MainWindow::firstPainted, this, [&] { atFirst = places(); });
        window.show();
        QTRY_VERIFY(!atFirst.isEmpty() && window.isSettled());
        QCOMPARE(places(), atFirst);
    }

    void theWelcomeFits()
    {
        MainWindow window;
        window.show();
        window.showNoWorkspace(QStringLiteral("No workspace was found."));
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        for (const QPushButton *button : window.centre()->welcome()->findChildren<QPushButton *>())
            QVERIFY2(!button->isVisible() || button->width() >= button->sizeHint().width(),
                     qPrintable(button->text()));
    }
};

int main(int argc, char *argv[])
{
    const QTemporaryDir folder;
    const QString screens = folder.filePath(QStringLiteral("screens.json"));
    if (std::FILE *file = std::fopen(qPrintable(screens), "w")) {
        std::fputs(
            R"({"synchronousWindowSystemEvents": false, "windowFrameMargins": true, "screens": [{"name": "laptop", "x": 0, "y": 0,)"
            R"( "width": 1366, "height": 768, "logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}]})",
            file);
        std::fclose(file);
    }
    qputenv("QT_QPA_PLATFORM", "offscreen:configfile=" + screens.toLocal8Bit());
    return runUiTest(argc, argv, []() -> QObject * { return new TestSmallScreen; });
}
#include "tst_smallscreen.moc"
