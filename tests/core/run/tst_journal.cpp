// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/run/runfixture.h"

#include <QRegularExpression>
#include <QTest>

#include <algorithm>
#include <limits>
#include <memory>

#include <sys/wait.h>
#include <unistd.h>

using namespace klineage;
using namespace klineage::run;
using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

Settings someSettings()
{
    Settings settings;
    settings.id = "one";
    settings.workload = "toy";
    settings.surface = "opencl";
    settings.platform = "pocl";
    settings.policy = "greedy";
    settings.subject = "toy/pocl/K00";
    settings.provider = "exec";
    settings.model = "some \"model\"";
    settings.capDollars = 2.5;
    settings.seed = 7;
    settings.maxSteps = 12;
    settings.author = {{"command", "sh 'a b.sh'"}};
    settings.options = {{"patience", "3"}, {"two lines", "1\n2"}};
    return settings;
}

gate::GateRequest request(const std::string &text, const std::string &parent = {})
{
    gate::GateRequest request;
    request.workloadDirectory = "/nowhere/workloads/toy";
    request.candidateText = text;
    request.parentText = parent;
    return request;
}

FakeGate countingGate()
{
    return FakeGate([](const std::string &text) {
        return FakeVerdict{gate::VerdictStatus::Correct, 1000.0 / static_cast<double>(text.size()), {}};
    });
}

/// A procedure of three steps, each of one trial.
Status procedure(Journal &journal, FakeGate &fake)
{
    std::string parent;
    double total = 0;
    for (const std::string text : {"a", "bb", "ccc"}) {
        const Result<gate::Trial> trial = journal.gate(request(text, parent), fake.function(), {});
        if (!trial)
            return tl::unexpected(trial.error());
        StepRecord step;
        step.action = "rewrite";
        step.title = "to " + text + " \xff";
        step.outcome = "valid";
        step.candidate = trial->candidate;
        step.parent = trial->parent;
        step.trial = trial->id;
        step.exchanges = {static_cast<int>(text.size())};
        step.cards = {"some-card"};
        step.dollars = 0.1;
        step.totalDollars = total += 0.1;
        step.speedup = step.best = 1000 / trial->latencyNs.value;
        if (const Result<StepRecord> written = journal.step(step); !written)
            return tl::unexpected(written.error());
        parent = text;
    }
    return journal.finish({"complete", "Nothing is left to do."});
}

/// Everything that a run wrote, without the times of its steps and of its ending.
std::map<std::string, std::string> bytesOf(const fs::path &directory)
{
    static const QRegularExpression time("\"?time\"?(:| = )\"[^\"]*\"");
    std::map<std::string, std::string> bytes;
    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(directory)) {
        const std::string name = fs::relative(entry.path(), directory).string();
        if (!entry.is_regular_file() || name.ends_with(".torn"))
            continue;
        QByteArray text = QByteArray::fromStdString(readAll(entry.path()));
        if (name == "steps.jsonl" || name == "ending.toml")
            text = QString::fromUtf8(text).replace(time, "time").toUtf8();
        if (name.ends_with(".jsonl") && !text.endsWith('\n'))
            text += '\n'; // a last line that only lacks its end counts, and gets it with the next one
        bytes[name] = text.toStdString();
    }
    return bytes;
}

} // namespace

class TestJournal : public QObject
{
    Q_OBJECT

private slots:
    void init() { m_folder = std::make_unique<MemoryFolder>(); }

    void settingsAreKept()
    {
        const Settings settings = someSettings();
        const Result<Settings> back = parseSettings(writeSettings(settings), "run.toml");
        QVERIFY2(back, back ? "" : back.error().message.c_str());
        QCOMPARE(writeSettings(*back), writeSettings(settings));
        QCOMPARE(back->options, settings.options);
        QCOMPARE(back->author, settings.author);
        QCOMPARE(back->seed, settings.seed);
        QCOMPARE(back->model, settings.model);
    }

    void badSettingsAreRefused_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("expected");
        const QString good = "id = \"a\"\nkind = \"lift\"\n";
        QTest::newRow("no id") << "kind = \"lift\""
                               << "id";
        QTest::newRow("id") << "id = \"../a\"\nkind = \"lift\""
                            << "no name of a run";
        QTest::newRow("kind") << "id = \"a\"\nkind = \"lyft\""
                              << "'lift'";
        QTest::newRow("unknown key") << good + "modle = \"x\""
                                     << "model";
        QTest::newRow("cap") << good + "cap_dollars = -1"
                             << "cap";
        QTest::newRow("nan") << good + "cap_dollars = nan"
                             << "cap_dollars";
        QTest::newRow("seed") << good + "seed = -1"
                              << "0 or more";
        QTest::newRow("steps") << good + "max_steps = -4"
                               << "0 (no limit)";
        QTest::newRow("surface") << good + "surface = \"metal\""
                                 << "'opencl'";
        QTest::newRow("workload") << good + "workload = \"../x\""
                                  << "no name";
        QTest::newRow("option") << good + "options = { a = 1 }"
                                << "a";
    }

    void badSettingsAreRefused()
    {
        QFETCH(QString, text);
        QFETCH(QString, expected);
        const Result<Settings> settings = parseSettings(text.toStdString(), "run.toml");
        QVERIFY(!settings);
        QVERIFY2(settings.error().message.starts_with("run.toml:"), settings.error().message.c_str());
        QVERIFY2(QString::fromStdString(settings.error().message).contains(expected),
                 settings.error().message.c_str());
    }

    void badStepsAreRefused_data()
    {
        QTest::addColumn<QString>("line");
        const QString good = R"("time":"t","action":"a","outcome":"o")";
        QTest::newRow("no number") << '{' + good + '}';
        QTest::newRow("number") << "{\"step\":0," + good + '}';
        QTest::newRow("unknown") << "{\"step\":1,\"speed\":1," + good + '}';
        QTest::newRow("sha") << "{\"step\":1,\"candidate\":\"xyz\"," + good + '}';
        QTest::newRow("negative") << "{\"step\":1,\"dollars\":-1," + good + '}';
        QTest::newRow("exchange") << "{\"step\":1,\"exchanges\":[0]," + good + '}';
        QTest::newRow("cards") << "{\"step\":1,\"cards\":[1]," + good + '}';
        QTest::newRow("torn") << "{\"step\":1," + good;
    }

    void badStepsAreRefused()
    {
        QFETCH(QString, line);
        const Result<StepRecord> step = parseStep(line.toStdString(), "steps.jsonl:1");
        QVERIFY(!step);
        QVERIFY(step.error().message.starts_with("steps.jsonl:1:"));
    }

    void runIsWrittenAndRead()
    {
        FakeGate fake = countingGate();
        {
            Result<Journal> journal = Journal::create(runs(), someSettings());
            QVERIFY2(journal, journal ? "" : journal.error().message.c_str());
            QCOMPARE(readRun(runs() / "one")->state, std::string("running"));
            QVERIFY(procedure(*journal, fake));
        }
        const Result<RunRecord> run = readRun(runs() / "one");
        QVERIFY2(run, run ? "" : run.error().message.c_str());
        QCOMPARE(run->state, std::string("finished"));
        QCOMPARE(run->ending.text(), std::string("complete: Nothing is left to do."));
        QCOMPARE(run->steps.size(), std::size_t{3});
        QCOMPARE(run->steps[2].best, 3.0);
        QCOMPARE(run->steps[2].title, std::string("to ccc \xef\xbf\xbd"));
        QCOMPARE(run->trials.size(), std::size_t{3});
        QVERIFY(run->notices.empty());
        QVERIFY(!run->settings.created.empty());
        QCOMPARE(readAll(run->directory / run->trials[1].file), std::string("bb"));
        QCOMPARE(run->trials[1].parent, run->trials[0].candidate);

        std::vector<Error> problems;
        fs::create_directory(runs() / "empty");
        QCOMPARE(readRuns(runs(), &problems).size(), std::size_t{1});
        QCOMPARE(problems.size(), std::size_t{1});
    }

    void folderThatExistsIsAConflict()
    {
        QVERIFY(Journal::create(runs(), someSettings()));
        const Result<Journal> again = Journal::create(runs(), someSettings());
        QVERIFY(!again && again.error().code == ErrorCode::Conflict);
        Settings bad = someSettings();
        bad.id = "../one";
        QVERIFY(!Journal::create(runs(), bad));
    }

    void secondProcessIsRefused()
    {
        const Result<Journal> journal = Journal::create(runs(), someSettings());
        QVERIFY(journal);
        const pid_t child = ::fork();
        if (child == 0) {
            // flock belongs to the open file: the child opens the run anew, as another program would.
            const Result<Journal> second = Journal::open(runs() / "one");
            ::_exit(!second && second.error().code == ErrorCode::Conflict ? 0 : 1);
        }
        int status = -1;
        QCOMPARE(::waitpid(child, &status, 0), child);
        QVERIFY(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }

    void twoProcessesCreateOne()
    {
        std::vector<pid_t> children;
        for (int i = 0; i < 6; ++i) {
            const pid_t child = ::fork();
            if (child == 0)
                ::_exit(Journal::create(runs(), someSettings()) ? 0 : 1);
            children.push_back(child);
        }
        int created = 0;
        for (const pid_t child : children) {
            int status = -1;
            ::waitpid(child, &status, 0);
            created += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        }
        QCOMPARE(created, 1);
        QVERIFY(readRun(runs() / "one"));
    }

    void recordAnswersWithoutTheGate()
    {
        FakeGate fake = countingGate();
        {
            Result<Journal> journal = Journal::create(runs(), someSettings());
            QVERIFY(procedure(*journal, fake));
        }
        const auto before = bytesOf(runs() / "one");
        FakeGate unused = countingGate();
        Result<Journal> journal = Journal::open(runs() / "one");
        QVERIFY(journal->isReplaying());
        const Status again = procedure(*journal, unused);
        QVERIFY2(again, again ? "" : again.error().message.c_str());
        QVERIFY(!journal->isReplaying());
        QCOMPARE(unused.calls, 0);
        QCOMPARE(bytesOf(runs() / "one"), before);
    }

    void whatDiffersIsAConflict()
    {
        FakeGate fake = countingGate();
        {
            Result<Journal> journal = Journal::create(runs(), someSettings());
            QVERIFY(procedure(*journal, fake));
        }
        {
            Result<Journal> journal = Journal::open(runs() / "one");
            const Result<gate::Trial> other = journal->gate(request("other"), fake.function(), {});
            QVERIFY(!other && other.error().code == ErrorCode::Conflict);
        }
        {
            Result<Journal> journal = Journal::open(runs() / "one");
            const Result<gate::Trial> parent = journal->gate(request("a", "bb"), fake.function(), {});
            QVERIFY(!parent && parent.error().code == ErrorCode::Conflict);
        }
        {
            Result<Journal> journal = Journal::open(runs() / "one");
            QVERIFY(journal->gate(request("a"), fake.function(), {}));
            StepRecord step;
            step.action = "rewrite";
            step.outcome = "failed";
            const Result<StepRecord> other = journal->step(step);
            QVERIFY(!other && other.error().code == ErrorCode::Conflict);
        }
        {
            Result<Journal> journal = Journal::open(runs() / "one");
            const Status early = journal->finish({"complete", {}});
            QVERIFY(!early && early.error().code == ErrorCode::Conflict);
            QVERIFY(journal->finish({"stopped", {}}));
            QVERIFY(journal->finish({"error", "The gate died."}));
        }
        QCOMPARE(readRun(runs() / "one")->state, std::string("finished")); // as it was before
    }

    void stoppedRunsAreNotFinished()
    {
        {
            Result<Journal> journal = Journal::create(runs(), someSettings());
            QVERIFY(journal->finish({"error", "The gate died."}));
        }
        QCOMPARE(readRun(runs() / "one")->state, std::string("stopped"));
        QVERIFY(Journal::open(runs() / "one")->finish({"stopped", "By hand."}));
        QCOMPARE(readRun(runs() / "one")->ending.text(), std::string("stopped: By hand."));
        QVERIFY(Journal::open(runs() / "one")->finish({"complete", {}}));
        QCOMPARE(readRun(runs() / "one")->state, std::string("finished"));
    }

    /// The writes in their order: candidate, trial, step, …, ending. After a kill between any two bytes of them, the run is gone on
    /// with to the same bytes.
    void killAnywhereAndGoOn()
    {
        FakeGate fake = countingGate();
        {
            Result<Journal> journal = Journal::create(runs(), someSettings());
            QVERIFY(procedure(*journal, fake));
        }
        const fs::path whole = runs() / "one";
        const auto expected = bytesOf(whole);
        const std::string trials = readAll(whole / "trials.jsonl");
        const std::string steps = readAll(whole / "steps.jsonl");
        int cuts = 0;
        const auto resumeAfter = [&](std::size_t trialBytes, std::size_t stepBytes) {
            const MemoryFolder folder;
            const fs::path copy = folder.path() / "one";
            fs::copy(whole, copy, fs::copy_options::recursive);
            fs::remove(copy / "ending.toml");
            writeAll(copy / "trials.jsonl", trials.substr(0, trialBytes));
            writeAll(copy / "steps.jsonl", steps.substr(0, stepBytes));
            const auto complete =
                std::count(trials.begin(), trials.begin() + static_cast<long>(trialBytes), '\n');
            for (long i = complete + 1; i < 3;
                 ++i) // candidates that had not been gated yet were not stored either
                fs::remove(copy
                           / candidateFileName(files::sha256Hex(std::string(static_cast<std::size_t>(i) + 1,
                                                                            static_cast<char>('a' + i))),
                                               kernel::Surface::OpenCl));
            FakeGate again = countingGate();
            Result<Journal> journal = Journal::open(copy);
            QVERIFY2(journal, journal ? "" : journal.error().message.c_str());
            const Status done = procedure(*journal, again);
            QVERIFY2(done, done ? "" : done.error().message.c_str());
            QVERIFY(again.calls >= 2 - complete && again.calls <= 3 - complete);
            QCOMPARE(bytesOf(copy), expected);
            ++cuts;
        };
        std::size_t stepsDone = 0;
        std::size_t trialsDone = 0;
        for (int line = 0; line < 3; ++line) {
            const std::size_t trialEnd = trials.find('\n', trialsDone) + 1;
            for (std::size_t cut = trialsDone; cut < trialEnd; cut += cut + 2 >= trialEnd ? 1 : 37)
                resumeAfter(cut, stepsDone);
            trialsDone = trialEnd;
            const std::size_t stepEnd = steps.find('\n', stepsDone) + 1;
            for (std::size_t cut = stepsDone; cut < stepEnd; cut += cut + 2 >= stepEnd ? 1 : 23)
                resumeAfter(trialsDone, cut);
            stepsDone = stepEnd;
        }
        resumeAfter(trialsDone, stepsDone);
        QVERIFY(cuts > 60);
    }

    void keptFilesAreMadeOnce()
    {
        Result<Journal> journal = Journal::create(runs(), someSettings());
        int made = 0;
        const auto make = [&made]() -> Result<std::string> { return "made " + std::to_string(++made); };
        QCOMPARE(*journal->keep("inputs.json", make), std::string("made 1"));
        QCOMPARE(*journal->keep("inputs.json", make), std::string("made 1"));
        QCOMPARE(made, 1);
    }

    void gateErrorsLeaveNoTrace()
    {
        Result<Journal> journal = Journal::create(runs(), someSettings());
        const GateFunction broken = [](const gate::GateRequest &, std::stop_token,
                                       const gate::ProgressCallback &) -> Result<gate::Trial> {
            return klineage::fail(ErrorCode::Unavailable, "There is no gate.");
        };
        QVERIFY(!journal->gate(request("a"), broken, {}));
        QVERIFY(!fs::exists(runs() / "one/trials.jsonl"));
        const GateFunction liar = [](const gate::GateRequest &, std::stop_token,
                                     const gate::ProgressCallback &) -> Result<gate::Trial> {
            gate::Trial trial;
            trial.candidate = files::sha256Hex("something else");
            return trial;
        };
        const Result<gate::Trial> other = journal->gate(request("a"), liar, {});
        QVERIFY(!other && other.error().code == ErrorCode::Protocol);
        QVERIFY(!journal->gate(request(""), liar, {}));
        StepRecord step;
        step.action = step.outcome = "x";
        step.speedup = std::numeric_limits<double>::quiet_NaN();
        QVERIFY(!journal->step(step));
        QVERIFY(!fs::exists(runs() / "one/steps.jsonl"));
    }

private:
    [[nodiscard]] fs::path runs() const { return m_folder->path() / "runs"; }
    std::unique_ptr<MemoryFolder> m_folder;
};

QTEST_GUILESS_MAIN(TestJournal)
#include "tst_journal.moc"
