// SPDX-License-Identifier: GPL-3.0-or-later
// From a line of the source to its machine code and back, in the real window.
#include "tests/paths.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/machine/codemodel.h"
#include "ui/machine/codeside.h"
#include "ui/machine/codeview.h"
#include "ui/machine/instep.h"
#include "ui/machine/mixmodel.h"
#include "ui/shell/docks/dockarranger.h"
#include "ui/shell/docks/dockpanel.h"
#include "ui/shell/exporter.h"

#include <QClipboard>
#include <QFile>
#include <QLabel>
#include <QMainWindow>
#include <QSignalSpy>
#include <QTableView>

using namespace klineage;
using namespace klineage::ui;

namespace {

constexpr int settleMs = 60'000;

class Window : public RealWindow
{
public:
    explicit Window(const char *state = "fmha-causal/sm90/K05")
        : RealWindow(QLatin1String(state))
    {}

    [[nodiscard]] MachinePanel *machine() const
    {
        return qobject_cast<MachinePanel *>(window->panel(QStringLiteral("machine")));
    }
    [[nodiscard]] bool open() const
    {
        press(Qt::Key_M, Qt::ControlModifier | Qt::ShiftModifier);
        return arrived();
    }
    [[nodiscard]] bool arrived() const
    {
        return QTest::qWaitFor([this] { return machine()->isSeen() && window->isSettled(); }, settleMs);
    }
    [[nodiscard]] int row(int side) const { return machine()->side(side)->view()->currentIndex().row(); }
};

std::vector<DockPanel *> docksOf(QMainWindow *window, const QStringList &ids)
{
    std::vector<DockPanel *> docks;
    for (const QString &id : ids) {
        docks.push_back(new DockPanel(id, id, window));
        docks.back()->setPanel(new QLabel(id));
    }
    return docks;
}

QByteArray bytesOf(const QString &fileName)
{
    QFile file(fileName);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

} // namespace

class TestMachineJourney : public UiTest
{
    Q_OBJECT

private slots:
    void oneKeyShowsBothSides()
    {
        const Window real;
        QVERIFY(real.ready);
        QVERIFY(!real.machine()->isSeen() && !real.machine()->side(1)->code()); // a tab behind the profile
        real.focus("lineage");
        QVERIFY(real.open());
        QVERIFY(real.hasFocus("machine"));
        for (int side : {0, 1})
            QVERIFY2(real.machine()->side(side)->code(), qPrintable(real.machine()->side(side)->message()));
        // The page follows the steps.
        const auto labels = [&real] {
            return real.machine()->side(0)->label() + real.machine()->side(1)->label();
        };
        QCOMPARE(labels(), QStringLiteral("K04K05"));
        real.press(Qt::Key_Left, Qt::ControlModifier);
        QVERIFY(real.arrived());
        QCOMPARE(labels(), QStringLiteral("K05K06"));
        real.selection()->setBaseline(QStringLiteral("K03"));
        QVERIFY(real.arrived());
        QCOMPARE(labels(), QStringLiteral("K03K06"));
    }

    void theHottestInstructionsAreWalkedByKeys()
    {
        const Window real;
        QVERIFY(real.ready);
        real.focus("diff");
        QSignalSpy chosen(real.machine(), &MachinePanel::sourceLineChosen);
        QSignalSpy said(real.machine(), &MachinePanel::message);
        real.press(Qt::Key_F4); // shows the page, and goes there once it has something
        QVERIFY(real.arrived());
        QVERIFY(real.hasFocus("diff"));
        const std::vector<int> hottest = real.machine()->side(1)->code()->hottest;
        QTRY_COMPARE(real.Window::row(1), hottest[0]);
        QVERIFY(said.last().first().toString().startsWith(
            QLatin1String("1 of the 10 hottest instructions of K05: ")));
        for (std::size_t i = 1; i < hottest.size(); ++i) {
            real.press(Qt::Key_F4);
            QCOMPARE(real.Window::row(1), hottest[i]);
        }
        real.press(Qt::Key_F4);
        QCOMPARE(real.Window::row(1), hottest.back());
        QCOMPARE(said.last().first().toString(),
                 QStringLiteral("These were the 10 hottest instructions of K05."));
        real.press(Qt::Key_F4, Qt::ShiftModifier);
        QCOMPARE(real.Window::row(1), hottest[hottest.size() - 2]);
        QVERIFY(!chosen.isEmpty());
        for (const QList<QVariant> &one : chosen)
            QCOMPARE(one.first().toInt(), 1);
    }

    void keysOfThePage()
    {
        const Window real;
        QVERIFY(real.ready);
        real.machine()->setCompiler({klineage::test::programPath("/klineage-fakecompiler"), "ptx"});
        QVERIFY(real.open());
        real.press(Qt::Key_Down);
        real.press(Qt::Key_J);
        real.press(Qt::Key_J);
        real.press(Qt::Key_K);
        real.press(Qt::Key_Down, Qt::ShiftModifier);
        real.press(Qt::Key_C, Qt::ControlModifier);
        const QString copied = QApplication::clipboard()->text();
        QCOMPARE(copied.count(QLatin1Char('\n')), 2);
        QCOMPARE(copied, real.machine()->side(1)->view()->selectedText());

        auto *mix = real.find<QTableView>("machine");
        for (QTableView *table : real.machine()->findChildren<QTableView *>()) {
            if (qobject_cast<MixModel *>(table->model()))
                mix = table;
        }
        QVERIFY(!mix->isVisible());
        real.press(Qt::Key_I, Qt::AltModifier);
        QVERIFY(mix->isVisible());
        real.press(Qt::Key_I, Qt::AltModifier);
        QVERIFY(!mix->isVisible());

        real.press(Qt::Key_P, Qt::AltModifier);
        QVERIFY(real.arrived());
        QCOMPARE(real.machine()->form(), CodeForm::Ptx);
        QVERIFY(real.machine()->side(1)->code());
        QVERIFY(real.hasFocus("machine"));
        real.press(Qt::Key_F4);
        real.press(Qt::Key_P, Qt::AltModifier);
        QVERIFY(real.arrived());
        QCOMPARE(real.machine()->form(), CodeForm::Sass);
        // Letters of the window act here too.
        real.press(Qt::Key_B);
        QCOMPARE(real.selection()->baseline(), QStringLiteral("K05"));
    }

    void theVisibleListIsExported()
    {
        const Window real;
        QVERIFY(real.ready);
        QVERIFY(real.open());
        const QString csv = real.folder.filePath(QStringLiteral("code.csv"));
        QCOMPARE(exportPanel(*real.machine(), csv), QString());
        const QByteArray right = bytesOf(csv);
        QVERIFY(right.startsWith("line,samples,"));
        QCOMPARE(right.count('\n'), qsizetype(real.machine()->side(1)->code()->rows.size()) + 1);
        QVERIFY(right.contains(".kernel attention"));
        const QString text = real.folder.filePath(QStringLiteral("code.txt"));
        QCOMPARE(exportPanel(*real.machine(), text), QString());
        QVERIFY(bytesOf(text).contains("HGMMA"));
        // Of two lists the one that had the focus.
        real.window->resize(2400, 1000);
        real.press(Qt::Key_F9);
        QVERIFY(real.arrived());
        QVERIFY(real.machine()->side(0)->isVisible());
        real.machine()->side(0)->view()->setFocus();
        QCOMPARE(exportPanel(*real.machine(), csv), QString());
        QCOMPARE(bytesOf(csv).count('\n'), qsizetype(real.machine()->side(0)->code()->rows.size()) + 1);
        real.press(Qt::Key_F9);
    }

    /// Without NVRTC a state whose trial kept nothing says why, and what to do; nothing waits.
    void withoutACompilerThePageSaysSo()
    {
        const Window real("linear/sm90/K05");
        QVERIFY(real.ready);
        real.machine()->setCompiler({klineage::test::programPath("/klineage-fakecompiler"), "none"});
        QVERIFY(real.open());
        QVERIFY(real.hasFocus("machine"));
        QVERIFY(real.machine()->side(1)->message().startsWith(
            QLatin1String("The trial of K05 kept no machine code. Cannot ")));
        real.press(Qt::Key_P, Qt::AltModifier);
        QVERIFY(real.arrived());
        QVERIFY(
            real.machine()->side(1)->message().contains(QLatin1String("libnvrtc.so.13: no such library")));
        real.press(Qt::Key_F4); // says so, and does no harm
        real.press(Qt::Key_C, Qt::ControlModifier);
    }

    void aCompilerIsStoppedByTheKeyThatStops()
    {
        const Window real;
        QVERIFY(real.ready);
        real.machine()->setCompiler({klineage::test::programPath("/klineage-fakecompiler"), "slow"});
        QVERIFY(real.open());
        real.press(Qt::Key_P, Qt::AltModifier);
        QVERIFY(QTest::qWaitFor([&real] { return real.machine()->isCompiling(); }, settleMs));
        real.press(Qt::Key_Escape, Qt::ShiftModifier);
        QVERIFY(!real.machine()->isCompiling());
        QCOMPARE(real.machine()->side(1)->message(), QStringLiteral("Compiling was stopped."));
    }

    void theLayoutForItHasItsKey()
    {
        const Window real;
        QVERIFY(real.ready);
        real.press(Qt::Key_5, Qt::ControlModifier | Qt::AltModifier);
        QVERIFY(real.arrived());
        QVERIFY(real.machine()->side(0)->isVisible() && real.machine()->side(1)->isVisible());
        QVERIFY(real.window->panel(QStringLiteral("diff"))->isVisible());
    }

    void noKeyOfThePageIsTaken()
    {
        const MainWindow window;
        const ActionRegistry &actions = *window.actions();
        int found = 0;
        for (const ActionRegistry::Entry &entry : actions.entries()) {
            if (!entry.id().startsWith(QLatin1String("machine.")))
                continue;
            ++found;
            const QStringList others = actions.conflicts(entry.id(), entry.action->shortcut());
            QVERIFY2(others.isEmpty(),
                     qPrintable(entry.id() + QLatin1String(": ") + others.join(QLatin1Char(' '))));
        }
        QCOMPARE(found, 6);
    }

    /// An arrangement that was saved before there was this page opens as it was, with the page as a tab where the layout has it.
    void earlierArrangementsStillOpen()
    {
        const QStringList before{"library",    "lineage", "card",    "profile",
                                 "trajectory", "runs",    "console", "problems"};
        QMap<QString, QByteArray> states;
        {
            QMainWindow window;
            window.resize(1600, 1000);
            DockArranger arranger(&window, docksOf(&window, before));
            arranger.apply(findLayout(QStringLiteral("review")));
            states = arranger.states();
        }
        QMainWindow window;
        window.resize(1600, 1000);
        const std::vector<DockPanel *> docks = docksOf(&window, before + QStringList("machine"));
        DockArranger arranger(&window, docks);
        arranger.setStates(states);
        arranger.apply(findLayout(QStringLiteral("review")));
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QVERIFY(!arranger.lastStateWasDamaged());
        DockPanel *machine = docks.back();
        QCOMPARE(window.tabifiedDockWidgets(machine), QList<QDockWidget *>{docks[3]});
        QVERIFY(!machine->isHidden() && machine->visibleRegion().isEmpty()); // behind
        QVERIFY(!docks[3]->visibleRegion().isEmpty());
        QVERIFY(window.tabifiedDockWidgets(docks[4]).size() == 3);
        // From now on it is known, closed or not.
        machine->close();
        states = arranger.states();
        arranger.setStates(states);
        arranger.restart(findLayout(QStringLiteral("review")));
        QVERIFY(machine->isHidden());
    }
};

KLINEAGE_UI_TEST(TestMachineJourney)
#include "tst_machinejourney.moc"
