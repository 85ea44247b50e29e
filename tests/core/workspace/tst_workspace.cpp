// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/store.h"
#include "core/workspace/citations.h"
#include "core/workspace/workspacereader.h"
#include "tests/core/trialfixture.h"

#include <QElapsedTimer>
#include <QTest>

#include <fstream>

using namespace klineage;
using namespace klineage::tests;
namespace fs = std::filesystem;

class TestWorkspace : public QObject
{
    Q_OBJECT

private slots:
    void opensTheFixture()
    {
        const WorkspaceCopy copy;
        const Result<Workspace> workspace = openWorkspace(copy.root());
        QVERIFY(workspace.has_value());
        QVERIFY2(workspace->problems.empty(),
                 workspace->problems.empty() ? "" : workspace->problems[0].message.c_str());
        QVERIFY(workspace->findWorkload("toy") != nullptr);
        QVERIFY(workspace->findLineage("toy/pocl") != nullptr);
        QVERIFY(workspace->findCard("stage-rows") != nullptr);
        QVERIFY(workspace->findLineage("toy/sm90") == nullptr);
    }

    void whatCannotBeReadIsAProblemAndTheRestIsThere()
    {
        const WorkspaceCopy copy;
        fs::create_directories(copy.root() / "workloads/broken");
        std::ofstream(copy.root() / "workloads/broken/workload.toml") << "name = 3\n";
        std::ofstream(copy.skills() / "stage-rows/card.toml") << "name = \"stage-rows\"\nrevison = 1\n";
        const Result<Workspace> workspace = openWorkspace(copy.root());
        QVERIFY(workspace.has_value());
        QCOMPARE(workspace->problems.size(), std::size_t{2});
        QCOMPARE(workspace->lineages.size(), std::size_t{1});
        QVERIFY(workspace->cards.empty());
    }

    void onlyWhatChangedIsReadAgain()
    {
        const WorkspaceCopy copy;
        addCard(copy, "second");
        WorkspaceReader reader(copy.root());
        Workspace workspace = reader.open().value();
        QVERIFY(isNothing(reader.readChanges()));

        const std::size_t reviews = workspace.findCard("second")->reviews.size();
        const skills::CardStore store(copy.skills());
        skills::Review review;
        review.author = "a person";
        review.verdict = skills::ReviewVerdict::Approve;
        QVERIFY(store.review("second", review));
        WorkspaceChanges changes = reader.readChanges();
        QCOMPARE(changes.cards.size(), std::size_t{1});
        QCOMPARE(changes.cards[0].card.name, std::string("second"));
        QVERIFY(changes.lineages.empty() && changes.gone.empty() && changes.problems.empty());
        applyChanges(std::move(changes), workspace);
        QCOMPARE(workspace.findCard("second")->reviews.size(), reviews + 1);
        QCOMPARE(workspace.findCard("stage-rows")->directory, copy.skills() / "stage-rows");
        QVERIFY(isNothing(reader.readChanges()));

        const std::size_t trials = workspace.lineages[0].trials.size();
        QVERIFY(lineage::appendTrial(copy.lineage(), makeTrial("0000000000000777", "a text")));
        changes = reader.readChanges();
        QVERIFY(changes.cards.empty());
        QCOMPARE(changes.lineages.size(), std::size_t{1});
        applyChanges(std::move(changes), workspace);
        QCOMPARE(workspace.lineages[0].trials.size(), trials + 1);
    }

    void whatCameAndWentIsSeen()
    {
        const WorkspaceCopy copy;
        WorkspaceReader reader(copy.root());
        Workspace workspace = reader.open().value();
        addCard(copy, "a-new-one");
        fs::copy(copy.lineage(), copy.root() / "workloads/toy/lineages/other", fs::copy_options::recursive);
        WorkspaceChanges changes = reader.readChanges();
        QCOMPARE(changes.cards.size() + changes.lineages.size(), std::size_t{2});
        applyChanges(std::move(changes), workspace);
        QCOMPARE(workspace.cardNames(), (std::vector<std::string>{"a-new-one", "stage-rows"}));

        fs::remove_all(copy.skills() / "stage-rows");
        std::ofstream(copy.skills() / "a-new-one/card.toml") << "name = 3\n";
        changes = reader.readChanges();
        QCOMPARE(changes.problems.size(), std::size_t{1});
        applyChanges(std::move(changes), workspace);
        QCOMPARE(workspace.cardNames(), std::vector<std::string>{"a-new-one"}); // as it was
        QVERIFY(isNothing(reader.readChanges()));                               // told once
    }

    void isFoundFromBelow()
    {
        const WorkspaceCopy copy;
        const Result<fs::path> found = findWorkspace(copy.lineage() / "branches");
        QVERIFY(found.has_value());
        QCOMPARE(*found, copy.root());
        QCOMPARE(findWorkspace("/proc").error().code, ErrorCode::NotFound);
        QCOMPARE(openWorkspace("/proc").error().code, ErrorCode::NotFound);
    }

    void citationsAreLookedUp()
    {
        const WorkspaceCopy copy;
        const Workspace workspace = *openWorkspace(copy.root());
        QVERIFY(citationExists(workspace, "toy/pocl/K01"));
        QVERIFY(citationExists(workspace, "toy/pocl/R01a"));
        QVERIFY(citationExists(workspace, "trial:00000000000000b1"));
        QVERIFY(!citationExists(workspace, "toy/pocl/K00")); // no transition leads there
        QVERIFY(!citationExists(workspace, "toy/sm90/K01"));
        QVERIFY(!citationExists(workspace, "trial:00000000000000ff"));

        skills::Card card = workspace.cards[0].card;
        QVERIFY(lintCitations(workspace, card).empty());
        card.effects[0].evidence = {"toy/pocl/K09", "malformed"};
        const std::vector<skills::LintFinding> findings = lintCitations(workspace, card);
        QCOMPARE(findings.size(), std::size_t{1}); // the malformed one is lintCard's
        QCOMPARE(findings[0].field, std::string("effect[0]"));
    }

    void fiftyLineagesAndTwoHundredCardsOpen()
    {
        const WorkspaceCopy copy;
        const fs::path lineages = copy.root() / "workloads/toy/lineages";
        for (int i = 0; i < 49; ++i)
            fs::copy(copy.lineage(), lineages / ("p" + std::to_string(i)), fs::copy_options::recursive);
        skills::Card card = openWorkspace(copy.root())->cards[0].card;
        for (int i = 0; i < 199; ++i) {
            card.name = "card-" + std::to_string(i);
            fs::copy(copy.skills() / "stage-rows", copy.skills() / card.name, fs::copy_options::recursive);
            std::ofstream(copy.skills() / card.name / "card.toml") << skills::writeCard(card);
        }
        const Result<Workspace> workspace = openWorkspace(copy.root()); // how fast: klineage-bench workspace
        QVERIFY(workspace.has_value());
        QCOMPARE(workspace->lineages.size(), std::size_t{50});
        QCOMPARE(workspace->cards.size(), std::size_t{200});
    }

private:
    static bool isNothing(const WorkspaceChanges &changes)
    {
        return changes.cards.empty() && changes.lineages.empty() && changes.gone.empty()
               && changes.problems.empty();
    }

    static void addCard(const WorkspaceCopy &copy, const std::string &name)
    {
        fs::copy(copy.skills() / "stage-rows", copy.skills() / name, fs::copy_options::recursive);
        skills::Card card = skills::CardStore(copy.skills()).read("stage-rows")->card;
        card.name = name;
        std::ofstream(copy.skills() / name / "card.toml") << skills::writeCard(card);
    }
};

QTEST_GUILESS_MAIN(TestWorkspace)
#include "tst_workspace.moc"
