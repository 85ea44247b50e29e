// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/rederived.h"
#include "core/lineage/verify.h"
#include "core/run/deoptimize/proposal.h"
#include "core/run/deoptimize/rederive.h"
#include "tests/core/run/learnfixture.h"
#include "tests/paths.h"

#include <QTest>

using namespace klineage;
using namespace klineage::run;
using namespace klineage::tests;

namespace {

std::string proposalFor(const std::string &line)
{
    return block(R"({"category": ")" + line + R"(", "locus": "inner loop", "title": "no )" + line
                     + R"(", "summary": "Add )" + line + R"(."})" + '\n',
                 "json");
}

/// An honest author: removes the last optimization, and adds what it is asked to add. It looks at nothing but the request.
std::string honest(const llm::Request &request)
{
    const std::string &first = request.messages.front().text;
    std::vector<std::string> lines = toyLines(candidateOf(first));
    if (request.purpose == "propose")
        return lines.empty() ? block(R"({"complete": true, "reason": "Nothing is left."})"
                                     "\n",
                                     "json")
                             : proposalFor(lines.back());
    if (request.purpose == "rewrite") {
        lines.pop_back();
        return block(toyKernel(lines));
    }
    const std::size_t category = first.find("category `") + 10;
    lines.push_back(first.substr(category, first.find('`', category) - category));
    return block(toyKernel(lines, "// derived again\n"));
}

/// As the honest one but for one purpose.
BrainProvider::Brain except(const std::string &purpose, const BrainProvider::Brain &answer)
{
    return [=](const llm::Request &request) {
        return request.purpose == purpose ? answer(request) : honest(request);
    };
}

lineage::Lineage lineageOf(const LearnWorld &world, const std::string &folder = "pocl")
{
    Result<lineage::Lineage> lineage = lineage::readLineage(world.root() / "workloads/toy/lineages" / folder);
    if (!lineage)
        qFatal("%s", lineage.error().message.c_str());
    const lineage::VerifyReport report = lineage::verifyLineage(*lineage);
    for (const lineage::VerifyFinding &finding : report.findings)
        qWarning("%s: %s", finding.subject.c_str(), finding.message.c_str());
    if (!report.ok())
        qFatal("the lineage is not sound");
    return std::move(*lineage);
}

std::string codeOf(const Result<Ending> &ending)
{
    return ending ? ending->code : "error: " + ending.error().message;
}

} // namespace

class TestDeoptimize : public QObject
{
    Q_OBJECT

private slots:
    void walksToTheNaiveForm()
    {
        LearnWorld world;
        BrainProvider author(honest);
        const Result<Ending> ending = world.perform(deoptimize, author);
        QCOMPARE(codeOf(ending), std::string("complete"));
        QCOMPARE(ending->reason, std::string("Nothing is left."));
        const std::string round = " rewrite:valid rederive:accepted transition:accepted";
        QCOMPARE(world.story(), "load:valid" + round + round + round + " propose:complete load:valid");

        const lineage::Lineage lineage = lineageOf(world);
        QCOMPARE(lineage.states.size(), std::size_t{4});
        QCOMPARE(lineage.termination, std::string("complete"));
        QCOMPARE(lineage.run, std::string("run-1"));
        QCOMPARE(world.read("workloads/toy/lineages/pocl/K03.cl"), world.read("star.cl"));
        QCOMPARE(world.read("workloads/toy/lineages/pocl/K00.cl"), toyKernel({}));
        QCOMPARE(lineage.transitions[2].category, std::string("opt_c"));
        QCOMPARE(lineage.transitions[0].rederived, std::string("rederived/K01.cl"));
        QVERIFY(lineage.trialOf(lineage.states[0])->parent.empty());
        QVERIFY(lineage.branches.empty());
        QVERIFY(lineage.attempts.empty());
    }

    void theTextOfTheStrongerKernelIsNeverShownWhenItIsDerivedAgain()
    {
        LearnWorld world;
        BrainProvider author(honest);
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("complete"));
        int asked = 0;
        for (const llm::Request &request : author.asked) {
            if (request.purpose != "rederive")
                continue;
            ++asked;
            const std::string removed = "opt_" + std::string(1, "cba"[asked - 1]);
            std::string all = request.system;
            for (const llm::Message &message : request.messages)
                all += message.text;
            QVERIFY(all.find("category `" + removed + "`") != std::string::npos);
            QVERIFY(all.find("int " + removed) == std::string::npos);
            QVERIFY(all.find("no " + removed) == std::string::npos);  // the title
            QVERIFY(all.find("Add " + removed) == std::string::npos); // the summary
            QCOMPARE(request.messages.size(), std::size_t{1});
        }
        QCOMPARE(asked, 3);
    }

    void rewritesThatAreNotKept_data()
    {
        QTest::addColumn<QString>("reply");
        QTest::addColumn<QString>("outcome");
        QTest::addColumn<QString>("reason");
        QTest::addColumn<int>("attempts");
        const auto row = [](const char *name, const std::string &reply, const char *outcome,
                            const char *reason, int attempts) {
            QTest::newRow(name) << QString::fromStdString(reply) << outcome << reason << attempts;
        };
        const std::string star = toyKernel({"opt_a", "opt_b", "opt_c"});
        row("same text", block(star), "failed", "nothing was removed", 0);
        row("only a comment", block(toyKernel({"opt_a", "opt_b", "opt_c"}, "// simpler\n")), "failed",
            "nothing was removed", 0);
        row("wrong", block(toyKernel({"opt_a", "wrong"})), "rejected",
            "wrong at the correctness stage: Element y[0, 1] is 2, expected 1.", 2);
        row("faster", block(toyKernel({"opt_a", "opt_b", "opt_c", "opt_d"})), "rejected",
            "It is faster than the kernel that it was made from (2.000×)", 2);
        row("prose", "I would rather not.", "failed", "has no fenced block", 0);
        row("two fences", block(toyKernel({"opt_a", "wrong"})) + block(star), "failed", "nothing was removed",
            0);
        row("open fence", "```c\n" + star, "failed", "is not closed", 0);
        row("empty", "", "failed", "has no fenced block", 0);
        row("NUL", block(star + std::string(1, '\0')), "failed", "NUL byte", 0);
        row("huge", block(std::string(3u << 19, 'x') + '\n'), "failed", "does not begin with '/*klineage'",
            0);
        row("no candidate", block("__kernel void toy() {}\n"), "failed", "does not begin with '/*klineage'",
            0);
        row("other surface",
            block(
                "/*klineage\nsurface = \"cuda\"\n[[launch]]\nkernel = \"t\"\ngrid = [1]\nblock = [1]\nargs = [\"x\"]\n*/\n"),
            "failed", "written for the surface 'cuda'", 0);
    }

    void rewritesThatAreNotKept()
    {
        QFETCH(QString, reply);
        QFETCH(QString, outcome);
        QFETCH(QString, reason);
        QFETCH(int, attempts);
        LearnWorld world;
        world.settings.options["rejections"] = "2";
        const std::string text(reply.toStdString());
        BrainProvider author(except("rewrite", [&](const llm::Request &) { return text; }));
        const Result<Ending> ending = world.perform(deoptimize, author);
        QVERIFY2(codeOf(ending) == "rejection_limit", codeOf(ending).c_str());
        const std::string round = " rewrite:" + outcome.toStdString();
        QCOMPARE(world.story(), "load:valid" + round + round);
        QVERIFY2(QString::fromStdString(world.steps[1].reason).contains(reason),
                 world.steps[1].reason.c_str());
        QVERIFY(ending->reason.starts_with("2 simplifications in a row were not accepted."));

        const Result<lineage::Lineage> lineage =
            lineage::readLineage(world.root() / "workloads/toy/lineages/pocl");
        QVERIFY(lineage.has_value());
        QCOMPARE(lineage->states.size(), std::size_t{1});
        QCOMPARE(lineage->termination, std::string("rejection_limit"));
        QCOMPARE(lineage->attempts.size(), static_cast<std::size_t>(attempts));
        if (attempts > 0) {
            QCOMPARE(lineage->attempts[0].parent, std::string("K00"));
            QCOMPARE(lineage->attempts[0].id, std::string("R00a"));
            QVERIFY(lineage->trialOf(lineage->attempts[0]) != nullptr);
        }
        // The author is told what was rejected before.
        const auto last = std::find_if(author.asked.rbegin(), author.asked.rend(),
                                       [](const llm::Request &r) { return r.purpose == "propose"; });
        QVERIFY(last->messages[0].text.find("- `opt_c` at `inner loop` in this kernel: ")
                != std::string::npos);
    }

    void proposalsThatCannotBeUsed_data()
    {
        QTest::addColumn<QString>("reply");
        QTest::addColumn<QString>("reason");
        QTest::newRow("unknown key") << R"({"category": "a", "locus": "l", "title": "t", "sumary": "s"})"
                                     << "summary";
        QTest::newRow("no category")
            << R"({"category": "Two Words", "locus": "l", "title": "t", "summary": "s"})"
            << "at most 40 of a-z";
        QTest::newRow("line break") << R"({"category": "a", "locus": "l\nl", "title": "t", "summary": "s"})"
                                    << "expected one line of text";
        QTest::newRow("complete without reason") << R"({"complete": true})"
                                                 << "reason";
        QTest::newRow("not complete") << R"({"complete": false})"
                                      << "category";
        QTest::newRow("array") << "[1]"
                               << "object";
        QTest::newRow("no JSON") << "{"
                                 << "the JSON of the reply:";
        QTest::newRow("deep") << QString(60000, '[') << "the JSON of the reply:";
        QTest::newRow("long") << QString(70000, ' ') << "longer than 64 KiB";
    }

    void proposalsThatCannotBeUsed()
    {
        QFETCH(QString, reply);
        QFETCH(QString, reason);
        LearnWorld world;
        world.settings.options["rejections"] = "1";
        BrainProvider author([&](const llm::Request &) { return block(reply.toStdString() + "\n", "json"); });
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("rejection_limit"));
        QCOMPARE(world.story(), std::string("load:valid propose:failed"));
        QVERIFY2(QString::fromStdString(world.steps[1].reason).contains(reason),
                 world.steps[1].reason.c_str());
        QCOMPARE(author.asked.size(), std::size_t{2}); // once more, with the reason
        QVERIFY(author.asked[1].messages.back().text.find("could not be used") != std::string::npos);
        QCOMPARE(world.steps[1].exchanges, (std::vector<int>{1, 2}));
    }

    void aReplyThatWasCutOffIsNoCandidate()
    {
        LearnWorld world;
        world.settings.options["rejections"] = "1";
        BrainProvider author(honest);
        author.stop = llm::StopReason::MaxTokens;
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("rejection_limit"));
        QVERIFY(world.steps[1].reason.starts_with("The reply was cut off at 32768 tokens"));
        QCOMPARE(author.asked.at(0).maxOutputTokens, 16384);
        QCOMPARE(author.asked.at(1).maxOutputTokens, 32768); // not asked again within the same limit
    }

    void theSettingsSayWhatGoesToTheServer()
    {
        LearnWorld world;
        world.settings.options = {
            {"rejections", "1"}, {"max_output_tokens", "1000"}, {"most_output_tokens", "1000"}};
        world.settings.author = {{"temperature", "0.25"}, {"effort", "high"}, {"extra_body", "{ \"k\": 1 }"}};
        BrainProvider author([](const llm::Request &) { return std::string("no block"); });
        author.stop = llm::StopReason::MaxTokens;
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("rejection_limit"));
        const llm::Request &last = author.asked.back();
        QCOMPARE(last.maxOutputTokens, 1000);
        QCOMPARE(last.temperature, std::optional(0.25));
        QCOMPARE(last.effort, std::string("high"));
        QCOMPARE(last.extraBody, std::string(R"({"k":1})"));
    }

    void rederivations_data()
    {
        QTest::addColumn<QStringList>("lines"); // what each try adds
        QTest::addColumn<QString>("story");
        QTest::addColumn<QString>("reason");
        const QString kept = " transition:accepted";
        QTest::newRow("as fast") << QStringList{"opt_c"} << "rederive:accepted" + kept << "";
        QTest::newRow("2 % slower") << QStringList{"opt_c slow_2"} << "rederive:accepted" + kept << "";
        QTest::newRow("4 % slower") << QStringList{"opt_c slow_4"} << "rederive:rejected rewrite:rejected"
                                    << "takes 1.040× as long as the kernel that it should match.";
        QTest::newRow("2 % faster") << QStringList{"opt_c fast_2"} << "rederive:accepted" + kept << "";
        QTest::newRow("faster") << QStringList{"opt_c fast_10"} << "rederive:rejected rewrite:rejected"
                                << "takes only 0.909× as long as the kernel that it should match";
        QTest::newRow("wrong") << QStringList{"opt_c wrong"} << "rederive:rejected rewrite:rejected"
                               << "Element y[0, 1] is 2";
        QTest::newRow("nothing applied") << QStringList{""} << "rederive:failed rewrite:rejected"
                                         << "nothing was applied";
        QTest::newRow("repaired") << QStringList{"opt_c wrong", "opt_c slow_9", "opt_c"}
                                  << "rederive:rejected rederive:rejected rederive:accepted" + kept << "";
    }

    void rederivations()
    {
        QFETCH(QStringList, lines);
        QFETCH(QString, story);
        QFETCH(QString, reason);
        LearnWorld world;
        world.settings.maxSteps = 1;
        world.settings.options["rejections"] = "1";
        world.settings.options["repairs"] = std::to_string(lines.size() - 1);
        world.settings.options["bounds"] = "both";
        BrainProvider author(except("rederive", [&](const llm::Request &request) {
            const auto attempt = static_cast<qsizetype>(request.messages.size() / 2);
            std::vector<std::string> all = toyLines(candidateOf(request.messages[0].text));
            for (const QString &line : lines[attempt].split(' ', Qt::SkipEmptyParts))
                all.push_back(line.toStdString());
            return block(toyKernel(all, "// derived again\n"));
        }));
        const Result<Ending> ending = world.perform(deoptimize, author);
        const bool kept = story.endsWith("transition:accepted");
        QCOMPARE(codeOf(ending), std::string(kept ? "step_limit" : "rejection_limit"));
        QCOMPARE(world.story(),
                 "load:valid rewrite:valid " + story.toStdString() + (kept ? " load:valid" : ""));
        const lineage::Lineage lineage = lineageOf(world);
        QCOMPARE(lineage.states.size(), std::size_t(kept ? 2 : 1));
        QCOMPARE(lineage.attempts.size(), std::size_t(kept ? 0 : 1));
        if (kept) {
            const gate::Trial *match = lineage.findTrial(lineage.transitions[0].rederivedMatch);
            QVERIFY(lineage::matchOf(*match, 0.03) == lineage::Match::Equal);
        } else {
            QVERIFY2(QString::fromStdString(lineage.attempts[0].reason).contains(reason),
                     lineage.attempts[0].reason.c_str());
            QVERIFY(lineage.attempts[0].reason.starts_with("It could not be derived forward again"));
        }
        // Earlier tries are evidence too: branches of the states that they were compared with.
        if (kept)
            QCOMPARE(lineage.branches.empty(), lines.size() == 1);
        for (const lineage::Branch &branch : lineage.branches)
            QVERIFY(fs::exists(lineage.directory / branch.file));
    }

    void aWalkFromBeforeTheLowerBoundKeepsWhatIsFaster()
    {
        LearnWorld world;
        world.settings.maxSteps = 1;
        BrainProvider author(except("rederive", [&](const llm::Request &request) {
            std::vector<std::string> all = toyLines(candidateOf(request.messages[0].text));
            all.insert(all.end(), {"opt_c", "fast_10"});
            return block(toyKernel(all));
        }));
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("step_limit"));
        const lineage::Lineage lineage = lineageOf(world);
        QCOMPARE(lineage.states.size(), std::size_t{2});
        QCOMPARE(lineage::countRederived(lineage).faster, std::size_t{1});
    }

    void comparesAgainOnAnUnsteadyDevice_data()
    {
        QTest::addColumn<int>("unsteady");
        QTest::addColumn<bool>("kept");
        QTest::newRow("twice") << 2 << true;
        QTest::newRow("always") << 1000 << false;
    }

    void comparesAgainOnAnUnsteadyDevice()
    {
        QFETCH(int, unsteady);
        QFETCH(bool, kept);
        LearnWorld world;
        world.settings.maxSteps = 1;
        world.settings.options["rejections"] = "1";
        world.settings.options["repairs"] = "0";
        world.gate.unsteadyMatches = unsteady;
        BrainProvider author(honest);
        QCOMPARE(codeOf(world.perform(deoptimize, author)),
                 std::string(kept ? "step_limit" : "rejection_limit"));
        const lineage::Lineage lineage = lineageOf(world);
        QCOMPARE(lineage.states.size(), std::size_t(kept ? 2 : 1));
        if (!kept)
            QVERIFY(lineage.attempts[0].reason.find("too unsteady to compare") != std::string::npos);
    }

    void stopsAtItsStepLimit()
    {
        LearnWorld world;
        world.settings.maxSteps = 2;
        BrainProvider author(honest);
        const Result<Ending> ending = world.perform(deoptimize, author);
        QCOMPARE(codeOf(ending), std::string("step_limit"));
        const lineage::Lineage lineage = lineageOf(world);
        QCOMPARE(lineage.states.size(), std::size_t{3});
        QCOMPARE(lineage.termination, std::string("step_limit"));
        QCOMPARE(lineage.reason, std::string("2 steps were accepted, the limit of the run."));
    }

    void aStoppedWalkIsALineageAndGoesOn()
    {
        LearnWorld world;
        BrainProvider author(honest);
        int trials = 0;
        world.gate.beforeTrial = [&] {
            if (++trials == 8)
                world.stop.request_stop();
        };
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("stopped"));
        const lineage::Lineage partial = lineageOf(world);
        QCOMPARE(partial.states.size(), std::size_t{2});
        QCOMPARE(partial.termination, std::string("unknown"));
        QVERIFY(partial.reason.starts_with("The walk was broken off: "));

        world.stop = std::stop_source();
        const std::size_t asked = author.asked.size();
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("complete"));
        QCOMPARE(lineageOf(world).states.size(), std::size_t{4});
        QCOMPARE(author.asked.size(), std::size_t{10}); // 3 for each step and the last question: none twice
        QVERIFY(asked < author.asked.size());
    }

    void aKillAtAnyMomentChangesNothing()
    {
        LearnWorld world;
        world.write("star.cl", toyKernel({"opt_a", "opt_b"}));
        BrainProvider author(except("rewrite", [](const llm::Request &request) {
            // The first idea in each kernel is wrong, so that there are attempts too.
            return request.messages[0].text.find("in this kernel:") == std::string::npos ? block(toyKernel(
                       {"wrong"}, std::to_string(request.messages[0].text.size()).insert(0, "// ") + "\n"))
                                                                                         : honest(request);
        }));
        const KillRecorder kills(world, author);
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("complete"));
        const auto expected = filesBelow(world.root() / "workloads");
        const std::string story = world.story();
        const std::size_t exchanges = author.asked.size();
        QVERIFY(expected.count("toy/lineages/pocl/R01a.cl") == 1);
        QVERIFY(kills.snapshots().size() > 40);
        const std::size_t stride = klineage::test::isSanitized() ? 3 : 1;
        for (std::size_t i = 0; i < kills.snapshots().size(); i += stride) {
            LearnWorld again(kills.snapshots()[i], world.settings);
            const std::string transcript = again.read("runs/run-1/transcript.jsonl");
            BrainProvider fresh([&](const llm::Request &request) {
                for (const llm::Request &before : author.asked) {
                    if (llm::fingerprint(before) == llm::fingerprint(request))
                        return before.purpose == "rewrite"
                                       && before.messages[0].text.find("in this kernel:") == std::string::npos
                                   ? block(toyKernel({"wrong"},
                                                     "// " + std::to_string(request.messages[0].text.size())
                                                         + "\n"))
                                   : honest(request);
                }
                return std::string("a question that the whole run did not ask");
            });
            QCOMPARE(codeOf(again.perform(deoptimize, fresh)), std::string("complete"));
            QCOMPARE(again.story(), story);
            QVERIFY(filesBelow(again.root() / "workloads") == expected);
            const auto recorded = std::count(transcript.begin(), transcript.end(), '\n');
            QCOMPARE(fresh.asked.size() + static_cast<std::size_t>(recorded), exchanges);
        }
    }

    void anAuthorThatFailsLeavesALineageOfWhatWasReached()
    {
        LearnWorld world;
        BrainProvider author(except("propose", [](const llm::Request &request) {
            return request.messages[0].text.find("int opt_b") == std::string::npos
                       ? std::string(3u << 20, 'x') // more than an author may write
                       : honest(request);
        }));
        const Result<Ending> ending = world.perform(deoptimize, author);
        QVERIFY(!ending.has_value());
        QVERIFY2(ending.error().message.find("longer than 2 MiB") != std::string::npos,
                 ending.error().message.c_str());
        const lineage::Lineage lineage = lineageOf(world);
        QCOMPARE(lineage.states.size(), std::size_t{3});
        QCOMPARE(lineage.termination, std::string("unknown"));
    }

    void aReplayAsksNothingAndWritesNothing()
    {
        LearnWorld world;
        BrainProvider author(honest);
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("complete"));
        const fs::path toml = world.root() / "workloads/toy/lineages/pocl/lineage.toml";
        const auto written = fs::last_write_time(toml);
        const int calls = world.gate.calls;
        BrainProvider silent([](const llm::Request &) { return std::string("nobody is here"); });
        QCOMPARE(codeOf(world.perform(deoptimize, silent)), std::string("complete"));
        QVERIFY(silent.asked.empty());
        QCOMPARE(world.gate.calls, calls);
        QVERIFY(fs::last_write_time(toml) == written);
        fs::remove_all(toml.parent_path()); // the record alone is enough
        QCOMPARE(codeOf(world.perform(deoptimize, silent)), std::string("complete"));
        QCOMPARE(lineageOf(world).states.size(), std::size_t{4});
    }

    void aLineageOfOthersIsNotReplaced()
    {
        LearnWorld world;
        BrainProvider author(honest);
        world.write("workloads/toy/lineages/pocl/lineage.toml", "by hand");
        const Result<Ending> refused = world.perform(deoptimize, author);
        QVERIFY(!refused.has_value());
        QVERIFY(refused.error().message.find("give the new one another name") != std::string::npos);
        QVERIFY(author.asked.empty()); // said before anything is spent
        QCOMPARE(world.read("workloads/toy/lineages/pocl/lineage.toml"), std::string("by hand"));

        world.settings.id = "run-2";
        world.settings.options["name"] = "walked";
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("complete"));
        QCOMPARE(lineageOf(world, "pocl-walked").key(), std::string("toy/pocl-walked"));
    }

    void whatOthersAddedToTheLineageIsKept()
    {
        LearnWorld world;
        BrainProvider author(honest);
        world.settings.maxSteps = 1;
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("step_limit"));
        lineage::Lineage lineage = lineageOf(world);
        gate::Trial trial = lineage.trials.front();
        trial.id = "00000000000000ff";
        const std::string text = toyKernel({"opt_q"});
        trial.candidate = files::sha256Hex(text);
        trial.parent = lineage.findTrial(lineage.states[0].trial)->candidate;
        QVERIFY(lineage::storeBranch(lineage.directory, text, kernel::Surface::OpenCl).has_value());
        QVERIFY(lineage::appendTrial(lineage.directory, trial).has_value());
        world.write("workloads/toy/lineages/pocl/K01.cl", "damaged"); // so that it is written again
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("step_limit"));
        lineage = lineageOf(world);
        QVERIFY(lineage.findTrial("00000000000000ff") != nullptr);
        QCOMPARE(lineage.branches.size(), std::size_t{1});
        QVERIFY(fs::exists(lineage.directory / lineage.branches[0].file));
    }

    void badBeginnings_data()
    {
        QTest::addColumn<QString>("subject");
        QTest::addColumn<QString>("key");
        QTest::addColumn<QString>("value");
        QTest::addColumn<QString>("message");
        QTest::newRow("no such file") << "nowhere.cl"
                                      << ""
                                      << ""
                                      << "is no candidate file and no state";
        QTest::newRow("other workload") << "sgemm/pocl"
                                        << ""
                                        << ""
                                        << "belongs to the workload 'sgemm'";
        QTest::newRow("out of the workspace") << "toy/../K00"
                                              << ""
                                              << ""
                                              << "is no candidate file and no state";
        QTest::newRow("wrong kernel") << "wrong.cl"
                                      << ""
                                      << ""
                                      << "cannot be taken apart, because it is not correct";
        QTest::newRow("no device") << "unavailable.cl"
                                   << ""
                                   << ""
                                   << "There is no device.";
        QTest::newRow("unknown option") << "star.cl"
                                        << "rejectoins"
                                        << "3"
                                        << "did you mean 'rejections'?";
        QTest::newRow("bad option") << "star.cl"
                                    << "repairs"
                                    << "many"
                                    << "expected a whole number from 0 to 1000";
        QTest::newRow("bad limit, before anything is gated") << "wrong.cl"
                                                             << "max_output_tokens"
                                                             << "60"
                                                             << "expected a whole number from 256";
        QTest::newRow("bad name") << "star.cl"
                                  << "name"
                                  << "../x"
                                  << "is no name for a lineage";
    }

    void badBeginnings()
    {
        QFETCH(QString, subject);
        QFETCH(QString, key);
        QFETCH(QString, value);
        QFETCH(QString, message);
        LearnWorld world;
        world.write("wrong.cl", toyKernel({"wrong"}));
        world.write("unavailable.cl", toyKernel({"unavailable"}));
        world.settings.subject = subject.toStdString();
        if (!key.isEmpty())
            world.settings.options[key.toStdString()] = value.toStdString();
        BrainProvider author(honest);
        const Result<Ending> ending = world.perform(deoptimize, author);
        QVERIFY(!ending.has_value());
        QVERIFY2(QString::fromStdString(ending.error().message).contains(message),
                 ending.error().message.c_str());
        QVERIFY(author.asked.empty());
        QVERIFY(!fs::exists(world.root() / "workloads/toy/lineages/pocl"));
    }

    void startsFromAStateOfALineage()
    {
        LearnWorld world;
        BrainProvider author(honest);
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("complete"));
        world.settings.id = "run-2";
        world.settings.subject = "toy/pocl/K02";
        world.settings.options["name"] = "again";
        QCOMPARE(codeOf(world.perform(deoptimize, author)), std::string("complete"));
        const lineage::Lineage lineage = lineageOf(world, "pocl-again");
        QCOMPARE(lineage.states.size(), std::size_t{3});
        QVERIFY(lineage.origin.starts_with("From toy/pocl/K02 by guided deoptimization"));
        QCOMPARE(lineage.states.back().title, std::string("no opt_c"));
    }
};

QTEST_GUILESS_MAIN(TestDeoptimize)
#include "tst_deoptimize.moc"

#include <algorithm>
