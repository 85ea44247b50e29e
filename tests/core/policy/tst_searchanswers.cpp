// SPDX-License-Identifier: GPL-3.0-or-later
// No answer breaks a search, and none of its questions is longer than it may be.
#include "tests/core/policy/searchlaws.h"
#include "tests/core/policy/simulatedworld.h"
#include "tests/paths.h"

#include <QTest>

#include <cmath>
#include <set>

using namespace klineage;
using namespace klineage::policy;
using namespace klineage::tests;

namespace {

using Options = std::map<std::string, std::string>;

/// Anything that a run may answer, whatever was asked.
Outcome anyOutcome(Draws &draws, const Ask &ask, Policy &policy, int number)
{
    using Kind = Outcome::Kind;
    Outcome outcome;
    outcome.reply = draws.below(3) == 0 ? std::string() : "Words.\n```\nx\n```";
    outcome.problem = "because";
    const std::size_t drawn = draws.below(10);
    if (drawn == 0 || (drawn < 3 && ask.wantsPlan)) {
        outcome.kind = Kind::NoCandidate;
    } else if (drawn == 1) {
        outcome.kind = Kind::Wrapper;
    } else if (drawn == 2) {
        outcome.kind = Kind::Done;
    } else if (ask.wantsPlan) {
        outcome.kind = policy.readPlan("a plan\n") ? Kind::Planned : Kind::NoCandidate;
    } else {
        outcome.kind = Kind::Gated;
        outcome.tried.text =
            "/*klineage\n*/\nint x" + std::to_string(number) + std::string(draws.below(50), 'y') + ";\n";
        gate::Verdict &verdict = outcome.tried.trial.verdict;
        verdict.status = static_cast<gate::VerdictStatus>(draws.below(7));
        verdict.message = "message " + std::to_string(draws.below(3));
        if (draws.below(2) == 0)
            verdict.status = gate::VerdictStatus::Correct;
        if (verdict.status == gate::VerdictStatus::Correct) {
            const double speedup = std::exp(draws.uniform() * 2 - 1);
            outcome.tried.trial.latencyNs = {1000, 1000, 1000};
            outcome.tried.speedup = speedup;
            if (draws.below(10) > 0)
                verdict.comparisons = {{"parent",
                                        "",
                                        {speedup, speedup, speedup},
                                        1000,
                                        speedup > 1.02   ? gate::Change::Gain
                                        : speedup < 0.98 ? gate::Change::Loss
                                                         : gate::Change::NoGain}};
        }
    }
    return outcome;
}

} // namespace

class TestSearchAnswers : public QObject
{
    Q_OBJECT

private slots:
    void anyAnswersAreTaken_data()
    {
        QTest::addColumn<QString>("name");
        for (const char *name : {"kernel-smith", "kernelpro", "adaexplore", "accelopt"})
            QTest::newRow(name) << name;
    }

    void anyAnswersAreTaken()
    {
        QFETCH(QString, name);
        const SimulatedWorld world(1);
        int ended = 0;
        int asked = 0;
        const std::uint64_t seeds = klineage::test::isSanitized() ? 60 : 200;
        for (std::uint64_t seed = 0; seed < seeds; ++seed) {
            Options options{{"done_limit", seed % 4 == 0 ? "1000" : "2"}};
            if (seed % 3 == 0)
                options.insert(
                    {{"migration_interval", "2"}, {"population", "8"}, {"batch", "3"}, {"fixes", "2"}});
            const auto made = makePolicy(name.toStdString(), problemOf(seed, options));
            QVERIFY(made);
            Policy &policy = **made;
            Tried root;
            root.text = world.root();
            root.trial = world.gate(root.text, {});
            QVERIFY(policy.begin(root));
            Draws draws(seed);
            for (int number = 0; number < 70; ++number) {
                const Result<Move> move = policy.next();
                QVERIFY2(move, move ? "" : move.error().message.c_str());
                if (const End *end = std::get_if<End>(&*move)) {
                    QVERIFY(end->reason.ends_with('.') || end->reason.find("because") != std::string::npos);
                    ++ended;
                    break;
                }
                const Ask &ask = std::get<Ask>(*move);
                QVERIFY(!ask.title.empty() && !ask.baseText.empty());
                QVERIFY(!policy.readPlan({}));
                policy.observe(anyOutcome(draws, ask, policy, number));
                ++asked;
                const QString law = brokenLaw(policy);
                QVERIFY2(law.isEmpty(), qPrintable(law));
            }
        }
        // An end is rare: of accelopt's runs none of the first sixty comes to one.
        QVERIFY2((ended > 0 || klineage::test::isSanitized()) && asked > 10 * static_cast<int>(seeds),
                 qPrintable(QStringLiteral("%1 ended, %2 questions").arg(ended).arg(asked)));
    }

    void questionsStayWithinTheirBytes_data() { anyAnswersAreTaken_data(); }

    /// However large programs and cards are; every card's text has its turn, and its line is in each question.
    void questionsStayWithinTheirBytes()
    {
        QFETCH(QString, name);
        Problem problem = problemOf(3, {{"cards", "yes"}, {"prompt_bytes", "40000"}});
        for (const char *card : {"tile", "vectorize", "prefetch"}) {
            problem.cards.emplace_back().name = card;
            problem.cards.back().index = std::string("line of ") + card + '\n';
            problem.cards.back().text = std::string("text of ") + card + ' ' + std::string(7000, '.') + '\n';
        }
        const auto made = makePolicy(name.toStdString(), std::move(problem));
        QVERIFY(made);
        Policy &policy = **made;
        const SimulatedWorld world(1);
        Tried root;
        root.text = world.root();
        root.trial = world.gate(root.text, {});
        QVERIFY(policy.begin(root));
        Draws draws(1);
        std::set<std::string> shown;
        for (int number = 0; number < 40; ++number) {
            const Result<Move> move = policy.next();
            QVERIFY2(move, move ? "" : move.error().message.c_str());
            if (std::holds_alternative<End>(*move))
                break;
            const Ask &ask = std::get<Ask>(*move);
            const std::string &system = ask.request.system;
            const std::string &text = ask.request.messages.back().text;
            QVERIFY2(system.size() + text.size() <= 40'000,
                     qPrintable(QString::number(system.size() + text.size())));
            for (const char *card : {"tile", "vectorize", "prefetch"}) {
                QVERIFY(system.find(std::string("line of ") + card) != std::string::npos);
                QVERIFY(system.find(std::string("text of ") + card) == std::string::npos);
                const bool has = text.find(std::string("text of ") + card) != std::string::npos;
                QCOMPARE(std::count(ask.cards.begin(), ask.cards.end(), card), has ? 1 : 0);
                if (has)
                    shown.insert(card);
            }
            Outcome outcome = anyOutcome(draws, ask, policy, number);
            if (outcome.kind == Outcome::Kind::Gated)
                outcome.tried.text += "//" + std::string(6000, 'z') + '\n';
            policy.observe(outcome);
        }
        QCOMPARE(shown.size(), std::size_t{3});
    }
};

QTEST_GUILESS_MAIN(TestSearchAnswers)
#include "tst_searchanswers.moc"
