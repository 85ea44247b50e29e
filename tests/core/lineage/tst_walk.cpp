// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/walk.h"
#include "core/workspace/workspace.h"
#include "tests/paths.h"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>

using namespace klineage;
using namespace klineage::lineage;

namespace {

const std::string sha(64, 'a');

std::string text(const std::string &states, const std::string &transitions)
{
    return "workload = \"w\"\nplatform = \"sm90\"\ntitle = \"t\"\norigin = \"https://example.org\"\ncommit = \"c\"\n"
           "file = \"f.cu\"\nlicence = \"MIT\"\nauthor = \"A\"\n"
           + states + transitions;
}

std::string state(const std::string &id, const std::string &trial = {})
{
    return "[[state]]\nid = \"" + id + "\"\ntitle = \"of " + id + "\"\nsha256 = \"" + sha + "\"\n"
           + (trial.empty() ? "" : "trial = \"" + trial + "\"\n");
}

std::string step(const std::string &from, const std::string &to)
{
    return "[[transition]]\nfrom = \"" + from + "\"\nto = \"" + to
           + "\"\ncategory = \"tiling\"\nlocus = \"loop\"\nsummary = \"Tile.\"\n";
}

} // namespace

class TestWalk : public QObject
{
    Q_OBJECT

private slots:
    void reads()
    {
        const auto walk = parseWalk(text(state("K00") + state("K01", "1"), step("K00", "K01")), "walk.toml");
        QVERIFY2(walk, walk ? "" : walk.error().message.c_str());
        QCOMPARE(walk->licence, std::string("MIT"));
        QCOMPARE(walk->states.size(), std::size_t{2});
        QCOMPARE(walk->states[1].trial, std::string("1"));
        QCOMPARE(walk->transitions.front().category, std::string("tiling"));
        QVERIFY(!walk->trialOf(walk->states[1]));
        QVERIFY(!walk->gainOf(1));
    }

    void refuses_data()
    {
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("said");
        const auto row = [](const char *name, const std::string &what, const char *said) {
            QTest::newRow(name) << QString::fromStdString(what) << said;
        };
        row("no states", text("", ""), "state");
        row("no step between two", text(state("K00") + state("K01"), ""), "between each two neighbours");
        row("a step too many", text(state("K00"), step("K00", "K01")), "between each two neighbours");
        row("steps out of order", text(state("K00") + state("K01"), step("K01", "K00")),
            "between each two neighbours");
        row("an id twice", text(state("K00") + state("K00"), step("K00", "K00")), "no id of its own");
        row("no hash", text("[[state]]\nid = \"K00\"\ntitle = \"t\"\nsha256 = \"12\"\n", ""), "no sha-256");
        row("an unknown key", text("licence_file = \"x\"\n" + state("K00"), ""), "licence_file");
        row("no TOML", "workload = ", "walk.toml");
    }

    void refuses()
    {
        QFETCH(QString, what);
        QFETCH(QString, said);
        const auto walk = parseWalk(what.toStdString(), "walk.toml");
        QVERIFY(!walk);
        QVERIFY2(QString::fromStdString(walk.error().message).contains(said), walk.error().message.c_str());
    }

    /// What does not fit is told, and loses nothing else.
    void tellsWhatDoesNotFit()
    {
        const QTemporaryDir folder;
        const std::filesystem::path walks =
            std::filesystem::path(folder.path().toStdString()) / "w" / "walks";
        QVERIFY(readWalks(walks.parent_path()).empty());
        std::filesystem::create_directories(walks / "one");
        std::ofstream(walks / "one" / "walk.toml") << text(state("K00", "77"), "");
        std::ofstream(walks / "one" / "trials.jsonl") << "{\"no\": \"trial\"}\n{\"torn";
        std::filesystem::create_directories(walks / "two");
        std::ofstream(walks / "two" / "walk.toml") << "nothing";
        const auto read = readWalks(walks.parent_path());
        QCOMPARE(read.size(), std::size_t{2});
        QVERIFY(read[0]);
        QCOMPARE(read[0]->name, std::string("one"));
        QCOMPARE(read[0]->notices.size(), std::size_t{3}); // no trial, a torn line, a trial that is not there
        QVERIFY(!read[1]);
    }

    /// Each state that was gated has the trial of that very file, correct, paired with the state below; cards exist.
    void shippedOnes()
    {
        const auto workspace = openWorkspace(klineage::test::sourcePath());
        QVERIFY(workspace);
        std::size_t count = 0;
        for (const auto &workload : workspace->workloads) {
            for (const auto &walk : readWalks(workspace->root / "workloads" / workload.name)) {
                QVERIFY2(walk, walk ? "" : walk.error().message.c_str());
                ++count;
                QVERIFY2(walk->notices.empty(), walk->notices.empty() ? "" : walk->notices.front().c_str());
                QCOMPARE(walk->workload, workload.name);
                QVERIFY(!walk->licence.empty() && !walk->commit.empty());
                for (std::size_t i = 0; i < walk->states.size(); ++i) {
                    const gate::Trial *trial = walk->trialOf(walk->states[i]);
                    QVERIFY(!trial || trial->verdict.status == gate::VerdictStatus::Correct);
                    QVERIFY(!trial || i == 0 || walk->gainOf(i));
                }
                for (const Transition &transition : walk->transitions)
                    QVERIFY2(transition.card.empty() || workspace->findCard(transition.card),
                             transition.card.c_str());
            }
        }
        QCOMPARE(count, std::size_t{2});
    }
};

QTEST_GUILESS_MAIN(TestWalk)
#include "tst_walk.moc"
