// SPDX-License-Identifier: GPL-3.0-or-later
// Runs that learn, started from the window: a kernel is taken apart into a lineage, cards are lifted from it, and one is tried elsewhere.
// What they store is seen in the window.
#include "core/lineage/lineage.h"
#include "tests/core/run/learnfixture.h"
#include "tests/patience.h"
#include "tests/ui/common/uitest.h"
#include "ui/cards/cardpanel.h"
#include "ui/graph/lineagepanel.h"
#include "ui/library/librarypanel.h"
#include "ui/models/librarymodel.h"
#include "ui/models/lineagemodel.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/runs/runcontroller.h"
#include "ui/runs/runspanel.h"
#include "ui/runs/runstore.h"
#include "ui/runs/startdialog.h"
#include "ui/shell/mainwindow.h"

#include <QAction>
#include <QApplication>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QSignalSpy>
#include <QStandardPaths>
#include <QTableView>
#include <QTest>
#include <QTimer>

using namespace klineage;
using namespace klineage::ui;
using namespace klineage::tests;

namespace {

std::string jsonProposal(const std::string &line)
{
    return block(R"({"category": ")" + line + R"(", "locus": "inner loop", "title": "no )" + line
                     + R"(", "summary": "Add )" + line + R"(."})" + '\n',
                 "json");
}

std::string toyCard(const std::string &prompt)
{
    const std::size_t begin = prompt.find("- `", prompt.find("# Citations that may be used")) + 3;
    const std::string citation = '"' + prompt.substr(begin, prompt.find('`', begin) - begin) + '"';
    const auto claim = [&](const char *head, const std::string &text) {
        return std::string(head) + "\ntext = \"" + text + "\"\nevidence = [" + citation + "]\n";
    };
    return block("name = \"add-opt\"\nlocus = \"inner loop\"\ncarrier = '''\n+ int opt = 1;\n'''\n"
                     + claim("[intent]", "Add the optimization to the loop.") + claim("[anchor]", "Any loop.")
                     + claim("[[precondition]]", "There is a loop.") + claim("[[effect]]", "It brings 2.0×.")
                     + claim("[[risk]]", "Where there is none, nothing comes of it.")
                     + "[[provides]]\nlocus = \"inner loop\"\nname = \"opt\"\n",
                 "toml");
}

/// Knows the toy, and answers every kind of run.
std::string answerOf(const llm::Request &request)
{
    const std::string &prompt = request.messages.front().text;
    if (request.purpose == "lift")
        return toyCard(prompt);
    if (request.purpose == "admit") {
        std::vector<std::string> lines = toyLines(prompt.substr(prompt.find("# Kernel")));
        lines.push_back("opt_new");
        return block(toyKernel(lines));
    }
    std::vector<std::string> lines = toyLines(candidateOf(prompt));
    if (request.purpose == "propose")
        return lines.empty() ? block("{\"complete\": true, \"reason\": \"Nothing is left.\"}\n", "json")
                             : jsonProposal(lines.back());
    if (request.purpose == "rewrite") {
        lines.pop_back();
        return block(toyKernel(lines));
    }
    const std::size_t category = prompt.find("category `") + 10;
    lines.push_back(prompt.substr(category, prompt.find('`', category) - category));
    return block(toyKernel(lines, "// derived again\n"));
}

} // namespace

class TestLearnRuns : public UiTest
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        QStandardPaths::setTestModeEnabled(true);
        addLineage("toy", {"opt_a", "opt_b"});
        addLineage("other", {"opt_z"});
        addLineage("third", {"opt_y"});
        m_window = std::make_unique<MainWindow>();
        m_window->runner()->setGate(m_gate.function());
        m_window->runner()->setProviderMaker(
            [](const run::Settings &, const fs::path &, const fs::path &,
               std::shared_ptr<llm::ManualDesk>) -> Result<std::unique_ptr<llm::Provider>> {
                return std::make_unique<BrainProvider>(answerOf);
            });
        QSignalSpy loaded(m_window->workspace(), &WorkspaceModel::loaded);
        m_window->openWorkspace(QString::fromStdString(m_world.root().string()));
        QTRY_COMPARE(loaded.count(), 1);
        m_window->show();
        m_window->selection()->setLineage(QStringLiteral("toy/pocl"), QStringLiteral("K00"));
    }

    void cleanupTestCase() { m_window.reset(); }

    void theCommandsAreInMenusAndContextMenus()
    {
        auto *lineage = m_window->findChild<LineagePanel *>();
        const QWidget *library = m_window->findChild<LibraryPanel *>()->focusProxy();
        for (const char *id : {"runs.start", "runs.deoptimize", "runs.lift", "runs.admit"}) {
            QAction *action = command(id);
            QVERIFY2(m_window->QWidget::actions().contains(action), id);
            QVERIFY2(lineage->contextMenu()->actions().contains(action), id);
            QVERIFY2(library->actions().contains(action), id);
        }
        QVERIFY(command("runs.keys"));
    }

    void aKernelIsTakenApart()
    {
        QSignalSpy stored(m_window->runner(), &RunController::stored);
        finish("runs.deoptimize", [](StartDialog &dialog) {
            QCOMPARE(dialog.kind(), run::Kind::Deoptimize);
            run::StartRequest request = dialog.request();
            QCOMPARE(request.subject, std::string("toy/pocl/K00"));
            request.provider = "exec";
            request.author["command"] = "true";
            dialog.setRequest(request);
            // The platform has a lineage, so that the new one needs a name.
            QVERIFY(!dialog.startButton()->isEnabled());
            QVERIFY(dialog.estimateLabel()->text().contains(QLatin1String("another name")));
            request.options["name"] = "walked";
            dialog.setRequest(request);
            QVERIFY(dialog.estimateLabel()->text().contains(QLatin1String("toy/pocl-walked")));
        });
        QVERIFY2(stored.count() >= 3, qPrintable(QString::number(stored.count())));
        QTRY_VERIFY(m_window->workspace()->lineage(QStringLiteral("toy/pocl-walked")));
        QTRY_COMPARE(m_window->workspace()->lineage(QStringLiteral("toy/pocl-walked"))->states.size(),
                     std::size_t{3});
        const LibraryModel *library = m_window->findChild<LibraryPanel *>()->model();
        QVERIFY(library->find(LibraryModel::Kind::Lineage, QStringLiteral("toy/pocl-walked")).isValid());
        // What a person looks at stays, and the new lineage can be looked at.
        QCOMPARE(m_window->selection()->lineageKey(), QStringLiteral("toy/pocl"));
        m_window->selection()->setLineage(QStringLiteral("toy/pocl-walked"), QStringLiteral("K02"));
        QCOMPARE(m_window->findChild<LineagePanel *>()->model()->rowCount(), 3);
    }

    void cardsAreLiftedIntoTheReviewQueue()
    {
        QVERIFY(m_window->workspace()->workspace().cards.empty());
        finish("runs.lift", [](StartDialog &dialog) {
            QCOMPARE(dialog.kind(), run::Kind::Lift);
            const run::StartRequest request = dialog.request();
            QCOMPARE(request.subject, std::string("toy/pocl-walked"));
            QCOMPARE(request.provider, std::string("exec")); // as last time
        });
        QTRY_COMPARE(m_window->workspace()->workspace().cards.size(), std::size_t{2});
        const LibraryModel *library = m_window->findChild<LibraryPanel *>()->model();
        const QModelIndex queue = library->find(LibraryModel::Kind::Section, QStringLiteral("to-review"));
        QVERIFY(queue.isValid());
        QCOMPARE(library->rowCount(queue), 2);
        const QModelIndex card = library->find(LibraryModel::Kind::Card, QStringLiteral("add-opt"));
        QVERIFY(card.isValid() && card.parent() == queue);
        QCOMPARE(m_window->findChild<LibraryPanel *>()->windowTitle(), QStringLiteral("2 to review"));
    }

    void aStepOfALiftShowsItsCard()
    {
        auto *runs = m_window->findChild<RunsPanel *>();
        QTRY_COMPARE(runs->steps()->model()->rowCount(), 2);
        m_window->selection()->setCard({});
        runs->steps()->selectRow(0);
        emit runs->steps()->activated(runs->steps()->currentIndex());
        QCOMPARE(m_window->selection()->card(), QStringLiteral("add-opt"));
    }

    void aCardIsTriedOnAKernelThatHadNoPartInIt()
    {
        m_window->selection()->setCard(QStringLiteral("add-opt"));
        finish("runs.admit", [](StartDialog &dialog) {
            QCOMPARE(dialog.kind(), run::Kind::Admit);
            const run::StartRequest request = dialog.request();
            QCOMPARE(request.subject, std::string("add-opt"));
            QCOMPARE(request.options.at("target"), std::string("other/pocl/K00"));
            QVERIFY2(dialog.estimateLabel()->text().contains(QLatin1String("held out")),
                     qPrintable(dialog.estimateLabel()->text()));
        });
        const auto successes = [this] {
            const skills::CardRecord *card = m_window->workspace()->card(QStringLiteral("add-opt"));
            return card ? card->verifications.size() : 0;
        };
        QTRY_COMPARE(successes(), std::size_t{1});
        QCOMPARE(m_window->workspace()->card(QStringLiteral("add-opt"))->life(), skills::Life::Hypothesis);
        finish("runs.admit", [](StartDialog &dialog) {
            run::StartRequest request = dialog.request();
            request.options["target"] = "third/pocl/K00";
            dialog.setRequest(request);
        });
        QTRY_COMPARE(successes(), std::size_t{2});
        QCOMPARE(m_window->workspace()->card(QStringLiteral("add-opt"))->life(), skills::Life::Admitted);
        const QList<QLabel *> labels = m_window->findChild<CardPanel *>()->findChildren<QLabel *>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel *label) {
            return label->text().contains(QLatin1String("admitted"));
        }));
        QCOMPARE(m_window->workspace()->lineage(QStringLiteral("other/pocl"))->branches.size(),
                 std::size_t{1});
    }

    void aProgramAnswers()
    {
        m_window->runner()->setProviderMaker({}); // the providers themselves
        const std::size_t cards = m_window->workspace()->workspace().cards.size();
        finish("runs.lift", [](StartDialog &dialog) {
            run::StartRequest request = dialog.request();
            request.subject.clear();
            request.options["again"] = "1";
            request.provider = "exec";
            request.author["command"] =
                "printf '```toml\\ndeclined = \"It fits this kernel only.\"\\n```\\n'";
            dialog.setRequest(request);
            QVERIFY(dialog.estimateLabel()->text().contains(QLatin1String("all of them are lifted from")));
        });
        QTRY_VERIFY(m_window->runs()->current() && m_window->runs()->current()->isFinished());
        for (const run::StepRecord &step : m_window->runs()->current()->record.steps)
            QCOMPARE(step.outcome, std::string("declined"));
        QCOMPARE(m_window->workspace()->workspace().cards.size(), cards);
    }

private:
    [[nodiscard]] QAction *command(const char *id) const
    {
        const auto *entry = std::as_const(*m_window->actions()).find(QLatin1String(id));
        return entry ? entry->action : nullptr;
    }

    void addLineage(const std::string &workload, const std::vector<std::string> &lines)
    {
        const std::string folder = "workloads/" + workload + "/lineages/pocl/";
        std::string toml = m_world.read("workloads/toy/workload.toml");
        toml.replace(toml.find("\"toy\""), 5, '"' + workload + '"');
        if (workload != "toy")
            m_world.write("workloads/" + workload + "/workload.toml", toml);
        m_world.write(folder + "K00.cl", toyKernel(lines, "// " + workload + '\n'));
        m_world.write(folder + "trials.jsonl", "");
        lineage::Lineage lineage;
        lineage.workload = workload;
        lineage.platform = "pocl";
        lineage.title = "t";
        lineage.states = {{"K00", "K00.cl", "only", ""}};
        m_world.write(folder + "lineage.toml", lineage::writeLineage(lineage));
    }

    /// Does the command, fills in what it asks, starts, and waits for the end of the run.
    void finish(const char *id, const std::function<void(StartDialog &)> &fill)
    {
        QSignalSpy ended(m_window->runner(), &RunController::ended);
        QSignalSpy failed(m_window->runner(), &RunController::failed);
        bool asked = false;
        QTimer::singleShot(0, this, [&] {
            auto *dialog = qobject_cast<StartDialog *>(QApplication::activeModalWidget());
            if (!dialog)
                return;
            asked = true;
            fill(*dialog);
            if (!dialog->startButton()->isEnabled() || QTest::currentTestFailed())
                dialog->reject();
            else
                QTest::mouseClick(dialog->startButton(), Qt::LeftButton);
        });
        command(id)->trigger();
        QVERIFY(asked);
        QTRY_VERIFY_WITH_TIMEOUT(ended.count() + failed.count() == 1, patienceMs);
        QVERIFY2(failed.isEmpty(), failed.isEmpty() ? "" : qPrintable(failed[0][1].toString()));
        QVERIFY2(ended[0][1].toString() == QLatin1String("complete"), qPrintable(ended[0][2].toString()));
    }

    LearnWorld m_world;
    ToyGate m_gate;
    std::unique_ptr<MainWindow> m_window;
};

KLINEAGE_UI_TEST(TestLearnRuns)
#include "tst_learnruns.moc"

#include <algorithm>
