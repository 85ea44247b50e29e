// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/profiledelta.h"
#include "ui/profile/profilemodel.h"

#include <QAbstractItemModelTester>
#include <QRandomGenerator>
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
        QCOMPARE(registers->magnitude(), 0.0);
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
