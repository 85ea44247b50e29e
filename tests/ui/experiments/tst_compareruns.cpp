// SPDX-License-Identifier: GPL-3.0-or-later
// Recorded runs beside each other: columns, filter, groups, sort, what is kept, and what leaves as CSV, by experiments that were recorded.
#include "core/base/numbertext.h"
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "ui/experiments/compare/columnpicker.h"
#include "ui/experiments/compare/comparepanel.h"
#include "ui/experiments/compare/comparestore.h"
#include "ui/models/workspacemodel.h"
#include "ui/runs/runstore.h"

#include <QAbstractItemModelTester>
#include <QAction>
#include <QClipboard>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>

#include <cmath>

using namespace klineage;
using namespace klineage::ui;
namespace fs = std::filesystem;

namespace {

fs::path dataFolder()
{
    return fs::path(klineage::test::sourcePath()) / "tests/data";
}

} // namespace

class TestCompareRuns : public UiTest
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        fs::copy(dataFolder() / "workspace", root(),
                 fs::copy_options::recursive | fs::copy_options::overwrite_existing);
        fs::create_directories(root() / "runs");
        fs::create_directories(root() / "experiments");
        for (const char *name : {"simulated-accelopt", "simulated-adaexplore"})
            fs::copy(dataFolder() / "searchruns" / name, root() / "runs" / name, fs::copy_options::recursive);
        for (const char *name : {"cards-against-none", "cards-on-hopper", "limited-author-on-hopper"})
            fs::copy(dataFolder() / "experiments" / name, root() / "experiments" / name,
                     fs::copy_options::recursive);
        QStringList problems;
        m_runs = readExperimentRuns({root() / "experiments"}, {}, &problems);
        QVERIFY2(problems.isEmpty(), qPrintable(problems.join(u'\n')));
        const RunListing own = readRunListing(root() / "runs", {});
        QCOMPARE(own.runs.size(), std::size_t{2});
        for (const RunEntryPtr &run : own.runs)
            m_runs.push_back(compareRun(run, {}));
        QVERIFY(m_runs.size() > 40);
    }

    void figuresSayWhatTheyRestOn()
    {
        int paired = 0;
        for (const ComparedRun &run : m_runs) {
            const run::Summary &summary = run.run->summary;
            QCOMPARE(run.final.value, std::max(0.0, summary.finalSpeedup));
            QCOMPARE(run.root.value, summary.rootSpeedup);
            for (const SpeedupFigure *figure : {&run.root, &run.best, &run.final, &run.gain}) {
                if (figure->value <= 0)
                    continue;
                QVERIFY(!figure->against.isEmpty());
                QCOMPARE(figure->paired, figure->low > 0);
                if (figure->paired)
                    QVERIFY(figure->low <= figure->value && figure->value <= figure->high);
            }
            if (summary.gain.value > 0) {
                ++paired;
                QVERIFY(run.gain.paired);
                QCOMPARE(run.gain.value, summary.gain.value);
            }
        }
        QVERIFY(paired > 15);
    }

    void filters_data()
    {
        QTest::addColumn<QString>("filter");
        QTest::addColumn<bool>("isPlain");
        const auto row = [](const char *filter, bool isPlain = true) {
            QTest::newRow(filter) << QString::fromUtf8(filter) << isPlain;
        };
        row("");
        row("policy=klineage");
        row("POLICY=KLineage");
        row("policy!=klineage");
        row("option.arm=shuffled");
        row("option.arm!=shuffled");
        row("gain>=1.5");
        row("gain<1.5");
        row("gain>=1.5 option.arm=full");
        row("workload~attention");
        row("workload!~attention");
        row("ending~\"questions\"");
        row("experiment=\"\"");
        row("experiment=cards-on-hopper questions<=3");
        row("hopper attention");
        row("nothing-is-called-this");
        row("polcy=klineage", false);
        row("policy>3", false);
        row("gain>fast", false);
    }
    void filters()
    {
        QFETCH(QString, filter);
        QFETCH(bool, isPlain);
        const std::vector<CompareColumn> columns = compareColumns(m_runs);
        QString problem;
        const CompareFilter compiled(filter, columns, &problem);
        QCOMPARE(problem.isEmpty(), isPlain);
        if (!isPlain) {
            QVERIFY(compiled.terms().empty());
            return;
        }
        int accepted = 0;
        for (const ComparedRun &run : m_runs) {
            const bool takes = compiled.accepts(run, columns);
            accepted += takes ? 1 : 0;
            const run::Settings &settings = run.run->record.settings;
            const auto arm = settings.options.find("arm");
            const std::string armText = arm == settings.options.end() ? std::string() : arm->second;
            const double gain = run.gain.value;
            if (filter == QLatin1String("gain>=1.5 option.arm=full"))
                QCOMPARE(takes, gain >= 1.5 && armText == "full");
            if (filter == QLatin1String("gain<1.5"))
                QCOMPARE(takes, gain > 0 && gain < 1.5); // none is not small
            if (filter == QLatin1String("option.arm!=shuffled"))
                QCOMPARE(takes, armText != "shuffled");
            if (filter == QLatin1String("POLICY=KLineage"))
                QCOMPARE(takes, settings.policy == "klineage");
            if (filter == QLatin1String("workload!~attention"))
                QCOMPARE(takes, settings.workload.find("attention") == std::string::npos);
            if (filter == QLatin1String("experiment=\"\""))
                QCOMPARE(takes, run.experiment.isEmpty());
        }
        if (filter.isEmpty())
            QCOMPARE(accepted, static_cast<int>(m_runs.size()));
        QCOMPARE(accepted == 0, filter == QLatin1String("nothing-is-called-this"));
    }

    void aTermThatIsPutThereIsRead()
    {
        const std::vector<CompareColumn> columns = compareColumns(m_runs);
        for (const ComparedRun &run : m_runs) {
            for (const CompareColumn &column : columns) {
                QString problem;
                const CompareFilter only(
                    filterTerm(column.id, QStringLiteral("="), exactValue(column.value(run))), columns,
                    &problem);
                QVERIFY2(problem.isEmpty(), qPrintable(problem));
                QVERIFY2(only.accepts(run, columns), qPrintable(column.id));
            }
        }
    }

    void rowsAreSortedWithWhatIsMissingLast()
    {
        CompareModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setRuns(m_runs);
        CompareView view;
        view.sort = QStringLiteral("gain");
        for (const bool descending : {true, false}) {
            view.descending = descending;
            model.setView(view);
            QCOMPARE(model.rowCount(), static_cast<int>(m_runs.size()));
            bool wasMissing = false;
            for (int row = 0; row < model.rowCount(); ++row) {
                const double gain = model.runAt(row)->gain.value;
                wasMissing = wasMissing || gain <= 0;
                QCOMPARE(gain <= 0, wasMissing);
                if (row > 0 && gain > 0) {
                    const double before = model.runAt(row - 1)->gain.value;
                    QVERIFY(descending ? before >= gain : before <= gain);
                }
            }
        }
    }

    void groupsHaveSumsAndFold()
    {
        CompareModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setRuns(m_runs);
        CompareView view;
        view.filter = QStringLiteral("experiment=cards-against-none");
        view.group = QStringLiteral("policy");
        model.setView(view);
        QCOMPARE(model.shownRuns(), 12);
        QCOMPARE(model.rowCount(), 12 + 2); // klineage, generated-only
        const int gain = model.columnOf(QStringLiteral("gain"));
        const int questions = model.columnOf(QStringLiteral("questions"));
        QVERIFY(gain > 0 && questions > 0);
        double logarithms = 0;
        int successes = 0;
        int asked = 0;
        int row = 1;
        for (; row < model.rowCount() && model.runAt(row); ++row) {
            const ComparedRun &run = *model.runAt(row);
            asked += run.run->summary.questions;
            if (run.isSuccess()) {
                logarithms += std::log(run.gain.value);
                ++successes;
            }
        }
        QVERIFY(successes > 0);
        QVERIFY(model.index(0, 0).data(CompareModel::GroupRole).toBool());
        QCOMPARE(row, 7); // six of each
        QVERIFY(
            std::fabs(model.index(0, gain).data(Qt::EditRole).toDouble() - std::exp(logarithms / successes))
            < 1e-12);
        QVERIFY(model.index(0, gain).data().toString().endsWith(QStringLiteral("(%1/6)").arg(successes)));
        QCOMPARE(model.index(0, questions).data(Qt::EditRole).toDouble(), static_cast<double>(asked));
        const QString folded = model.index(0, 0).data(CompareModel::KeyRole).toString().section(u':', 1);
        view.folded = {folded};
        model.setView(view);
        QCOMPARE(model.rowCount(), 6 + 2);
        QVERIFY(!model.runAt(1));
        // What is folded is in the file all the same.
        QCOMPARE(model.csv().count(u'\n'), 13);
    }

    void aColumnSaysWithWhatItCompares()
    {
        CompareModel model;
        model.setRuns(m_runs);
        CompareView view;
        view.columns = QStringList{QStringLiteral("run"), QStringLiteral("final_speedup")};
        model.setView(view);
        const auto header = [&model] {
            return model.headerData(1, Qt::Horizontal, Qt::DisplayRole).toString();
        };
        QCOMPARE(header(), QStringLiteral("Final vs own reference"));
        for (int row = 0; row < model.rowCount(); ++row) {
            const ComparedRun &run = *model.runAt(row);
            const QString text = model.index(row, 1).data().toString();
            if (run.final.value > 0) {
                QVERIFY2(text.endsWith(run.final.against), qPrintable(text));
                QCOMPARE(text.startsWith(u'≈'), !run.final.paired);
            }
        }
        view.filter = QStringLiteral("reference=cublaslt");
        model.setView(view);
        QCOMPARE(header(), QStringLiteral("Final vs cublaslt"));
        QVERIFY(model.shownRuns() > 0);
        QVERIFY(!model.index(0, 1).data().toString().contains(QLatin1String("cublaslt")));
    }

    void csvHasAllDigits()
    {
        CompareModel model;
        model.setRuns(m_runs);
        CompareView view;
        view.filter = QStringLiteral("experiment=cards-on-hopper");
        view.columns = QStringList{QStringLiteral("run"), QStringLiteral("gain"), QStringLiteral("dollars")};
        model.setView(view);
        const QStringList lines = model.csv().split(u'\n', Qt::SkipEmptyParts);
        QCOMPARE(lines.front(), QStringLiteral("run,gain,gain_against,gain_paired,dollars"));
        QCOMPARE(lines.size(), 25);
        for (qsizetype i = 1; i < lines.size(); ++i) {
            const QStringList cells = lines[i].split(u',');
            const ComparedRun &run = *model.runAt(static_cast<int>(i) - 1);
            QCOMPARE(cells.size(), 5);
            QCOMPARE(cells[0], run.run->id());
            // Reads back as the same number; nothing measured is nothing.
            QCOMPARE(cells[1].toDouble(), run.gain.value);
            QCOMPARE(cells[1].isEmpty(), run.gain.value <= 0);
            QCOMPARE(cells[3], run.gain.value <= 0 ? QString()
                               : run.gain.paired   ? QStringLiteral("yes")
                                                   : QStringLiteral("no"));
        }
    }

    void onlyWhatDiffers()
    {
        CompareModel model;
        model.setRuns(m_runs);
        CompareView view;
        view.filter = QStringLiteral("experiment=cards-on-hopper");
        view.onlyDifferent = true;
        model.setView(view);
        QVERIFY(model.columnOf(QStringLiteral("option.arm")) >= 0);
        QCOMPARE(model.columnOf(QStringLiteral("platform")), -1); // sm90, all of them
        QCOMPARE(model.columnOf(QStringLiteral("experiment")), -1);
        QVERIFY(model.columnOf(QStringLiteral("run")) >= 0);
    }

    void aViewOfNothingIsCalm()
    {
        CompareModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setRuns({});
        CompareView view;
        view.group = QStringLiteral("policy");
        view.columns = QStringList{QStringLiteral("no-such-column")};
        view.onlyDifferent = true;
        view.filter = QStringLiteral("\"\"\" = != x=");
        model.setView(view);
        QCOMPARE(model.rowCount(), 0);
        QCOMPARE(model.columnCount(), 1);
        model.setRuns(m_runs);
        QVERIFY(model.columnCount() >= 1);
    }

    /// By keys alone, in a window of its own; and it is there again.
    void keysDoWhatTheySay()
    {
        WorkspaceModel workspace;
        workspace.openNow(QString::fromStdString(root().string()));
        RunStore store(&workspace);
        QTRY_VERIFY_WITH_TIMEOUT(!store.isReading(), patienceMs);
        {
            ComparePanel panel(&store);
            show(panel);
            QTableView *table = panel.table();
            const CompareModel *model = panel.model();
            QCOMPARE(model->shownRuns(), static_cast<int>(m_runs.size()));
            QVERIFY(panel.summary().startsWith(QStringLiteral("%1 of %1 run").arg(m_runs.size())));
            // The filter takes effect while it is typed, and Return goes back to the table.
            press(Qt::Key_Slash);
            QCOMPARE(QApplication::focusWidget(), static_cast<QWidget *>(panel.filterField()));
            QTest::keyClicks(panel.filterField(), QStringLiteral("experiment=cards-on-hopper"));
            QCOMPARE(model->shownRuns(), 24);
            press(Qt::Key_Return);
            QCOMPARE(QApplication::focusWidget(), static_cast<QWidget *>(table));
            // Sorted by the column that is current.
            table->setCurrentIndex(model->index(0, model->columnOf(QStringLiteral("gain"))));
            press(Qt::Key_S);
            QCOMPARE(model->view().sort, QStringLiteral("gain"));
            QVERIFY(model->view().descending);
            press(Qt::Key_S);
            QVERIFY(!model->view().descending);
            // Grouped, folded, opened.
            table->setCurrentIndex(model->index(0, model->columnOf(QStringLiteral("option.arm"))));
            press(Qt::Key_G);
            QCOMPARE(model->rowCount(), 27);
            table->setCurrentIndex(model->index(1, 0));
            press(Qt::Key_Space);
            QCOMPARE(model->rowCount(), 19);
            press(Qt::Key_Space);
            QCOMPARE(model->rowCount(), 27);
            // Only these, and not these.
            table->setCurrentIndex(model->index(1, model->columnOf(QStringLiteral("workload"))));
            press(Qt::Key_O);
            QCOMPARE(model->shownRuns(), 3); // one an arm
            press(Qt::Key_Escape);
            QCOMPARE(model->shownRuns(), static_cast<int>(m_runs.size()));
            const int row = model->rowOf(model->index(1, 0).data(CompareModel::KeyRole).toString());
            table->setCurrentIndex(model->index(row, model->columnOf(QStringLiteral("workload"))));
            press(Qt::Key_O, Qt::ShiftModifier);
            QVERIFY(model->shownRuns() < static_cast<int>(m_runs.size())
                    && model->view().filter.contains(QLatin1String("!=")));
            // A column goes to the left.
            const int at = model->columnOf(QStringLiteral("workload"));
            press(Qt::Key_Left, Qt::ControlModifier | Qt::ShiftModifier);
            QCOMPARE(model->columnOf(QStringLiteral("workload")), at - 1);
            press(Qt::Key_Right, Qt::ControlModifier | Qt::ShiftModifier);
            QCOMPARE(model->columnOf(QStringLiteral("workload")), at);
            press(Qt::Key_D);
            QVERIFY(model->view().onlyDifferent);
            press(Qt::Key_C, Qt::ControlModifier);
            QCOMPARE(QApplication::clipboard()->text(), model->csv());
            pickOneMore(panel);
            // A run is opened.
            QSignalSpy opened(&panel, &ComparePanel::runActivated);
            int first = 0;
            while (!model->runAt(first))
                ++first;
            table->setCurrentIndex(model->index(first, 0));
            press(Qt::Key_Return);
            QCOMPARE(opened.count(), 1);
            QCOMPARE(opened[0][1].toString(), model->runAt(first)->run->id());
            m_kept = model->view();
        }
        ComparePanel again(&store);
        QCOMPARE(again.model()->view().columns, m_kept.columns);
        QVERIFY(again.model()->view() == m_kept);
        // What cannot be a filter says so, and the rest of it holds.
        show(again);
        press(Qt::Key_Escape);
        press(Qt::Key_Slash);
        QTest::keyClicks(again.filterField(), QStringLiteral("experiment=cards-on-hopper polcy=x"));
        const auto *problem = again.findChild<QLabel *>(QStringLiteral("compareProblem"));
        QVERIFY2(problem->isVisible() && problem->text().contains(QLatin1String("policy")),
                 qPrintable(problem->text()));
        QCOMPARE(again.model()->shownRuns(), 24);
        again.setView({});
    }

    /// A header is dragged: the order is the view's, and the header has none of its own.
    void aHeaderIsDragged()
    {
        WorkspaceModel workspace;
        workspace.openNow(QString::fromStdString(root().string()));
        RunStore store(&workspace);
        ComparePanel panel(&store);
        panel.setView({});
        show(panel);
        const CompareModel *model = panel.model();
        const int gain = model->columnOf(QStringLiteral("gain"));
        panel.table()->horizontalHeader()->moveSection(gain, 1);
        QTRY_COMPARE(model->columnOf(QStringLiteral("gain")), 1);
        QCOMPARE(panel.table()->horizontalHeader()->visualIndex(1), 1);
        QCOMPARE(model->view().columns[1], QStringLiteral("gain"));
        panel.setView({});
    }

private:
    [[nodiscard]] fs::path root() const { return fs::path(m_folder.path().toStdString()) / "w"; }

    static void press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier)
    {
        QTest::keyClick(QApplication::focusWidget(), key, modifiers);
    }

    void show(ComparePanel &panel) const
    {
        panel.resize(1300, 700);
        panel.show();
        QVERIFY(takeKeys(panel));
        QTRY_VERIFY_WITH_TIMEOUT(panel.isUpToDate() && panel.model()->runs().size() == m_runs.size(),
                                 patienceMs);
        panel.table()->setFocus();
    }

    void pickOneMore(ComparePanel &panel)
    {
        QVERIFY(panel.model()->columnOf(QStringLiteral("trials")) < 0);
        bool asked = false;
        withNextModal<ColumnPicker>(this, [&asked](ColumnPicker &shown) {
            ColumnPicker *picker = &shown;
            asked = true;
            auto *list = picker->findChild<QListWidget *>();
            auto *field = picker->findChild<QLineEdit *>();
            field->setFocus();
            QTest::keyClicks(field, QStringLiteral("trials"));
            QTest::keyClick(field, Qt::Key_Down);
            QTest::keyClick(list, Qt::Key_Space);
            QCOMPARE(list->currentItem()->checkState(), Qt::Checked);
            QTest::keyClick(list, Qt::Key_Return);
            if (picker->isVisible())
                picker->accept();
        });
        press(Qt::Key_C);
        QVERIFY(asked);
        QVERIFY(panel.model()->view().columns.contains(QStringLiteral("trials")));
        panel.activateWindow();
        QVERIFY(takeKeys(panel));
        panel.table()->setFocus();
    }

    QTemporaryDir m_folder;
    std::vector<ComparedRun> m_runs;
    CompareView m_kept;
};

KLINEAGE_UI_TEST(TestCompareRuns)
#include "tst_compareruns.moc"
