// SPDX-License-Identifier: GPL-3.0-or-later
// Runs through the program itself, on a real OpenCL device, with a shell script as the author: started, killed, interrupted, gone on
// with, looked at, replayed; and an experiment.
#include "tests/app/cli/rows.h"
#include "tests/core/run/runfixture.h"
#include "tests/paths.h"
#include "tests/patience.h"

#include <QElapsedTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTest>
#include <QThread>

#include <algorithm>
#include <csignal>

using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

/// Every sum goes through memory, a hundred times: a gain over it is seen however much else a machine does meanwhile.
const std::string naive = rowsKernel("    volatile float s = 0;\n"
                                     "    for (int i = 0; i < C; ++i) {\n        s += x[i];\n"
                                     "        for (int j = 0; j < 99; ++j) s = s;\n    }\n"
                                     "    y[get_global_id(0)] = s;\n");
const std::string better =
    rowsKernel("    float s[4] = {0, 0, 0, 0};\n    int i = 0;\n"
               "    for (; i + 3 < C; i += 4) for (int j = 0; j < 4; ++j) s[j] += x[i + j];\n"
               "    for (; i < C; ++i) s[0] += x[i];\n"
               "    y[get_global_id(0)] = (s[0] + s[1]) + (s[2] + s[3]);\n");

const char *const lineageText = R"(workload = "rows"
platform = "pocl"
surface = "opencl"
title = "rows"
origin = "Written for the tests."
termination = "unknown"
reason = "Not taken apart."

[[state]]
id = "K00"
file = "K00.cl"
title = "naive"
)";

/// Answers with the better kernel, then that it is done. The second answer waits while there is a file `wait`; every question leaves a
/// line in `asked`.
const char *const authorText = R"(question=$(cat)
echo asked >> asked
case "$question" in
*'"role":"assistant"'*)
    while [ -e wait ]; do sleep 0.05; done
    echo 'DONE: a sum needs no more.'
    exit 0 ;;
esac
echo 'Four sums stay in registers.'
echo '```c'
cat better.cl
echo '```'
)";

} // namespace

class TestRunCli : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        const fs::path lineage = m_folder.path() / "workloads/rows/lineages/pocl";
        fs::create_directories(lineage);
        fs::create_directories(m_folder.path() / "skills");
        writeAll(m_folder.path() / "workloads/rows/workload.toml", rowsWorkload);
        writeAll(lineage / "lineage.toml", lineageText);
        writeAll(lineage / "K00.cl", naive);
        writeAll(m_folder.path() / "better.cl", better);
        writeAll(m_folder.path() / "author.sh", authorText);
        const Outcome devices = cli({"gate", "devices", "--json"});
        bool found = false;
        for (const QJsonValue &device : devices.json.value("devices").toArray())
            found |= device.toObject().value("backend") == "opencl"
                     && device.toObject().value("available").toBool();
        if (!found)
            QSKIP("There is no OpenCL device.");
    }

    void everyVerbHasHelpAndJson_data()
    {
        QTest::addColumn<QString>("verb");
        for (const char *verb : {"run start", "run resume", "run step", "run replay", "run list", "run show",
                                 "run export", "experiment run", "experiment show"})
            QTest::newRow(verb) << verb;
    }

    void everyVerbHasHelpAndJson()
    {
        QFETCH(QString, verb);
        const Outcome outcome = cli(verb.split(' ') << "--help");
        QCOMPARE(outcome.status, 0);
        QVERIFY(outcome.out.contains("--json") && outcome.out.contains("--workspace"));
    }

    void wrongUsageIsStatusTwo_data()
    {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("expected");
        const QStringList exec{"--provider", "exec", "--command", "true"};
        QTest::newRow("no provider") << QStringList{"run", "start", "rows/pocl/K00"} << "--provider";
        QTest::newRow("provider") << QStringList{"run", "start", "rows/pocl/K00", "--provider", "exce"}
                                  << "exce";
        QTest::newRow("state") << (QStringList{"run", "start", "rows/pocl/K0"} + exec)
                               << "did you mean 'K00'";
        QTest::newRow("subject") << (QStringList{"run", "start", "rows/pcl/K00"} + exec) << "rows/pcl/K00";
        QTest::newRow("no command") << QStringList{"run", "start", "rows/pocl/K00", "--provider", "exec"}
                                    << "--command";
        QTest::newRow("no model") << QStringList{"run", "start", "rows/pocl/K00", "--provider", "anthropic"}
                                  << "--model";
        QTest::newRow("option") << (QStringList{"run", "start", "rows/pocl/K00", "--option", "patience"}
                                    + exec)
                                << "NAME=VALUE";
        QTest::newRow("run") << QStringList{"run", "show", "none"} << "no run 'none'";
        QTest::newRow("experiment") << QStringList{"experiment", "show", "none"} << "no experiment 'none'";
    }

    void wrongUsageIsStatusTwo()
    {
        QFETCH(QStringList, arguments);
        QFETCH(QString, expected);
        const Outcome outcome = cli(arguments);
        QCOMPARE(outcome.status, 2);
        QVERIFY2((outcome.err + outcome.out).contains(expected.toUtf8()), outcome.err.constData());
        QVERIFY(!fs::exists(m_folder.path() / "runs"));
    }

    void killedInterruptedAndGoneOnWith()
    {
        writeAll(m_folder.path() / "wait", "");
        const QStringList start = startArguments("one");
        {
            // Killed while the author thinks about the second question.
            QProcess process;
            begin(process, start);
            QVERIFY(waitForQuestions(2));
            process.kill();
            QVERIFY(process.waitForFinished(4 * patienceMs));
        }
        Outcome shown = cli({"run", "show", "one", "--json"});
        QCOMPARE(shown.json.value("state").toString(), QString("stopped"));
        QCOMPARE(shown.json.value("questions").toInt(), 1);
        {
            // Gone on with, and interrupted at the same place.
            QProcess process;
            begin(process, {"run", "resume", "one", "--json"});
            QVERIFY(waitForQuestions(3));
            ::kill(static_cast<pid_t>(process.processId()), SIGINT);
            QVERIFY(process.waitForFinished(4 * patienceMs));
            QCOMPARE(process.exitCode(), 1);
            const QJsonObject stopped = QJsonDocument::fromJson(process.readAllStandardOutput()).object();
            QCOMPARE(stopped.value("state").toString(), QString("stopped"));
            QVERIFY(stopped.value("ending").toString().startsWith("stopped"));
        }
        fs::remove(m_folder.path() / "wait");
        const Outcome resumed = cli({"run", "resume", "one", "--json"});
        QVERIFY2(resumed.status == 0, resumed.err.constData());
        QCOMPARE(resumed.json.value("state").toString(), QString("finished"));
        QVERIFY(resumed.json.value("ending").toString().startsWith("complete"));
        QCOMPARE(resumed.json.value("questions").toInt(), 2);
        QCOMPARE(resumed.json.value("valid").toInt(), 1);
        QVERIFY(resumed.json.value("audited").toBool());
        QVERIFY2(resumed.json.value("final_speedup").toDouble() > 1.5, resumed.out.constData());
        QCOMPARE(questions(), 4);                          // the first question was asked once
        QCOMPARE(cli({"run", "resume", "one"}).status, 0); // there is nothing left to do
        QCOMPARE(questions(), 4);
    }

    void recordIsShownExportedAndReplayed()
    {
        const Outcome replayed = cli({"run", "replay", "one", "--check", "--json"});
        QVERIFY2(replayed.status == 0, replayed.out.constData());
        QCOMPARE(replayed.json.value("steps").toInt(), 4);
        QCOMPARE(cli({"run", "list", "--json"}).json.value("runs").toArray().size(), qsizetype{1});
        const QString csv = QString::fromStdString((m_folder.path() / "t.csv").string());
        const QString best = QString::fromStdString((m_folder.path() / "best.cl").string());
        QCOMPARE(cli({"run", "export", "one", "--trajectory", csv, "--best", best}).status, 0);
        QCOMPARE(readAll(best.toStdString()), better);
        QVERIFY(readAll(csv.toStdString()).find("own,valid") != std::string::npos);
        const Outcome text = cli({"run", "show", "one"});
        QVERIFY(text.out.contains("gated again"));
        // A record that was touched no longer replays.
        std::string steps = readAll(m_folder.path() / "runs/one/steps.jsonl");
        const std::size_t at = steps.find("\"outcome\":\"valid\"");
        QVERIFY(at != std::string::npos);
        writeAll(m_folder.path() / "runs/one/steps.jsonl", steps.replace(at, 17, "\"outcome\":\"found\""));
        QCOMPARE(cli({"run", "replay", "one"}).status, 1);
    }

    /// Steps that measured nothing (a plan, a failure) have no speedup, which is not a speedup of 0.
    void stepsWithoutAFigureAreExportedWithoutOne()
    {
        const fs::path recorded =
            fs::path(klineage::test::sourcePath()) / "tests/data/experiments/cards-on-hopper/runs";
        int empty = 0;
        int runs = 0;
        for (const fs::directory_entry &folder : fs::directory_iterator(recorded)) {
            if (++runs > 6)
                break;
            const QString run = QString::fromStdString(folder.path().string());
            const Outcome text = cli({"run", "export", run});
            QCOMPARE(text.status, 0);
            for (const QByteArray &line : text.out.split('\n').mid(1)) {
                if (line.isEmpty())
                    continue;
                const QList<QByteArray> cells = line.split(',');
                QCOMPARE(cells.size(), qsizetype{6});
                QVERIFY2(cells[2] != "0" && cells[3] != "0", line.constData());
                empty += cells[3].isEmpty() ? 1 : 0;
            }
            for (const QJsonValue &point :
                 cli({"run", "export", run, "--json"}).json.value("trajectory").toArray()) {
                const QJsonValue speedup = point.toObject().value("speedup");
                QVERIFY(speedup.isNull() || speedup.toDouble() > 0);
            }
        }
        QVERIFY(empty > 0);
    }

    void aPersonTakesOver()
    {
        // The command would fail: only what the person gives is used.
        QStringList start = startArguments("by-hand");
        start[start.indexOf("sh author.sh")] = "exit 3";
        const Outcome failed = cli(start);
        QCOMPARE(failed.status, 3);
        const QString better = QString::fromStdString((m_folder.path() / "better.cl").string());
        const Outcome step = cli({"run", "step", "by-hand", "--reply", better, "--json"});
        QVERIFY2(step.status == 0, step.err.constData());
        QCOMPARE(step.json.value("state").toString(), QString("stopped"));
        QCOMPARE(step.json.value("valid").toInt(), 1);
        QVERIFY(readAll(m_folder.path() / "runs/by-hand/transcript.jsonl").find("\"provider\":\"manual\"")
                != std::string::npos);
    }

    void experimentIsRunAndShown()
    {
        const fs::path experiment = m_folder.path() / "experiments/tiny";
        fs::create_directories(experiment);
        writeAll(experiment / "experiment.toml",
                 "roots = [\"rows/pocl/K00\"]\npolicies = [\"generated-only\"]\nseeds = [1]\nmax_steps = 1\n"
                 "provider = \"exec\"\nauthor = { command = \"sh author.sh\" }\n"
                 "options = { rounds = \"3\", profile_seconds = \"1\", audit = \"no\" }\n");
        const Outcome run = cli({"experiment", "run", "tiny", "--json"});
        QVERIFY2(run.status == 0, run.err.constData());
        const QJsonObject mean = run.json.value("policies").toArray().last().toObject();
        QCOMPARE(mean.value("successes").toInt(), 1);
        QVERIFY(mean.value("geometric_mean").toDouble() > 1.5);
        const int before = questions();
        QCOMPARE(cli({"experiment", "run", "tiny"}).status, 0);
        QCOMPARE(questions(), before);
        QVERIFY(cli({"experiment", "show", "tiny"}).out.contains("step_limit"));
    }

private:
    [[nodiscard]] QStringList startArguments(const QString &id) const
    {
        return {"run",        "start",    "rows/pocl/K00", "--policy",     "generated-only",
                "--provider", "exec",     "--command",     "sh author.sh", "--id",
                id,           "--option", "rounds=3",      "--option",     "profile_seconds=1"};
    }

    void begin(QProcess &process, const QStringList &arguments) const
    {
        process.setWorkingDirectory(QString::fromStdString(m_folder.path().string()));
        process.start(QString::fromStdString(klineage::test::programPath("/klineage-cli")), arguments);
    }

    Outcome cli(const QStringList &arguments) const
    {
        QProcess process;
        begin(process, arguments);
        return outcomeOf(process);
    }

    [[nodiscard]] int questions() const
    {
        const std::string asked = readAll(m_folder.path() / "asked");
        return static_cast<int>(std::count(asked.begin(), asked.end(), '\n'));
    }

    [[nodiscard]] bool waitForQuestions(int count) const
    {
        QElapsedTimer timer;
        timer.start();
        while (questions() < count && timer.elapsed() < 4 * patienceMs)
            QThread::msleep(20);
        return questions() >= count;
    }

    MemoryFolder m_folder;
};

QTEST_GUILESS_MAIN(TestRunCli)
#include "tst_runcli.moc"
