// SPDX-License-Identifier: GPL-3.0-or-later
// Whole runs with an author and a gate that are functions: policies, steps, money, endings; and that a run that is killed anywhere and
// gone on with comes to the same.
#include "core/run/materialize/cards.h"
#include "core/run/summary.h"
#include "tests/core/run/materializefixture.h"
#include "tests/paths.h"

#include <QRegularExpression>
#include <QTest>

#include <memory>

using namespace klineage;
using namespace klineage::run;
using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

/// Answers one after the other, by how many questions there were before it in this run: the number of author's turns.
FunctionProvider inOrder(std::vector<std::string> answers)
{
    return FunctionProvider([answers](const llm::Request &request) -> std::string {
        const std::size_t before = request.messages.size() / 2;
        return before < answers.size() ? answers[before] : "DONE: nothing is left";
    });
}

const std::vector<std::string> eventfulAnswers{
    "```\nstage-rows: missing\n```",
    fencedCandidate("is wrong"),               // complete
    fencedCandidate("/* staged */ ns(1000)"),  // repair
    "I would rather talk about it.",           // replan: unusable
    fencedCandidate("ns( 1000 ) // staged\n"), // again: the same code … which differs in blanks only
    fencedCandidate("is suspect"),             // again
    fencedCandidate("vectors ns(400)"),        // replan
    fencedCandidate("is crash"),               // replan
    "DONE: bound by memory",                   // repair
};

std::string words(const StepRecord &step)
{
    return step.action + ' ' + step.outcome;
}

QStringList wordsOf(const RunRecord &run)
{
    QStringList list;
    for (const StepRecord &step : run.steps)
        list << QString::fromStdString(words(step));
    return list;
}

/// name -> bytes of all files but the lock.
std::map<std::string, std::string> snapshot(const fs::path &directory)
{
    std::map<std::string, std::string> bytes;
    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(directory)) {
        const std::string name = fs::relative(entry.path(), directory).string();
        if (entry.is_regular_file() && name != ".lock" && !name.ends_with(".torn"))
            bytes[name] = readAll(entry.path());
    }
    return bytes;
}

/// What has to be equal: not times, and not the ledger, which remembers what kills lost.
std::map<std::string, std::string> comparable(const fs::path &directory)
{
    static const QRegularExpression changing("\"?(time|reservation|seconds)\"?( = |:)(\"[^\"]*\"|[-0-9.e]+)");
    std::map<std::string, std::string> bytes = snapshot(directory);
    bytes.erase("ledger.jsonl");
    for (const char *name : {"steps.jsonl", "trials.jsonl", "transcript.jsonl", "ending.toml"}) {
        QString text = QString::fromStdString(bytes[name]);
        if (text.endsWith('}'))
            text += '\n'; // a last line that only lacks its end counts
        bytes[name] = text.replace(changing, "\\1").toStdString();
    }
    return bytes;
}

void restore(const fs::path &directory, const std::map<std::string, std::string> &bytes)
{
    fs::remove_all(directory);
    for (const auto &[name, text] : bytes) {
        fs::create_directories((directory / name).parent_path());
        writeAll(directory / name, text);
    }
}

} // namespace

class TestMaterialize : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        m_folder = std::make_unique<MemoryFolder>();
        fs::copy(fs::path(klineage::test::sourcePath()) / "tests/data/workspace", workspace(),
                 fs::copy_options::recursive);
        // A roundtrip elsewhere admits the card.
        std::ofstream(workspace() / "skills/stage-rows/verification.jsonl", std::ios::app)
            << R"({"time":"2026-01-02T03:06:00Z","target":"rows/pocl/K00","trial":"00000000000000b1","card_revision":2,)"
            << R"("status":"correct","expected_effect_observed":true,"held_out":true})" << '\n';
    }

    void eventfulRun()
    {
        FakeGate fake(judgeByCode);
        FunctionProvider provider = inOrder(eventfulAnswers);
        make(settings("klineage"));
        std::vector<std::string> heard;
        Watcher watcher;
        watcher.stepped = [&](const StepRecord &step) { heard.push_back(words(step)); };
        std::string streamed;
        watcher.replyText = [&](std::string_view text) { streamed += text; };
        const Result<Ending> ending = goOn(workspace(), directory(), provider, fake.function(), watcher);
        QVERIFY2(ending, ending ? "" : ending.error().message.c_str());
        QCOMPARE(ending->code, std::string("complete"));
        QVERIFY(ending->reason.find("nothing is left") != std::string::npos);
        const RunRecord run = *readRun(directory());
        QCOMPARE(wordsOf(run),
                 (QStringList{"root valid", "load planned", "complete failed", "repair valid",
                              "replan failed", "replan wrapper", "replan wrapper", "replan valid",
                              "replan failed", "repair done", "replan done", "audit audited"}));
        QCOMPARE(heard.size(), run.steps.size());
        QVERIFY(streamed.find("I change one thing") != std::string::npos);
        // T_ref is 1000 ns: the root at 2000, then 1000 and 400.
        const Summary summary = summarize(run);
        QCOMPARE(summary.reference.name, std::string("openblas"));
        QCOMPARE(summary.rootSpeedup, 0.5);
        QCOMPARE(summary.best, 2.5);
        QCOMPARE(summary.finalSpeedup, 2.5);
        QVERIFY(summary.audited && summary.improved);
        QCOMPARE(summary.valid, 2);
        QCOMPARE(summary.wrappers, 2);
        QCOMPARE(summary.questions, 10);
        QCOMPARE(summary.dollars, 0.02);
        QCOMPARE(summary.loadDollars, 0.002);
        double best = 0;
        for (const TrajectoryPoint &point : summary.trajectory) {
            QVERIFY(point.best >= best);
            best = point.best;
        }
        QCOMPARE(run.steps[4].candidate, std::string());
        QCOMPARE(run.steps[5].candidate, run.steps[3].candidate);
        QVERIFY(run.steps[5].trial.empty());
        QCOMPARE(run.steps[3].parent, run.steps[0].candidate);
        QCOMPARE(run.steps[7].parent, run.steps[3].candidate);
        QCOMPARE(run.steps[1].cards, std::vector<std::string>{"stage-rows"});
        QVERIFY(fs::exists(directory() / "cards.json"));
        QVERIFY(readAll(directory() / "cards.json").find("Stage a reused row") != std::string::npos);
        QVERIFY(trajectoryCsv(summary).starts_with(
            "step,dollars,best,speedup,action,outcome\n1,0,0.5,0.5,root,valid\n2,0.002,0.5,,load,planned\n"));
    }

    void policiesWithoutCards_data()
    {
        QTest::addColumn<QString>("policy");
        QTest::newRow("generated-only") << "generated-only";
        QTest::newRow("greedy") << "greedy";
    }

    void policiesWithoutCards()
    {
        QFETCH(QString, policy);
        FakeGate fake(judgeByCode);
        int question = 0;
        FunctionProvider provider([&](const llm::Request &request) -> std::string {
            if (request.system.find("stage-rows") != std::string::npos)
                return "A card!";
            return ++question < 4 ? fencedCandidate("v ns(" + std::to_string(1500 - 100 * question) + ")")
                                  : "DONE";
        });
        make(settings(policy.toStdString()));
        const Result<Ending> ending = goOn(workspace(), directory(), provider, fake.function());
        QVERIFY2(ending, ending ? "" : ending.error().message.c_str());
        const Summary summary = summarize(*readRun(directory()));
        QCOMPARE(summary.valid, 3);
        QCOMPARE(summary.best, 1000.0 / 1200);
        QVERIFY(!fs::exists(directory() / "cards.json"));
    }

    void endings_data()
    {
        QTest::addColumn<int>("steps");
        QTest::addColumn<double>("cap");
        QTest::addColumn<QString>("code");
        QTest::addColumn<int>("questions");
        QTest::newRow("step limit") << 2 << 10.0 << "step_limit" << 2;
        QTest::newRow("no money") << 0 << 0.0001 << "budget" << 0;
        QTest::newRow("money for some") << 0 << 0.19 << "budget" << -1;
        QTest::newRow("complete") << 0 << 10.0 << "complete" << 10;
    }

    void endings()
    {
        QFETCH(int, steps);
        QFETCH(double, cap);
        QFETCH(QString, code);
        QFETCH(int, questions);
        FakeGate fake(judgeByCode);
        FunctionProvider provider = inOrder(eventfulAnswers);
        Settings wanted = settings("klineage");
        wanted.maxSteps = steps;
        wanted.capDollars = cap;
        make(wanted);
        const Result<Ending> ending = goOn(workspace(), directory(), provider, fake.function());
        QVERIFY2(ending, ending ? "" : ending.error().message.c_str());
        QCOMPARE(QString::fromStdString(ending->code), code);
        const RunRecord run = *readRun(directory());
        if (questions >= 0)
            QCOMPARE(summarize(run).questions, questions);
        QVERIFY(summarize(run).dollars <= cap);
        QCOMPARE(run.state, std::string("finished"));
    }

    void stopsAndGoesOn()
    {
        FakeGate fake(judgeByCode);
        FunctionProvider provider = inOrder(eventfulAnswers);
        make(settings("klineage"));
        int runs = 0;
        Result<Ending> ending = Ending{"stopped", ""};
        std::size_t before = 0;
        // One step at a time, as `run step` does.
        for (; ending && ending->code == "stopped" && runs < 30; ++runs) {
            std::stop_source stop;
            Watcher watcher;
            watcher.stepped = [&](const StepRecord &step) {
                if (static_cast<std::size_t>(step.number) > before)
                    stop.request_stop();
            };
            ending = goOn(workspace(), directory(), provider, fake.function(), watcher, stop.get_token());
            const RunRecord run = *readRun(directory());
            QVERIFY(run.steps.size() > before || ending->code != "stopped");
            before = run.steps.size();
        }
        QVERIFY2(ending, ending ? "" : ending.error().message.c_str());
        QCOMPARE(ending->code, std::string("complete"));
        QVERIFY(runs > 8);
        QCOMPARE(provider.calls, 10); // nothing was asked, gated or paid twice
        QCOMPARE(fake.calls, 7);
        QCOMPARE(summarize(*readRun(directory())).dollars, 0.02);
    }

    void killedAnywhereItComesToTheSame()
    {
        FakeGate fake(judgeByCode);
        FunctionProvider provider = inOrder(eventfulAnswers);
        make(settings("klineage"));
        std::vector<std::map<std::string, std::string>> states;
        const auto look = [&] { states.push_back(snapshot(directory())); };
        provider.beforeAnswer = look;
        Watcher watcher;
        watcher.begins = [&](const std::string &) { look(); };
        watcher.spent = [&](const llm::Ledger &) { look(); };
        watcher.stepped = [&](const StepRecord &) { look(); };
        const GateFunction gate = [&](const gate::GateRequest &request, std::stop_token stop,
                                      const gate::ProgressCallback &progress) {
            look();
            Result<gate::Trial> trial = fake(request, stop, progress);
            look();
            return trial;
        };
        QVERIFY(goOn(workspace(), directory(), provider, gate, watcher));
        const auto expected = comparable(directory());
        QVERIFY(states.size() > 40);

        int kills = 0;
        const auto resume = [&](const std::map<std::string, std::string> &state) {
            restore(directory(), state);
            FakeGate again(judgeByCode);
            FunctionProvider author = inOrder(eventfulAnswers);
            const Result<Ending> ending = goOn(workspace(), directory(), author, again.function());
            QVERIFY2(ending, ending ? "" : (ending.error().message + ending.error().detail).c_str());
            const auto got = comparable(directory());
            for (const auto &[name, text] : expected)
                QVERIFY2(got.count(name) && got.at(name) == text, name.c_str());
            ++kills;
        };
        // Between two looks files grow one after the other, in this order.
        const QStringList order{"candidates/", "trials.jsonl", "transcript.jsonl", "ledger.jsonl",
                                "steps.jsonl"};
        const std::size_t stride = klineage::test::isSanitized() ? 3 : 1;
        for (std::size_t i = 1; i < states.size() && !QTest::currentTestFailed(); i += stride) {
            std::map<std::string, std::string> state = states[i - 1];
            for (const QString &kind : order) {
                for (const auto &[name, text] : states[i]) {
                    const auto old = state.find(name);
                    const std::string was = old == state.end() ? std::string() : old->second;
                    if (!QString::fromStdString(name).startsWith(kind) || was == text)
                        continue;
                    if (kind != order.front()) { // candidates are there whole, or not
                        const std::size_t grown = text.size() - was.size();
                        for (const std::size_t cut : {std::size_t{1}, grown / 2, grown - 1}) {
                            state[name] = text.substr(0, was.size() + cut);
                            resume(state);
                        }
                    }
                    state[name] = text;
                }
            }
            resume(states[i]);
        }
        QVERIFY(kills > 100 / static_cast<int>(stride));
    }

    void changedPromptIsAConflict()
    {
        FakeGate fake(judgeByCode);
        FunctionProvider provider = inOrder(eventfulAnswers);
        make(settings("klineage"));
        QVERIFY(goOn(workspace(), directory(), provider, fake.function()));
        // The workspace may change: the run has what it took from there.
        fs::remove_all(workspace() / "skills/stage-rows");
        writeAll(workspace() / "workloads/toy/lineages/pocl/K00.cl", candidateOf("another root"));
        QVERIFY(goOn(workspace(), directory(), provider, fake.function()));
        QCOMPARE(provider.calls, 10);
        // What it took may not.
        writeAll(directory() / "workload.toml", readAll(directory() / "workload.toml") + "# changed\n");
        const Result<Ending> ending = goOn(workspace(), directory(), provider, fake.function());
        QVERIFY(!ending);
        QCOMPARE(ending.error().code, ErrorCode::Conflict);
        QVERIFY2(ending.error().message.find("another prompt") != std::string::npos,
                 ending.error().message.c_str());
    }

    void rootThatFailsIsAnError()
    {
        FakeGate fake([](const std::string &) {
            return FakeVerdict{gate::VerdictStatus::Wrong, 0, "y[0] is wrong."};
        });
        FunctionProvider provider = inOrder({});
        make(settings("greedy"));
        const Result<Ending> ending = goOn(workspace(), directory(), provider, fake.function());
        QVERIFY(!ending && ending.error().message.find("y[0] is wrong") != std::string::npos);
        QCOMPARE(provider.calls, 0);
    }

    void bestThatDoesNotPassAgainGivesWay()
    {
        int asked = 0;
        FakeGate fake([&](const std::string &text) {
            if (text.find("racy") != std::string::npos && ++asked > 1)
                return FakeVerdict{gate::VerdictStatus::Wrong, 0, "It is wrong now."};
            return judgeByCode(text);
        });
        FunctionProvider provider =
            inOrder({fencedCandidate("sound ns(800)"), fencedCandidate("racy ns(100)")});
        make(settings("generated-only"));
        QVERIFY(goOn(workspace(), directory(), provider, fake.function()));
        const RunRecord run = *readRun(directory());
        const Summary summary = summarize(run);
        QCOMPARE(words(run.steps[run.steps.size() - 2]), std::string("audit failed"));
        QCOMPARE(words(run.steps.back()), std::string("audit audited"));
        QCOMPARE(summary.finalSpeedup, 1000.0 / 800);
        QCOMPARE(summary.best, 10.0); // as it was measured then
    }

    void withoutAReferenceTheRootIsOne()
    {
        FakeGate fake(judgeByCode, 0);
        FunctionProvider provider = inOrder({fencedCandidate("sound ns(500)")});
        make(settings("generated-only"));
        QVERIFY(goOn(workspace(), directory(), provider, fake.function()));
        const Summary summary = summarize(*readRun(directory()));
        QCOMPARE(summary.reference.name, std::string("root"));
        QCOMPARE(summary.rootSpeedup, 1.0);
        QCOMPARE(summary.finalSpeedup, 4.0);
    }

    void badSettingsAreSaid_data()
    {
        QTest::addColumn<QString>("key");
        QTest::addColumn<QString>("value");
        QTest::addColumn<QString>("expected");
        QTest::newRow("policy") << "policy"
                                << "klinage"
                                << "did you mean 'klineage'";
        QTest::newRow("option") << "option"
                                << "patient"
                                << "patience";
        QTest::newRow("subject") << "subject"
                                 << "toy/pocl/K09"
                                 << "K09";
        QTest::newRow("no subject") << "subject"
                                    << "nowhere.cl"
                                    << "nowhere.cl";
    }

    void badSettingsAreSaid()
    {
        QFETCH(QString, key);
        QFETCH(QString, value);
        QFETCH(QString, expected);
        Settings wanted = settings("klineage");
        if (key == "policy")
            wanted.policy = value.toStdString();
        else if (key == "option")
            wanted.options[value.toStdString()] = "1";
        else
            wanted.subject = value.toStdString();
        FakeGate fake(judgeByCode);
        FunctionProvider provider = inOrder({});
        make(wanted);
        const Result<Ending> ending = goOn(workspace(), directory(), provider, fake.function());
        QVERIFY(!ending);
        QVERIFY2(QString::fromStdString(ending.error().message).contains(expected),
                 ending.error().message.c_str());
        QCOMPARE(fake.calls, 0);
    }

    void cardsThatOthersMakeRoomForAreLoadedToo()
    {
        // It needs what stage-rows provides, so the root alone is not ready for it.
        const fs::path card = workspace() / "skills/reuse-rows";
        fs::copy(workspace() / "skills/stage-rows", card, fs::copy_options::recursive);
        std::string text = readAll(card / "card.toml");
        text.replace(text.find("stage-rows"), 10, "reuse-rows");
        text.replace(text.find("[[provides]]"), 12, "[[requires]]");
        writeAll(card / "card.toml", text);
        std::string system;
        FakeGate fake(judgeByCode);
        FunctionProvider provider([&](const llm::Request &request) -> std::string {
            system = request.system;
            return "DONE";
        });
        make(settings("klineage"));
        QVERIFY(goOn(workspace(), directory(), provider, fake.function()));
        const std::size_t first = system.find("## Card stage-rows");
        const std::size_t second = system.find("## Card reuse-rows");
        QVERIFY(first != std::string::npos && second != std::string::npos && first < second);
        QVERIFY(readAll(directory() / "cards.json").find("once the cards before it are applied: stage-rows")
                != std::string::npos);
    }

    /// What its code shows is left out, and what it lacks comes first: a file half way up a lineage is as good a target as a state there.
    void aFileIsATargetLikeAState()
    {
        const fs::path source = klineage::test::sourcePath();
        const Result<Workspace> shipped = openWorkspace(source);
        QVERIFY(shipped);
        Settings wanted = settings("greedy");
        wanted.workload = "heldout-mm-2048";
        wanted.surface = "cuda";
        wanted.platform = "sm90";
        wanted.options["held_out"] = "yes";
        Subject root;
        root.label = "workloads/heldout-mm-2048/half3.cu";
        root.text = readAll(source / root.label);
        const CardChoice choice = chooseCards(*shipped, wanted, root, 8);
        std::vector<std::string> names;
        for (const TakenCard &taken : choice.taken)
            names.push_back(taken.card.name);
        const auto has = [](const std::vector<std::string> &list, const char *name) {
            return std::find(list.begin(), list.end(), name) != list.end();
        };
        for (const char *there : {"stage-operand-tiles", "block-outputs-in-registers",
                                  "swizzled-16-byte-chunks", "cp-async-ring", "mma-sync-fragments"}) {
            QVERIFY2(!has(names, there), there);
            QVERIFY2(has(choice.present, there), there);
        }
        QCOMPARE(names.at(0), std::string("tma-slab-copies"));
        QVERIFY(has(names, "wgmma-from-shared"));
        const Result<CardChoice> again = parseCardChoice(writeCardChoice(choice), "cards.json");
        QVERIFY(again);
        QCOMPARE(again->present, choice.present);
    }

    void aFailedSuggestionComesBackAsChanges()
    {
        FakeGate fake(judgeByCode);
        std::vector<std::string> questions;
        FunctionProvider provider([&](const llm::Request &request) -> std::string {
            questions.push_back(request.messages.back().text);
            return questions.size() == 1 ? fencedCandidate("v ns(3000)") : "DONE";
        });
        Settings wanted = settings("greedy");
        wanted.options["prompt_bytes"] = "40000";
        make(wanted);
        QVERIFY(goOn(workspace(), directory(), provider, fake.function()));
        QCOMPARE(questions.size(), std::size_t{2});
        QVERIFY2(questions[1].find("```diff") != std::string::npos, questions[1].c_str());
        QVERIFY(questions[1].find("+v ns(3000)") != std::string::npos);
    }

    void heldOutCardsStayOut()
    {
        FakeGate fake(judgeByCode);
        FunctionProvider provider([](const llm::Request &request) -> std::string {
            return request.system.find("stage-rows") == std::string::npos ? "DONE: no cards" : "cards!";
        });
        Settings wanted = settings("klineage");
        wanted.options["held_out"] = "yes";
        make(wanted);
        const Result<Ending> ending = goOn(workspace(), directory(), provider, fake.function());
        QVERIFY2(ending, ending ? "" : ending.error().message.c_str());
        QVERIFY(ending->reason.find("no cards") != std::string::npos);
    }

private:
    [[nodiscard]] fs::path workspace() const { return m_folder->path() / "w"; }
    [[nodiscard]] fs::path directory() const { return workspace() / "runs/one"; }

    static Settings settings(const std::string &policy)
    {
        Settings settings;
        settings.id = "one";
        settings.workload = "toy";
        settings.surface = "opencl";
        settings.platform = "pocl";
        settings.policy = policy;
        settings.subject = "toy/pocl/K00";
        settings.provider = "exec";
        settings.model = "test-model";
        return settings;
    }
    void make(const Settings &settings) { QVERIFY(Journal::create(workspace() / "runs", settings)); }

    std::unique_ptr<MemoryFolder> m_folder;
};

QTEST_GUILESS_MAIN(TestMaterialize)
#include "tst_materialize.moc"
