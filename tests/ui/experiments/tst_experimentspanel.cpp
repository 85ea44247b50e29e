// SPDX-License-Identifier: GPL-3.0-or-later
// Experiments in the window: listed, summed up, drawn, followed while they grow, taken out as CSV and as pictures.
#include "core/run/experiment/runcells.h"
#include "tests/core/run/materializefixture.h"
#include "tests/paths.h"
#include "tests/patience.h"
#include "ui/experiments/experimentplot.h"
#include "ui/experiments/experimentspanel.h"
#include "ui/experiments/experimentstore.h"
#include "ui/experiments/policytablemodel.h"
#include "ui/experiments/runtablemodel.h"
#include "ui/models/workspacemodel.h"
#include "ui/plots/plotexport.h"
#include "ui/runs/runstore.h"

#include <QAbstractItemModelTester>
#include <QAction>
#include <QClipboard>
#include <QComboBox>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

#include <qcustomplot.h>

using namespace klineage;
using namespace klineage::ui;
using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

const char *const text = R"(title = "Cards against none"
roots = ["toy/pocl/K00", "toy/pocl/K01"]
policies = ["greedy", "generated-only"]
seeds = [1, 2]
budget_dollars = 1.0
max_steps = 4
provider = "exec"
model = "test-model"
)";

/// 2 and 4 times as fast on the first root (0.5 and then 1 and 4 of the reference), nothing but failures on the second.
std::string answer(const llm::Request &request)
{
    if (request.system.find("toy/pocl/K01") != std::string::npos)
        return fencedCandidate("is wrong");
    if (request.messages.back().text.find("a new best") != std::string::npos)
        return "DONE";
    return fencedCandidate(request.system.find("attempt 2") != std::string::npos ? "x ns(250)"
                                                                                 : "x ns(1000)");
}

/// The name is no QString: of a temporary one GCC 13 and later think that the result refers to it.
const RootCurves &rootOf(const ExperimentCurves &curves, const char *name)
{
    return *std::find_if(curves.roots.begin(), curves.roots.end(),
                         [&](const RootCurves &root) { return root.root == QLatin1String(name); });
}

} // namespace

class TestExperimentsPanel : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support)")));
        m_folder = std::make_unique<MemoryFolder>();
        fs::copy(fs::path(klineage::test::sourcePath()) / "tests/data/workspace", root(),
                 fs::copy_options::recursive);
        m_workspace = std::make_unique<WorkspaceModel>();
        m_workspace->openNow(QString::fromStdString(root().string()));
        QVERIFY(m_workspace->isLoaded());
    }

    void cleanup() { m_workspace.reset(); }

    void anEmptyWorkspaceSaysWhatAnExperimentIs()
    {
        const auto panel = shown();
        QVERIFY(panel->isEmpty());
        QVERIFY(panel->findChild<QLabel *>(QStringLiteral("emptyText"))
                    ->text()
                    .contains(QLatin1String("klineage-cli experiment run")));
    }

    void theTablesSayWhatTheFilesSay()
    {
        write("cards", text);
        runAll("cards");
        const auto panel = shown();
        const QAbstractItemModelTester policyTester(panel->policies()->model(),
                                                    QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QAbstractItemModelTester runTester(panel->runs()->model(),
                                                 QAbstractItemModelTester::FailureReportingMode::QtTest);
        QVERIFY(!panel->isEmpty());
        QVERIFY(panel->summary().contains(QLatin1String("8 runs, all over")));
        const QAbstractItemModel *policies = panel->policies()->model();
        QCOMPARE(policies->rowCount(), 6);
        const auto policy = [&](int row, int column) {
            return policies->index(row, column).data().toString();
        };
        QCOMPARE(policy(0, PolicyTableModel::RootColumn), QStringLiteral("toy/pocl/K00"));
        QCOMPARE(policy(0, PolicyTableModel::PolicyColumn), QStringLiteral("greedy"));
        QCOMPARE(policy(0, PolicyTableModel::MeanColumn), QStringLiteral("2.00×"));
        QCOMPARE(policy(0, PolicyTableModel::SuccessColumn), QStringLiteral("2/2"));
        QCOMPARE(policy(1, PolicyTableModel::AgainstColumn), QStringLiteral("1.00×"));
        // Nothing to average: the failures are counted and not averaged.
        QCOMPARE(policy(2, PolicyTableModel::MeanColumn), QStringLiteral("–"));
        QCOMPARE(policy(2, PolicyTableModel::FailureColumn), QStringLiteral("2"));
        QCOMPARE(policy(4, PolicyTableModel::RootColumn), QStringLiteral("all roots"));
        QCOMPARE(policy(4, PolicyTableModel::SuccessColumn), QStringLiteral("2/4"));
        const auto spread = policies->index(0, PolicyTableModel::SpreadColumn)
                                .data(PolicyTableModel::SpreadRole)
                                .value<Spread>();
        QCOMPARE(spread.finals, (std::vector<double>{1, 4}));
        // A line a run, root by root and policy by policy.
        const QAbstractItemModel *runs = panel->runs()->model();
        QCOMPARE(runs->rowCount(), 8);
        QCOMPARE(runs->index(1, RunTableModel::SeedColumn).data().toString(), QStringLiteral("2"));
        QCOMPARE(runs->index(1, RunTableModel::FinalColumn).data().toString(), QStringLiteral("4.00× ◇"));
        QVERIFY(
            runs->index(7, RunTableModel::StateColumn).data().toString().contains(QLatin1String("failure")));
    }

    void armsAreComparedWhereThereAreGoals()
    {
        write("cards", text);
        runAll("cards");
        {
            const auto panel = shown();
            QVERIFY(panel->policies()->isColumnHidden(PolicyTableModel::GoalColumn));
            QVERIFY(panel->contrasts().isEmpty());
        }
        fs::remove_all(root() / "experiments/cards");
        std::string arms = text;
        arms.replace(arms.find("\"greedy\", \"generated-only\""), 26, "\"greedy\", \"klineage:none\"");
        for (const char *state : {"toy/pocl/K00", "toy/pocl/K01"})
            arms += "\n[[goal]]\nroot = \"" + std::string(state) + "\"\ngain = 3.0\n";
        write("arms", arms);
        runAll("arms");
        const auto panel = shown();
        QVERIFY(!panel->policies()->isColumnHidden(PolicyTableModel::GoalColumn));
        const QAbstractItemModel *policies = panel->policies()->model();
        // 2 and 8 times the root, one of which is beyond the goal of 3.
        QCOMPARE(policies->index(0, PolicyTableModel::GoalColumn).data().toString(), QStringLiteral("1/2"));
        QCOMPARE(policies->index(0, PolicyTableModel::GainColumn).data().toString(), QStringLiteral("4.00×"));
        QCOMPARE(policies->index(2, PolicyTableModel::GoalColumn).data().toString(), QStringLiteral("0/2"));
        const QString said = panel->contrasts();
        QVERIFY2(said.startsWith(QStringLiteral("klineage:none against greedy over 2 roots: 0 points")),
                 qPrintable(said));
        QVERIFY2(said.contains(QStringLiteral("p = 1.000")), qPrintable(said));
    }

    void curvesStartAtTheRootAndKeepFailuresThere()
    {
        write("cards", text);
        runAll("cards");
        const run::Experiment experiment = *run::readExperiment(root() / "experiments/cards");
        const ExperimentCurves curves = curvesOf(experiment, readResults(experiment));
        QVERIFY(curves.costs);
        const RootCurves &good = rootOf(curves, "toy/pocl/K00");
        QCOMPARE(good.reference, QStringLiteral("openblas"));
        QCOMPARE(good.policies.size(), std::size_t{2});
        const PolicyCurve &greedy = good.policies.front();
        QCOMPARE(greedy.medianOf, 2);
        QCOMPARE(greedy.median.front(), QPointF(0, 0.5));
        QCOMPARE(greedy.median.back().y(), 2.0); // of 1 and 4
        for (const SeedCurve &seed : greedy.seeds) {
            QCOMPARE(seed.points.front().step, 0);
            QVERIFY(std::is_sorted(seed.points.begin(), seed.points.end(),
                                   [](const auto &a, const auto &b) { return a.best < b.best; }));
        }
        const RootCurves &bad = rootOf(curves, "toy/pocl/K01");
        for (const QPointF &point : bad.policies.back().median)
            QCOMPARE(point.y(), 0.5);
    }

    void medianOfSteps_data()
    {
        using Lines = std::vector<std::vector<QPointF>>;
        QTest::addColumn<Lines>("lines");
        QTest::addColumn<std::vector<QPointF>>("expected");
        QTest::newRow("none") << Lines{} << std::vector<QPointF>{};
        QTest::newRow("of nothing") << Lines{{}, {}} << std::vector<QPointF>{};
        QTest::newRow("one") << Lines{{{0, 1}, {2, 3}}} << std::vector<QPointF>{{0, 1}, {2, 3}};
        QTest::newRow("three, the shortest holds its value")
            << Lines{{{0, 1}, {1, 5}}, {{0, 1}, {4, 2}}, {{0, 1}, {2, 9}}}
            << std::vector<QPointF>{{0, 1}, {1, 1}, {2, 5}, {4, 5}};
        QTest::newRow("two steps at one place")
            << Lines{{{0, 1}, {1, 2}, {1, 3}}} << std::vector<QPointF>{{0, 1}, {1, 3}};
        QTest::newRow("even: the geometric mean of the middle two")
            << Lines{{{0, 1}}, {{0, 4}}} << std::vector<QPointF>{{0, 2}};
    }

    void medianOfSteps()
    {
        using Lines = std::vector<std::vector<QPointF>>;
        QFETCH(Lines, lines);
        QFETCH(std::vector<QPointF>, expected);
        QCOMPARE(medianSteps(lines), expected);
    }

    void oneRootIsChosenAndARunStandsOut()
    {
        write("cards", text);
        runAll("cards");
        const auto panel = shown();
        QCOMPARE(panel->plot()->rootCount(), std::size_t{2});
        panel->setRoot(QStringLiteral("toy/pocl/K00"));
        QCOMPARE(panel->plot()->rootCount(), std::size_t{1});
        QCOMPARE(panel->policies()->model()->rowCount(), 2);
        QCOMPARE(panel->runs()->model()->rowCount(), 4);
        QVERIFY(panel->runs()->isColumnHidden(RunTableModel::RootColumn));
        // A click on a step takes the line of its run, a double-click opens it.
        const run::Experiment experiment = *run::readExperiment(root() / "experiments/cards");
        const ExperimentCurves curves = curvesOf(experiment, readResults(experiment));
        const PolicyCurve &policy = curves.roots.front().policies.front();
        const SeedCurve &seed = policy.seeds.back();
        QCustomPlot *plot = panel->plot()->plot();
        plot->replot();
        const QPoint at = panel->plot()->pixelOf(0, policy, seed.points[2]).toPoint();
        QTest::mouseMove(plot, at);
        QTRY_VERIFY(panel->plot()->caption().contains(QLatin1String("greedy, seed 2")));
        QTest::mouseClick(plot, Qt::LeftButton, {}, at);
        QCOMPARE(panel->runs()->currentIndex().data(RunTableModel::IdRole).toString(), seed.run);
        QSignalSpy opened(panel.get(), &ExperimentsPanel::runActivated);
        plot->replot(); // drawn anew, with another line on top
        QTest::mouseDClick(plot, Qt::LeftButton, {},
                           panel->plot()->pixelOf(0, policy, seed.points[2]).toPoint());
        QCOMPARE(opened.count(), 1);
        QCOMPARE(opened[0][1].toString(), seed.run);
        // Its folder is shown beside the workspace's runs.
        RunStore store(m_workspace.get());
        store.openGuest(opened[0][0].toString(), seed.run);
        QTRY_VERIFY(store.current());
        QCOMPARE(store.current()->id(), seed.run);
        QCOMPARE(store.runs().size(), std::size_t{8});
        QCOMPARE(store.current()->record.settings.subject, std::string("toy/pocl/K00"));
    }

    void growsWhileItRuns()
    {
        write("cards", text);
        const auto panel = shown();
        QVERIFY(panel->summary().contains(QLatin1String("0 of 8 runs over")));
        QSignalSpy said(panel.get(), &ExperimentsPanel::message);
        QSignalSpy opened(panel.get(), &ExperimentsPanel::runActivated);
        emit panel->runs()->activated(panel->runs()->model()->index(0, 0));
        QCOMPARE(opened.count(), 0);
        QVERIFY(said.value(0).value(0).toString().contains(QLatin1String("has not begun")));
        panel->runs()->selectRow(3);
        const QString selected = panel->runs()->currentIndex().data(RunTableModel::IdRole).toString();
        runAll("cards");
        QTRY_VERIFY(panel->summary().contains(QLatin1String("8 runs, all over")));
        QCOMPARE(panel->runs()->currentIndex().data(RunTableModel::IdRole).toString(), selected);
    }

    void aBrokenFileSaysWhy()
    {
        write("broken", "roots = 3\n");
        write("cards", text);
        const auto panel = shown();
        QVERIFY(panel->isEmpty()); // the first by name
        QVERIFY(panel->findChild<QLabel *>(QStringLiteral("emptyText"))
                    ->text()
                    .contains(QLatin1String("policies")));
        panel->setExperiment(QStringLiteral("cards"));
        QVERIFY(!panel->isEmpty());
        panel->setExperiment(QStringLiteral("nothing"));
        QVERIFY(panel->isEmpty());
    }

    void takenOutAsCsvAndPictures()
    {
        write("cards", text);
        runAll("cards");
        const auto panel = shown();
        const run::Experiment experiment = *run::readExperiment(root() / "experiments/cards");
        const run::ExperimentResults results = readResults(experiment);
        panel->findChild<QAction *>(QStringLiteral("experiments.copyRuns"))->trigger();
        QCOMPARE(QApplication::clipboard()->text().toStdString(), run::resultsCsv(results));
        panel->findChild<QAction *>(QStringLiteral("experiments.copyPolicies"))->trigger();
        const QString csv = QApplication::clipboard()->text();
        QCOMPARE(csv.count(QLatin1Char('\n')), 7);
        QVERIFY(csv.contains(QLatin1String("greedy,toy/pocl/K01,,0,2,0,")));
        const QString svg = QString::fromStdString((root() / "plot.svg").string());
        QCOMPARE(savePlot(*panel->plot()->plot(), svg), QString());
        const std::string drawn = readAll(svg.toStdString());
        QVERIFY(drawn.find("Speedup over openblas") != std::string::npos); // text, not a picture of it
        QVERIFY(drawn.find("<image") == std::string::npos);
        QVERIFY(savePlot(*panel->plot()->plot(), QStringLiteral("/proc/nowhere/plot.svg"))
                    .contains("Cannot export"));
        QVERIFY(savePlot(*panel->plot()->plot(), QStringLiteral("plot.txt")).contains(".png, .svg or .pdf"));
        for (const char *name : {"plot.png", "plot.pdf"}) {
            QCOMPARE(savePlot(*panel->plot()->plot(), QString::fromStdString((root() / name).string())),
                     QString());
            QVERIFY(fs::file_size(root() / name) > 2000);
        }
    }

    void logarithmicAxesShowTheSameSteps()
    {
        write("cards", text);
        runAll("cards");
        const auto panel = shown();
        auto *logarithmic = panel->findChild<QAction *>(QStringLiteral("experiments.logarithmic"));
        const auto scale = [&] {
            return panel->plot()->plot()->axisRects().first()->axis(QCPAxis::atLeft)->scaleType();
        };
        QCOMPARE(scale(), QCPAxis::stLinear);
        logarithmic->trigger();
        QCOMPARE(scale(), QCPAxis::stLogarithmic);
        const QCPRange range = panel->plot()->plot()->axisRects().first()->axis(QCPAxis::atLeft)->range();
        QVERIFY(range.lower > 0 && range.lower < 0.5 && range.upper > 4);
    }

private:
    [[nodiscard]] fs::path root() const { return m_folder->path() / "w"; }

    void write(const std::string &name, const std::string &content) const
    {
        fs::create_directories(root() / "experiments" / name);
        writeAll(root() / "experiments" / name / "experiment.toml", content);
    }

    void runAll(const std::string &name) const
    {
        const run::Experiment experiment = *run::readExperiment(root() / "experiments" / name);
        const llm::PriceTable prices = testPriceTable();
        FakeGate gate(judgeByCode);
        run::ExperimentDriver driver{root(), prices, gate.function(), {}, {}, {}, {}};
        driver.makeProvider = [](const run::Settings &,
                                 const fs::path &) -> Result<std::unique_ptr<llm::Provider>> {
            return std::make_unique<FunctionProvider>(answer);
        };
        const Result<run::ExperimentOutcome> outcome = runExperiment(experiment, driver);
        QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
        QVERIFY2(outcome->problems.empty(),
                 outcome->problems.empty() ? "" : outcome->problems.front().message.c_str());
    }

    [[nodiscard]] std::unique_ptr<ExperimentsPanel> shown() const
    {
        auto panel = std::make_unique<ExperimentsPanel>(m_workspace.get());
        panel->resize(1200, 700);
        panel->show();
        if (!QTest::qWaitFor([&] { return panel->isUpToDate(); }, patienceMs))
            qWarning("The experiments were not read.");
        return panel;
    }

    std::unique_ptr<MemoryFolder> m_folder;
    std::unique_ptr<WorkspaceModel> m_workspace;
};

QTEST_MAIN(TestExperimentsPanel)
#include "tst_experimentspanel.moc"

#include <algorithm>
