// SPDX-License-Identifier: GPL-3.0-or-later
// A workspace without runs and experiments, as a fresh clone is: what its pages say, and how recorded ones are opened.
#include "tests/paths.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/experiments/compare/comparepanel.h"
#include "ui/experiments/experimentspanel.h"
#include "ui/experiments/experimentstore.h"
#include "ui/shell/centre.h"
#include "ui/shell/topbar.h"

#include <QAction>
#include <QDir>
#include <QFileDialog>
#include <QMenu>
#include <QPushButton>
#include <QSettings>
#include <QStandardPaths>

using namespace klineage;
using namespace klineage::ui;

namespace {

QString recorded(const QString &name = {})
{
    return QStringLiteral("%1/tests/data/experiments/%2")
        .arg(QString::fromStdString(klineage::test::sourcePath()), name);
}

ExperimentsPanel *experimentsOf(const RealWindow &real)
{
    return qobject_cast<ExperimentsPanel *>(real.window->panel(QStringLiteral("experiments")));
}

ComparePanel *compareOf(const RealWindow &real)
{
    return qobject_cast<ComparePanel *>(real.window->panel(QStringLiteral("compare")));
}

/// The button of a page that says what to do, if it can be seen.
QPushButton *openButton(const QWidget &panel)
{
    auto *button = panel.findChild<QPushButton *>(QStringLiteral("openExperiment"));
    return button->isVisible() ? button : nullptr;
}

/// Presses Space on the button and chooses a folder in the dialog that it opens.
bool choose(QObject *context, QPushButton *button, const QString &folder)
{
    bool asked = false;
    withNextModal<QFileDialog>(context, [&asked, folder](QFileDialog &dialog) {
        asked = true;
        dialog.setDirectory(QDir(folder));
        dialog.selectFile(folder);
        QMetaObject::invokeMethod(&dialog, "accept");
    });
    button->setFocus();
    QTest::keyClick(button, Qt::Key_Space);
    return QTest::qWaitFor([&asked] { return asked && !QApplication::activeModalWidget(); }, patienceMs);
}

} // namespace

class TestExperimentJourney : public UiTest
{
    Q_OBJECT

private slots:
    void cleanup()
    {
        QFile::remove(QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation)
                      + QStringLiteral("/klineage/experiments.ini"));
        endWatching();
    }

    void oneIsOpenedAndRemembered()
    {
        RealWindow real;
        QVERIFY(real.ready);
        ExperimentsPanel *panel = experimentsOf(real);
        real.window->centre()->showPage(QStringLiteral("experiments"));
        QTRY_VERIFY(panel->isUpToDate() && panel->isEmpty());
        QPushButton *open = openButton(*panel);
        QVERIFY(open && open->isEnabled());
        QVERIFY(choose(this, open, recorded(QStringLiteral("cards-against-none"))));
        QTRY_VERIFY(!panel->isEmpty());
        QCOMPARE(panel->store()->current()->name(), QStringLiteral("cards-against-none"));
        QVERIFY(panel->runs()->model()->rowCount() > 0);
        QVERIFY(!QDir(real.folder.filePath(QStringLiteral("experiments"))).exists()); // nothing was copied

        // The runs of it stand beside each other, too.
        real.window->centre()->showPage(QStringLiteral("compare"));
        QTRY_VERIFY(compareOf(real)->isUpToDate() && !compareOf(real)->model()->runs().empty());
        QVERIFY(!openButton(*compareOf(real)));

        // And they are there again at the next start, until they are closed.
        real.window.reset();
        real.show(QStringLiteral("gemm/sm90/K05"), {1600, 1000});
        QVERIFY(real.ready);
        panel = experimentsOf(real);
        real.window->centre()->showPage(QStringLiteral("experiments"));
        QTRY_VERIFY(panel->isUpToDate() && !panel->isEmpty());
        QAction *close =
            std::as_const(*real.window->actions()).find(QStringLiteral("experiments.close"))->action;
        QVERIFY(close->isEnabled());
        close->trigger();
        QTRY_VERIFY(panel->isUpToDate() && panel->isEmpty());
        QVERIFY(!close->isEnabled());
    }

    /// From the page of runs, and all that are in a folder.
    void theRunsOfseveral()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        ComparePanel *panel = compareOf(real);
        real.window->centre()->showPage(QStringLiteral("compare"));
        QTRY_VERIFY(panel->isUpToDate() && openButton(*panel));
        QVERIFY(choose(this, openButton(*panel), recorded()));
        QTRY_VERIFY(panel->isUpToDate() && !panel->model()->runs().empty());
        QCOMPARE(real.window->centre()->page(), QStringLiteral("compare"));
        QStringList names;
        for (const ComparedRun &run : panel->model()->runs()) {
            if (!names.contains(run.experiment))
                names << run.experiment;
        }
        int planned = 0;
        int begun = 0;
        for (const QFileInfo &folder : QDir(recorded()).entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot)) {
            planned += QFileInfo::exists(folder.filePath() + QStringLiteral("/experiment.toml"));
            begun += QFileInfo::exists(folder.filePath() + QStringLiteral("/runs"));
        }
        QVERIFY(begun >= 3 && planned >= begun);
        QCOMPARE(names.size(), begun);
        real.window->centre()->showPage(QStringLiteral("experiments"));
        QTRY_COMPARE(static_cast<int>(experimentsOf(real)->store()->experiments().size()), planned);
    }

    void whatIsNoneSaysSo()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        ExperimentsPanel *panel = experimentsOf(real);
        real.window->centre()->showPage(QStringLiteral("experiments"));
        QTRY_VERIFY(panel->isUpToDate() && openButton(*panel));
        QString said;
        connect(panel, &ExperimentsPanel::message, this, [&said](const QString &text) { said = text; });
        QVERIFY(choose(this, openButton(*panel), real.folder.filePath(QStringLiteral("skills"))));
        QVERIFY2(said.contains(QStringLiteral("experiment.toml")), qPrintable(said));
        QVERIFY(panel->isEmpty());
    }

    void theMenuHasIt()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const QList<QAction *> menu = real.window->findChild<TopBar *>()->mainMenu()->actions();
        QVERIFY(std::any_of(menu.begin(), menu.end(), [](const QAction *action) {
            return action->objectName() == QLatin1String("experiments.open");
        }));
    }
};

KLINEAGE_UI_TEST(TestExperimentJourney)
#include "tst_experimentjourney.moc"
