// SPDX-License-Identifier: GPL-3.0-or-later
// The arms of an experiment: what an author gets of the library, how limited it is, the plan that is kept, and what is compared.
#include "core/policy/policy.h"
#include "core/run/experiment/contrast.h"
#include "core/run/experiment/preregistration.h"
#include "core/run/materialize/arm.h"
#include "core/talk/cardtext.h"
#include "tests/core/run/materializefixture.h"
#include "tests/paths.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <memory>

using namespace klineage;
using namespace klineage::run;
using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

skills::CardRecord recordOf(const std::string &name, const std::string &category, std::size_t bytes,
                            const std::string &language = "opencl")
{
    skills::CardRecord record;
    record.card.name = name;
    record.card.category = category;
    record.card.scope.languages = {language};
    record.card.carrierFile = "carrier.cl";
    record.card.risks = {{"It may overflow.", {}}};
    record.carrier = std::string(bytes, 'x');
    record.buildingBlock = "float block(float x);\n";
    record.card.buildingBlockFile = "building_block.cl";
    return record;
}

CellResult cellOf(const std::string &root, const std::string &policy, double gain)
{
    CellResult cell;
    cell.cell.root = root;
    cell.cell.policy = policy;
    cell.state = "finished";
    cell.summary.rootSpeedup = 0.5;
    cell.summary.improved = gain > 1;
    cell.summary.gain = {gain, gain, gain};
    cell.summary.questions = 3;
    cell.summary.trajectory = {{1, 0, 0.5, 0.5, 0, "root", "valid"},
                               {2, 0.1, 0.5, 0, 1, "load", "planned"},
                               {3, 0.2, 0.5 * gain, 0.5 * gain, 2, "complete", "valid"}};
    return cell;
}

Experiment planOf(const std::vector<std::string> &roots)
{
    Experiment plan;
    plan.roots = roots;
    plan.policies = {"klineage:none", "klineage:full"};
    for (const std::string &root : roots)
        plan.goals[root] = 2;
    return plan;
}

} // namespace

class TestArms : public QObject
{
    Q_OBJECT

private slots:
    void armsAreKnownByName()
    {
        QCOMPARE(*armOf({}), Arm::Full);
        QCOMPARE(*armOf({{"arm", "shuffled"}}), Arm::Shuffled);
        QCOMPARE(*armOf({{"arm", "no-risks"}}), Arm::NoRisks);
        const Result<Arm> unknown = armOf({{"arm", "shufled"}});
        QVERIFY(!unknown);
        QVERIFY(unknown.error().message.find("did you mean 'shuffled'") != std::string::npos);
        QVERIFY(!policy::usesCards("klineage", {{"arm", "none"}}));
        QVERIFY(policy::usesCards("klineage", {{"arm", "full"}}));
    }

    void anArmLeavesOutWhatItSays()
    {
        const skills::CardRecord record = recordOf("a", "tiling", 100);
        const std::string full = policy::cardText(shownIn(Arm::Full, record));
        QVERIFY(full.find("float block") != std::string::npos);
        QVERIFY(policy::cardText(shownIn(Arm::NoBlocks, record)).find("float block") == std::string::npos);
        QVERIFY(full.find("It may overflow.") != std::string::npos);
        QVERIFY(policy::cardText(shownIn(Arm::NoRisks, record)).find("It may overflow.")
                == std::string::npos);
    }

    void aPlaceboIsAsLongAndOfOtherKinds()
    {
        std::vector<skills::CardRecord> library = {recordOf("taken", "tiling", 4000),
                                                   recordOf("alike", "tiling", 4000),
                                                   recordOf("foreign", "layout", 4000, "cuda")};
        for (int i = 0; i < 20; ++i)
            library.push_back(recordOf("other-" + std::to_string(i), "layout", 500));
        const std::size_t bytes = policy::cardText(library[0]).size();
        const std::vector<std::string> drawn = placeboOf(library, {"taken"}, "opencl", bytes, 7);
        QCOMPARE(placeboOf(library, {"taken"}, "opencl", bytes, 7), drawn);
        QVERIFY(placeboOf(library, {"taken"}, "opencl", bytes, 8) != drawn);
        std::size_t sum = 0;
        for (const std::string &name : drawn) {
            QVERIFY2(name.starts_with("other-"), name.c_str());
            sum += policy::cardText(library.back()).size();
        }
        const double share = static_cast<double>(sum) / static_cast<double>(bytes);
        QVERIFY2(share > 0.85 && share < 1.15, std::to_string(share).c_str());
        QVERIFY(placeboOf(library, {"taken"}, "opencl", 0, 7).empty());
    }

    void aLimitedAuthorChangesSoManyLines()
    {
        const MemoryFolder folder;
        const fs::path workspace = folder.path() / "w";
        fs::copy(fs::path(klineage::test::sourcePath()) / "tests/data/workspace", workspace,
                 fs::copy_options::recursive);
        Settings settings;
        settings.id = "one";
        settings.workload = "toy";
        settings.surface = "opencl";
        settings.platform = "pocl";
        settings.policy = "klineage";
        settings.subject = "toy/pocl/K00";
        settings.provider = "exec";
        settings.model = "test-model";
        settings.maxSteps = 1;
        settings.options = {{"most_changed_lines", "3"}, {"arm", "none"}};
        QVERIFY(Journal::create(workspace / "runs", settings));
        FakeGate fake(judgeByCode);
        FunctionProvider provider([](const llm::Request &request) -> std::string {
            if (request.system.find("at most 3 lines") == std::string::npos)
                return "DONE: no limit was said";
            return fencedCandidate("one ns(500)\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten");
        });
        const fs::path directory = workspace / "runs/one";
        const Result<Ending> ending = goOn(workspace, directory, provider, fake.function());
        QVERIFY2(ending, ending ? "" : ending.error().message.c_str());
        QCOMPARE(fake.calls, 1); // the root's
        const Result<RunRecord> run = readRun(directory);
        QVERIFY(run);
        QCOMPARE(run->steps.back().outcome, std::string("failed"));
        QVERIFY2(run->steps.back().reason.find("at most 3 are allowed") != std::string::npos,
                 run->steps.back().reason.c_str());
    }

    void armsAndGoalsOfAPlan()
    {
        const std::string text =
            "roots = [\"toy/pocl/K00\"]\npolicies = [\"klineage:none\", \"klineage:full\"]\n"
            "seeds = [1]\nbudget_dollars = 1.0\nmax_steps = 4\nprovider = \"manual\"\n"
            "rule = \"Full against none.\"\n\n[[goal]]\nroot = \"toy/pocl/K00\"\ngain = 2.5\n";
        const Result<Experiment> plan = parseExperiment(text, "experiment.toml");
        QVERIFY2(plan, plan ? "" : plan.error().message.c_str());
        QCOMPARE(writeExperiment(*plan), text);
        QCOMPARE(plan->goals.at("toy/pocl/K00"), 2.5);
        for (const auto &[what, with, expected] :
             {std::tuple("klineage:full", "klineage:ful", "did you mean 'full'"),
              std::tuple("klineage:full", "klineage:", "there is no arm ''"),
              std::tuple("gain = 2.5", "gain = 1.0", "a factor above 1"),
              std::tuple("[[goal]]\nroot = \"toy/pocl/K00\"", "[[goal]]\nroot = \"toy/pocl/K01\"",
                         "none of the roots")}) {
            std::string bad = text;
            bad.replace(bad.find(what), std::string(what).size(), with);
            const Result<Experiment> refused = parseExperiment(bad, "experiment.toml");
            QVERIFY2(!refused, with);
            QVERIFY2(refused.error().message.find(expected) != std::string::npos,
                     refused.error().message.c_str());
        }
    }

    void thePlanIsKeptBeforeTheFirstRun()
    {
        const MemoryFolder folder;
        Experiment plan;
        plan.name = "arms";
        plan.directory = folder.path();
        plan.policies = {"klineage:none", "klineage:full", "greedy"};
        writeAll(folder.path() / "experiment.toml", "one");
        QVERIFY(!*readPreregistration(plan));
        const auto defaults = *defaultsOf(plan);
        QCOMPARE(defaults.size(), std::size_t{2});
        QCOMPARE(defaults.at("klineage"), policy::newOptions("klineage"));
        QVERIFY(preregister(plan));
        QVERIFY((*readPreregistration(plan)).has_value());
        QCOMPARE((*readPreregistration(plan))->defaults, defaults);
        QVERIFY(preregister(plan));
        writeAll(folder.path() / "experiment.toml", "two");
        const Status changed = preregister(plan);
        QVERIFY(!changed);
        QCOMPARE(changed.error().code, ErrorCode::Conflict);
        writeAll(folder.path() / "preregistered.toml", "sha256 = 3\n");
        QVERIFY(!preregister(plan));

        // A plan of before: its runs go on as they began.
        writeAll(folder.path() / "preregistered.toml", "sha256 = \"3\"\ntime = \"then\"\n");
        QVERIFY(defaultsOf(plan)->empty());

        // Runs of before: nothing is claimed about them.
        fs::remove(folder.path() / "preregistered.toml");
        fs::create_directories(folder.path() / "runs");
        QVERIFY(defaultsOf(plan)->empty());
        QVERIFY(preregister(plan));
        QVERIFY(!*readPreregistration(plan));
    }

    void rootsAreTheUnit()
    {
        const Experiment plan = planOf({"a/p/K0", "b/p/K0"});
        ExperimentResults results;
        results.cells = {cellOf("a/p/K0", "klineage:none", 1),   cellOf("a/p/K0", "klineage:none", 4),
                         cellOf("a/p/K0", "klineage:full", 4),   cellOf("a/p/K0", "klineage:full", 4),
                         cellOf("b/p/K0", "klineage:none", 1.5), cellOf("b/p/K0", "klineage:full", 1.5)};
        results.cells.push_back(cellOf("b/p/K0", "klineage:full", 9));
        results.cells.back().state = "stopped"; // not over: says nothing yet
        const std::vector<ArmResult> arms = armResults(plan, results);
        QCOMPARE(arms.size(), std::size_t{6});
        QCOMPARE(arms[0].runs, 2);
        QCOMPARE(arms[0].reached, 1);
        QCOMPARE(arms[0].firstRight, 2);
        QVERIFY(std::abs(arms[0].gain - 2) < 1e-12);
        QCOMPARE(arms[0].questions, 2.0); // the first step that was twice the root
        QCOMPARE(arms[5].runs, 3);
        const std::vector<Contrast> found = contrasts(plan, results);
        QCOMPARE(found.size(), std::size_t{1});
        QCOMPARE(found[0].roots, 2);
        QCOMPARE(found[0].points, 25.0); // 50 points on one root, none on the other
        QVERIFY(std::abs(found[0].ratio - std::sqrt(2)) < 1e-12);
        QCOMPARE(found[0].pPoints, 1.0); // two roots cannot tell
        QVERIFY(contrasts(Experiment(), results).empty());
    }

    void permutationsAreExact()
    {
        QCOMPARE(signPermutation({}), 1.0);
        QCOMPARE(signPermutation({0, 0}), 1.0);
        QCOMPARE(signPermutation({1}), 1.0);
        QCOMPARE(signPermutation(std::vector<double>(8, 25.0)), 2.0 / 256);
        QCOMPARE(signPermutation({3, 1, -1}), 6.0 / 8);
        QVERIFY(signPermutation(std::vector<double>(100, 1.0)) < 0.001);
    }

    void intervalsHoldTheMean()
    {
        const MeanInterval one = bootstrapMean({2});
        QCOMPARE(one.low, 2.0);
        const MeanInterval many = bootstrapMean({1, 2, 3, 4, 5, 6, 7, 8});
        QCOMPARE(many.mean, 4.5);
        QVERIFY(many.low > 2.5 && many.low < 3.5 && many.high > 5.5 && many.high < 6.5);
    }
};

QTEST_GUILESS_MAIN(TestArms)
#include "tst_arms.moc"
