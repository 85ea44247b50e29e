// SPDX-License-Identifier: GPL-3.0-or-later
// What the search policies share: numbers with ranges, programs and their scores, evolve blocks, batches.
#include "core/policy/search/evolveblocks.h"
#include "core/policy/search/searchpolicy.h"
#include "core/policy/search/tree.h"
#include "tests/core/policy/simulatedworld.h"
#include "tests/paths.h"

#include <QTest>

#include <cmath>

using namespace klineage;
using namespace klineage::policy;
using namespace klineage::tests;

namespace {

const char *const searches[] = {"kernel-smith", "kernelpro", "adaexplore", "accelopt"};

void addSearches()
{
    QTest::addColumn<QString>("name");
    for (const char *name : searches)
        QTest::newRow(name) << name;
}

Tried tried(double speedup, gate::Change change = gate::Change::Gain)
{
    Tried result;
    result.text = "/*klineage\n*/\ncode;\n";
    result.trial.verdict.status = speedup > 0 ? gate::VerdictStatus::Correct : gate::VerdictStatus::Wrong;
    if (speedup > 0)
        result.trial.verdict.comparisons = {{"parent", "", {speedup, speedup, speedup}, 1000, change}};
    return result;
}

SimulatedRun runOf(const QString &name, std::uint64_t seed, int questions, bool batched = false,
                   std::map<std::string, std::string> options = {})
{
    const SimulatedWorld world(seed);
    const auto policy = makePolicy(name.toStdString(), problemOf(seed, std::move(options)));
    return policy ? play(**policy, world, questions, batched) : SimulatedRun{};
}

} // namespace

class TestSearch : public QObject
{
    Q_OBJECT

private slots:
    void scoresAreProductsOfPairedGains()
    {
        Population population;
        population.addRoot(tried(1));
        const int fast = population.add(tried(2), 0, 0, "fast");
        const int failed = population.add(tried(0), fast, 0, "failed");
        const int repaired = population.add(tried(1.5), failed, 0, "repaired");
        QCOMPARE(population.at(fast).score, 2.0);
        QVERIFY(!population.at(failed).isCorrect());
        QCOMPARE(population.baseFor(failed), fast);
        QCOMPARE(population.at(repaired).base, fast);
        QCOMPARE(population.at(repaired).parent, failed);
        QCOMPARE(population.at(repaired).score, 3.0); // against the correct one above the failure
        QCOMPARE(population.at(repaired).generation, 3);
        QCOMPARE(population.best(2), (std::vector<int>{repaired, fast}));
        Tried unpaired = tried(2);
        unpaired.trial.verdict.comparisons.clear();
        QVERIFY(!population.at(population.add(unpaired, 0, 0, "not measured")).isCorrect());
    }

    void treesCountWhatIsInTheAir()
    {
        Tree tree;
        tree.plant(0, 0.5);
        const int child = tree.add(0, 1, 1.5);
        QCOMPARE(tree.at(0).visits, 2);
        QCOMPARE(tree.at(0).mean(), 1.0);
        QCOMPARE(tree.at(0).most, 1.5);
        QCOMPARE(tree.exploration(child, 2), 2 * std::sqrt(std::log(2.0) / 1));
        tree.await(child, 1);
        QCOMPARE(tree.at(0).seen(), 3);
        QCOMPARE(tree.exploration(child, 2), 2 * std::sqrt(std::log(3.0) / 2));
        tree.await(child, -1);
        QCOMPARE(tree.at(0).seen(), 2);
    }

    void evolveBlocks()
    {
        const std::string root = "plan\n// EVOLVE-BLOCK-START\na\n// EVOLVE-BLOCK-END\nend\n";
        const auto blocks = EvolveBlocks::of(root);
        QVERIFY(blocks && !blocks->isWholeFile());
        QCOMPARE(blocks->problemOf(root), std::string());
        QCOMPARE(blocks->problemOf("plan\n// EVOLVE-BLOCK-START\nb\nc\n// EVOLVE-BLOCK-END\nend\n"),
                 std::string());
        QVERIFY(blocks->problemOf("PLAN\n// EVOLVE-BLOCK-START\na\n// EVOLVE-BLOCK-END\nend\n").find("'plan'")
                != std::string::npos);
        QVERIFY(blocks->problemOf("plan\nend\n").find("outside") != std::string::npos);
        QVERIFY(blocks->problemOf(root + "more\n").find("'more'") != std::string::npos);
        QVERIFY(blocks->problemOf("plan\n// EVOLVE-BLOCK-START\na\n").find("EVOLVE-BLOCK-END")
                != std::string::npos);
        QVERIFY(EvolveBlocks::of("anything")->isWholeFile());
        QCOMPARE(EvolveBlocks::of("anything")->problemOf("else"), std::string());
        QVERIFY(!EvolveBlocks::of("// EVOLVE-BLOCK-END\n"));
        QVERIFY(!EvolveBlocks::of("// EVOLVE-BLOCK-START\n// EVOLVE-BLOCK-START\n"));
    }

    void badNumbersAreRefused_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("option");
        QTest::addColumn<QString>("value");
        QTest::addColumn<bool>("isFine");
        QTest::newRow("in range") << "kernel-smith"
                                  << "islands"
                                  << "3" << true;
        QTest::newRow("share") << "kernel-smith"
                               << "explore"
                               << "0.25" << true;
        QTest::newRow("too many") << "kernel-smith"
                                  << "islands"
                                  << "1000" << false;
        QTest::newRow("no whole number") << "adaexplore"
                                         << "steps"
                                         << "1.5" << false;
        QTest::newRow("no number") << "kernelpro"
                                   << "iterations"
                                   << "many" << false;
        QTest::newRow("not finite") << "kernelpro"
                                    << "explore_weight"
                                    << "nan" << false;
        QTest::newRow("with a unit") << "accelopt"
                                     << "beam"
                                     << "2x" << false;
        QTest::newRow("another policy's") << "accelopt"
                                          << "islands"
                                          << "1000" << true;
    }

    void badNumbersAreRefused()
    {
        QFETCH(QString, name);
        QFETCH(QString, option);
        QFETCH(QString, value);
        QFETCH(bool, isFine);
        const auto made =
            makePolicy(name.toStdString(), problemOf(1, {{option.toStdString(), value.toStdString()}}));
        QCOMPARE(made.has_value(), isFine);
        if (!isFine) {
            const QString message = QString::fromStdString(made.error().message);
            QVERIFY2(message.contains(option) && message.contains(value) && message.contains("expected"),
                     qPrintable(message));
        }
    }

    void batchesMakeNoDifference_data() { addSearches(); }

    void batchesMakeNoDifference()
    {
        QFETCH(QString, name);
        std::map<std::string, std::string> options;
        if (name == "adaexplore")
            options["batch"] = "4";
        for (std::uint64_t seed = 1; seed <= 12; ++seed) {
            const SimulatedRun one = runOf(name, seed, 60, false, options);
            const SimulatedRun many = runOf(name, seed, 60, true, options);
            QCOMPARE(one.furthestAhead, std::size_t{1});
            QVERIFY(many.furthestAhead >= 4);
            QVERIFY(one.prompts == many.prompts);
            QCOMPARE(one.end, many.end);
            QCOMPARE(one.best, many.best);
        }
    }

    void sameSeedSameQuestions_data() { addSearches(); }

    void sameSeedSameQuestions()
    {
        QFETCH(QString, name);
        const SimulatedRun first = runOf(name, 7, 50);
        QVERIFY(first.prompts.size() > 20);
        QVERIFY(first.prompts == runOf(name, 7, 50).prompts);
        QVERIFY(first.prompts != runOf(name, 8, 50).prompts);
    }

    void requestsAreInOrder_data() { addSearches(); }

    /// Every question is a chat of its own behind the same prefix, and titles are single lines.
    void requestsAreInOrder()
    {
        QFETCH(QString, name);
        const SimulatedWorld world(3);
        const auto policy = makePolicy(name.toStdString(), problemOf(3));
        Tried root;
        root.text = world.root();
        root.trial = world.gate(root.text, {});
        QVERIFY((*policy)->begin(root));
        std::string prefix;
        for (std::size_t i = (*policy)->ahead(); i > 0; --i) {
            const Result<Move> move = (*policy)->next();
            QVERIFY(move);
            const Ask &ask = std::get<Ask>(*move);
            QCOMPARE(ask.request.messages.size(), std::size_t{1});
            QVERIFY(llm::checkRequest(ask.request));
            QVERIFY(prefix.empty() || ask.request.system == prefix);
            prefix = ask.request.system;
            QCOMPARE(ask.baseText, root.text);
            QVERIFY(ask.title.find('\n') == std::string::npos);
            QVERIFY2(ask.request.messages[0].text.find("\n\n\n") == std::string::npos,
                     ask.request.messages[0].text.c_str());
        }
    }

    void cardsWhenAsked_data() { addSearches(); }

    void cardsWhenAsked()
    {
        QFETCH(QString, name);
        for (const bool isWanted : {false, true}) {
            Problem problem = problemOf(1);
            problem.cards = {{"tile", "Do tile.", "## Card tile\ncarrier of tile\n"}};
            if (isWanted)
                problem.options["cards"] = "yes";
            QCOMPARE(usesCards(name.toStdString(), problem.options), isWanted);
            const auto policy = makePolicy(name.toStdString(), problem);
            const SimulatedWorld world(1);
            Tried root;
            root.text = world.root();
            root.trial = world.gate(root.text, {});
            QVERIFY((*policy)->begin(root));
            const Result<Move> move = (*policy)->next();
            const Ask &ask = std::get<Ask>(*move);
            QCOMPARE(ask.request.system.find("carrier of tile") != std::string::npos, isWanted);
            QCOMPARE(ask.cards.size(), std::size_t(isWanted ? 1 : 0));
            problem.options["arm"] = "none";
            QVERIFY(!usesCards(name.toStdString(), problem.options));
        }
    }

    void longProgramsAreNamedOnly()
    {
        const SimulatedRun run =
            runOf("adaexplore", 5, 40, false, {{"shown_bytes", "1000"}, {"large_chance", "1"}});
        const auto isLeftOut = [](const std::string &prompt) {
            return prompt.find("Its text is left out here.") != std::string::npos;
        };
        QVERIFY(std::any_of(run.prompts.begin(), run.prompts.end(), isLeftOut));
    }

    void docsNameEveryNumber()
    {
        QFile file(QString::fromStdString(klineage::test::sourcePath("/core/policy/README.md")));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QString text = QString::fromUtf8(file.readAll());
        for (const char *name : searches) {
            QVERIFY(text.contains(QStringLiteral("| `%1` |").arg(QLatin1String(name))));
            for (const std::string &option : policyOptions(name))
                QVERIFY2(text.contains(QStringLiteral("`%1`").arg(QString::fromStdString(option))),
                         option.c_str());
        }
    }
};

QTEST_GUILESS_MAIN(TestSearch)
#include "tst_search.moc"
