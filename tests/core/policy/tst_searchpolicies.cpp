// SPDX-License-Identifier: GPL-3.0-or-later
// Each search at work in simulated worlds: that its mechanism is there, and that no answer breaks it.
#include "core/policy/accelopt/accelopt.h"
#include "core/policy/adaexplore/adaexplore.h"
#include "core/policy/kernelpro/guidance.h"
#include "core/policy/kernelpro/kernelpro.h"
#include "core/policy/kernelsmith/kernelsmith.h"
#include "core/talk/prompt.h"
#include "core/trial/metricnames.h"
#include "tests/core/policy/searchlaws.h"
#include "tests/core/policy/simulatedworld.h"
#include "tests/core/policy/study.h"
#include "tests/paths.h"

#include <QTest>

#include <cmath>
#include <set>

using namespace klineage;
using namespace klineage::policy;
using namespace klineage::tests;

namespace {

using Options = std::map<std::string, std::string>;

/// A policy that was played in a world.
template <typename Search>
struct Played {
    std::unique_ptr<Policy> policy;
    SimulatedRun run;

    Played(const char *name, std::uint64_t seed, int questions, Options options = {})
        : policy(std::move(*makePolicy(name, problemOf(seed, std::move(options)))))
    {
        run = play(*policy, SimulatedWorld(seed), questions);
    }
    [[nodiscard]] const Search &search() const { return dynamic_cast<const Search &>(*policy); }
    [[nodiscard]] int traced(const std::string &what) const
    {
        const auto &trace = search().trace();
        return static_cast<int>(std::count_if(trace.begin(), trace.end(), [&](const std::string &line) {
            return line.find(what) != std::string::npos;
        }));
    }
    [[nodiscard]] int asked(const std::string &what) const
    {
        return static_cast<int>(
            std::count_if(run.prompts.begin(), run.prompts.end(),
                          [&](const std::string &one) { return one.find(what) != std::string::npos; }));
    }
};

} // namespace

class TestSearchPolicies : public QObject
{
    Q_OBJECT

private slots:
    void theStudyCountsEveryRun()
    {
        const auto rows = studyPolicies({"greedy", "kernelpro"}, 4, 20);
        QCOMPARE(rows.size(), std::size_t{2});
        for (const StudyRow &row : rows) {
            QCOMPARE(row.runs, 4);
            QVERIFY(row.medianGain > 1 && row.medianShare <= 1 && row.nearOptimum <= row.reachedNinety);
        }
        QVERIFY(studyTable(rows).find("| kernelpro | 4 |") != std::string::npos);
    }

    // Kernel-Smith

    void islandsFillNichesAndMigrate()
    {
        const Played<KernelSmith> smith("kernel-smith", 4, 120,
                                        {{"evolution_rounds", "120"}, {"migration_interval", "6"}});
        const KernelSmith &search = smith.search();
        QVERIFY(smith.run.end.find("120 rounds") != std::string::npos || smith.run.questions == 120);
        std::set<std::vector<int>> different;
        for (int island = 0; island < 5; ++island) {
            const Grid grid = search.grid(island);
            QVERIFY2(grid.elites().size() >= 4, std::to_string(grid.elites().size()).c_str());
            std::set<int> scores;
            std::set<int> complexities;
            for (const auto &[cell, id] : grid.elites()) {
                complexities.insert(cell.first);
                scores.insert(cell.second);
            }
            QVERIFY(scores.size() > 1 && complexities.size() > 1);
            different.insert(search.members(island));
            const auto isForeign = [&](int id) {
                return id > 0 && search.population().at(id).island != island;
            };
            QVERIFY(std::any_of(search.members(island).begin(), search.members(island).end(), isForeign));
        }
        QCOMPARE(different.size(), std::size_t{5});
        QVERIFY(search.migrations() > 10);
        QCOMPARE(smith.traced("migration: "), search.migrations());
        for (const char *how : {", explore,", ", exploit,", ", by score,"})
            QVERIFY2(smith.traced(how) > 0, how);
        QVERIFY(smith.asked("The best programs, best first:") > 60);
        QVERIFY(smith.asked("Programs of another kind:") > 20);
        QVERIFY(smith.asked("The last attempt on this island failed") > 5);
        QVERIFY(smith.run.best > 1.5);
    }

    void fortyRoundsDoNotMigrateUnlessTold()
    {
        const Played<KernelSmith> smith("kernel-smith", 4, 100);
        QCOMPARE(smith.run.questions, 40);
        QCOMPARE(smith.search().migrations(), 0);
    }

    void nearTiesKeepTheOlder()
    {
        Population population;
        Tried tried;
        tried.text = "/*klineage\n*/\na;\n";
        tried.trial.verdict.status = gate::VerdictStatus::Correct;
        population.addRoot(tried);
        const auto add = [&](double speedup) {
            tried.trial.verdict.comparisons = {
                {"parent", "", {speedup, speedup, speedup}, 1, gate::Change::Gain}};
            return population.add(tried, 0, 0, "x");
        };
        const int older = add(2);
        const int near = add(2.01);
        const int better = add(2.1);
        const std::vector<int> some{0, older, near};
        QVERIFY(Grid::of(population, some, some, 2, 0.01).isElite(older));
        QVERIFY(!Grid::of(population, some, some, 2, 0.01).isElite(near));
        QVERIFY(Grid::of(population, some, some, 2, 0).isElite(near));
        const std::vector<int> all{0, older, near, better};
        QVERIFY(Grid::of(population, all, all, 2, 0.01).isElite(better));
    }

    void onlyEvolveBlocksChange()
    {
        const SimulatedWorld world(1);
        Tried root;
        root.text = world.root() + "// EVOLVE-BLOCK-START\nx;\n// EVOLVE-BLOCK-END\n";
        root.trial = world.gate(root.text, {});
        const auto policy = *makePolicy("kernel-smith", problemOf(1));
        QVERIFY(policy->begin(root));
        const Result<Move> move = policy->next();
        QVERIFY(std::get<Ask>(*move).request.messages[0].text.find("EVOLVE-BLOCK-START")
                != std::string::npos);
        QVERIFY(policy->problemOf(root.text).empty());
        QVERIFY(!policy->problemOf(world.root()).empty());
    }

    // KernelPro

    void seedsThenATreeThatWidens()
    {
        const Played<KernelPro> pro("kernelpro", 2, 75);
        QCOMPARE(pro.run.actions.at("seed"), 15);
        QVERIFY(pro.run.actions.at("expand") >= 30);
        const Tree &tree = pro.search().tree();
        QCOMPARE(brokenLaw(*pro.policy), QString());
        int deepest = 0;
        int withMany = 0;
        for (int node = 1; node < tree.size(); ++node) {
            int depth = 0;
            for (int above = node; above > 0; above = tree.at(above).parent)
                ++depth;
            deepest = std::max(deepest, depth);
            withMany += tree.at(node).children.size() > 1 ? 1 : 0;
        }
        QVERIFY(deepest >= 3);
        QVERIFY(withMany >= 3);
        QVERIFY(pro.traced("dead end: ") > 0);
        QVERIFY(pro.asked("What the search has learnt so far") > 20);
        QVERIFY(pro.asked("What was already tried on it:") > 5);
        QVERIFY(pro.asked("This program failed.") > 0);
    }

    void deadEndsGetNoMoreChildren()
    {
        const auto policy = *makePolicy("kernelpro", problemOf(11, {{"iterations", "200"}}));
        const SimulatedWorld world(11);
        static_cast<void>(play(*policy, world, 300));
        const auto &trace = dynamic_cast<const KernelPro &>(*policy).trace();
        std::set<std::string> dead;
        int found = 0;
        for (const std::string &line : trace) {
            if (line.starts_with("every branch"))
                dead.clear(); // each is looked at once more
            if (line.starts_with("dead end: node "))
                dead.insert(line.substr(15, line.find(' ', 15) - 15)), ++found;
            if (line.starts_with("iteration ")) {
                const std::size_t at = line.find("node ") + 5;
                QVERIFY2(dead.count(line.substr(at, line.find(',', at) - at)) == 0, line.c_str());
            }
        }
        QVERIFY(found > 10);
    }

    void failedParentsBranchLess()
    {
        const Played<KernelPro> pro("kernelpro", 9, 75);
        const KernelPro &search = pro.search();
        int compared = 0;
        for (int node = 1; node < search.tree().size(); ++node) {
            const Tree::Node &one = search.tree().at(node);
            if (one.program < 0)
                continue;
            const bool isCorrect = search.population().at(one.program).isCorrect();
            QCOMPARE(search.mostChildren(node),
                     static_cast<int>(std::ceil((isCorrect ? 2 : 1) * std::sqrt(one.visits))));
            compared += isCorrect ? 0 : 1;
        }
        QVERIFY(compared > 0);
    }

    void temperaturesInSteps()
    {
        const auto policy = *makePolicy("kernelpro", problemOf(1, {{"hottest", "1"}}));
        const SimulatedWorld world(1);
        Tried root;
        root.text = world.root();
        root.trial = world.gate(root.text, {});
        QVERIFY(policy->begin(root));
        QCOMPARE(policy->ahead(), std::size_t{15});
        std::map<double, int> temperatures;
        for (int i = 0; i < 15; ++i)
            ++temperatures[*std::get<Ask>(*policy->next()).request.temperature];
        QCOMPARE(temperatures.size(), std::size_t{5});
        QCOMPARE(temperatures.begin()->first, 0.2);
        QCOMPARE(temperatures.begin()->second, 3);
        QCOMPARE(temperatures.rbegin()->first, 1.0);
    }

    void theProfileIsInThePrompt()
    {
        gate::Trial trial;
        trial.surface = kernel::surfaceFromString("cuda").value();
        trial.verdict.status = gate::VerdictStatus::Correct;
        trial.latencyNs = {1e6, 1e6, 1e6};
        trial.achievedBytes = 1e12;
        trial.achievedFlops = 1e12;
        trial.environment.facts = {
            {"roofline_bandwidth", "4e12"}, {"roofline_flops_fp32", "6e13"}, {"roofline_precision", "fp32"}};
        const auto add = [&](const char *name, double value) {
            trial.metrics.push_back({name, value, "", "k"});
        };
        add(gate::metric::registers, 200);
        add(gate::metric::theoreticalOccupancy, 25);
        add(gate::metric::sectorsPerLoad, 20);
        add(gate::metric::issueActive, 90);
        const std::string text = guidanceText(trial);
        QVERIFY2(text.starts_with("Bound by: memory"), text.c_str());
        for (const char *part : {"- occupancy of k", "- registers of k", "- coalescing of k", "threshold 96"})
            QVERIFY2(text.find(part) != std::string::npos, part);
        // Not a tool for what memory bounds.
        QVERIFY2(text.find("- instruction-issue") == std::string::npos, text.c_str());

        const auto policy = *makePolicy("kernelpro", problemOf(1));
        Tried root;
        root.text = SimulatedWorld(1).root();
        root.trial = trial;
        QVERIFY(policy->begin(root));
        const Result<Move> move = policy->next();
        QVERIFY(std::get<Ask>(*move).request.messages[0].text.find("- coalescing of k") != std::string::npos);
        QVERIFY(guidanceText(gate::Trial()).empty());
    }

    // AdaExplore

    void rulesComeFromRepeatedFailures()
    {
        FailureRules rules;
        gate::Verdict verdict;
        verdict.status = gate::VerdictStatus::CompileError;
        verdict.log = "a.cl:3:1: warning: x\na.cl:12:3: error: use of undeclared identifier 'x17'\n";
        QCOMPARE(rules.learn(verdict)->count, 1);
        verdict.log = "a.cl:40:9: error: use of undeclared identifier 'y'\n";
        QCOMPARE(rules.learn(verdict)->count, 2);
        QVERIFY(rules.known(3, 9).empty());
        verdict.status = gate::VerdictStatus::Crash;
        verdict.log.clear();
        verdict.message = "It crashed.";
        QCOMPARE(rules.learn(verdict)->count, 1);
        verdict.status = gate::VerdictStatus::Wrong;
        QVERIFY(!rules.learn(verdict));
        verdict.status = gate::VerdictStatus::CompileError;
        verdict.log = "error: use of undeclared identifier 'z'\n";
        QCOMPARE(rules.learn(verdict)->count, 3);
        QCOMPARE(rules.known(3, 9).size(), std::size_t{1});
        QVERIFY(rules.known(3, 9)[0].find("'x17'") != std::string::npos);
        QCOMPARE(rules.all().size(), std::size_t{2});
    }

    void rulesAreReusedAndBothStepsOccur()
    {
        int withRules = 0;
        for (std::uint64_t seed = 1; seed <= 6; ++seed) {
            const Played<AdaExplore> ada("adaexplore", seed, 50);
            QVERIFY(ada.run.actions.at("small-step") > 5);
            QVERIFY(ada.run.actions.at("large-step") > 5);
            const int prompts = ada.asked("Rules from failures that happened again");
            const auto &rules = ada.search().rules().all();
            const bool isKnown =
                std::any_of(rules.begin(), rules.end(), [](const auto &rule) { return rule.count >= 3; });
            QVERIFY(isKnown || prompts == 0);
            withRules += prompts;
            // Small steps on a node stop at the limit; the root has none.
            const Tree &tree = ada.search().tree();
            for (int node = 0; node < tree.size(); ++node) {
                int small = 0;
                for (const int child : tree.at(node).children)
                    small += tree.at(child).kind == AdaExplore::Small ? 1 : 0;
                QVERIFY(small <= (node == 0 ? 0 : 2));
            }
        }
        QVERIFY(withRules > 20);
    }

    void rewardsAreAsPublished()
    {
        Program program;
        QCOMPARE(AdaExplore::rewardOf(nullptr), 0.0);
        program.tried.trial.verdict.status = gate::VerdictStatus::CompileError;
        QCOMPARE(AdaExplore::rewardOf(&program), 0.0);
        program.tried.trial.verdict.status = gate::VerdictStatus::Wrong;
        QCOMPARE(AdaExplore::rewardOf(&program), 0.05);
        program.tried.trial.verdict.status = gate::VerdictStatus::Correct;
        for (const auto &[score, reward] :
             {std::pair{0.01, 0.4}, {0.1, 0.4}, {10.0, 1.6}, {100.0, 1.6}, {5.05, 1.0}}) {
            program.score = score;
            QVERIFY(std::abs(AdaExplore::rewardOf(&program) - reward) < 1e-12);
        }
    }

    void largeStepsSeeThePool()
    {
        const Played<AdaExplore> ada("adaexplore", 3, 50);
        int many = 0;
        for (const std::string &prompt : ada.run.prompts) {
            int programs = 0;
            for (std::size_t at = prompt.find("- Program "); at != std::string::npos;
                 at = prompt.find("- Program ", at + 1))
                ++programs;
            QVERIFY(programs <= 5);
            QVERIFY(prompt.starts_with("large-step") || programs == 0);
            many += programs >= 3 ? 1 : 0;
        }
        QVERIFY(many > 5);
    }

    // AccelOpt

    void beamMemoryAndExperience()
    {
        // In these worlds nothing loses more than a tenth.
        const Played<AccelOpt> opt("accelopt", 6, 300, {{"memory", "6"}, {"negative", "1.03"}});
        const AccelOpt &search = opt.search();
        QVERIFY(search.iteration() >= 5);
        QCOMPARE(brokenLaw(*opt.policy), QString());
        QCOMPARE(search.beam().size(), std::size_t{2});
        QCOMPARE(search.memory().items().size(), std::size_t{6}); // full, and no more
        for (const char *action : {"plan", "execute", "fix", "summarize"})
            QVERIFY2(opt.run.actions.at(action) > 3, action);
        // The first iteration: 4 plans, 2 attempts at each that could be read.
        QVERIFY(opt.run.prompts[3].starts_with("plan|Iteration 1 of 16: plan 4 of 4 for the root"));
        QVERIFY(opt.run.prompts[4].starts_with("execute|Attempt 1 of 2 at plan 1"));
        QVERIFY(opt.asked("- Worked, ") > 5);
        QVERIFY(opt.asked("- Did harm, ") > 0);
        QVERIFY(opt.traced("beam after iteration") == search.iteration());
        QVERIFY(opt.run.best > 2);
    }

    void onlyClearChangesTeach()
    {
        const ExperienceBounds bounds;
        QVERIFY(bounds.isPositive(1.04) && !bounds.isPositive(1.039));
        QVERIFY(bounds.isNegative(0.86) && !bounds.isNegative(0.87));
        std::vector<Experience> items;
        for (int i = 0; i < 8; ++i)
            items.push_back({0, i, "gain", 1.1 + i, true, {}});
        for (int i = 0; i < 3; ++i)
            items.push_back({0, 10 + i, "loss", 0.5, false, {}});
        const std::vector<Experience> chosen = worthwhile(items, 8);
        QCOMPARE(chosen.size(), std::size_t{7}); // four of the gains, the largest, and all losses
        QCOMPARE(chosen.front().program, 7);
        QCOMPARE(std::count_if(chosen.begin(), chosen.end(), [](const auto &one) { return one.isPositive; }),
                 4);
        ExperienceMemory memory(2);
        for (const Experience &item : chosen)
            memory.add(item);
        QCOMPARE(memory.items().size(), std::size_t{2});
        QCOMPARE(memory.items().back().program, chosen.back().program);
    }

    void parentsStayWhenNothingIsCorrect()
    {
        const auto policy =
            *makePolicy("accelopt", problemOf(1, {{"iterations", "2"}, {"done_limit", "1000"}}));
        const SimulatedWorld world(1);
        Tried root;
        root.text = world.root();
        root.trial = world.gate(root.text, {});
        QVERIFY(policy->begin(root));
        std::map<std::string, int> actions;
        for (;;) {
            const Result<Move> move = policy->next();
            if (std::holds_alternative<End>(*move))
                break;
            const Ask ask = std::get<Ask>(*move);
            ++actions[ask.action];
            Outcome outcome;
            if (ask.wantsPlan) {
                QVERIFY(policy->readPlan("do it\n"));
                outcome.kind = Outcome::Kind::Planned;
            } else {
                outcome.kind = Outcome::Kind::Gated;
                outcome.tried.text = world.root() + "wrong\n";
                outcome.tried.trial.verdict.status = gate::VerdictStatus::Wrong;
            }
            policy->observe(outcome);
        }
        QCOMPARE(dynamic_cast<const AccelOpt &>(*policy).beam(), std::vector<int>{0});
        QCOMPARE(actions, (std::map<std::string, int>{{"plan", 8}, {"execute", 16}, {"fix", 16}}));
    }

    void plansThatAreNoneAreRefused()
    {
        const auto policy = *makePolicy("accelopt", problemOf(1));
        const SimulatedWorld world(1);
        Tried root;
        root.text = world.root();
        root.trial = world.gate(root.text, {});
        QVERIFY(policy->begin(root));
        QVERIFY(policy->next());
        QVERIFY(!policy->readPlan(" \n"));
        QVERIFY(!policy->readPlan(world.root()));
        QVERIFY(!policy->readPlan(std::string(5000, 'x')));
        QCOMPARE(policy->readPlan("Tile it.\nMore.\n").value_or(""), std::string("Tile it."));
    }
};

QTEST_GUILESS_MAIN(TestSearchPolicies)
#include "tst_searchpolicies.moc"
