// SPDX-License-Identifier: GPL-3.0-or-later
// Policies alone: what they ask after what they observed. The gate is a number that the test makes up.
#include "core/policy/policy.h"
#include "core/talk/cardtext.h"
#include "core/talk/trialtext.h"

#include <QTest>

#include <clocale>

using namespace klineage;
using namespace klineage::policy;

namespace {

std::string file(const std::string &code)
{
    return "/*klineage\nsurface = \"opencl\"\n*/\n" + code + "\n";
}

Problem problem(std::vector<std::string> cards = {})
{
    Problem problem;
    problem.workload = "toy";
    problem.workloadText = "name = \"toy\"\n";
    problem.platform = "pocl";
    problem.rootName = "toy/pocl/K00";
    for (const std::string &name : cards)
        problem.cards.push_back(
            {name, "Do " + name + '.', "## Card " + name + "\ncarrier of " + name + '\n'});
    return problem;
}

/// As runs of now ask, with an index of the cards.
Problem bundled(const std::vector<std::string> &cards)
{
    Problem p = problem(cards);
    p.options = {{"moves", "own-first"}, {"card_text", "index"}};
    for (LoadedCard &card : p.cards)
        card.index = "line of " + card.name + '\n';
    return p;
}

Tried tried(const std::string &code, double speedup, gate::Change change = gate::Change::Gain)
{
    Tried result;
    result.text = file(code);
    result.speedup = speedup;
    result.trial.verdict.status = speedup > 0 ? gate::VerdictStatus::Correct : gate::VerdictStatus::Wrong;
    result.trial.verdict.message = "verdict of " + code;
    if (speedup > 0) {
        result.trial.latencyNs = {1000 / speedup, 0, 0};
        result.trial.verdict.comparisons.push_back({"parent", "", {1, 1, 1}, 1000, change});
    }
    return result;
}

/// A policy and the best so far; asks and answers in one call.
class Walk
{
public:
    explicit Walk(const std::string &name, Problem p)
        : m_policy(std::move(*makePolicy(name, std::move(p))))
    {
        if (!m_policy->begin(tried("root", 1)))
            qFatal("the policy does not begin");
    }

    /// "action|base|title", or "end: reason".
    QString ask()
    {
        Result<Move> move = m_policy->next();
        if (!move)
            return QString::fromStdString(move.error().message);
        if (const End *end = std::get_if<End>(&*move))
            return "end: " + QString::fromStdString(end->reason);
        last = std::get<Ask>(*move);
        std::string base = last.baseText.substr(file("").size() - 1);
        base = base.substr(0, base.find('\n'));
        return QString::fromStdString(last.action + '|' + base + '|' + last.title);
    }

    void gated(const Tried &result)
    {
        Outcome outcome;
        outcome.kind = Outcome::Kind::Gated;
        outcome.reply = "reply " + result.text;
        outcome.tried = result;
        outcome.improved = result.speedup > m_best;
        m_best = std::max(m_best, result.speedup);
        m_policy->observe(outcome);
    }

    void other(Outcome::Kind kind, const std::string &problemText = {})
    {
        Outcome outcome;
        outcome.kind = kind;
        outcome.reply = "words";
        outcome.problem = problemText;
        m_policy->observe(outcome);
    }

    void observe(const Outcome &outcome) { m_policy->observe(outcome); }

    void plan(const std::string &block)
    {
        const Result<std::string> read = m_policy->readPlan(block);
        if (read)
            other(Outcome::Kind::Planned);
        else
            other(Outcome::Kind::NoCandidate, read.error().message);
    }

    [[nodiscard]] QString prompt() const { return QString::fromStdString(last.request.messages.back().text); }

    Ask last;

private:
    std::unique_ptr<Policy> m_policy;
    double m_best = 1;
};

} // namespace

class TestPolicy : public QObject
{
    Q_OBJECT

private slots:
    void lineageWalk()
    {
        Walk walk("klineage", problem({"tile", "vectorize", "prefetch"}));
        QCOMPARE(walk.ask(), "load|root|Load 3 cards");
        QVERIFY(walk.last.wantsPlan);
        QVERIFY(walk.last.request.system.find("carrier of vectorize") != std::string::npos);
        const std::string prefix = walk.last.request.system;
        walk.plan("tile: missing\nprefetch: missing\nvectorize: present\n");

        QCOMPARE(walk.ask(), "complete|root|Apply tile");
        QVERIFY(walk.prompt().contains("Do tile."));
        QVERIFY(walk.prompt().contains("the root file"));
        walk.gated(tried("tiled badly", 0));
        QCOMPARE(walk.ask(), "repair|root|Repair: wrong");
        QVERIFY(walk.prompt().contains("verdict of tiled badly"));
        QVERIFY(walk.prompt().contains("the file of your last reply"));
        walk.gated(tried("tiled", 2));

        QCOMPARE(walk.ask(), "complete|tiled|Apply prefetch");
        QVERIFY(walk.prompt().contains("verdict of tiled"));
        walk.gated(tried("prefetched", 1.5, gate::Change::Loss)); // not kept
        QCOMPARE(walk.ask(), "replan|tiled|Replan from the best");
        QVERIFY(walk.prompt().contains("not kept"));
        QVERIFY(walk.prompt().contains("prefetch: correct"));
        QVERIFY(walk.prompt().contains("tiled\n")); // the best is not in view any more: its text is
        QCOMPARE(walk.last.request.system, prefix);
        QVERIFY(walk.last.request.messages.back().cacheUpToHere);
        walk.other(Outcome::Kind::Done, "bound by memory");
        QVERIFY(walk.ask().startsWith("end: The author says"));
    }

    void bundles()
    {
        Walk walk("klineage", bundled({"tile", "vectorize", "prefetch"}));
        QCOMPARE(walk.ask(), "own|root|The author's own strongest");
        QVERIFY(walk.last.cards.empty());
        for (const std::string &text : {walk.last.request.system, walk.prompt().toStdString()})
            QVERIFY(text.find("prefetch") == std::string::npos); // what it does without them comes first
        QVERIFY(walk.last.request.system.find("l2_promotion = ")
                != std::string::npos); // how a plan spells a tensor map
        walk.gated(tried("own badly", 0));
        QCOMPARE(walk.ask(), "repair|root|Repair: wrong");
        walk.gated(tried("own", 3));

        QCOMPARE(walk.ask(), "load|own|Load 3 cards");
        QVERIFY(walk.last.wantsPlan);
        QVERIFY(walk.prompt().contains("verdict of own"));
        QVERIFY(walk.prompt().contains("line of prefetch"));
        QVERIFY(!walk.prompt().contains("carrier of prefetch"));
        walk.plan(
            "tile: read\nprefetch: missing\nvectorize: present\n"); // reading by itself would cost a question

        QCOMPARE(walk.ask(), "complete|own|Apply 2 cards in one");
        QCOMPARE(walk.last.cards, (std::vector<std::string>{"tile", "prefetch"}));
        QVERIFY(walk.prompt().contains("carrier of prefetch"));
        QVERIFY(walk.prompt().contains("carrier of tile"));
        QVERIFY(walk.prompt().contains("your last candidate")); // no second time
        walk.gated(tried("both", 4));
        QCOMPARE(walk.ask(), "replan|both|Replan from the best");
        QVERIFY(walk.prompt().contains("tile, prefetch: correct"));
        QVERIFY(walk.prompt().contains("your own strongest: correct"));
    }

    /// As the first experiment with bundles asked: its runs are replayed.
    void readingFirstCostsAQuestion()
    {
        Problem p = bundled({"tile", "prefetch"});
        p.options["moves"] = "bundles";
        Walk walk("klineage", std::move(p));
        walk.ask();
        QVERIFY(walk.last.request.system.find("l2_promotion = ") == std::string::npos);
        walk.gated(tried("own", 3));
        QCOMPARE(walk.ask(), "load|own|Load 2 cards");
        walk.plan("tile: read\n");
        QCOMPARE(walk.ask(), "load|own|Load 2 cards");
        QVERIFY(walk.prompt().contains("carrier of tile"));
        walk.plan("tile: missing\n");
        QCOMPARE(walk.ask(), "complete|own|Apply tile");
    }

    void aBundleThatFailsIsSplit()
    {
        Walk walk("klineage", bundled({"a", "b", "c"}));
        walk.ask();
        walk.gated(tried("own", 3));
        walk.ask();
        walk.plan("a: missing\nb: missing\nc: missing\n");
        QCOMPARE(walk.ask(), "complete|own|Apply 3 cards in one");
        walk.gated(tried("abc", 0));
        QCOMPARE(walk.ask(), "repair|own|Repair: wrong");
        QVERIFY(walk.prompt().contains("(1 more repairs"));
        walk.gated(tried("abc again", 0));
        QCOMPARE(walk.ask(), "complete|own|Apply 2 cards in one");
        QVERIFY(walk.prompt().contains("You have seen their texts above."));
        walk.gated(tried("ab", 3.5));
        QCOMPARE(walk.ask(), "complete|ab|Apply c");
        for (int repair = 0; repair < 3;
             ++repair) { // it is c; alone it is given up after the usual number of repairs
            walk.gated(tried("c" + std::to_string(repair), 0));
            QCOMPARE(walk.ask(), "repair|ab|Repair: wrong");
        }
        walk.gated(tried("c last", 0));
        QCOMPARE(walk.ask(), "replan|ab|Replan from the best");
        QVERIFY(walk.prompt().contains("a, b, c: given up together"));
    }

    /// Nothing of the cards stands in the prefix then, whatever the option says that puts them there one by one.
    void aBundleBringsItsTexts()
    {
        Problem p = bundled({"tile"});
        p.options["card_text"] = "full";
        Walk walk("klineage", std::move(p));
        walk.ask();
        walk.gated(tried("own", 3));
        walk.ask();
        walk.plan("tile: missing\n");
        QCOMPARE(walk.ask(), "complete|own|Apply tile");
        QVERIFY(walk.prompt().contains("carrier of tile"));
    }

    void aBundleIsNoLongerThanAQuestion()
    {
        Problem p = bundled({"a", "b", "c"});
        for (LoadedCard &card : p.cards)
            card.text += std::string(9000, 'x');
        Walk walk("klineage", std::move(p));
        walk.ask();
        walk.gated(tried("own", 3));
        walk.ask();
        walk.plan("a: missing\nb: missing\nc: missing\n");
        QCOMPARE(walk.ask(), "complete|own|Apply 2 cards in one");
        walk.other(Outcome::Kind::Done, "none is sound here");
        QCOMPARE(walk.ask(), "complete|own|Apply c");
        walk.gated(tried("c", 2, gate::Change::Loss));
        QCOMPARE(walk.ask(), "replan|own|Replan from the best");
        QVERIFY(walk.prompt().contains("none is sound here"));
        QVERIFY(walk.prompt().contains("not kept"));
    }

    void withoutCardsItIsTheSameEngine()
    {
        Problem p = bundled({"tile"});
        p.options["arm"] = "none";
        for (const char *name : {"klineage", "generated-only"}) {
            Walk walk(name, p);
            QCOMPARE(walk.ask(), "own|root|The author's own strongest");
            walk.other(Outcome::Kind::Done, "it is the best already");
            QCOMPARE(walk.ask(), "generate|root|Improve the best");
            QVERIFY(walk.prompt().contains("it is the best already"));
            QVERIFY(!walk.prompt().contains("tile"));
        }
    }

    void keepsWhatIsNoLoss()
    {
        Walk walk("klineage", problem({"tile", "vectorize"}));
        walk.ask();
        walk.plan("tile: missing\nvectorize: missing\n");
        walk.ask();
        walk.gated(tried("tiled", 0.9, gate::Change::NoGain)); // makes room for the next
        QCOMPARE(walk.ask(), "complete|tiled|Apply vectorize");
        walk.gated(tried("both", 3));
        QCOMPARE(walk.ask(), "replan|both|Replan from the best");
    }

    void intentIsGivenUpAfterRepairs()
    {
        Problem p = problem({"tile", "vectorize"});
        p.options["repairs"] = "2";
        Walk walk("klineage", std::move(p));
        walk.ask();
        walk.plan("tile: missing\nvectorize: missing\n");
        QCOMPARE(walk.ask(), "complete|root|Apply tile");
        walk.gated(tried("a", 0));
        QCOMPARE(walk.ask(), "repair|root|Repair: wrong");
        walk.gated(tried("b", 0));
        QCOMPARE(walk.ask(), "repair|root|Repair: wrong");
        walk.gated(tried("c", 0));
        QCOMPARE(walk.ask(), "complete|root|Apply vectorize");
        QVERIFY(walk.prompt().contains("given up after 2 repairs"));
        walk.other(Outcome::Kind::Done, "rows are odd");
        QCOMPARE(walk.ask(), "replan|root|Replan from the best");
        QVERIFY(walk.prompt().contains("rows are odd"));
    }

    void unusableRepliesAreAskedAgain()
    {
        Walk walk("klineage", problem({"tile"}));
        QVERIFY(walk.ask().startsWith("load"));
        walk.plan("tyle: missing");
        QVERIFY(walk.ask().startsWith("load"));
        QVERIFY(walk.prompt().contains("did you mean 'tile'"));
        walk.plan("");
        QVERIFY(walk.ask().startsWith("load"));
        walk.plan("");
        // Three are enough: all cards, as they were retrieved.
        QCOMPARE(walk.ask(), "complete|root|Apply tile");
        for (int i = 0; i < 3; ++i) {
            walk.other(Outcome::Kind::NoCandidate, "The reply has no fenced block.");
            QVERIFY(walk.ask().contains(i < 2 ? "complete" : "replan"));
        }
    }

    void patienceEnds_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("action");
        QTest::newRow("generated-only") << "generated-only"
                                        << "generate|root";
        QTest::newRow("greedy") << "greedy"
                                << "suggest|root";
    }

    void patienceEnds()
    {
        QFETCH(QString, name);
        QFETCH(QString, action);
        Problem p = problem({"tile"}); // not shown: these work without
        p.options["patience"] = "3";
        Walk walk(name.toStdString(), std::move(p));
        for (int i = 0; i < 3; ++i) {
            QVERIFY2(walk.ask().startsWith(action), qPrintable(walk.ask()));
            QVERIFY(walk.last.request.system.find("carrier of tile") == std::string::npos);
            walk.gated(tried("try " + std::to_string(i), 0.5, gate::Change::Loss));
        }
        QVERIFY(walk.ask().startsWith("end: No new best in 3"));
    }

    void aNewBestResetsPatience()
    {
        Problem p = problem();
        p.options["patience"] = "2";
        Walk walk("greedy", std::move(p));
        walk.ask();
        walk.gated(tried("slow", 0.5));
        QCOMPARE(walk.ask(), "suggest|root|One change to the best");
        walk.gated(tried("fast", 2));
        QCOMPARE(walk.ask(), "suggest|fast|One change to the best");
        QCOMPARE(walk.last.request.messages.size(), std::size_t{1}); // a chat of its own
        QVERIFY(walk.prompt().contains("correct, but no faster"));
        walk.gated(tried("wrong", 0));
        QVERIFY(walk.ask().startsWith("suggest|fast"));
        QVERIFY(walk.prompt().contains("verdict of wrong"));
        walk.other(Outcome::Kind::NoCandidate, "two blocks");
        QVERIFY(walk.ask().startsWith("end:"));
    }

    /// Of now: each question stays within its bytes, has the best file once, and brings other cards' texts than the one before.
    void greedyQuestionsAreShort()
    {
        Problem p = problem({"tile", "vectorize", "prefetch", "huge"});
        p.present = {"unroll", "pad"};
        for (LoadedCard &card : p.cards) {
            card.index = "line of " + card.name + '\n';
            card.text += std::string(card.name == "huge" ? 60'000 : 12'000, '.') + '\n';
        }
        p.options = {{"cards", "yes"}, {"prompt_bytes", "40000"}, {"best", "paired"}};
        Walk walk("greedy", std::move(p));
        QCOMPARE(walk.ask(), "suggest|root|One change to the best");
        const auto bytes = [&] {
            return walk.last.request.system.size() + walk.last.request.messages.back().text.size();
        };
        QVERIFY(bytes() <= 40'000);
        const QString system = QString::fromStdString(walk.last.request.system);
        QVERIFY(system.contains("line of huge"));
        QVERIFY(system.contains(
            "Already there in the root, by the look of its code, and left out of these: unroll, pad."));
        QVERIFY(system.contains("const __grid_constant__ TensorMap"));
        QVERIFY(!system.contains("carrier of tile"));
        QCOMPARE(system.count("// root") + walk.prompt().count("// root"),
                 QString::fromStdString(file("root")).count("// root"));
        QCOMPARE(walk.last.cards, (std::vector<std::string>{"tile", "vectorize"}));
        QCOMPARE(walk.prompt().count("carrier of tile"), 1);
        QVERIFY(!walk.prompt().contains("carrier of prefetch"));

        Outcome outcome;
        outcome.kind = Outcome::Kind::Gated;
        outcome.tried = tried("wrong", 0);
        outcome.changes = "@@ -1,1 +1,1 @@\n-root\n+wrong\n";
        walk.observe(outcome);
        walk.ask();
        QVERIFY(bytes() <= 40'000);
        QCOMPARE(walk.last.cards, (std::vector<std::string>{"prefetch", "tile"}));
        QVERIFY(walk.prompt().contains("-root\n+wrong"));
        QVERIFY(walk.prompt().contains("verdict of wrong"));
        QVERIFY(!walk.prompt().contains(QString::fromStdString(outcome.tried.text)));
    }

    void longChatsAreSummarised()
    {
        Problem p = problem();
        p.options["chat_bytes"] = "4000";
        p.options["patience"] = "100";
        Walk walk("generated-only", std::move(p));
        std::size_t most = 0;
        for (int i = 0; i < 40; ++i) {
            QVERIFY(walk.ask().startsWith("generate"));
            std::size_t bytes = 0;
            for (const llm::Message &turn : walk.last.request.messages)
                bytes += turn.text.size();
            most = std::max(most, bytes);
            QVERIFY(walk.last.request.messages.size() % 2 == 1);
            QVERIFY(llm::checkRequest(walk.last.request));
            walk.gated(tried("try " + std::to_string(i), i % 7 == 3 ? 2 + i : 0.5));
            if (i == 38)
                QVERIFY(walk.last.request.messages.size() < 20);
        }
        QVERIFY2(most < 16000, std::to_string(most).c_str());
    }

    void badOptionsAreRefused()
    {
        QVERIFY(!makePolicy("klinage", problem()));
        QVERIFY(makePolicy("klinage", problem()).error().message.find("did you mean 'klineage'")
                != std::string::npos);
        Problem p = problem();
        p.options["patience"] = "many";
        QVERIFY(!makePolicy("greedy", p));
    }

    void cardHasAllFields()
    {
        skills::CardRecord record;
        record.card.name = "tile";
        record.card.revision = 4;
        record.card.category = "tiling";
        record.card.locus = "k-loop";
        record.card.intent = {"the intent", {"a/b/K01"}};
        record.card.anchor = {"the anchor", {}};
        record.card.preconditions = {{"the precondition", {"a/b/K01", "a/b/R01a"}}};
        record.card.effects = {{"the effect", {}}};
        record.card.risks = {{"the risk", {}}};
        record.card.scope = {{"sgemm"}, {"opencl"}, {"pocl"}, {"vectorization"}};
        record.card.evidence = {"a/b/K01"};
        record.card.provides = {{"k-loop", "shared_tile"}};
        record.card.requirements = {{"k-loop", "loop"}};
        record.card.conflicts = {{"k-loop", "texture"}};
        record.card.carrierFile = "carrier.cl";
        record.carrier = "code with\n```\na fence";
        record.verifications = {{"t", "softmax/pocl/K02", "x", 4, "correct", true, true}};
        const QString text = QString::fromStdString(cardText(record));
        for (const char *part :
             {"## Card tile", "Revision 4", "admitted", "the intent [a/b/K01]", "the anchor",
              "the precondition [a/b/K01, a/b/R01a]", "the effect", "the risk", "sgemm",
              "after vectorization", "shared_tile at k-loop", "Requires: loop", "Conflicts with: texture",
              "softmax/pocl/K02: correct, effect observed, held out (revision 4)",
              "````c\ncode with\n```\na fence\n````"})
            QVERIFY2(text.contains(part), part);
    }

    void verdictSaysAllThatHelps()
    {
        gate::Trial trial;
        trial.verdict.status = gate::VerdictStatus::Wrong;
        trial.verdict.stage = gate::Stage::Correctness;
        trial.verdict.reason = "mismatch";
        trial.verdict.message = "c[3] is wrong.";
        trial.verdict.evidence = {{"expected", "0.25"}};
        trial.verdict.hint = "Mind the tail.";
        trial.verdict.log = std::string(5000, 'a') + "\xc3\xa4" + std::string(5000, 'b');
        trial.seeds = {123456789};
        const QString text = QString::fromStdString(trialText(trial, 1000));
        for (const char *part : {"Verdict: wrong (stage correctness, mismatch). c[3] is wrong.",
                                 "- expected: 0.25", "Try: Mind the tail.", "bytes left out"})
            QVERIFY2(text.contains(part), part);
        QVERIFY(!text.contains("123456789"));
        QVERIFY(text.size() < 1500);
        QCOMPARE(latencyText(12345.6), std::string("12.346 µs"));
    }

    void textIsTheSameInEveryLocale()
    {
        gate::Trial trial = tried("x", 1.5).trial;
        trial.environment.facts = {{"roofline_bandwidth", "1.25e9"}, {"roofline_flops_fp32", "2.5e9"}};
        trial.achievedBytes = 1.1e9;
        trial.achievedFlops = 1.7e9;
        const std::string plain = trialText(trial);
        for (const char *name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"}) {
            if (std::setlocale(LC_ALL, name))
                break;
        }
        const std::string localized = trialText(trial);
        const bool comma = std::string_view(std::localeconv()->decimal_point) == ",";
        std::setlocale(LC_ALL, "C");
        QCOMPARE(localized, plain);
        if (!comma)
            QSKIP("No locale with a decimal comma is installed.");
    }
};

QTEST_GUILESS_MAIN(TestPolicy)
#include "tst_policy.moc"
