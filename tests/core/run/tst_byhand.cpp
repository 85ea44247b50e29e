// SPDX-License-Identifier: GPL-3.0-or-later
// A lineage's steps derived again by files: prompts out, replies in, trials of a toy gate.
#include "core/lineage/rederived.h"
#include "core/run/rederive/byhand.h"
#include "core/run/rederive/handfiles.h"
#include "tests/core/run/lineageworld.h"

#include <QTest>

using namespace klineage;
using namespace klineage::run;
using namespace klineage::tests;

namespace {

class HandWorld : public LineageWorld
{
public:
    std::vector<HandRow> ask() const { return *askByHand({lineage(), exchange(), {}}); }
    HandJobs jobs() const { return *jobsByHand({lineage(), exchange(), {}}); }
    std::vector<HandRow> judge(const std::vector<gate::Trial> &trials) const
    {
        return *judgeByHand({lineage(), exchange(), {}}, trials);
    }
    /// A whole round: jobs, batch, import.
    std::vector<HandRow> round() { return judge(gated(jobs().jobs)); }
};

std::string outcomes(const std::vector<HandRow> &rows)
{
    std::string text;
    for (const HandRow &row : rows)
        text += (text.empty() ? "" : " ") + row.to + ':' + std::to_string(row.number) + ':' + row.outcome;
    return text;
}

const std::string first = "toy-pocl-K01";

} // namespace

class TestByHand : public QObject
{
    Q_OBJECT

private slots:
    void promptsHoldTheSimplerKernelAndTheIntentAlone()
    {
        const HandWorld world;
        QCOMPARE(outcomes(world.ask()), std::string("K01:0:asked K02:0:asked"));
        QCOMPARE(outcomes(world.ask()), std::string("K01:0:waiting K02:0:waiting"));
        const std::string prompt = world.read("exchange/" + first + ".prompt.md");
        QVERIFY(prompt.find(toyKernel({})) != std::string::npos);
        QVERIFY(prompt.find("category `opt_a`, locus `inner loop`") != std::string::npos);
        QVERIFY(prompt.find("What it is to do: Do a.\n") != std::string::npos);
        QVERIFY(prompt.find("int opt_a") == std::string::npos);
        QVERIFY(prompt.find("Two loops") == std::string::npos); // a comment of workload.toml
        // A sentence that holds code is no intent.
        QVERIFY(world.read("exchange/toy-pocl-K02.prompt.md").find("What it is to do") == std::string::npos);
    }

    void whatMatchesBecomesTheRederivation()
    {
        HandWorld world;
        world.ask();
        world.reply(first, {"opt_a"});
        const HandJobs jobs = world.jobs();
        QCOMPARE(outcomes(jobs.rows), std::string("K01:0:ready K02:0:waiting"));
        QCOMPARE(jobs.jobs.size(), std::size_t{2});
        QCOMPARE(outcomes(world.judge({})), std::string("K01:0:ungated K02:0:waiting"));
        const std::vector<gate::Trial> trials = world.gated(jobs.jobs);
        const std::vector<HandRow> rows = world.judge(trials);
        QCOMPARE(outcomes(rows), std::string("K01:0:accepted K02:0:waiting"));
        QCOMPARE(*rows[0].share, 1.0);

        const lineage::Lineage lineage = world.lineage();
        QCOMPARE(lineage.transitions[0].rederived, std::string("rederived/K01.cl"));
        QCOMPARE(lineage.transitions[0].rederivedTrial, trials[0].id);
        QCOMPARE(lineage.transitions[0].rederivedMatch, trials[1].id);
        QVERIFY(lineage.branches.empty());
        QCOMPARE(lineage::countRederived(lineage).recorded, std::size_t{1});
        const auto log = readHandLog(lineage.directory);
        QVERIFY(log && log->size() == 1);
        QCOMPARE(log->front().outcome, std::string("accepted"));
        QCOMPARE(log->front().prompt, files::sha256Hex(world.read("exchange/" + first + ".prompt.md")));
        QVERIFY(log->front().isStrongerText);

        // Once is enough.
        const auto before = filesBelow(world.root());
        QCOMPARE(outcomes(world.judge(trials)), std::string("K01:0:recorded K02:0:waiting"));
        QVERIFY(filesBelow(world.root()) == before);
    }

    void whatDoesNotMatchIsABranchAndAskedForAgain_data()
    {
        QTest::addColumn<QStringList>("lines");
        QTest::addColumn<QString>("outcome");
        QTest::addColumn<QString>("feedback");
        QTest::newRow("wrong") << QStringList{"opt_a", "wrong"} << "rejected"
                               << "Element y[0, 1] is 2, expected 1.";
        QTest::newRow("slower")
            << QStringList{"opt_a", "slow_4"} << "rejected"
            << "takes 1.040× as long as what the optimization reaches when it is done well.";
        QTest::newRow("faster") << QStringList{"opt_a", "fast_10"} << "stronger"
                                << "takes only 0.909× as long as what the optimization alone reaches";
    }

    void whatDoesNotMatchIsABranchAndAskedForAgain()
    {
        QFETCH(QStringList, lines);
        QFETCH(QString, outcome);
        QFETCH(QString, feedback);
        std::vector<std::string> all;
        for (const QString &line : lines)
            all.push_back(line.toStdString());
        HandWorld world;
        world.ask();
        world.reply(first, all);
        QCOMPARE(outcomes(world.round()), "K01:0:" + outcome.toStdString() + " K02:0:waiting");
        const std::string repair = world.read("exchange/" + first + ".repair1.prompt.md");
        QVERIFY(repair.starts_with(world.read("exchange/" + first + ".prompt.md")));
        QVERIFY(repair.find(world.read("exchange/" + first + ".reply.md")) != std::string::npos);
        QVERIFY2(repair.find(feedback.toStdString()) != std::string::npos, repair.c_str());
        const lineage::Lineage lineage = world.lineage();
        QVERIFY(lineage.transitions[0].rederived.empty());
        QVERIFY(!lineage.branches.empty());
        QCOMPARE(readHandLog(lineage.directory)->front().outcome, outcome.toStdString());
        QCOMPARE(outcomes(world.jobs().rows), std::string("K01:1:waiting K02:0:waiting"));
        world.reply(first + ".repair1", {"opt_a"});
        QCOMPARE(outcomes(world.round()), std::string("K01:1:accepted K02:0:waiting"));
    }

    void threeTriesAreAll()
    {
        HandWorld world;
        world.ask();
        const std::vector<std::string> stems{first, first + ".repair1", first + ".repair2"};
        for (std::size_t i = 0; i < stems.size(); ++i) {
            world.reply(stems[i], {"opt_a", "slow_1" + std::to_string(i)});
            QCOMPARE(outcomes(world.round()), "K01:" + std::to_string(i) + ":rejected K02:0:waiting");
        }
        QVERIFY(!world.has("exchange/" + first + ".repair3.prompt.md"));
        QCOMPARE(outcomes(world.jobs().rows), std::string("K01:2:rejected K02:0:waiting"));
        QVERIFY(world.jobs().jobs.empty());
    }

    void repliesThatCannotBeUsedSayWhy()
    {
        const HandWorld world;
        world.ask();
        world.write("exchange/" + first + ".reply.md", block(toyKernel({}, "// the same\n")));
        QCOMPARE(outcomes(world.jobs().rows), std::string("K01:0:failed K02:0:waiting"));
        const std::string problem = "exchange/" + first + ".problem.md";
        QVERIFY(world.read(problem).find("nothing was applied") != std::string::npos);
        world.write("exchange/" + first + ".reply.md", "I would rather not.");
        QCOMPARE(outcomes(world.jobs().rows), std::string("K01:0:failed K02:0:waiting"));
        QVERIFY(world.read(problem).find("has no fenced block") != std::string::npos);
        world.reply(first, {"opt_a"});
        QCOMPARE(outcomes(world.jobs().rows), std::string("K01:0:ready K02:0:waiting"));
        QVERIFY(!world.has(problem));
    }

    void anUnsteadyComparisonIsMadeAgain()
    {
        HandWorld world;
        world.ask();
        world.reply(first, {"opt_a"});
        world.gate.unsteadyMatches = 1;
        QCOMPARE(outcomes(world.round()), std::string("K01:0:unsteady K02:0:waiting"));
        const HandJobs again = world.jobs();
        QCOMPARE(again.jobs.size(), std::size_t{1});
        QVERIFY(again.jobs[0].id.ends_with("/again1"));
        QCOMPARE(outcomes(world.judge(world.gated(again.jobs))), std::string("K01:0:accepted K02:0:waiting"));
    }
};

QTEST_GUILESS_MAIN(TestByHand)
#include "tst_byhand.moc"
