// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/profiledelta.h"
#include "ui/profile/profilemodel.h"

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QClipboard>
#include <QRandomGenerator>
#include <QTableView>
#include <QTest>

using namespace klineage;
using namespace klineage::ui;

namespace {

gate::Trial trial(double ns, std::vector<gate::Metric> metrics)
{
    gate::Trial trial;
    trial.latencyNs = {ns, ns * 0.99, ns * 1.01};
    trial.achievedFlops = ns > 0 ? 1e15 / ns : 0;
    trial.metrics = std::move(metrics);
    return trial;
}

const ProfileRow *find(const std::vector<ProfileRow> &rows, const char *name)
{
    for (const ProfileRow &row : rows) {
        if (row.name == QLatin1String(name))
            return &row;
    }
    return nullptr;
}

} // namespace

class TestProfileDelta : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support)")));
    }

    void latencyComesFirst()
    {
        const auto left = trial(200, {{"registers", 32, "", "k"}});
        const auto right = trial(100, {{"registers", 128, "", "k"}});
        const auto rows = profileDelta(&left, &right);
        QCOMPARE(rows.front().name, QStringLiteral("latency"));
        QCOMPARE(*rows.front().relativeChange(), -0.5);
        QCOMPARE(rows.front().direction(), 1);
        QCOMPARE(find(rows, "registers")->direction(), -1);
    }

    void aMissingSideIsNotZero()
    {
        const auto right = trial(100, {{"registers", 128, "", "k"}});
        const auto rows = profileDelta(nullptr, &right);
        const ProfileRow *registers = find(rows, "registers");
        QVERIFY(registers && !registers->left && registers->right);
        QVERIFY(!registers->relativeChange());
        QCOMPARE(registers->impact(), 0.0);
    }

    void untimedTrialHasNoLatencyRow()
    {
        const auto left = trial(0, {});
        QVERIFY(!find(profileDelta(&left, &left), "latency"));
    }

    void largerChangesComeFirst()
    {
        const auto left =
            trial(100, {{"blocks", 100, "", "k"}, {"registers", 64, "", "k"}, {"waves", 0, "", "k"}});
        const auto right =
            trial(100, {{"blocks", 110, "", "k"}, {"registers", 128, "", "k"}, {"waves", 3, "", "k"}});
        const auto rows = profileDelta(&left, &right);
        QStringList names;
        for (const ProfileRow &row : rows)
            names << row.name;
        QVERIFY(names.indexOf(QStringLiteral("waves")) < names.indexOf(QStringLiteral("registers")));
        QVERIFY(names.indexOf(QStringLiteral("registers")) < names.indexOf(QStringLiteral("blocks")));
    }

    void noiseComesAfterWhatChanged()
    {
        const auto left = trial(100, {{"stall_sleeping", 0.0, "%", "k"},
                                      {"stall_barrier", 60.0, "%", "k"},
                                      {"inst_executed", 1000, "", "k"},
                                      {"spill_loads", 0, "B", "k"},
                                      {"pc_samples", 1000, "", "k"}});
        const auto right = trial(100, {{"stall_sleeping", 0.4, "%", "k"},
                                       {"stall_barrier", 30.0, "%", "k"},
                                       {"inst_executed", 1010, "", "k"},
                                       {"spill_loads", 64, "B", "k"},
                                       {"pc_samples", 5000, "", "k"}});
        const auto rows = profileDelta(&left, &right);
        QStringList names;
        for (const ProfileRow &row : rows)
            names << row.name;
        QCOMPARE(names.mid(2, 2), (QStringList{"spill_loads", "stall_barrier"}));
        QVERIFY(find(rows, "stall_sleeping")->isNoise());
        QVERIFY(find(rows, "inst_executed")->isNoise());
        QVERIFY(find(rows, "pc_samples")->isNoise());
        QVERIFY(!find(rows, "stall_barrier")->isNoise());
        QCOMPARE(find(rows, "stall_sleeping")->direction(), 0);
    }

    /// Of paired rounds the change is theirs, whatever the medians of the two trials give; unpaired ones say so.
    void latencyIsOfThePairedRounds()
    {
        const auto left = trial(210, {});
        const auto right = trial(100, {});
        const gate::Comparison paired{"parent", "sha", {2.0, 1.9, 2.1}, 200, gate::Change::Gain};
        const ProfileRow latency = profileDelta(&left, &right, &paired).front();
        QCOMPARE(*latency.left, 200.0);
        QCOMPARE(*latency.relativeChange(), -0.5);
        QVERIFY(!latency.isNoise());
        QCOMPARE(*find(profileDelta(&left, &right, &paired), "flops")->relativeChange(), 1.0);
        const gate::Comparison undecided{"parent", "sha", {1.01, 0.98, 1.04}, 101, gate::Change::Undecided};
        QVERIFY(profileDelta(&left, &right, &undecided).front().isNoise());
        ProfileModel model;
        model.setSides(&left, QStringLiteral("K1"), &right, QStringLiteral("K2"));
        const QModelIndex change = model.index(0, ProfileModel::ChangeColumn);
        QVERIFY(change.data().toString().startsWith(QStringLiteral("≈")));
        QVERIFY(change.data(Qt::ToolTipRole).toString().contains(QStringLiteral("not paired")));
        model.setSides(&left, QStringLiteral("K1"), &right, QStringLiteral("K2"), &paired);
        QVERIFY(!model.index(0, ProfileModel::ChangeColumn).data().toString().contains(QStringLiteral("≈")));
    }

    /// The tool tips of a time, and of what follows from it, say whose machine was busy.
    void timesOfABusyMachineSaySo()
    {
        const auto quiet = trial(210, {{"registers", 40, "", "k"}});
        auto busy = trial(100, {{"registers", 44, "", "k"}});
        busy.surface = kernel::Surface::OpenCl;
        busy.environment.facts = {{"load_1min", "5.19"}, {"cpu_threads", "2"}};
        const gate::Comparison paired{"parent", "sha", {2.0, 1.9, 2.1}, 200, gate::Change::Gain};
        const QString says = QStringLiteral("The machine was busy: a load of 5.2 on 2 threads");
        ProfileModel model;
        const auto tip = [&model](const char *name) {
            for (int row = 0; row < model.rowCount(); ++row) {
                if (model.rows()[static_cast<std::size_t>(row)].name == QLatin1String(name))
                    return model.index(row, ProfileModel::RightColumn).data(Qt::ToolTipRole).toString();
            }
            return QString();
        };
        model.setSides(&quiet, QStringLiteral("K1"), &busy, QStringLiteral("K2"), &paired);
        QVERIFY2(tip("latency").contains(QStringLiteral("K2: ! ") + says), qPrintable(tip("latency")));
        QVERIFY(tip("flops").contains(says));
        QVERIFY(!tip("registers").isEmpty() && !tip("registers").contains(says));
        // The other side's own time takes part where nothing is paired.
        model.setSides(&busy, QStringLiteral("K2"), &quiet, QStringLiteral("K3"), &paired);
        QVERIFY(!tip("latency").contains(says));
        model.setSides(&busy, QStringLiteral("K2"), &quiet, QStringLiteral("K3"));
        QVERIFY(tip("latency").contains(QStringLiteral("K2: ! ") + says));
    }

    /// Qt's views ask for the current row when one copies, also where there is none: nothing warns of it.
    void copyingWhereNoRowIsCurrentCopiesNothing()
    {
        const auto right = trial(100, {{"registers", 40, "", "k"}});
        ProfileModel model;
        model.setSides(nullptr, {}, &right, QStringLiteral("K1"));
        QTableView table;
        table.setModel(&model);
        QApplication::clipboard()->setText(QStringLiteral("before"));
        QTest::keyClick(&table, Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(QApplication::clipboard()->text(), QStringLiteral("before"));
        QVERIFY(!model.data({}, Qt::DisplayRole).isValid());
    }

    void severalKernelsShowTheLargestAndSaySo()
    {
        const auto right = trial(100, {{"registers", 40, "", "a"}, {"registers", 90, "", "b"}});
        const auto rows = profileDelta(nullptr, &right);
        QCOMPARE(*find(rows, "registers")->right, 90.0);
        QVERIFY(find(rows, "registers")->note.contains(QLatin1Char('2')));
    }

    void unknownMetricsAreShownReadably()
    {
        const auto right = trial(100, {{"tensor_pipe_cycles", 7, "", ""}});
        QCOMPARE(find(profileDelta(nullptr, &right), "tensor_pipe_cycles")->label,
                 QStringLiteral("Tensor pipe cycles"));
    }

    void modelKeepsItsContractUnderRandomChanges()
    {
        ProfileModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        QRandomGenerator random(7);
        for (int i = 0; i < 50; ++i) {
            std::vector<gate::Metric> metrics;
            for (int m = random.bounded(6); m > 0; --m)
                metrics.push_back(
                    {"metric_" + std::to_string(random.bounded(8)), random.bounded(100.0), "B", "k"});
            const auto left = trial(random.bounded(3) ? 100 : 0, metrics);
            const auto right = trial(random.bounded(3) ? 50 : 0, metrics);
            model.setSides(random.bounded(4) ? &left : nullptr, QStringLiteral("K0"),
                           random.bounded(4) ? &right : nullptr, QStringLiteral("K1"));
            QCOMPARE(model.rowCount(), static_cast<int>(model.rows().size()));
        }
    }

    void modelTextsCarryUnits()
    {
        const auto left = trial(2000, {});
        const auto right = trial(1000, {});
        ProfileModel model;
        model.setSides(&left, QStringLiteral("K2"), &right, QStringLiteral("K3"));
        QVERIFY(model.index(0, ProfileModel::LeftColumn).data().toString().contains(QStringLiteral("µs")));
        QCOMPARE(model.headerData(ProfileModel::RightColumn, Qt::Horizontal, Qt::DisplayRole).toString(),
                 QStringLiteral("K3"));
        QCOMPARE(model.index(0, ProfileModel::ChangeColumn).data(ProfileModel::DirectionRole).toInt(), 1);
        QVERIFY(model.index(0, ProfileModel::BarColumn).data(ProfileModel::BarRole).toDouble() > 0);
    }
};

QTEST_MAIN(TestProfileDelta)
#include "tst_profiledelta.moc"
