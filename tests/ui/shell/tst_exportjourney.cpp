// SPDX-License-Identifier: GPL-3.0-or-later
// Every picture is exported from the real window, light and dark, as PNG, SVG and PDF; the files are opened again and compared with the
// screen. Three actions a picture: to its pane, Ctrl+E, Enter (the kind of the last time is proposed).
#include "tests/ui/common/modal.h"
#include "tests/ui/common/pictures.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/diff/view/diffview.h"
#include "ui/models/lineagemodel.h"
#include "ui/shell/exporter.h"
#include "ui/story/picture/picturecanvas.h"
#include "ui/story/storypanel.h"
#include "ui/style/theme.h"

#include <QDir>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QLineEdit>
#include <QPainter>
#include <QProcess>
#include <QStandardPaths>
#include <QSvgRenderer>
#include <QTabBar>
#include <QTimer>

#include <qcustomplot.h>

using namespace klineage;
using namespace klineage::ui;

namespace {

constexpr int mostActions = 3;
constexpr QSize leastPaper(960, 480); ///< of the exporter
constexpr double alikeScreen = 0.75;  ///< paper has no switches, so that the picture is a little higher
constexpr double alikeFile = 0.9;     ///< the same page in another kind of file

struct Pane {
    const char *panel;
    std::function<void(const RealWindow &)> goThere; ///< one action
};

void clickOn(QWidget *widget)
{
    QTest::mouseClick(widget, Qt::LeftButton, {}, widget->rect().center());
}

/// The plot that is shown: the panel has another behind its switch.
void clickPlot(const RealWindow &real, const char *panel)
{
    for (QCustomPlot *plot : real.window->panel(QLatin1String(panel))->findChildren<QCustomPlot *>()) {
        if (plot->isVisible())
            QTest::mouseClick(plot, Qt::LeftButton, {}, plot->rect().bottomLeft() + QPoint(4, -4));
    }
}

void clickTab(const RealWindow &real, const QString &title)
{
    auto *tabs = real.find<QTabBar>("profile");
    for (int i = 0; i < tabs->count(); ++i) {
        if (tabs->tabText(i) == title)
            QTest::mouseClick(tabs, Qt::LeftButton, {}, tabs->tabRect(i).center());
    }
}

const std::vector<Pane> &pictures()
{
    static const std::vector<Pane> all = {
        {"lineage", [](const RealWindow &real) { clickOn(real.find<LineageView>("lineage")->viewport()); }},
        {"diff", [](const RealWindow &real) { clickOn(real.find<DiffView>("diff")->viewport()); }},
        {"trajectory", [](const RealWindow &real) { clickPlot(real, "trajectory"); }},
        {"profile", [](const RealWindow &real) { clickTab(real, QStringLiteral("Metrics")); }},
        {"profile", [](const RealWindow &real) { real.press(Qt::Key_R, Qt::AltModifier); }},
        {"profile", [](const RealWindow &real) { clickTab(real, QStringLiteral("Samples")); }},
    };
    return all;
}

/// Ctrl+E (with Shift: the report), and Enter in the dialog that opens, after a name where one is given; the file, empty when no dialog came.
QString answerDialog(const RealWindow &real, Qt::KeyboardModifiers modifiers, const QString &typed = {})
{
    QString file;
    QTimer poll;
    QObject::connect(&poll, &QTimer::timeout, &poll, [&] {
        auto *dialog = qobject_cast<QFileDialog *>(QApplication::activeModalWidget());
        auto *name = dialog ? dialog->findChild<QLineEdit *>(QStringLiteral("fileNameEdit")) : nullptr;
        if (!name || !name->isVisible() || QApplication::activeWindow() != dialog)
            return; // before it has the keys, they would go to the window behind it
        poll.stop();
        if (!typed.isEmpty()) {
            name->setText(typed); // a folder that is read meanwhile may select something in between
        }
        file = dialog->directory().absoluteFilePath(name->text());
        name->setFocus();
        QTest::keyClick(name, Qt::Key_Return);
        // A popup of completions may have taken the first one.
        if (dialog->isVisible())
            QTest::keyClick(dialog, Qt::Key_Return);
        if (dialog->isVisible())
            dialog->reject(); // fails the comparison instead of waiting for ever
    });
    poll.start(10);
    real.press(Qt::Key_E, modifiers);
    real.window->activateWindow(); // a window manager does
    (void)takeKeys(*real.window);
    return file;
}

QByteArray bytesOf(const QString &fileName)
{
    QFile file(fileName);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

/// As whoever gets the file sees it; null where nothing here opens such a file.
QImage opened(const QString &fileName, const QSize &size)
{
    if (fileName.endsWith(QLatin1String(".png")))
        return QImage(fileName);
    if (fileName.endsWith(QLatin1String(".svg"))) {
        QSvgRenderer renderer(fileName);
        QImage image(size, QImage::Format_RGB32);
        image.fill(Qt::white);
        QPainter painter(&image);
        renderer.render(&painter);
        return renderer.isValid() ? image : QImage();
    }
    const QString ghostscript = QStandardPaths::findExecutable(QStringLiteral("gs"));
    const QString page = fileName + QStringLiteral(".png");
    if (ghostscript.isEmpty()
        || QProcess::execute(ghostscript, {"-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=png16m",
                                           "-r192", "-dTextAlphaBits=4", "-dGraphicsAlphaBits=4",
                                           QStringLiteral("-sOutputFile=%1").arg(page), fileName})
               != 0)
        return {};
    return QImage(page);
}

} // namespace

class TestExportJourney : public UiTest
{
    Q_OBJECT

private slots:
    void cleanupTestCase() { Theme::apply(*qApp, ThemeChoice::Light); }

    void everyPictureInThreeActions_data()
    {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<bool>("dark");
        for (const char *kind : {"png", "svg", "pdf"})
            QTest::addRow("%s light", kind) << QString::fromLatin1(kind) << false;
        QTest::addRow("svg dark") << QStringLiteral("svg") << true; // theKindsShowTheSamePage
    }

    void everyPictureInThreeActions()
    {
        QFETCH(QString, kind);
        QFETCH(bool, dark);
        const QTemporaryDir folder;
        // Panes that are as large as paper, so that paper is not larger than they.
        const RealWindow real(QStringLiteral("gemm/sm90/K08"), QSize(2600, 1700));
        QVERIFY(real.ready);
        // Paper is light, whatever the screen is; so is what it is compared with.
        Theme::apply(*qApp, ThemeChoice::Light);
        std::vector<QImage> screens;
        for (const Pane &picture : pictures()) {
            picture.goThere(real);
            QVERIFY(real.settle());
            screens.push_back(real.window->panel(QLatin1String(picture.panel))->grab().toImage());
        }
        Theme::apply(*qApp, dark ? ThemeChoice::Dark : ThemeChoice::Light);
        // The kind is chosen once, by the ending that is typed.
        pictures()[0].goThere(real);
        const QString first = folder.filePath(QStringLiteral("first.") + kind);
        QCOMPARE(answerDialog(real, Qt::ControlModifier, first), first);
        QVERIFY(QFileInfo(first).size() > 0);

        int number = 0;
        QImage other;
        for (const Pane &picture : pictures()) {
            int actions = 0;
            picture.goThere(real);
            ++actions;
            QVERIFY(real.settle());
            QVERIFY2(real.hasFocus(picture.panel), picture.panel);
            QWidget *panel = real.window->panel(QLatin1String(picture.panel));
            const QString proposed = answerDialog(real, Qt::ControlModifier);
            actions += 2; // Ctrl+E, Enter
            QVERIFY2(actions <= mostActions, picture.panel);
            QVERIFY2(proposed.endsWith(QLatin1Char('.') + kind), qPrintable(proposed));
            QCOMPARE(QFileInfo(proposed).absolutePath(), QFileInfo(first).absolutePath());
            const QString file = folder.filePath(QStringLiteral("%1.%2").arg(number++).arg(kind));
            QVERIFY2(QFile::rename(proposed, file), qPrintable(proposed)); // the next one is called the same
            QVERIFY(Theme::choice() == (dark ? ThemeChoice::Dark : ThemeChoice::Light));
            const QImage &screen = screens[static_cast<std::size_t>(number - 1)];
            const QImage paper = opened(file, screen.size());
            if (kind == QLatin1String("pdf") && paper.isNull()) {
                QVERIFY(bytesOf(file).startsWith("%PDF-"));
                continue; // nothing here shows it
            }
            QVERIFY2(!paper.isNull(), qPrintable(file));
            QVERIFY2(qGray(paper.pixel(paper.width() / 2, paper.height() - 1)) > 200, "paper is light");
            // A pane that is smaller than paper leaves larger and with all of its rows: then the file is only opened.
            if (panel->width() < leastPaper.width() || panel->height() < leastPaper.height())
                continue;
            const double alike = likeness(screen, paper);
            QVERIFY2(alike >= alikeScreen,
                     qPrintable(QStringLiteral("%1 %2: %3").arg(picture.panel).arg(number).arg(alike)));
            // The measure can tell pictures apart.
            if (!other.isNull())
                QVERIFY(likeness(other, paper) < alike);
            other = screen;
        }
    }

    /// What is a line or a word on the screen is one in the file; the three kinds of file show the same page.
    void theKindsShowTheSamePage()
    {
        const QTemporaryDir folder;
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        real.press(Qt::Key_R, Qt::AltModifier);
        QVERIFY(real.settle());
        for (const char *name : {"trajectory", "profile"}) {
            QWidget *panel = real.window->panel(QLatin1String(name));
            const auto file = [&](const char *kind) {
                return folder.filePath(QStringLiteral("%1.%2").arg(QLatin1String(name), QLatin1String(kind)));
            };
            for (const char *kind : {"png", "svg", "pdf", "csv"})
                QCOMPARE(exportPanel(*panel, file(kind)), QString());
            const QImage png = opened(file("png"), {});
            {
                const double alike = likeness(png, opened(file("svg"), png.size()));
                QVERIFY2(alike >= alikeFile,
                         qPrintable(QStringLiteral("%1: %2").arg(QLatin1String(name)).arg(alike)));
            }
            if (const QImage page = opened(file("pdf"), {}); !page.isNull())
                QVERIFY2(likeness(png, page) >= alikeFile, name);
            QVERIFY(!bytesOf(file("svg")).contains("<image"));
            QVERIFY(bytesOf(file("svg")).contains("K08"));
            // The figures behind the plot: the same states, with all of their digits.
            const QString csv = QString::fromUtf8(bytesOf(file("csv")));
            QVERIFY2(csv.startsWith(QLatin1String(name[0] == 't' ? "trial,state," : "name,kind,")),
                     qPrintable(csv));
            QVERIFY(csv.contains(QLatin1String("K08")) && csv.count(QLatin1Char('\n')) > 10);
        }
    }

    /// A report: Ctrl+Shift+E, Enter. What it says of K* is what the lineage's row says.
    void aReportInTwoActions()
    {
        const QTemporaryDir folder;
        const RealWindow real(QStringLiteral("gemm/sm90/K10"));
        QVERIFY(real.ready);
        pictures()[0].goThere(real);
        const QString first = folder.filePath(QStringLiteral("first.png"));
        QCOMPARE(answerDialog(real, Qt::ControlModifier, first), first); // the folder
        const QString file = answerDialog(real, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(file, folder.filePath(QStringLiteral("gemm-sm90.html")));
        QVERIFY(QTest::qWaitFor([&] { return bytesOf(file).contains("</html>"); }, 4 * patienceMs));
        const QString html = QString::fromUtf8(bytesOf(file));
        const auto *view = real.find<LineageView>("lineage");
        const auto *model = qobject_cast<const LineageModel *>(view->model());
        const QString latency =
            model->index(model->rowOf(QStringLiteral("K10")), LineageModel::LatencyColumn).data().toString();
        QVERIFY2(html.contains(latency), qPrintable(latency));
        QVERIFY(html.count(QLatin1String("<svg")) >= 3);
        const QAction *stop =
            std::as_const(*real.window->actions()).find(QStringLiteral("window.stop"))->action;
        QVERIFY(QTest::qWaitFor([&] { return !stop->isEnabled(); }, patienceMs));
    }

    /// The proposed name says what the picture shows, not what happens to be selected.
    void theNameSaysWhatIsShown()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        const QTemporaryDir folder;
        QVERIFY(real.window->showStory(QStringLiteral("waterfall")));
        real.focus("story");
        const QString first = folder.filePath(QStringLiteral("first.png"));
        QCOMPARE(answerDialog(real, Qt::ControlModifier, first), first); // the folder
        QCOMPARE(answerDialog(real, Qt::ControlModifier),
                 folder.filePath(QStringLiteral("waterfall-gemm-sm90.png")));
        real.press(Qt::Key_3);
        const auto *story = qobject_cast<StoryPanel *>(real.window->panel(QStringLiteral("story")));
        const std::size_t shown = story->canvas()->picture().legend.size();
        QVERIFY(shown > 3);
        const QString name = QFileInfo(answerDialog(real, Qt::ControlModifier)).fileName();
        QVERIFY2(name.startsWith(QStringLiteral("overlay-gemm-sm90-")), qPrintable(name));
        QVERIFY2(name.endsWith(QStringLiteral("-and-%1-more.png").arg(shown - 3)), qPrintable(name));
        real.press(Qt::Key_4); // of the whole workspace
        QCOMPARE(answerDialog(real, Qt::ControlModifier), folder.filePath(QStringLiteral("speedups.png")));
    }
};

KLINEAGE_UI_TEST(TestExportJourney)
#include "tst_exportjourney.moc"
