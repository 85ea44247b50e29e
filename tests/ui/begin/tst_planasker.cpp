// SPDX-License-Identifier: GPL-3.0-or-later
// A plan from an author: what it costs, a program and a server that answer, a stop, and what was paid in the end.
#include "core/llm/makeprovider.h"
#include "core/talk/planquestion.h"
#include "core/workload/guess/guess.h"
#include "tests/core/llm/loopbackserver.h"
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "ui/begin/askplandialog.h"
#include "ui/begin/planasker.h"
#include "ui/runs/authorrows.h"

#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <mutex>

using namespace klineage;
using namespace klineage::ui;
namespace fs = std::filesystem;

namespace {

const std::string rowCode =
    "__kernel void rows(__global const float *in, __global float *out, int r, int c)\n{\n}\n";

const char *const rowPlan =
    "Rows are independent.\n\n```toml\nsurface = \"opencl\"\n\n[[launch]]\nkernel = \"rows\"\n"
    "grid = [\"ceil_div(R, 64)\"]\nblock = [64]\n"
    "args = [\"x\", \"y\", \"int R\", \"int C\"]\n```\n";

llm::Request question()
{
    llm::Request request;
    request.purpose = "plan";
    request.system = "Say the plan.";
    request.messages = {{llm::Role::User, "Of this kernel.", false}};
    request.maxOutputTokens = 1000;
    return request;
}

run::Settings program(const std::string &command)
{
    run::Settings settings;
    settings.provider = "exec";
    settings.author["command"] = command;
    settings.capDollars = 1;
    return settings;
}

} // namespace

class TestPlanAsker : public UiTest
{
    Q_OBJECT

private slots:
    void aProgramAnswers()
    {
        PlanAsker asker;
        QSignalSpy answered(&asker, &PlanAsker::answered);
        QSignalSpy failed(&asker, &PlanAsker::failed);
        QCOMPARE(asker.ask(program("cat > asked.json; echo fine"), question(), root(), root() / "q1"),
                 QString());
        QVERIFY(asker.isAsking());
        QVERIFY(!asker.ask(program("true"), question(), root(), root() / "q2").isEmpty()); // one at a time
        QTRY_COMPARE_WITH_TIMEOUT(answered.count() + failed.count(), 1, patienceMs);
        QVERIFY2(failed.isEmpty(), qPrintable(failed.isEmpty() ? QString() : failed[0][0].toString()));
        QCOMPARE(answered[0][0].toString().trimmed(), QStringLiteral("fine"));
        QCOMPARE(answered[0][1].toDouble(), 0.0);
        QVERIFY(!asker.isAsking());
        // It was asked in the workspace, and what was said is written down.
        QVERIFY(fs::exists(root() / "asked.json"));
        QVERIFY(fs::exists(root() / "q1/transcript.jsonl"));
    }

    void whatFailsSaysWhy()
    {
        PlanAsker asker;
        QSignalSpy failed(&asker, &PlanAsker::failed);
        QCOMPARE(asker.ask(program("exit 7"), question(), root(), root() / "q"), QString());
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, patienceMs);
        QVERIFY2(failed[0][0].toString().contains(QLatin1Char('7')), qPrintable(failed[0][0].toString()));
    }

    void aStopEndsItAtOnce()
    {
        PlanAsker asker;
        QSignalSpy failed(&asker, &PlanAsker::failed);
        QCOMPARE(asker.ask(program("sleep 600"), question(), root(), root() / "q"), QString());
        asker.stop();
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, patienceMs);
        QVERIFY(!asker.isAsking());
        // And so does the end of the window.
        auto other = std::make_unique<PlanAsker>();
        QCOMPARE(other->ask(program("sleep 600"), question(), root(), root() / "q3"), QString());
        other.reset();
    }

    void aServerAnswersForItsPrice()
    {
        if (!llm::hasNetworkProviders())
            QSKIP("This program has no network providers.");
        std::mutex mutex;
        nlohmann::json seen;
        const LoopbackServer server([&](const SeenRequest &request) {
            const std::lock_guard lock(mutex);
            seen = request.body;
            ServerAnswer answer;
            answer.headers = {{"content-type", "text/event-stream"}};
            answer.body =
                "data: {\"model\":\"planner\",\"choices\":[{\"delta\":{\"content\":\"half \"}}]}\n\n"
                "data: {\"choices\":[{\"delta\":{\"content\":\"and half\"},\"finish_reason\":\"stop\"}]}\n\n"
                "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":100}}\n\n"
                "data: [DONE]\n\n";
            answer.pieceBytes = 7;
            return answer;
        });
        write("prices.toml",
              "date = \"2026-01-01\"\nsource = \"this test\"\n\n[[model]]\nname = \"planner\"\ninput = 1.0\n"
              "cache_read = 1.0\ncache_write = 1.0\noutput = 10.0\n");
        run::Settings settings;
        settings.provider = "openai";
        settings.model = "planner";
        settings.author = {{"base_url", server.url() + "/v1"}, {"paid", "yes"}};
        settings.capDollars = 0.5;
        const auto cost = PlanAsker::costOf(settings, question(), root());
        QVERIFY2(cost, cost ? "" : cost.error().message.c_str());
        QVERIFY(cost->isPaid && cost->likely > 0 && cost->most >= cost->likely);
        PlanAsker asker;
        QSignalSpy answered(&asker, &PlanAsker::answered);
        QSignalSpy failed(&asker, &PlanAsker::failed);
        QSignalSpy progressed(&asker, &PlanAsker::progressed);
        QCOMPARE(asker.ask(settings, question(), root(), root() / "q"), QString());
        QTRY_COMPARE_WITH_TIMEOUT(answered.count() + failed.count(), 1, patienceMs);
        QVERIFY2(failed.isEmpty(), qPrintable(failed.isEmpty() ? QString() : failed[0][0].toString()));
        QCOMPARE(answered[0][0].toString(), QStringLiteral("half and half"));
        QVERIFY(std::abs(answered[0][1].toDouble() - 0.002) < 1e-9);
        QVERIFY(progressed.count() >= 2);
        QCOMPARE(QString::fromStdString(seen.value("model", "")), QStringLiteral("planner"));
        // A cap that the question could pass: nothing is sent.
        settings.capDollars = cost->most / 2;
        seen = nullptr;
        QCOMPARE(asker.ask(settings, question(), root(), root() / "q2"), QString());
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, patienceMs);
        QVERIFY(seen.is_null());
        QCOMPARE(failed[0][1].toDouble(), 0.0);
    }

    void theDialogSaysTheCostAndRemembers()
    {
        {
            AskPlanDialog dialog(question(), root(), nullptr);
            dialog.show();
            QVERIFY(takeKeys(dialog));
            auto *provider = dialog.findChild<QComboBox *>(QStringLiteral("author.provider"));
            provider->setFocus();
            QTest::keyClicks(provider, QStringLiteral("exec"));
            QCOMPARE(provider->currentData().toString(), QStringLiteral("exec"));
            QVERIFY(!dialog.askButton()->isEnabled());
            auto *command = dialog.findChild<QLineEdit *>(QStringLiteral("author.command"));
            QVERIFY(command->isVisible());
            command->setFocus();
            QTest::keyClicks(command, QStringLiteral("sh plan.sh"));
            QVERIFY2(dialog.askButton()->isEnabled(), qPrintable(dialog.costLabel()->text()));
            QVERIFY(dialog.costLabel()->text().contains(QLatin1String("cost nothing")));
            QTest::keyClick(command, Qt::Key_Return);
            QCOMPARE(dialog.result(), static_cast<int>(QDialog::Accepted));
        }
        const AskPlanDialog again(question(), root(), nullptr);
        QCOMPARE(again.settings().provider, std::string("exec"));
        QCOMPARE(again.settings().author.at("command"), std::string("sh plan.sh"));
    }

    void replies_data()
    {
        QTest::addColumn<QString>("reply");
        QTest::addColumn<QString>("expected"); // part of the error; empty: it is a plan
        const QString plan = QString::fromUtf8(rowPlan);
        QTest::newRow("plan") << plan << QString();
        QTest::newRow("no surface") << QString(plan).remove(QStringLiteral("surface = \"opencl\"\n"))
                                    << QString();
        QTest::newRow("a whole candidate") << QStringLiteral(
            "```c\n/*klineage\nsurface = \"opencl\"\n[[launch]]\nkernel = \"rows\"\ngrid = [1]\nblock = [1]\n"
            "args = [\"x\", \"y\", \"int R\", \"int C\"]\n*/\nvoid other() {}\n```\n")
                                           << QString();
        QTest::newRow("no block") << QStringLiteral("I do not know.") << QStringLiteral("block");
        QTest::newRow("given up") << QStringLiteral("DONE: it writes no output.")
                                  << QStringLiteral("writes no output");
        QTest::newRow("no launch") << QStringLiteral("```\nsurface = \"opencl\"\n```\n")
                                   << QStringLiteral("launches nothing");
        QTest::newRow("end of comment")
            << QString(plan).replace(QStringLiteral("kernel ="), QStringLiteral("# */ int evil;\nkernel ="))
            << QStringLiteral("end of a comment");
        QTest::newRow("unknown key") << QString(plan).replace(QStringLiteral("block ="),
                                                              QStringLiteral("blok ="))
                                     << QStringLiteral("cannot be used");
    }
    void replies()
    {
        QFETCH(QString, reply);
        QFETCH(QString, expected);
        const auto read = run::readPlanReply(reply.toStdString(), rowCode, kernel::Surface::OpenCl);
        if (!expected.isEmpty()) {
            QVERIFY(!read);
            QVERIFY2(QString::fromStdString(read.error().message).contains(expected),
                     read.error().message.c_str());
            return;
        }
        QVERIFY2(read, read ? "" : read.error().message.c_str());
        QVERIFY(read->ends_with(rowCode)); // the person's code, byte for byte
        const auto candidate = kernel::parseCandidate(*read, "plan");
        QVERIFY(candidate);
        const auto draft = workload::draftOf(*candidate);
        QVERIFY(draft);
        QCOMPARE(draft->kernel, std::string("rows"));
        QCOMPARE(draft->args.size(), std::size_t{4});
    }

    void theQuestionHasAllThatIsKnown()
    {
        const auto toy = workload::readWorkload(fs::path(klineage::test::sourcePath())
                                                / "tests/data/workspace/workloads/toy");
        QVERIFY(toy);
        workload::PlanDraft draft;
        draft.surface = kernel::Surface::OpenCl;
        draft.code = rowCode;
        draft.kernel = "rows";
        draft.grid = {"Q"};
        draft.args = {"x", "", "int R", ""};
        const auto asked = run::planQuestion(draft, *toy, workload::checkDraft(draft, *toy));
        QVERIFY2(asked, asked ? "" : asked.error().message.c_str());
        for (const char *part : {"[[launch]]", "opencl", "[[tensor]]"})
            QVERIFY2(asked->system.find(part) != std::string::npos, part);
        for (const char *part :
             {"`rows`", "__kernel void rows", "grid: \"Q\"", "argument 2: \"\"", "What is wrong with it"})
            QVERIFY2(asked->message.find(part) != std::string::npos, part);
    }

private:
    [[nodiscard]] fs::path root() const { return m_folder.path().toStdString(); }
    void write(const char *name, const char *text) const
    {
        QFile file(m_folder.filePath(QLatin1String(name)));
        if (!file.open(QIODevice::WriteOnly) || file.write(text) < 0)
            qFatal("cannot write %s", name);
    }

    QTemporaryDir m_folder;
};

KLINEAGE_UI_TEST(TestPlanAsker)
#include "tst_planasker.moc"
