// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/lineage.h"
#include "core/run/admit/effect.h"
#include "core/run/lift/quantities.h"
#include "core/skills/admission.h"
#include "core/skills/store.h"
#include "tests/core/run/learnfixture.h"

#include <QTest>

using namespace klineage;
using namespace klineage::run;
using namespace klineage::tests;

namespace {

/// Adds what the card's carrier says to the kernel of the prompt.
std::string honest(const llm::Request &request)
{
    const std::string &prompt = request.messages.front().text;
    std::vector<std::string> lines = toyLines(prompt.substr(prompt.find("# Kernel")));
    lines.push_back("opt_c");
    return block(toyKernel(lines));
}

skills::Card cardOf(const std::vector<skills::Citation> &evidence)
{
    skills::Card card;
    card.name = "add-c";
    card.category = "opt_c";
    card.locus = "inner loop";
    card.carrierFile = "carrier.cl";
    card.intent = {"Add the optimization.", evidence};
    card.anchor = {"Any loop.", evidence};
    card.preconditions = {{"None.", evidence}};
    card.effects = {{"It brings 2.5× where 16 × 16 tiles are used.", evidence}};
    card.risks = {{"None.", evidence}};
    card.scope = {{"toy"}, {"opencl"}, {"pocl"}, {}};
    card.evidence = evidence;
    return card;
}

/// A world with the workload "other" and its lineage of one state, and a card that was lifted from toy/pocl.
class AdmitWorld : public LearnWorld
{
public:
    explicit AdmitWorld(const std::vector<skills::Citation> &evidence = {"toy/pocl/K01"})
    {
        addLineage("toy", {"opt_c"});
        addLineage("other", {"opt_a"});
        const auto created =
            skills::CardStore(root() / "skills").create(cardOf(evidence), "+ int opt_c = 1;\n");
        if (!created)
            qFatal("%s", created.error().message.c_str());
        settings.kind = Kind::Admit;
        settings.workload = "other";
        settings.subject = "add-c";
        settings.options["target"] = "other/pocl/K00";
    }
    AdmitWorld(const fs::path &snapshot, const Settings &of)
        : LearnWorld(snapshot, of)
    {}

    void addLineage(const std::string &workload, const std::vector<std::string> &last) const
    {
        const std::string folder = "workloads/" + workload + "/lineages/pocl/";
        std::string toml = read("workloads/toy/workload.toml");
        toml.replace(toml.find("\"toy\""), 5, '"' + workload + '"');
        if (workload != "toy")
            write("workloads/" + workload + "/workload.toml", toml);
        write(folder + "K00.cl", toyKernel(last));
        write(folder + "trials.jsonl", "");
        lineage::Lineage lineage;
        lineage.workload = workload;
        lineage.platform = "pocl";
        lineage.title = "t";
        lineage.states = {{"K00", "K00.cl", "only", ""}};
        write(folder + "lineage.toml", lineage::writeLineage(lineage));
    }
    [[nodiscard]] skills::CardRecord card() const
    {
        Result<skills::CardRecord> record = skills::CardStore(root() / "skills").read("add-c");
        if (!record)
            qFatal("%s", record.error().message.c_str());
        return std::move(*record);
    }
};

std::string codeOf(const Result<Ending> &ending)
{
    return ending ? ending->code : "error: " + ending.error().message;
}

} // namespace

class TestAdmit : public QObject
{
    Q_OBJECT

private slots:
    void aGainOnAStrangersStateAdmits()
    {
        AdmitWorld world;
        BrainProvider author(honest);
        const Result<Ending> ending = world.perform(admit, author);
        QVERIFY2(codeOf(ending) == "complete", codeOf(ending).c_str());
        QCOMPARE(world.story(), std::string("roundtrip:accepted"));
        QVERIFY2(ending->reason.find("is admitted by other/pocl/K00: correct, 16.000 µs, 2.000×")
                     != std::string::npos,
                 ending->reason.c_str());
        QVERIFY(ending->reason.find("the card claims 2.500×.") != std::string::npos);

        const skills::CardRecord card = world.card();
        QCOMPARE(card.life(), skills::Life::Admitted);
        QCOMPARE(card.verifications.size(), std::size_t{1});
        QCOMPARE(card.verifications[0].target, std::string("other/pocl/K00"));
        QCOMPARE(card.verifications[0].trial, world.steps[0].trial);
        QCOMPARE(card.card.revision, 1); // the card and its scope stay as they are
        QVERIFY(card.card.scope.cases == std::vector<std::string>{"toy"});
        QVERIFY(card.reviews.empty());

        const auto lineage = lineage::readLineage(world.root() / "workloads/other/lineages/pocl");
        QVERIFY(lineage.has_value());
        QCOMPARE(lineage->branches.size(), std::size_t{1});
        QCOMPARE(lineage->branches[0].trial, card.verifications[0].trial);
    }

    void theAuthorIsGivenTheCardAndTheTargetAlone()
    {
        AdmitWorld world;
        BrainProvider author(honest);
        QCOMPARE(codeOf(world.perform(admit, author)), std::string("complete"));
        QCOMPARE(author.asked.size(), std::size_t{1});
        const std::string &prompt = author.asked[0].messages[0].text;
        for (const char *part : {"Intent: ", "Anchor: ", "Carrier:\n",
                                 "Preconditions:", "Effects:", "Risks:", "Evidence: toy/pocl/K01",
                                 "Scope claimed: ", "Verification:\n- none", "int opt_a"})
            QVERIFY2(prompt.find(part) != std::string::npos, part);
        QCOMPARE(toyLines(prompt).size(), std::size_t{1}); // of the target only
    }

    void contributorsAreNotHeldOut_data()
    {
        QTest::addColumn<QString>("citation");
        QTest::addColumn<QString>("target");
        QTest::addColumn<QString>("reason");
        QTest::newRow("its lineage") << "other/pocl/K01"
                                     << "other/pocl/K00"
                                     << "of the target's own lineage";
        QTest::newRow("an attempt") << "other/pocl/R00a"
                                    << "other/pocl"
                                    << "of the target's own lineage";
        QTest::newRow("a file of the workload") << "other/pocl/K01"
                                                << "file.cl"
                                                << "of the target's workload on its platform";
        QTest::newRow("a copied state") << "toy/pocl/K01"
                                        << "copy.cl"
                                        << "is a state of toy/pocl";
        QTest::newRow("a trial that is gone") << "trial:0123456789abcdef"
                                              << "other/pocl/K00"
                                              << "is in no lineage of the workspace";
    }

    void contributorsAreNotHeldOut()
    {
        QFETCH(QString, citation);
        QFETCH(QString, target);
        QFETCH(QString, reason);
        AdmitWorld world({citation.toStdString()});
        world.write("file.cl", toyKernel({"opt_b"}));
        world.write("copy.cl", toyKernel({"opt_c"}, "// a comment does not make it another kernel\n"));
        world.settings.options["target"] = target.toStdString();
        BrainProvider author([](const llm::Request &) {
            return block(toyKernel({"opt_a", "opt_c", "opt_d"}));
        });
        const Result<Ending> ending = world.perform(admit, author);
        QVERIFY2(codeOf(ending) == "complete", codeOf(ending).c_str());
        QVERIFY2(QString::fromStdString(ending->reason).contains(reason), ending->reason.c_str());
        QVERIFY(ending->reason.find("so that this admits nothing") != std::string::npos);
        const skills::CardRecord card = world.card();
        QCOMPARE(card.verifications.size(), std::size_t{1});
        QVERIFY(card.verifications[0].expectedEffectObserved);
        QVERIFY(!card.verifications[0].heldOut);
        QVERIFY(
            QString::fromStdString(card.verifications[0].target).startsWith(QStringLiteral("other/pocl")));
        QCOMPARE(card.life(), skills::Life::Hypothesis);
    }

    void aBranchIsPartOfItsLineage()
    {
        AdmitWorld world;
        const fs::path file = "workloads/other/lineages/pocl/branches/seen.cl";
        world.write(file.string(), toyKernel({"opt_b"}));
        world.settings.options["target"] = file.string();
        BrainProvider author([](const llm::Request &) { return block(toyKernel({"opt_a", "opt_b"})); });
        const Result<Ending> ending = world.perform(admit, author);
        QVERIFY2(codeOf(ending) == "complete", codeOf(ending).c_str());
        const skills::CardRecord card = world.card();
        QCOMPARE(card.verifications.size(), std::size_t{1});
        QCOMPARE(card.verifications[0].target, std::string("other/pocl/seen"));
        const auto lineage = lineage::readLineage(world.root() / "workloads/other/lineages/pocl");
        QVERIFY(lineage.has_value());
        QVERIFY(lineage->findTrial(card.verifications[0].trial) != nullptr);
    }

    void repairsWithTheVerdict()
    {
        AdmitWorld world;
        BrainProvider author([](const llm::Request &request) {
            const std::size_t attempt = request.messages.size() / 2;
            const std::vector<std::string> replies{"no fence", "again none",
                                                   block(toyKernel({"opt_a", "wrong"})),
                                                   block(toyKernel({"opt_a", "opt_c"}))};
            return replies[attempt];
        });
        const Result<Ending> ending = world.perform(admit, author);
        QVERIFY2(codeOf(ending) == "complete", codeOf(ending).c_str());
        QCOMPARE(world.story(), std::string("roundtrip:failed roundtrip:rejected roundtrip:accepted"));
        QVERIFY(author.asked.back().messages.back().text.find("Element y[0, 1] is 2, expected 1.")
                != std::string::npos);
        const skills::CardRecord card = world.card();
        QCOMPARE(card.verifications.size(), std::size_t{2}); // a line for each trial
        QCOMPARE(card.verifications[0].status, std::string("wrong"));
        QCOMPARE(card.verifications[0].trial, world.steps[1].trial);
        QVERIFY(!card.verifications[0].reason.empty());
        QCOMPARE(card.verifications[1].trial, world.steps[2].trial);
        QCOMPARE(card.verifications[1].cardHash, skills::contentHash(card));
        QVERIFY(card.verifications[1].low > 1);
        QCOMPARE(card.life(), skills::Life::Admitted);
    }

    void whatDoesNotGainDoesNotAdmit_data()
    {
        QTest::addColumn<QString>("reply");
        QTest::addColumn<QString>("story");
        QTest::addColumn<QString>("status"); // of the log's line; empty: there is none
        const auto row = [](const char *name, const std::string &reply, const char *outcome,
                            const char *status) {
            const QString step = QStringLiteral("roundtrip:") + outcome;
            QTest::newRow(name) << QString::fromStdString(reply) << step + ' ' + step << status;
        };
        row("less than half of the claim", block(toyKernel({"opt_a", "fast_20"})), "rejected", "correct");
        row("more than the card's doing", block(toyKernel({"opt_a", "opt_b", "opt_c", "opt_d"})), "rejected",
            "correct");
        row("slower", block(toyKernel({"opt_a", "slow_5"})), "rejected", "correct");
        row("as fast", block(toyKernel({"opt_a", "other"})), "rejected", "correct");
        row("wrong", block(toyKernel({"opt_a", "opt_c", "wrong"})), "rejected", "wrong");
        row("the same", block(toyKernel({"opt_a"}, "// applied\n")), "failed", "");
        row("no fence", "It is done.", "failed", "");
        row("two fences", block("a\n") + block("b\n"), "failed", "");
        row("huge", block(std::string(3u << 19, 'x') + '\n'), "failed", "");
    }

    void whatDoesNotGainDoesNotAdmit()
    {
        QFETCH(QString, reply);
        QFETCH(QString, story);
        QFETCH(QString, status);
        AdmitWorld world;
        world.settings.options["attempts"] = "2";
        BrainProvider author([&](const llm::Request &) { return reply.toStdString(); });
        const Result<Ending> ending = world.perform(admit, author);
        QVERIFY2(codeOf(ending) == "rejection_limit", codeOf(ending).c_str());
        QCOMPARE(world.story(), story.toStdString());
        const skills::CardRecord card = world.card();
        QCOMPARE(card.life(), skills::Life::Hypothesis);
        QCOMPARE(card.verifications.empty(), status.isEmpty());
        if (!status.isEmpty()) {
            QCOMPARE(card.verifications[0].status, status.toStdString());
            QVERIFY(!card.verifications[0].expectedEffectObserved);
            QVERIFY(card.verifications[0].heldOut);
        }
    }

    void claimedEffects_data()
    {
        QTest::addColumn<QList<double>>("claimed");
        QTest::addColumn<double>("low");
        QTest::addColumn<double>("high");
        QTest::addColumn<bool>("shown");
        const QList<double> large{2.5, 9};
        QTest::newRow("no claim") << QList<double>() << 1.01 << 1.02 << true;
        QTest::newRow("as claimed") << large << 3.0 << 3.1 << true;
        QTest::newRow("half") << large << 1.5 << 1.59 << true;
        QTest::newRow("less than half") << large << 1.5 << 1.58 << false;
        QTest::newRow("twice") << large << 80.9 << 90.0 << true;
        QTest::newRow("more than twice") << large << 81.1 << 90.0 << false;
        QTest::newRow("a small claim, up to 2x") << QList<double>{1.1} << 1.9 << 2.1 << true;
        QTest::newRow("a small claim, more") << QList<double>{1.1} << 2.1 << 2.2 << false;
    }

    void claimedEffects()
    {
        QFETCH(QList<double>, claimed);
        QFETCH(double, low);
        QFETCH(double, high);
        gate::Comparison comparison;
        comparison.speedup = {(low + high) / 2, low, high};
        comparison.change = gate::Change::Gain;
        const std::vector<double> claims(claimed.begin(), claimed.end());
        QTEST(effectShortfall(claims, &comparison).empty(), "shown");
        comparison.change = gate::Change::Undecided;
        QVERIFY(!effectShortfall(claims, &comparison).empty());
        QVERIFY(!effectShortfall(claims, nullptr).empty());
    }

    void typedEffectsAreWhatIsJudged()
    {
        skills::Card card = cardOf({"toy/pocl/K01"});
        card.format = 2;
        card.effects = {
            {"For 32× as many threads.",
             {},
             {},
             skills::Measured{"0123456789abcdef", "parent", 1.2, 1.1, 1.3}},
            {"The same, undecided.", {}, {}, skills::Measured{"0123456789abcdef", "parent", 1.02, 0.9, 1.1}},
            {"The vendor's.", {}, {}, skills::Measured{"0123456789abcdef", "cublas", 4, 3, 5}},
            {"It brings 9×.", {}}};
        QCOMPARE(typedFactors(card), std::vector<double>{1.2});
    }

    void aKillAtAnyMomentChangesNothing()
    {
        AdmitWorld world;
        const auto brain = [](const llm::Request &request) {
            return request.messages.size() < 3 ? block(toyKernel({"opt_a", "wrong"})) : honest(request);
        };
        BrainProvider author(brain);
        const KillRecorder kills(world, author);
        QCOMPARE(codeOf(world.perform(admit, author)), std::string("complete"));
        const auto logs = [](const LearnWorld &of) { return of.read("skills/add-c/verification.jsonl"); };
        const auto expected = filesBelow(world.root() / "workloads");
        QVERIFY(kills.snapshots().size() > 9);
        for (const fs::path &snapshot : kills.snapshots()) {
            AdmitWorld again(snapshot, world.settings);
            BrainProvider fresh(brain);
            QCOMPARE(codeOf(again.perform(admit, fresh)), std::string("complete"));
            QCOMPARE(again.story(), world.story());
            QCOMPARE(logs(again), logs(world));
            QVERIFY(filesBelow(again.root() / "workloads") == expected);
            // Once more, when all is done: the card's log now has a line, and the question is the same all the same.
            QCOMPARE(codeOf(again.perform(admit, fresh)), std::string("complete"));
            QCOMPARE(logs(again), logs(world));
        }
    }

    void badBeginnings_data()
    {
        QTest::addColumn<QString>("card");
        QTest::addColumn<QString>("target");
        QTest::addColumn<QString>("message");
        QTest::newRow("no target") << "add-c"
                                   << ""
                                   << "has no option 'target'";
        QTest::newRow("no card") << "add-d"
                                 << "other/pocl"
                                 << "add-d";
        QTest::newRow("no state") << "add-c"
                                  << "other/pocl/K09"
                                  << "has no state 'K09'";
        QTest::newRow("other workload") << "add-c"
                                        << "toy/pocl"
                                        << "belongs to the workload 'toy'";
    }

    void badBeginnings()
    {
        QFETCH(QString, card);
        QFETCH(QString, target);
        QFETCH(QString, message);
        AdmitWorld world;
        world.settings.subject = card.toStdString();
        world.settings.options["target"] = target.toStdString();
        if (target.isEmpty())
            world.settings.options.clear();
        BrainProvider author(honest);
        const Result<Ending> ending = world.perform(admit, author);
        QVERIFY(!ending.has_value());
        QVERIFY2(QString::fromStdString(ending.error().message).contains(message),
                 ending.error().message.c_str());
        QVERIFY(author.asked.empty());
    }

    void quantities_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QStringList>("found");
        QTest::newRow("factors") << "Brings 14.6× (14.5–14.7), 2x on one." << QStringList{"14.6×", "2x"};
        QTest::newRow("shapes") << "Tiles of 16 × 16, 4x4, 12 × TILE and 4×K." << QStringList{};
        QTest::newRow("spaced") << "3 × less and 14 % more" << QStringList{"14 %"};
        QTest::newRow("times") << "It takes 12.5 µs, 3 ms or 7 ns; 3 times."
                               << QStringList{"12.5 µs", "3 ms", "7 ns", "3 times"};
        QTest::newRow("rates") << "1.2 TFLOP/s and 30GB/s" << QStringList{"1.2 TFLOP/s", "30GB/s"};
        QTest::newRow("no units") << "16 columns, K01, 128-bit, fp16 and 3 seconds" << QStringList{};
        QTest::newRow("nothing") << "" << QStringList{};
    }

    void quantities()
    {
        QFETCH(QString, text);
        QFETCH(QStringList, found);
        QStringList got;
        for (const Quantity &quantity : quantitiesIn(text.toStdString()))
            got.push_back(QString::fromStdString(quantity.text));
        QCOMPARE(got, found);
    }
};

QTEST_GUILESS_MAIN(TestAdmit)
#include "tst_admit.moc"
