// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/citations.h"
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
};

QTEST_GUILESS_MAIN(TestWorkspace)
#include "tst_workspace.moc"
