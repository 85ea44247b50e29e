// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/lift/difftext.h"
#include "core/run/lift/figuresof.h"
#include "tests/core/run/liftfixture.h"

#include <QTest>

using namespace klineage;
using namespace klineage::run;
using namespace klineage::tests;

namespace {

KnownCard known(const char *name, const char *category, const char *locus, const char *intent)
{
    return {name, "opencl", category, locus, intent};
}

} // namespace

class TestLift : public QObject
{
    Q_OBJECT

private slots:
    void transitionsThatAreAlikeBecomeOneCard()
    {
        LiftWorld world;
        world.addLineage("toy", {{"opt_a", "Inner loops"}, {"opt_b", "epilogue"}});
        world.addLineage("other", {{"opt_a", "the inner loop"}});
        BrainProvider author([](const llm::Request &request) {
            const bool isA = request.messages[0].text.find("Category `opt_a`") != std::string::npos;
            return cardReply(request,
                             isA ? Said{} : Said{"add-b", "Shorten what comes after.", "It brings 2.0×."});
        });
        const Result<Ending> ending = world.perform(lift, author);
        QVERIFY2(codeOf(ending) == "complete", codeOf(ending).c_str());
        QCOMPARE(ending->reason,
                 std::string("2 groups of transitions: 2 cards stored as hypotheses, 0 merged into others."));
        QCOMPARE(world.story(), std::string("lift:stored lift:stored"));

        const std::vector<skills::CardRecord> cards = world.cards();
        QCOMPARE(cards.size(), std::size_t{2});
        const skills::Card &card = cards[0].card;
        QCOMPARE(card.name, std::string("add-a"));
        QCOMPARE(card.category, std::string("opt_a"));
        QVERIFY((card.evidence == std::vector<std::string>{"other/pocl/K01", "toy/pocl/K01"}));
        QVERIFY((card.scope.cases == std::vector<std::string>{"other", "toy"}));
        QVERIFY((card.scope.languages == std::vector<std::string>{"opencl"}));
        QVERIFY(card.scope.priorActions.empty());
        QCOMPARE(card.carrierFile, std::string("carrier.cl"));
        QCOMPARE(cards[0].carrier, std::string("+ int opt = 1;\n"));
        QCOMPARE(cards[0].life(), skills::Life::Hypothesis);
        QVERIFY(cards[0].reviews.empty()); // a person's to say
        QVERIFY((cards[1].card.scope.priorActions == std::vector<std::string>{"opt_a"}));

        const Result<Workspace> workspace = openWorkspace(world.root());
        QVERIFY(workspace.has_value());
        for (const skills::CardRecord &record : workspace->cards) {
            for (const skills::LintFinding &finding : skills::lintCard(record.card, record.carrier))
                QVERIFY2(finding.severity != skills::LintFinding::Severity::Error, finding.message.c_str());
            QVERIFY(lintCitations(*workspace, record.card).empty());
        }
        QCOMPARE(workspace->findLineage("toy/pocl")->transitions[0].card, std::string("add-a"));
        QCOMPARE(workspace->findLineage("toy/pocl")->transitions[1].card, std::string("add-b"));
    }

    void theAuthorSeesDiffsFiguresContextAndAttempts()
    {
        LiftWorld world;
        world.addLineage("toy", {{"opt_a", "inner loop"}});
        BrainProvider author([](const llm::Request &request) { return cardReply(request); });
        QCOMPARE(codeOf(world.perform(lift, author)), std::string("complete"));
        const std::string &prompt = author.asked[0].messages[0].text;
        for (const char *part :
             {"## toy/pocl/K01: state 1", "Add opt_a.", "Locus: inner loop", "+    int opt_a = 1;",
              " __kernel void toy(", "2.000×", "- instructions: 6400.00 → 3200.00", "effect a large gain",
              "## toy/pocl/R00a: wrong", "It forgets the tail.", "+    int wrong = 1;", "- `toy/pocl/R00a`",
              "- `trial:"})
            QVERIFY2(prompt.find(part) != std::string::npos, part);
    }

    void cardsThatAreRefused_data()
    {
        QTest::addColumn<QString>("citation");
        QTest::addColumn<QString>("effect");
        QTest::addColumn<QString>("more");
        QTest::addColumn<QString>("reason");
        QTest::newRow("invented citation") << "toy/pocl/K07"
                                           << "It helps."
                                           << ""
                                           << "it cites 'toy/pocl/K07', which is none of the citations";
        QTest::newRow("invented trial") << "trial:0123456789abcdef"
                                        << "It helps."
                                        << ""
                                        << "it cites 'trial:0123456789abcdef'";
        QTest::newRow("no citation") << "\""
                                     << "It helps."
                                     << ""
                                     << "cites no evidence";
        QTest::newRow("invented factor") << ""
                                         << "It brings 3.1×."
                                         << ""
                                         << "'3.1×' is no figure of the trials";
        QTest::newRow("invented percent") << ""
                                          << "It saves 12 %."
                                          << ""
                                          << "'12 %' is no figure";
        QTest::newRow("invented time") << ""
                                       << "It takes 5 us."
                                       << ""
                                       << "'5 us' is no figure";
        QTest::newRow("bad name") << ""
                                  << "It helps."
                                  << "NAME"
                                  << "is no card name";
        QTest::newRow("unknown key") << ""
                                     << "It helps."
                                     << "anchr = 1\n"
                                     << "anchr";
        QTest::newRow("no carrier") << ""
                                    << "It helps."
                                    << "CARRIER"
                                    << "'carrier.cl' is missing or empty";
    }

    void cardsThatAreRefused()
    {
        QFETCH(QString, citation);
        QFETCH(QString, effect);
        QFETCH(QString, more);
        QFETCH(QString, reason);
        LiftWorld world;
        world.addLineage("toy", {{"opt_a", "inner loop"}});
        BrainProvider author([&](const llm::Request &request) {
            Said said;
            said.citation = citation == "\"" ? "" : citation.toStdString();
            said.effect = effect.toStdString();
            if (more == "NAME")
                said.name = "No Name";
            else if (more != "CARRIER")
                said.more = more.toStdString();
            QString reply = QString::fromStdString(cardReply(request, said));
            if (citation == "\"")
                reply.replace(QString::fromStdString("evidence = [\""
                                                     + firstCitation(request.messages[0].text) + "\"]"),
                              "evidence = []");
            if (more == "CARRIER")
                reply.replace("+ int opt = 1;\n", "");
            return reply.toStdString();
        });
        const Result<Ending> ending = world.perform(lift, author);
        QVERIFY2(codeOf(ending) == "complete", codeOf(ending).c_str());
        QCOMPARE(world.story(), std::string("lift:failed"));
        QVERIFY2(QString::fromStdString(world.steps[0].reason).contains(reason),
                 world.steps[0].reason.c_str());
        QCOMPARE(author.asked.size(), std::size_t{2}); // one repair, with the findings
        const QString repair = QString::fromStdString(author.asked[1].messages.back().text);
        QVERIFY2(repair.contains(reason), qPrintable(repair));
        QVERIFY(world.cards().empty());
    }

    void aCardIsMendedOnce()
    {
        LiftWorld world;
        world.addLineage("toy", {{"opt_a", "inner loop"}});
        BrainProvider author([](const llm::Request &request) {
            return cardReply(request,
                             request.messages.size() < 3 ? Said{"add-a", "Add.", "It brings 9×."} : Said{});
        });
        QCOMPARE(codeOf(world.perform(lift, author)), std::string("complete"));
        QCOMPARE(world.story(), std::string("lift:stored"));
        QCOMPARE(world.steps[0].exchanges, (std::vector<int>{1, 2}));
        QCOMPARE(world.cards().size(), std::size_t{1});
    }

    void hostileReplies_data()
    {
        QTest::addColumn<QString>("reply");
        QTest::addColumn<QString>("outcome");
        const auto row = [](const char *name, const std::string &reply, const char *outcome) {
            QTest::newRow(name) << QString::fromStdString(reply) << outcome;
        };
        row("no fence", "name = \"x\"", "failed");
        row("two fences", block("a = 1\n") + block("b = 1\n"), "failed");
        row("open fence", "```toml\na = 1\n", "failed");
        row("no TOML", block("{{{\n"), "failed");
        row("deep", block("a = " + std::string(5000, '[') + '\n'), "failed");
        row("huge", block("a = '" + std::string(3u << 19, 'x') + "'\n"), "failed");
        row("empty", "", "failed");
        row("declined", block("declined = \"They only fit this kernel.\"\n"), "declined");
        row("declined without reason", block("declined = \" \"\n"), "failed");
        row("the same as nothing", block("same_as = \"add-a\"\n"), "failed");
        row("declined and more", block("declined = \"No.\"\nname = \"x\"\n"), "failed");
    }

    void hostileReplies()
    {
        QFETCH(QString, reply);
        QFETCH(QString, outcome);
        LiftWorld world;
        world.addLineage("toy", {{"opt_a", "inner loop"}});
        BrainProvider author([&](const llm::Request &) { return reply.toStdString(); });
        const Result<Ending> ending = world.perform(lift, author);
        QVERIFY2(codeOf(ending) == "complete", codeOf(ending).c_str());
        QCOMPARE(world.story(), "lift:" + outcome.toStdString());
        QVERIFY(world.cards().empty());
    }

    void duplicatesAreMergedWithTheirEvidence()
    {
        LiftWorld world;
        world.addLineage("toy", {{"opt_a", "inner loop"}});
        BrainProvider author([](const llm::Request &request) { return cardReply(request); });
        QCOMPARE(codeOf(world.perform(lift, author)), std::string("complete"));
        world.addLineage("other", {{"opt_a", "inner loop"}});
        world.settings.id = "run-2";
        world.settings.subject = "other/pocl";
        BrainProvider second([](const llm::Request &request) {
            return cardReply(
                request, {"another-name", "Add the optimization to a loop", "It halves the time: 2.00×."});
        });
        QCOMPARE(codeOf(world.perform(lift, second)), std::string("complete"));
        QCOMPARE(world.story(), std::string("lift:merged"));
        const std::vector<skills::CardRecord> cards = world.cards();
        QCOMPARE(cards.size(), std::size_t{1});
        QCOMPARE(cards[0].card.revision, 2);
        QVERIFY((cards[0].card.evidence == std::vector<std::string>{"toy/pocl/K01", "other/pocl/K01"}));
        QVERIFY((cards[0].card.scope.cases == std::vector<std::string>{"toy", "other"}));
        QCOMPARE(cards[0].card.effects.size(), std::size_t{2});
        QCOMPARE(cards[0].card.risks.size(),
                 std::size_t{1}); // the same words: one entry, with both citations
        QCOMPARE(cards[0].card.risks[0].evidence.size(), std::size_t{2});
        QCOMPARE(cards[0].reviews.size(), std::size_t{1});
        QCOMPARE(cards[0].reviews[0].verdict, skills::ReviewVerdict::Edit);

        // All of it is lifted now: nothing to ask.
        world.settings.id = "run-3";
        world.settings.subject.clear();
        const std::size_t asked = second.asked.size();
        QCOMPARE(codeOf(world.perform(lift, second)), std::string("complete"));
        QCOMPARE(second.asked.size(), asked);
        world.settings.id = "run-4";
        world.settings.options["again"] = "1";
        QCOMPARE(codeOf(world.perform(lift, second)), std::string("complete"));
        QVERIFY(second.asked.size() > asked);
    }

    void theAuthorMayNameTheCardThatSaysTheSame()
    {
        LiftWorld world;
        world.addLineage("toy", {{"opt_a", "inner loop"}});
        BrainProvider author([](const llm::Request &request) { return cardReply(request); });
        QCOMPARE(codeOf(world.perform(lift, author)), std::string("complete"));
        const std::string name = world.cards().front().card.name;
        // Another category and other words: only who reads both can tell.
        world.addLineage("other", {{"opt_b", "somewhere else"}});
        world.settings.id = "run-2";
        world.settings.subject = "other/pocl";
        BrainProvider second([&](const llm::Request &) {
            return block("same_as = \"" + name
                             + "\"\n[[effect]]\ntext = \"Here it brings 2.00×.\"\nevidence = "
                               "[\"other/pocl/K01\"]\n",
                         "toml");
        });
        QCOMPARE(codeOf(world.perform(lift, second)), std::string("complete"));
        QVERIFY(second.asked.front().messages[0].text.find("- `" + name + "` (opt_a at inner loop): ")
                != std::string::npos);
        QCOMPARE(world.story(), std::string("lift:merged"));
        const std::vector<skills::CardRecord> cards = world.cards();
        QCOMPARE(cards.size(), std::size_t{1});
        QVERIFY((cards[0].card.evidence == std::vector<std::string>{"toy/pocl/K01", "other/pocl/K01"}));
        QCOMPARE(cards[0].card.effects.size(), std::size_t{2});
        QCOMPARE(cards[0].card.intent.text, std::string("Add the optimization to the loop."));
    }

    void aVerifiedScopeIsNotWidenedByAMerge()
    {
        skills::CardRecord kept;
        kept.card.scope.cases = {"toy"};
        skills::Card added;
        added.scope.cases = {"other"};
        QCOMPARE(merged(kept, added).scope.cases.size(), std::size_t{2});
        kept.verifications.push_back({"t", "x/pocl/K00", "0123456789abcdef", 1, "correct", true, true});
        QCOMPARE(merged(kept, added).scope.cases.size(), std::size_t{1});
    }

    void duplicates_data()
    {
        QTest::addColumn<QString>("category");
        QTest::addColumn<QString>("locus");
        QTest::addColumn<QString>("intent");
        QTest::addColumn<bool>("found");
        QTest::newRow("same words") << "tiling"
                                    << "k-loop operand load"
                                    << "Stage reused tiles in shared memory." << true;
        QTest::newRow("nearly") << "tiling"
                                << "operand loads of the k-loop"
                                << "Stage the reused operand tiles in shared memory" << true;
        QTest::newRow("category") << "prefetch"
                                  << "k-loop operand load"
                                  << "Stage reused tiles in shared memory." << false;
        QTest::newRow("locus") << "tiling"
                               << "epilogue"
                               << "Stage reused tiles in shared memory." << false;
        QTest::newRow("intent") << "tiling"
                                << "k-loop operand load"
                                << "Swap the order of both loops." << false;
    }

    void duplicates()
    {
        QFETCH(QString, category);
        QFETCH(QString, locus);
        QFETCH(QString, intent);
        QFETCH(bool, found);
        const std::vector<KnownCard> library{
            known("far", "tiling", "k-loop operand load", "Tile."),
            known("near", "tiling", "k-loop operand load", "Stage reused tiles in shared memory.")};
        skills::Card card;
        card.category = category.toStdString();
        card.locus = locus.toStdString();
        card.intent.text = intent.toStdString();
        const auto duplicate = duplicateOf(card, library);
        QCOMPARE(duplicate.has_value(), found);
        if (found)
            QCOMPARE(*duplicate, std::string("near"));
    }

    void namesAreFreed()
    {
        const std::vector<KnownCard> library{known("a", "", "", ""), known("a-2", "", "", "")};
        QCOMPARE(freeName("b", library), std::string("b"));
        QCOMPARE(freeName("a", library), std::string("a-3"));
        const std::string longest(64, 'x');
        QCOMPARE(freeName(longest, {known(longest.c_str(), "", "", "")}), std::string(62, 'x') + "-2");
    }

    void effectsKeepGroupsApart()
    {
        LiftWorld world;
        world.addLineage("toy", {{"opt_a", "inner loop"}});
        world.addLineage("other", {{"opt_a", "outer grid"}}); // another place
        world.addLineage("third", {{"slow_90", "inner loop"}});
        const Result<Workspace> workspace = openWorkspace(world.root());
        QVERIFY(workspace.has_value());
        const LiftInput all = gatherGroups(*workspace, {}, false);
        QCOMPARE(all.groups.size(), std::size_t{3});
        QCOMPARE(gatherGroups(*workspace, {"third/pocl"}, false).groups.size(), std::size_t{1});
        QVERIFY(all.groups[0].signature.find("gain, with changes of instructions") != std::string::npos);
        QVERIFY(all.groups[1].signature.starts_with("a moderate loss"));

        const std::string text = writeLiftInput(all);
        const Result<LiftInput> again = parseLiftInput(text);
        QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
        QCOMPARE(writeLiftInput(*again), text);
        QVERIFY(!parseLiftInput("{\"groups\": [{}]}").has_value());
    }

    void figuresHoldWhatRoundsToThem_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("held");
        QTest::newRow("as it is") << "1.873×" << true;
        QTest::newRow("rounded") << "1.9×" << true;
        QTest::newRow("rounded to none") << "2×" << true;
        QTest::newRow("rounded wrongly") << "1.8×" << false;
        QTest::newRow("inverse") << "0.53×" << true;
        QTest::newRow("percent more") << "87 %" << true;
        QTest::newRow("percent saved") << "47 %" << true;
        QTest::newRow("another percent") << "50 %" << false;
        QTest::newRow("time") << "12.3 us" << true;
        QTest::newRow("time in ms") << "0.012 ms" << true;
        QTest::newRow("another time") << "13 us" << false;
    }

    void figuresHoldWhatRoundsToThem()
    {
        QFETCH(QString, text);
        QFETCH(bool, held);
        gate::Trial trial;
        trial.latencyNs = {12300, 12250, 12350};
        trial.verdict.comparisons.push_back({"parent", "", {1.873, 1.871, 1.876}, 23038, gate::Change::Gain});
        const std::vector<Quantity> quantities = quantitiesIn(text.toStdString());
        QCOMPARE(quantities.size(), std::size_t{1});
        QCOMPARE(figuresOf(trial, nullptr).hold(quantities[0]), held);
    }

    void diffs()
    {
        QCOMPARE(diffText("a\nb\n", "a\nb\n", 3, 1000), std::string());
        QCOMPARE(diffText("a\nb\nc\nd\ne\n", "a\nb\nC\nd\ne\n", 1, 1000),
                 std::string("@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n"));
        QCOMPARE(diffText("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\nx\n2\n3\n4\n5\n6\n7\n8\n", 1, 1000),
                 std::string("@@ -1,2 +1,3 @@\n 1\n+x\n 2\n@@ -8,2 +9,1 @@\n 8\n-9\n"));
        const std::string cut = diffText("", std::string(500, '\n'), 3, 100);
        QVERIFY(cut.size() < 130 && cut.ends_with("\n[the rest is left out]\n"));
    }

    void aKillAtAnyMomentChangesNothing()
    {
        LiftWorld world;
        world.addLineage("toy", {{"opt_a", "inner loop"}, {"opt_b", "epilogue"}});
        world.addLineage("other", {{"slow_90", "inner loop"}, {"opt_a", "Inner Loop"}});
        const auto brain = [](const llm::Request &request) {
            const bool isB = request.messages[0].text.find("Category `opt_b`") != std::string::npos;
            return cardReply(request, isB ? Said{"add-a", "Shorten what comes after.", "It helps."}
                                          : Said{"add-a", "Add the optimization.", "It helps."});
        };
        BrainProvider author(brain);
        const KillRecorder kills(world, author);
        QCOMPARE(codeOf(world.perform(lift, author)), std::string("complete"));
        QCOMPARE(world.cards().size(), std::size_t{3});
        const auto expected = filesBelow(world.root() / "workloads");
        const auto cards = filesBelow(world.root() / "skills");
        QVERIFY(kills.snapshots().size() > 8);
        for (const fs::path &snapshot : kills.snapshots()) {
            LiftWorld again(snapshot, world.settings);
            BrainProvider fresh(brain);
            const Result<Ending> ending = again.perform(lift, fresh);
            QVERIFY2(codeOf(ending) == "complete", codeOf(ending).c_str());
            QCOMPARE(again.story(), world.story());
            QVERIFY(filesBelow(again.root() / "workloads") == expected);
            QVERIFY(filesBelow(again.root() / "skills") == cards);
        }
        // A replay into a workspace that has no cards yet makes them again.
        LiftWorld empty(world.root(), world.settings);
        fs::remove_all(empty.root() / "skills");
        fs::create_directories(empty.root() / "skills");
        BrainProvider silent([](const llm::Request &) { return std::string("nobody is here"); });
        QCOMPARE(codeOf(empty.perform(lift, silent)), std::string("complete"));
        QVERIFY(filesBelow(empty.root() / "skills") == cards);
    }

    void anUnknownLineageIsSaid()
    {
        LiftWorld world;
        world.settings.subject = "toy/sm90";
        BrainProvider author([](const llm::Request &request) { return cardReply(request); });
        const Result<Ending> ending = world.perform(lift, author);
        QVERIFY(!ending.has_value());
        QVERIFY(ending.error().message.find("There is no lineage 'toy/sm90'") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestLift)
#include "tst_lift.moc"
