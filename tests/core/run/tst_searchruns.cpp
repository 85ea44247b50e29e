// SPDX-License-Identifier: GPL-3.0-or-later
// A recorded run of each search, in tests/data/searchruns: made by the run engine in the toy workspace, with the simulated author and gate.
// It must come to its recorded steps from its replies and trials alone, and the same author must come to the same run again.
// With KLINEAGE_WRITE_RUNS=1 the records are written anew instead.
#include "core/run/drive/drive.h"
#include "core/run/drive/replaycheck.h"
#include "tests/core/policy/simulatedworld.h"
#include "tests/core/run/materializefixture.h"
#include "tests/paths.h"

#include <QTest>

#include <memory>

using namespace klineage;
using namespace klineage::run;
using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t worldSeed = 5;
constexpr std::uintmax_t mostBytes = 300'000;

struct Wanted {
    const char *policy;
    int questions;
    std::map<std::string, std::string> options;
    std::vector<const char *> actions; ///< that have to be in the record
};

const std::vector<Wanted> &wantedRuns()
{
    static const std::vector<Wanted> runs{
        {"kernel-smith", 16, {{"islands", "3"}, {"migration_interval", "3"}}, {"evolve"}},
        {"kernelpro", 16, {{"seeds_each", "1"}}, {"seed", "expand"}},
        {"adaexplore", 20, {{"cards", "yes"}, {"hypotheses", "yes"}}, {"small-step", "large-step"}},
        {"accelopt", 24, {{"plans", "2"}}, {"plan", "execute", "summarize"}},
    };
    return runs;
}

Settings settingsOf(const Wanted &wanted)
{
    Settings settings;
    settings.id = std::string("simulated-") + wanted.policy;
    settings.workload = "toy";
    settings.surface = "opencl";
    settings.platform = "pocl";
    settings.policy = wanted.policy;
    settings.subject = "simulated.cl";
    settings.provider = "exec";
    settings.model = "test-model";
    settings.maxSteps = wanted.questions;
    settings.options = wanted.options;
    return settings;
}

fs::path recordOf(const Wanted &wanted)
{
    return fs::path(klineage::test::sourcePath()) / "tests/data/searchruns" / settingsOf(wanted).id;
}

std::uintmax_t bytesIn(const fs::path &folder)
{
    std::uintmax_t bytes = 0;
    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(folder))
        bytes += entry.is_regular_file() ? entry.file_size() : 0;
    return bytes;
}

} // namespace

class TestSearchRuns : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        m_folder = std::make_unique<MemoryFolder>();
        fs::copy(fs::path(klineage::test::sourcePath()) / "tests/data/workspace", workspace(),
                 fs::copy_options::recursive);
        writeAll(workspace() / "simulated.cl", SimulatedWorld(worldSeed).root());
    }

    void recorded_data()
    {
        QTest::addColumn<int>("index");
        for (std::size_t i = 0; i < wantedRuns().size(); ++i)
            QTest::newRow(wantedRuns()[i].policy) << static_cast<int>(i);
    }

    void recorded()
    {
        QFETCH(int, index);
        const Wanted &wanted = wantedRuns()[static_cast<std::size_t>(index)];
        const fs::path record = recordOf(wanted);
        if (qEnvironmentVariableIsSet("KLINEAGE_WRITE_RUNS")) {
            drive(wanted);
            fs::remove_all(record);
            fs::create_directories(record.parent_path());
            fs::copy(made(wanted), record, fs::copy_options::recursive);
            fs::remove(record / ".lock");
        }
        QVERIFY(fs::exists(record / "run.toml"));
        QVERIFY2(bytesIn(record) < mostBytes, std::to_string(bytesIn(record)).c_str());
        const Result<ReplayCheck> check = checkReplay(workspace(), record);
        QVERIFY2(check, check ? "" : check.error().message.c_str());
        QVERIFY2(check->ok(), check->difference.c_str());
        QCOMPARE(check->steps, check->recorded);
        QVERIFY(check->steps > wanted.questions);

        const RunRecord run = *readRun(record);
        for (const char *action : wanted.actions) {
            QVERIFY2(std::any_of(run.steps.begin(), run.steps.end(),
                                 [action](const StepRecord &step) { return step.action == action; }),
                     action);
        }
        const bool showsCards = wanted.options.count("cards") > 0;
        QCOMPARE(fs::exists(record / "cards.json"), showsCards);
        QCOMPARE(run.steps[1].cards.empty(), !showsCards);
    }

    void theSameAgain_data() { recorded_data(); }

    void theSameAgain()
    {
        QFETCH(int, index);
        const Wanted &wanted = wantedRuns()[static_cast<std::size_t>(index)];
        drive(wanted);
        const RunRecord then = *readRun(recordOf(wanted));
        const RunRecord now = *readRun(made(wanted));
        QCOMPARE(now.ending.text(), then.ending.text());
        QCOMPARE(now.steps.size(), then.steps.size());
        for (std::size_t i = 0; i < now.steps.size(); ++i) {
            StepRecord step = now.steps[i];
            step.time = then.steps[i].time;
            QCOMPARE(writeStep(step), writeStep(then.steps[i]));
        }
    }

    /// What a candidate changes outside of the root's blocks is not gated.
    void onlyEvolveBlocksAreGated()
    {
        writeAll(workspace() / "simulated.cl",
                 candidateOf("// EVOLVE-BLOCK-START\nns(2000)\n// EVOLVE-BLOCK-END\nend();"));
        const Wanted wanted{"kernel-smith", 3, {{"islands", "1"}}, {}};
        FakeGate fake(judgeByCode);
        int question = 0;
        FunctionProvider provider([&](const llm::Request &) {
            return fencedCandidate(
                ++question == 1 ? std::string("// EVOLVE-BLOCK-START\nns(500)\n// EVOLVE-BLOCK-END\nother();")
                                : "// EVOLVE-BLOCK-START\nns(" + std::to_string(500 + question)
                                      + ")\n// EVOLVE-BLOCK-END\nend();");
        });
        Settings settings = settingsOf(wanted);
        QVERIFY(ensureRun(workspace() / "runs", settings));
        const llm::PriceTable prices = testPriceTable();
        const Result<Ending> ending =
            driveRun(made(wanted), {workspace(), provider, prices, fake.function(), {}, {}, 0});
        QVERIFY2(ending, ending ? "" : ending.error().message.c_str());
        const RunRecord run = *readRun(made(wanted));
        QCOMPARE(run.steps[1].outcome, std::string("failed"));
        QVERIFY2(run.steps[1].reason.find("outside of its evolve blocks") != std::string::npos,
                 run.steps[1].reason.c_str());
        QVERIFY(run.steps[1].trial.empty());
        QCOMPARE(run.steps[2].outcome, std::string("valid"));
    }

    /// An experiment gives its options to all of its policies; what no policy has is refused.
    void optionsOfOtherPoliciesAreLeftAlone()
    {
        for (const auto &[name, isKnown] : {std::pair{"islands", true}, {"island", false}}) {
            Settings settings = settingsOf(wantedRuns()[3]);
            settings.id += name;
            settings.maxSteps = 1;
            settings.options[name] = "3";
            QVERIFY(ensureRun(workspace() / "runs", settings));
            QCOMPARE(drive(settings).has_value(), isKnown);
        }
    }

private:
    [[nodiscard]] fs::path workspace() const { return m_folder->path() / "workspace"; }
    [[nodiscard]] fs::path made(const Wanted &wanted) const
    {
        return workspace() / "runs" / settingsOf(wanted).id;
    }

    void drive(const Wanted &wanted)
    {
        QVERIFY(ensureRun(workspace() / "runs", settingsOf(wanted)));
        const Result<Ending> ending = drive(settingsOf(wanted));
        QVERIFY2(ending, ending ? "" : (ending.error().message + ending.error().detail).c_str());
    }

    Result<Ending> drive(const Settings &settings)
    {
        const SimulatedWorld world(worldSeed);
        FunctionProvider provider([&world](const llm::Request &request) { return world.answer(request); });
        const GateFunction gate = [&world](const gate::GateRequest &request, std::stop_token,
                                           const gate::ProgressCallback &) -> Result<gate::Trial> {
            return world.gate(request.candidateText, request.parentText);
        };
        const llm::PriceTable prices = testPriceTable();
        return driveRun(workspace() / "runs" / settings.id, {workspace(), provider, prices, gate, {}, {}, 0});
    }

    std::unique_ptr<MemoryFolder> m_folder;
};

QTEST_GUILESS_MAIN(TestSearchRuns)
#include "tst_searchruns.moc"
