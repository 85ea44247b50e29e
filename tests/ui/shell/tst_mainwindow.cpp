// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pool/gateclient.h"
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "ui/editor/editorpanel.h"
#include "ui/graph/lineagepanel.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/runs/gatecontroller.h"
#include "ui/runs/runstore.h"
#include "ui/shell/centre.h"
#include "ui/shell/docks/layouts.h"
#include "ui/shell/latepanel.h"
#include "ui/shell/mainwindow.h"
#include "ui/shell/session.h"
#include "ui/story/storypanel.h"
#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QDir>
#include <QDockWidget>
#include <QFile>
#include <QPlainTextEdit>
#include <QSignalSpy>
#include <QStandardPaths>
#include <QStatusBar>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <QToolButton>

#include <filesystem>
#include <unistd.h>

using namespace klineage;
using namespace klineage::ui;

class TestMainWindow : public UiTest
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        QStandardPaths::setTestModeEnabled(true);
        qputenv("PATH", QByteArray::fromStdString(klineage::test::programPath()) + ':' + qgetenv("PATH"));
        qRegisterMetaType<gate::Trial>("klineage::gate::Trial");
    }

    void init()
    {
        beginWatching();
        QDir(QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation)).removeRecursively();
        m_folder = std::make_unique<QTemporaryDir>();
        const std::filesystem::path root = m_folder->path().toStdString();
        for (const char *part : {"workloads", "skills"})
            std::filesystem::copy(std::filesystem::path(klineage::test::sourcePath()) / part, root / part,
                                  std::filesystem::copy_options::recursive);
        m_window = open();
    }

    void cleanup()
    {
        m_window.reset();
        m_folder.reset();
        endWatching();
    }

    void opensOnWhatWasAskedFor()
    {
        QCOMPARE(m_window->selection()->lineageKey(), QStringLiteral("softmax/pocl"));
        QCOMPARE(m_window->selection()->row(), QStringLiteral("K02"));
        QVERIFY2(m_window->wantedError().isEmpty(), qPrintable(m_window->wantedError()));
    }

    void theWindowIsPaintedBeforeItIsFilled()
    {
        MainWindow window;
        bool wasFilled = true;
        connect(&window, &MainWindow::firstPainted, this,
                [&] { wasFilled = window.workspace()->isLoaded(); });
        window.openWorkspace(m_folder->path());
        QTest::qSleep(500); // long enough to read it
        window.show();
        QVERIFY(!window.isSettled());
        QVERIFY(QTest::qWaitFor([&] { return window.workspace()->isLoaded(); }, patienceMs));
        QVERIFY(!wasFilled);
    }

    /// As it is started: the first paint shows bars and places of panels, and what was asked for meanwhile comes with them.
    void panelsAreMadeAfterTheFirstPaint()
    {
        MainWindow window(MainWindow::Furnish::AfterFirstPaint);
        bool hadPanels = true;
        connect(&window, &MainWindow::firstPainted, this,
                [&] { hadPanels = window.panel(QStringLiteral("lineage")) != nullptr; });
        SessionState session;
        session.layout = QStringLiteral("curate");
        session.page = QStringLiteral("editor");
        session.forward = true;
        window.restoreSession(session);
        window.setWanted(QStringLiteral("softmax/pocl/K01"), {});
        window.openWorkspace(m_folder->path());
        window.show();
        QVERIFY(!window.isSettled());
        QVERIFY(!window.panel(QStringLiteral("library")));
        QVERIFY(QTest::qWaitFor([&] { return window.isSettled(); }, patienceMs));
        QVERIFY(!hadPanels);
        QCOMPARE(window.selection()->row(), QStringLiteral("K01"));
        QCOMPARE(window.centre()->page(), QStringLiteral("editor"));
        const auto *lineage = qobject_cast<LineagePanel *>(window.panel(QStringLiteral("lineage")));
        QCOMPARE(lineage->direction(), Direction::Forward);
        const SessionState left = window.sessionState();
        QCOMPARE(left.layout, session.layout);
        QCOMPARE(left.page, session.page);
    }

    /// What needs panels gets them, and closing a window that has none loses no session.
    void aWindowWithoutPanelsAnswersAllTheSame()
    {
        MainWindow welcoming(MainWindow::Furnish::AfterFirstPaint);
        welcoming.showNoWorkspace(QStringLiteral("Nothing here."));
        QVERIFY(welcoming.centre()->isWelcoming());
        MainWindow story(MainWindow::Furnish::AfterFirstPaint);
        QVERIFY(!story.showStory(QStringLiteral("no such picture")));
        QVERIFY(!story.panel(QStringLiteral("story")));
        QVERIFY(story.showStory(StoryPanel::viewNames().front()));
        QVERIFY(story.panel(QStringLiteral("story")));
        MainWindow closed(MainWindow::Furnish::AfterFirstPaint);
        SessionState session;
        session.lineage = QStringLiteral("gemm/sm90");
        closed.restoreSession(session);
        QCOMPARE(closed.sessionState().lineage, session.lineage);
        QVERIFY(closed.close());
    }

    void whatIsBehindATabComesAfterTheFirstPaint()
    {
        MainWindow window;
        QStringList atFirst;
        QStringList soon;
        const auto there = [&window](QStringList *panels) {
            for (const char *id : {"library", "lineage", "diff", "editor", "experiments", "card", "profile",
                                   "machine", "trajectory", "story", "runs"}) {
                if (!window.panel(QLatin1String(id))->isHidden())
                    *panels << QLatin1String(id);
            }
        };
        connect(&window, &MainWindow::firstPainted, this, [&] { there(&atFirst); });
        window.show();
        QTRY_VERIFY(window.isSettled() && !atFirst.isEmpty());
        there(&soon);
        QCOMPARE(atFirst.join(QLatin1Char(' ')),
                 QStringLiteral("library lineage diff card profile trajectory"));
        QCOMPARE(soon.size(), 11);
    }

    /// Text of another size comes before the panels are moved: the other way about all of them would be laid out twice.
    void panelsTakeTheirPlaceWithTheTextOfTheirLayout()
    {
        class Watcher : public QObject
        {
        public:
            bool eventFilter(QObject *, QEvent *event) override
            {
                if (event->type() == QEvent::Resize)
                    scales << textScale();
                return false;
            }
            QList<double> scales;
        };
        for (const WindowLayout &layout : windowLayouts()) {
            QVERIFY(m_window->applyLayout(QStringLiteral("review")));
            QTRY_VERIFY(m_window->isSettled());
            Watcher watcher;
            for (QDockWidget *dock : m_window->findChildren<QDockWidget *>())
                dock->installEventFilter(&watcher);
            m_window->centralWidget()->installEventFilter(&watcher);
            QVERIFY(m_window->applyLayout(layout.id));
            QTRY_VERIFY(m_window->isSettled());
            QVERIFY(layout.id == QLatin1String("review") || !watcher.scales.isEmpty());
            for (const double scale : std::as_const(watcher.scales))
                QCOMPARE(scale, layout.textScale);
        }
        QVERIFY(m_window->applyLayout(QStringLiteral("review")));
    }

    /// A dock or page gives its panel a height; to be asked for one has a panel lay out all its text once more.
    void aPanelIsNotAskedForItsHeight()
    {
        class Panel : public QWidget
        {
        public:
            [[nodiscard]] QSize minimumSizeHint() const override { return {40, 30}; }
            [[nodiscard]] bool hasHeightForWidth() const override { return true; }
            [[nodiscard]] int heightForWidth(int) const override
            {
                ++asked;
                return 50;
            }
            mutable int asked = 0;
        };
        auto *panel = new Panel;
        LatePanel late(QMargins(1, 2, 3, 4));
        late.resize(200, 100);
        late.show();
        late.reveal(); // of nothing
        late.setPanel(panel);
        QCOMPARE(late.minimumSizeHint(), QSize(4, 6)); // it is not there yet
        late.reveal();
        QTRY_COMPARE(panel->geometry(), QRect(1, 2, 196, 94));
        QCOMPARE(late.minimumSizeHint(), QSize(44, 36));
        QVERIFY(!late.hasHeightForWidth());
        QCOMPARE(panel->asked, 0);
    }

    void aPanelThatIsAskedForIsThereAtOnce()
    {
        MainWindow window;
        window.setWanted({}, {});
        const auto *command = std::as_const(*window.actions()).find(QStringLiteral("panel.runs"));
        QVERIFY(command);
        bool isThere = false;
        connect(&window, &MainWindow::firstPainted, this, [&] {
            isThere = window.panel(QStringLiteral("runs"))->isVisible()
                      && !window.panel(QStringLiteral("runs"))->visibleRegion().isEmpty()
                      && window.panel(QStringLiteral("editor"))->isVisible();
        });
        command->action->trigger();
        window.centre()->showPage(QStringLiteral("editor"));
        window.show();
        QTRY_VERIFY(isThere);
    }

    void theTabOfAnEarlierSessionIsThereAtOnce()
    {
        for (const char *id : {"panel.story", "panel.runs"})
            std::as_const(*m_window->actions()).find(QLatin1String(id))->action->trigger();
        MainWindow window;
        QStringList there;
        connect(&window, &MainWindow::firstPainted, this, [&] {
            for (const char *id : {"profile", "story", "trajectory", "runs"}) {
                if (window.panel(QLatin1String(id))->isVisible())
                    there << QLatin1String(id);
            }
        });
        window.restoreSession(m_window->sessionState());
        window.show();
        QTRY_COMPARE(there.join(QLatin1Char(' ')), QStringLiteral("story runs"));
    }

    void theSheetMayComeAfterTheWindow()
    {
        // Before the devices are asked for, which takes a timer and a process.
        const auto look = [this](MainWindow &window) {
            QImage image;
            connect(&window, &MainWindow::firstPainted, this,
                    [&] { QTimer::singleShot(0, &window, [&] { image = window.grab().toImage(); }); });
            window.show();
            return QTest::qWaitFor([&] { return !image.isNull(); }, patienceMs) ? image : QImage();
        };
        QImage before;
        {
            MainWindow window;
            before = look(window);
        }
        m_window.reset(); // a sheet is not taken from widgets
        qApp->setStyleSheet({});
        Theme::applyButSheet(*qApp, ThemeChoice::Light);
        MainWindow window;
        Theme::setSheet(*qApp);
        const QImage after = look(window);
        QVERIFY(!before.isNull());
        QCOMPARE(after, before);
        for (const char *layout : {"demo", "review"}) // which scale the text
            QVERIFY(window.applyLayout(QLatin1String(layout)));
        Theme::apply(*qApp, ThemeChoice::Dark);
        Theme::apply(*qApp, ThemeChoice::Light);
    }

    void keysStepThroughTheChain()
    {
        auto *lineage = m_window->findChild<LineagePanel *>();
        QVERIFY(lineage);
        lineage->step(1);
        QCOMPARE(m_window->selection()->row(), QStringLiteral("K01"));
        lineage->step(-1);
        lineage->step(-1);
        QCOMPARE(m_window->selection()->row(), QStringLiteral("K03"));
        lineage->toggleBaseline();
        QCOMPARE(m_window->selection()->baseline(), QStringLiteral("K03"));
        lineage->toggleBaseline();
        QVERIFY(m_window->selection()->baseline().isEmpty());
    }

    void aStepShowsItsCard()
    {
        m_window->selection()->setRow(QStringLiteral("K03"));
        QTRY_COMPARE(m_window->selection()->card(), QStringLiteral("specialize-exp-range"));
    }

    void everyLayoutCanBeApplied()
    {
        for (const QString &layout : {QStringLiteral("review"), QStringLiteral("curate"),
                                      QStringLiteral("run"), QStringLiteral("demo"), QStringLiteral("code")})
            QVERIFY2(m_window->applyLayout(layout), qPrintable(layout));
        QVERIFY(!m_window->applyLayout(QStringLiteral("no-such-layout")));
    }

    void aPoolThatCannotBeReadSaysWhy()
    {
        QFile file(m_folder->filePath(QStringLiteral("pool.toml")));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("[[gate]]\nname = 3\n");
        file.close();
        m_window = open();
        QString tip;
        for (const QToolButton *button : m_window->statusBar()->findChildren<QToolButton *>()) {
            if (button->text() == QLatin1String("pool.toml cannot be read"))
                tip = button->toolTip();
        }
        QVERIFY2(tip.contains(QLatin1String("pool.toml:2")) && tip.contains(QLatin1String("name")),
                 qPrintable(tip));
    }

    void theSessionComesBack()
    {
        m_window->selection()->setLineage(QStringLiteral("gemm/sm90"), QStringLiteral("K05"));
        m_window->selection()->setBaseline(QStringLiteral("K01"));
        m_window->applyLayout(QStringLiteral("curate"));
        const QString file = m_folder->filePath(QStringLiteral("session.ini"));
        {
            SessionStore store(file);
            QVERIFY(store.save(m_window->sessionState()));
        }
        SessionStore store(file);
        QStringList messages;
        const SessionState state = store.load(&messages);
        QVERIFY(messages.isEmpty());
        QCOMPARE(state.lineage, QStringLiteral("gemm/sm90"));
        QCOMPARE(state.row, QStringLiteral("K05"));
        QCOMPARE(state.baseline, QStringLiteral("K01"));
        QCOMPARE(state.layout, QStringLiteral("curate"));
    }

    void aDamagedSessionStartsAnewAndSaysSo()
    {
        const QString path = m_folder->filePath(QStringLiteral("session.ini"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(QByteArray(2000, '\xff') + "\n[[[[\n=\n");
        file.close();
        SessionStore store(path);
        QStringList messages;
        const SessionState state = store.load(&messages);
        QVERIFY(state.lineage.isEmpty());
        m_window->restoreSession(state);
    }

    void aDraftIsGatedIntoABranch()
    {
        const auto devices =
            gate::queryDevices(std::filesystem::path(klineage::test::programPath()) / "klineage-gate");
        if (!devices || devices->empty() || !devices->front().available)
            QSKIP("There is no OpenCL device.");
        auto *editor = m_window->findChild<EditorPanel *>();
        auto *controller = m_window->findChild<GateController *>();
        QVERIFY(editor && controller);
        const std::size_t before =
            m_window->workspace()->lineage(QStringLiteral("softmax/pocl"))->branches.size();
        QVERIFY(editor->openRow(QStringLiteral("softmax/pocl"), QStringLiteral("K02")));
        m_window->centre()->showPage(QStringLiteral("editor"));
        QVERIFY(takeKeys(*m_window));
        auto *text = editor->findChild<QPlainTextEdit *>();
        text->setFocus();
        text->moveCursor(QTextCursor::End);
        QTest::keyClicks(text, QStringLiteral("// a draft"));
        QSignalSpy finished(controller, &GateController::finished);
        QSignalSpy failed(controller, &GateController::failed);
        QTest::keyClick(text, Qt::Key_Return, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(finished.count() + failed.count() == 1, 180'000);
        QVERIFY2(failed.isEmpty(), qPrintable(failed.isEmpty() ? QString() : failed[0][1].toString()));
        QCOMPARE(m_window->workspace()->lineage(QStringLiteral("softmax/pocl"))->branches.size(), before + 1);
        QCOMPARE(gate::toString(finished[0][1].value<gate::Trial>().verdict.status), "correct");
    }

    void runsAreReachedFromEverywhere()
    {
        for (const char *id : {"runs.start", "runs.resume", "runs.pause", "runs.stop", "runs.byHand"}) {
            const auto *entry = std::as_const(*m_window->actions()).find(QLatin1String(id));
            QVERIFY2(entry, id);
            QVERIFY2(m_window->QWidget::actions().contains(entry->action), id);
        }
        m_window->setWanted(QStringLiteral("run:nothing"), {});
        QVERIFY(m_window->wantedError().contains(QLatin1String("nothing")));
        const QString run = m_folder->filePath(QStringLiteral("runs/one"));
        QVERIFY(QDir().mkpath(run));
        QFile settings(run + QStringLiteral("/run.toml"));
        QVERIFY(settings.open(QIODevice::WriteOnly));
        settings.write("not a run");
        settings.close();
        m_window->runs()->refresh();
        QTRY_VERIFY(!m_window->runs()->problems().isEmpty());
        QVERIFY(m_window->runs()->runs().empty());
    }

    void aCopyIsOpened()
    {
        const QTemporaryDir place;
        QDir(place.path()).mkdir(QStringLiteral("klineage-workspace"));
        m_window->copyWorkspaceInto(place.path());
        const QString copy = place.filePath(QStringLiteral("klineage-workspace-2"));
        QTRY_COMPARE(QString::fromStdString(m_window->workspace()->workspace().root.string()), copy);
        QCOMPARE(m_window->selection()->row(), QStringLiteral("K02"));
        QVERIFY(!readOnlyButton()->isVisible());
    }

    void aReadOnlyWorkspaceSaysSo()
    {
        if (::geteuid() == 0)
            QSKIP("The administrator can write everywhere.");
        const QString skills = m_folder->filePath(QStringLiteral("skills"));
        QFile::setPermissions(skills, QFile::ReadOwner | QFile::ExeOwner);
        m_window = open();
        QTRY_VERIFY(readOnlyButton()->isVisible());
        QFile::setPermissions(skills, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    }

private:
    [[nodiscard]] QToolButton *readOnlyButton() const
    {
        return m_window->findChild<QToolButton *>(QStringLiteral("readOnly"));
    }

    std::unique_ptr<MainWindow> open()
    {
        auto window = std::make_unique<MainWindow>();
        window->setWanted(QStringLiteral("softmax/pocl/K02"), {});
        window->resize(1400, 900);
        window->show();
        window->openWorkspace(m_folder->path());
        if (!QTest::qWaitFor(
                [&] {
                    return window->workspace()->isLoaded()
                           && window->selection()->row() == QLatin1String("K02");
                },
                patienceMs))
            qWarning("The workspace was not read: %s", qPrintable(window->workspaceError()));
        return window;
    }

    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<MainWindow> m_window;
};

KLINEAGE_UI_TEST(TestMainWindow)
#include "tst_mainwindow.moc"
