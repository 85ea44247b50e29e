// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/starter.h"
#include "core/workspace/story.h"
#include "tests/core/trialfixture.h"

#include <QTest>

#include <fstream>

using namespace klineage;
using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

/// A lineage of that many states, of which the last `gated` have a correct trial; those of `cards` have steps with the card "known".
lineage::Lineage storyOf(const std::string &platform, int states, int gated,
                         std::initializer_list<int> cards = {})
{
    lineage::Lineage lineage;
    lineage.workload = "toy";
    lineage.platform = platform;
    for (int i = 0; i < states; ++i) {
        const std::string id = "K0" + std::to_string(i);
        const bool hasTrial = i >= states - gated;
        lineage.states.push_back({id, id + ".cl", id, hasTrial ? id : std::string()});
        if (i > 0)
            lineage.transitions.push_back({"K0" + std::to_string(i - 1), id, "tiling", "here", "", ""});
        if (hasTrial) {
            lineage.trials.push_back(makeTrial(id, id, "parent"));
            lineage.trials.back().verdict.comparisons[0].speedup.value = 1 + 0.1 * i;
        }
    }
    for (const int card : cards)
        lineage.transitions[static_cast<std::size_t>(card) - 1].card = "known";
    return lineage;
}

Workspace workspaceOf(std::vector<lineage::Lineage> lineages)
{
    Workspace workspace;
    workspace.lineages = std::move(lineages);
    workspace.cards.emplace_back().card.name = "known";
    return workspace;
}

} // namespace

class TestStarter : public QObject
{
    Q_OBJECT

private slots:
    void aNewWorkspaceWorks()
    {
        const QTemporaryDir place;
        const fs::path root = fs::path(place.path().toStdString()) / "new";
        QVERIFY(createWorkspace(root));
        const auto workspace = openWorkspace(root);
        QVERIFY(workspace);
        QVERIFY2(workspace->problems.empty(),
                 workspace->problems.empty() ? "" : workspace->problems[0].message.c_str());
        QCOMPARE(workspace->workloadNames(), std::vector<std::string>{"silu"});
        QCOMPARE(workspace->lineageKeys(), std::vector<std::string>{"silu/pocl"});
        const lineage::Lineage &lineage = workspace->lineages.front();
        QVERIFY(lineage.notices.empty());
        QVERIFY(lineage.trials.empty());
        QVERIFY(kernel::readCandidate(lineage.directory / lineage.states[0].file));
        QVERIFY(fs::exists(root / "README.md"));
        QCOMPARE(std::distance(fs::directory_iterator(root), fs::directory_iterator()), 3);
    }

    void nothingIsWrittenOver()
    {
        const QTemporaryDir place;
        const fs::path root = place.path().toStdString();
        fs::create_directories(root / "workloads");
        fs::create_directories(root / "skills");
        std::ofstream(root / ".hidden") << "x";
        QVERIFY(isFreeForWorkspace(root));
        QVERIFY(createWorkspace(root));
        QVERIFY(!isFreeForWorkspace(root));
        const Status again = createWorkspace(root);
        QVERIFY(!again && again.error().code == ErrorCode::Conflict);

        const QTemporaryDir other;
        const fs::path used = other.path().toStdString();
        std::ofstream(used / "thesis.tex") << "x";
        QVERIFY(!isFreeForWorkspace(used));
        QVERIFY(!createWorkspace(used));
        QCOMPARE(std::distance(fs::directory_iterator(used), fs::directory_iterator()), 1);
    }

    void templatesAreWorkloads()
    {
        const QTemporaryDir place;
        const fs::path root = place.path().toStdString();
        QCOMPARE(templateWorkloads().size(), std::size_t{5});
        for (const workload::Workload &workload : templateWorkloads()) {
            QVERIFY(addTemplateWorkload(root, workload.name));
            QVERIFY(workload::readWorkload(root / "workloads" / workload.name));
            const Status again = addTemplateWorkload(root, workload.name);
            QVERIFY(!again && again.error().code == ErrorCode::Conflict);
        }
        QVERIFY(!addTemplateWorkload(root, "nothing"));
    }

    void theBestStoryIsDecidedByWhatIsRecorded()
    {
        QVERIFY(!bestStory(Workspace()));
        const auto best = [](std::vector<lineage::Lineage> lineages) {
            const Workspace workspace = workspaceOf(std::move(lineages));
            return bestStory(workspace)->platform;
        };
        // Most states are not most gated states, and without K* the rest counts less.
        QCOMPARE(best({storyOf("a", 6, 1), storyOf("b", 4, 4), storyOf("c", 3, 3)}), std::string("b"));
        lineage::Lineage open = storyOf("a", 5, 5);
        open.states.back().trial.clear();
        QCOMPARE(best({open, storyOf("b", 2, 2)}), std::string("b"));
        QCOMPARE(best({storyOf("a", 3, 3), storyOf("b", 3, 3, {1})}), std::string("b"));
        lineage::Lineage faster = storyOf("b", 3, 3);
        faster.trials.back().latencyNs.value = 10;
        QCOMPARE(best({storyOf("a", 3, 3), faster}), std::string("b"));
        QCOMPARE(best({storyOf("a", 3, 3), storyOf("b", 3, 3)}), std::string("a"));
    }

    void oneLooksAtKStarOrTheLargestStep()
    {
        const auto first = [](const lineage::Lineage &lineage) {
            return firstState(workspaceOf({lineage}), lineage);
        };
        QCOMPARE(first(storyOf("a", 4, 4)), std::string("K03"));
        QCOMPARE(first(storyOf("a", 4, 4, {3})), std::string("K03"));
        QCOMPARE(first(storyOf("a", 4, 4, {1, 2})), std::string("K02"));
        QCOMPARE(first(storyOf("a", 1, 0)), std::string("K00"));
        QCOMPARE(first(storyOf("a", 0, 0)), std::string());
    }
};

QTEST_GUILESS_MAIN(TestStarter)
#include "tst_starter.moc"
