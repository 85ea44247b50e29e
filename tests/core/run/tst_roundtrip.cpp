// SPDX-License-Identifier: GPL-3.0-or-later
// A whole lineage come to again by files: prompts out, replies in, trials of a toy gate.
#include "core/run/roundtrip/roundtrip.h"
#include "core/run/roundtrip/roundtriprecord.h"
#include "core/workspace/workspace.h"
#include "tests/core/run/lineageworld.h"

#include <QTest>

using namespace klineage;
using namespace klineage::run;
using namespace klineage::tests;

namespace {

class RoundtripWorld : public LineageWorld
{
public:
    explicit RoundtripWorld(std::vector<std::string> arms = {"none", "full"}, int trials = 2)
        : m_arms(std::move(arms))
        , m_trials(trials)
    {}

private:
    template <typename Verb>
    auto with(Verb &&verb) const
    {
        const Result<Workspace> workspace = openWorkspace(root());
        if (!workspace)
            qFatal("no workspace");
        const lineage::Lineage *lineage = workspace->findLineage("toy/pocl");
        return verb(RoundtripWork{*workspace, *lineage, exchange(), m_arms, m_trials});
    }

public:
    std::vector<RoundtripRow> ask() const { return *with(askRoundtrips); }
    RoundtripJobs jobs() const
    {
        return *with([](const RoundtripWork &work) { return roundtripJobs(work); });
    }
    std::vector<RoundtripRow> judge(const std::vector<gate::Trial> &trials) const
    {
        return *with([&](const RoundtripWork &work) { return judgeRoundtrips(work, trials); });
    }
    /// A whole round: jobs, batch, import.
    std::vector<RoundtripRow> round() { return judge(gated(jobs().jobs)); }
    [[nodiscard]] std::vector<RoundtripLine> lines() const { return *readRoundtrips(root() / folder); }

private:
    std::vector<std::string> m_arms;
    int m_trials;
};

std::string outcomes(const std::vector<RoundtripRow> &rows)
{
    std::string text;
    for (const RoundtripRow &row : rows)
        text += (text.empty() ? "" : " ") + row.arm + std::to_string(row.trial) + ':'
                + std::to_string(row.number) + ':' + row.outcome;
    return text;
}

} // namespace

class TestRoundtrip : public QObject
{
    Q_OBJECT

private slots:
    void promptsHoldTheFirstStateAndTheGoalAlone()
    {
        const RoundtripWorld world;
        QCOMPARE(outcomes(world.ask()),
                 std::string("none1:0:asked none2:0:asked full1:0:asked full2:0:asked"));
        QCOMPARE(outcomes(world.ask()),
                 std::string("none1:0:waiting none2:0:waiting full1:0:waiting full2:0:waiting"));
        const std::string prompt = world.read("exchange/toy-pocl-none-t1.prompt.md");
        QVERIFY(prompt.find(toyKernel({})) != std::string::npos);
        QVERIFY(prompt.find("takes 16.000 µs") != std::string::npos);
        QVERIFY(prompt.find("in at most 17.778 µs") != std::string::npos);
        QVERIFY(prompt.find("int opt_a") == std::string::npos);
        QCOMPARE(world.read("exchange/toy-pocl-none-t2.prompt.md"), prompt);
    }

    void aReplyIsJudgedOnceByTheLastState()
    {
        RoundtripWorld world({"none"}, 2);
        world.ask();
        world.reply("toy-pocl-none-t1", {"opt_a", "opt_b", "slow_5"});
        world.reply("toy-pocl-none-t2", {"opt_a"});
        QCOMPARE(outcomes(world.judge({})), std::string("none1:0:ungated none2:0:ungated"));
        const auto rows = world.round();
        QCOMPARE(outcomes(rows), std::string("none1:0:recovered none2:0:short"));
        QVERIFY(std::abs(*rows[0].share - 1 / 1.05) < 1e-3);
        QVERIFY(std::abs(*rows[1].share - 0.5) < 1e-3);
        // What is recovered is over; what is not gets one further try, with the verdict.
        QCOMPARE(outcomes(world.round()), std::string("none1:0:recovered none2:1:waiting"));
        const std::string again = world.read("exchange/toy-pocl-none-t2.repair1.prompt.md");
        QVERIFY(again.find("This is the last try") != std::string::npos);
        world.reply("toy-pocl-none-t2.repair1", {"opt_a", "opt_b"});
        QCOMPARE(outcomes(world.round()), std::string("none1:0:recovered none2:1:recovered"));
        QCOMPARE(outcomes(world.round()), std::string("none1:0:recovered none2:1:recovered"));
        QCOMPARE(world.lines().size(), std::size_t(3));
        QVERIFY(world.has(world.folder + "roundtrip/none-t2.again1.cl"));
        const auto counts = countRoundtrips(world.lines());
        QCOMPARE(counts.size(), std::size_t(1));
        QCOMPARE(counts[0].trials, 2);
        QCOMPARE(counts[0].correct, 2);
        QCOMPARE(counts[0].recovered, 2);
        QCOMPARE(counts[0].first, 1);
    }

    void whatIsWrongOrNoCandidateIsKeptToo()
    {
        RoundtripWorld world({"none"}, 2);
        world.ask();
        world.reply("toy-pocl-none-t1", {"opt_a", "wrong"});
        world.write("exchange/toy-pocl-none-t2.reply.md", "I cannot.\n");
        QCOMPARE(outcomes(world.round()), std::string("none1:0:wrong none2:0:failed"));
        QCOMPARE(outcomes(world.ask()), std::string("none1:1:waiting none2:1:waiting"));
        const auto counts = countRoundtrips(world.lines());
        QCOMPARE(counts[0].trials, 2);
        QCOMPARE(counts[0].correct, 0);
        QCOMPARE(counts[0].medianShare, 0.0);
    }

    void aLogThatIsDamagedIsAnErrorWithItsLine()
    {
        const RoundtripWorld world;
        world.write(world.folder + "roundtrip/log.jsonl", "{\"arm\":\"none\"}\n");
        const auto lines = readRoundtrips(world.root() / world.folder);
        QVERIFY(!lines);
        QVERIFY(lines.error().message.find("log.jsonl:1") != std::string::npos);
    }

    void theRecordHasEachTryWithItsTrial()
    {
        RoundtripWorld world({"none"}, 3);
        const std::filesystem::path lineage = world.root() / world.folder;
        QVERIFY(readRoundtripRecord(lineage)->arms.empty());
        world.ask();
        world.reply("toy-pocl-none-t1", {"opt_a"});
        world.reply("toy-pocl-none-t3", {"opt_a", "wrong"});
        world.round();
        const std::string before = roundtripStamp(lineage);
        world.reply("toy-pocl-none-t1.repair1", {"opt_a", "opt_b"});
        world.round();
        QVERIFY(roundtripStamp(lineage) != before);
        const auto record = readRoundtripRecord(lineage);
        QVERIFY(record);
        QCOMPARE(record->arms.size(), std::size_t(1));
        const RoundtripArm &arm = record->arms.front();
        QCOMPARE(arm.trials.size(), std::size_t(3));
        QCOMPARE(arm.trials[0].tries.size(), std::size_t(2));
        for (const RoundtripTry &made : arm.trials[0].tries) {
            QVERIFY(!made.device.empty() && !made.time.empty());
            QVERIFY(made.speedup);
            QCOMPARE(made.speedup->value, *made.line.share);
            QVERIFY(made.speedup->low <= made.speedup->value && made.speedup->value <= made.speedup->high);
            QCOMPARE(made.line.provider, std::string("manual"));
        }
        QCOMPARE(arm.trials[1].trial, 2); // was asked, and nobody replied
        QVERIFY(arm.trials[1].tries.empty());
        QVERIFY(!arm.trials[2].tries.front().speedup);
        QVERIFY(!arm.trials[2].tries.front().device.empty());
        QCOMPARE(arm.count.trials, 2);
        QCOMPARE(arm.recovered.value, 0.5);
        QVERIFY(arm.recovered.low > 0 && arm.recovered.high < 1);
        QCOMPARE(arm.first.value, 0.0);
        // A trial that cannot be read leaves its reply without an interval, and is told.
        world.write(world.folder + "roundtrip/trials.jsonl", "{}\n");
        const auto bare = readRoundtripRecord(lineage);
        QVERIFY(bare);
        QCOMPARE(bare->notices.size(), std::size_t(1));
        QVERIFY(!bare->arms.front().trials[0].tries.front().speedup);
        QVERIFY(bare->arms.front().trials[0].tries.front().line.share);
    }

    void armsStandInOneOrder()
    {
        const RoundtripWorld world;
        const auto line = [](const char *arm, int trial) {
            return std::string("{\"arm\":\"") + arm + "\",\"trial\":" + std::to_string(trial)
                   + ",\"try\":0,\"provider\":\"exec\",\"prompt\":\"p\",\"reply\":\"r\",\"outcome\":\"failed\"}\n";
        };
        world.write(world.folder + "roundtrip/log.jsonl",
                    line("index", 1) + line("none", 1000) + line("full", 1) + line("no-blocks", 2));
        const auto record = readRoundtripRecord(world.root() / world.folder);
        QVERIFY(record);
        std::string arms;
        for (const RoundtripArm &arm : record->arms)
            arms += arm.arm + ' ';
        QCOMPARE(arms, std::string("full no-blocks none index "));
        QCOMPARE(record->arms[0].trials[0].tries[0].line.provider, std::string("exec"));
        QCOMPARE(record->arms[1].trials.size(), std::size_t(2));
        QVERIFY(record->arms[2].trials.size() <= 100); // of a log that says so, not a thousand
        QCOMPARE(record->arms[2].trials.back().trial, 1000);
    }

    void anUnknownArmIsRefused()
    {
        const RoundtripWorld world;
        const Result<Workspace> workspace = openWorkspace(world.root());
        const lineage::Lineage *lineage = workspace->findLineage("toy/pocl");
        QVERIFY(!askRoundtrips({*workspace, *lineage, world.exchange(), {"nothing"}, 1}));
    }
};

QTEST_GUILESS_MAIN(TestRoundtrip)
#include "tst_roundtrip.moc"
