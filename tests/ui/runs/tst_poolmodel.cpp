// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gates of a pool as the window shows them.
#include "tests/ui/common/uitest.h"
#include "ui/runs/gatedesk.h"
#include "ui/runs/poolpanel.h"

#include <QAbstractItemModelTester>
#include <QLabel>
#include <QTemporaryDir>
#include <QtTest>

using namespace klineage;
using namespace klineage::ui;

class TestPoolModel : public UiTest
{
    Q_OBJECT
private slots:
    void saysWhatGatesDo();
    void theDeskReadsThePoolOfTheWorkspace();
    void runsAskTheGateOfALauncher();
};

void TestPoolModel::saysWhatGatesDo()
{
    gate::PoolState state;
    state.gates.resize(3);
    state.gates[0].spec.name = "lab:0";
    state.gates[0].spec.where = "gpu1";
    state.gates[0].phase = gate::GatePhase::Busy;
    state.gates[0].isKnown = true;
    state.gates[0].devices = {{kernel::DeviceKind::Cuda, true, "NVIDIA H200", {}, "sm90"}};
    state.gates[0].busySeconds = 3;
    state.gates[0].upSeconds = 4;
    state.gates[0].trials = 7;
    state.gates[1].spec.name = "batch";
    state.gates[1].phase = gate::GatePhase::Starting;
    state.gates[1].stand = "Slurm: job 3 queued and waiting for resources";
    state.gates[2].spec.name = "old";
    state.gates[2].phase = gate::GatePhase::Gone;
    state.gates[2].problem = Error{ErrorCode::Unavailable, "The host refused the key.", {}};
    state.waiting = 2;
    PoolModel model;
    const QAbstractItemModelTester tester(&model);
    model.setState(state);
    const auto text = [&](int row, int column) { return model.index(row, column).data().toString(); };
    QCOMPARE(text(0, PoolModel::DeviceColumn), QStringLiteral("NVIDIA H200"));
    QCOMPARE(text(0, PoolModel::LoadColumn), QStringLiteral("75 %"));
    QCOMPARE(text(0, PoolModel::TrialsColumn), QStringLiteral("7"));
    QVERIFY(text(1, PoolModel::StateColumn).contains(QStringLiteral("queued")));
    QVERIFY(model.index(2, 0).data(Qt::ToolTipRole).toString().contains(QStringLiteral("refused the key")));
    QCOMPARE(poolSummary(state), QStringLiteral("1 of 3 gates busy, 2 trials wait"));
}

void TestPoolModel::theDeskReadsThePoolOfTheWorkspace()
{
    const QTemporaryDir folder;
    qputenv("XDG_CONFIG_HOME", folder.filePath(QStringLiteral("config")).toLocal8Bit());
    GateDesk desk;
    desk.open(folder.path());
    QVERIFY(!desk.hasPool());
    QVERIFY(desk.state().gates.empty());
    const auto write = [&](const char *text) {
        QFile file(folder.filePath(QStringLiteral("pool.toml")));
        QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
        file.write(text);
    };
    write("[[gate]]\nname = \"a\"\ndevices = [0, 1]\n");
    desk.open(folder.path());
    QVERIFY(desk.hasPool());
    PoolPanel panel(&desk);
    QCOMPARE(poolSummary(desk.state()), QStringLiteral("0 of 2 gates busy"));
    write("[[gate]]\n");
    desk.open(folder.path());
    QVERIFY(!desk.hasPool());
    QVERIFY(desk.problem().contains(QStringLiteral("name")));
}

void TestPoolModel::runsAskTheGateOfALauncher()
{
    const QTemporaryDir folder;
    qputenv("XDG_CONFIG_HOME", folder.filePath(QStringLiteral("config")).toLocal8Bit());
    // A gate that is found; the launcher does not start it.
    const QString program = folder.filePath(QStringLiteral("klineage-gate"));
    QVERIFY(QFile(program).open(QIODevice::WriteOnly));
    QVERIFY(QFile::setPermissions(program, QFile::ReadOwner | QFile::ExeOwner));
    qputenv("PATH", (folder.path() + QStringLiteral(":/usr/bin:/bin")).toLocal8Bit());
    GateDesk desk;
    desk.open(folder.path());
    PoolPanel panel(&desk);
    QVERIFY(!desk.hasGates());

    QVERIFY(!desk.setRunPlace({RunPlace::Launched, QStringLiteral("ssh 'host")}));
    QVERIFY(!desk.setRunPlace({RunPlace::Launched, QStringLiteral("  ")}));
    QCOMPARE(desk.runPlace().gates, RunPlace::Pool);
    QVERIFY(desk.state().gates.empty());

    const QString launcher =
        QStringLiteral("sh -c 'echo \"$0\" >> \"%1/launched\"; echo no such partition >&2; exit 1'")
            .arg(folder.path());
    QVERIFY(desk.setRunPlace({RunPlace::Launched, launcher}));
    QVERIFY(desk.hasGates());
    QVERIFY(!desk.hasPool());
    QCOMPARE(desk.state().gates.size(), std::size_t{1});
    QCOMPARE(desk.state().gates.front().spec.where, std::string("sh"));
    const auto *summary = panel.findChild<QLabel *>();
    QVERIFY(summary);
    QVERIFY2(summary->text().contains(launcher), qPrintable(summary->text()));
    const auto trial = desk.runnerForRuns()({}, {}, {});
    QVERIFY(!trial);
    const std::string told = trial.error().message + '\n' + trial.error().detail;
    QVERIFY2(told.find("no such partition") != std::string::npos, told.c_str());
    QFile said(folder.filePath(QStringLiteral("launched")));
    QVERIFY(said.open(QIODevice::ReadOnly));
    QVERIFY(said.readAll().contains("klineage-gate"));

    QVERIFY(desk.setRunPlace({RunPlace::Here, launcher}));
    QVERIFY(!desk.hasGates());
    QVERIFY(desk.state().gates.empty());
    QCOMPARE(desk.runPlace().launcher, launcher); // for the next time
}

KLINEAGE_UI_TEST(TestPoolModel)
#include "tst_poolmodel.moc"
