// SPDX-License-Identifier: GPL-3.0-or-later
// The verbs that make a run do something: start, resume, step, replay.
#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/runsession.h"
#include "app/cli/runstart.h"

#include "core/files/atomicfile.h"
#include "core/run/drive/replaycheck.h"
#include "core/run/drive/runprovider.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace klineage::cli {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

int report(const Session &session, const fs::path &directory, const Result<run::Ending> &ending)
{
    const Result<run::RunRecord> record = run::readRun(directory);
    if (!record)
        return session.fail(record.error());
    if (!ending && !session.json())
        printSummary(*record);
    if (!ending)
        return session.fail(ending.error());
    if (session.json())
        session.print(summaryJson(*record));
    else
        printSummary(*record);
    return ending->code == "stopped" ? exitNegative : exitOk;
}

/// A person's answer to one question: the run's own provider answers the ones after it.
class GivenReply : public llm::Provider
{
public:
    GivenReply(std::string text, llm::Provider &others)
        : m_text(std::move(text))
        , m_others(others)
    {}
    [[nodiscard]] std::string name() const override { return m_questions > 1 ? m_others.name() : "manual"; }
    [[nodiscard]] bool isPaid() const override { return m_questions > 0 && m_others.isPaid(); }
    [[nodiscard]] tl::expected<llm::Reply, llm::ProviderFailure> ask(const llm::Request &request,
                                                                     std::stop_token stop,
                                                                     const llm::TextCallback &onText) override
    {
        if (m_questions++ > 0)
            return m_others.ask(request, std::move(stop), onText);
        llm::Reply reply;
        reply.text = m_text;
        return reply;
    }

private:
    std::string m_text;
    llm::Provider &m_others;
    int m_questions = 0; ///< asked so far
};

/// How far to go on with a run, and with whose words.
struct Advance {
    PoolChoice pool;
    int mostNewSteps = 0;  ///< 0: to its end
    std::string replyFile; ///< answers the next question; empty: the run's provider does
};

/// Goes on with the run until it ends, Ctrl+C, or so many new steps.
int goOn(const Session &session, const fs::path &directory, const Advance &advance)
{
    const Result<fs::path> workspace = session.workspaceRoot();
    if (!workspace)
        return session.fail(workspace.error());
    const Result<run::RunRecord> before = run::readRun(directory);
    if (!before)
        return session.fail(before.error());
    if (before->state == "finished") {
        if (!session.json())
            std::fprintf(stderr, "The run is finished; there is nothing to go on with.\n");
        return report(session, directory, before->ending);
    }
    const InterruptWatcher interrupts;
    const Result<llm::PriceTable> prices = llm::loadPrices(*workspace);
    if (!prices)
        return session.fail(prices.error());
    RunPrinter printer(static_cast<int>(before->steps.size()));
    const Result<std::unique_ptr<llm::Provider>> provider =
        run::makeRunProvider(before->settings, *workspace, directory, {}, {},
                             [&printer](const std::string &text) { printer.notice(text); });
    if (!provider)
        return session.fail(provider.error());
    if (before->settings.provider == "manual")
        std::fprintf(stderr, "Questions come to %s; write each reply beside its question.\n",
                     (directory / "manual").c_str());
    std::unique_ptr<llm::Provider> given;
    if (!advance.replyFile.empty()) {
        Result<std::string> text = files::readFile(advance.replyFile, llm::maxReplyBytes);
        if (!text)
            return session.usage(text.error().message);
        given = std::make_unique<GivenReply>(std::move(*text), **provider);
    }
    const auto pool = openPool(session, advance.pool);
    if (!pool)
        return pool.error();
    const Result<run::Ending> ending =
        run::driveRun(directory, {*workspace, given ? *given : **provider, *prices, gateOf(**pool),
                                  interrupts.token(), printer.watcher(), advance.mostNewSteps});
    printer.clear();
    // After `step` the run is stopped because that was asked for.
    const bool stepDone = advance.mostNewSteps > 0 && ending && ending->code == "stopped"
                          && !interrupts.token().stop_requested();
    const int status = report(session, directory, ending);
    return stepDone ? exitOk : status;
}

int start(const Session &session, const StartOptions &options)
{
    const auto prepared = prepareRun(session, options);
    if (!prepared)
        return prepared.error();
    if (options.estimateOnly) {
        const std::optional<run::Estimate> &estimate = prepared->estimate;
        if (session.json())
            session.print({{"estimate", estimate ? json{{"first_dollars", estimate->firstDollars},
                                                        {"later_dollars", estimate->laterDollars},
                                                        {"questions", estimate->questions},
                                                        {"dollars", estimate->dollars}}
                                                 : json()}});
        else if (!estimate)
            std::fprintf(stderr, "Replies of '%s' cost nothing.\n", prepared->settings.provider.c_str());
        return exitOk;
    }
    return beginRun(session, prepared->workspace, prepared->settings, options.pool);
}

int replay(const Session &session, const std::string &name)
{
    const auto directory = findRun(session, name);
    if (!directory)
        return directory.error();
    const Result<fs::path> workspace = session.workspaceRoot();
    if (!workspace)
        return session.fail(workspace.error());
    const InterruptWatcher interrupts;
    const Result<run::ReplayCheck> check = run::checkReplay(*workspace, *directory, interrupts.token());
    if (!check)
        return session.fail(check.error());
    if (session.json())
        session.print({{"ok", check->ok()},
                       {"steps", check->steps},
                       {"recorded", check->recorded},
                       {"ending", check->ending.text()},
                       {"difference", check->difference.empty() ? json() : json(check->difference)}});
    else if (check->ok())
        std::printf("%d steps came out the same, byte for byte but for their times; it ended with: %s\n",
                    check->steps, check->ending.text().c_str());
    else
        std::printf("%d of %d steps came out the same.\n%s\n", check->steps, check->recorded,
                    check->difference.c_str());
    return check->ok() ? exitOk : exitNegative;
}

} // namespace

int beginRun(const Session &session, const Workspace &workspace, const run::Settings &settings,
             const PoolChoice &pool)
{
    const fs::path runs = workspace.root / "runs";
    {
        const Result<run::Journal> created = run::Journal::create(runs, settings);
        if (!created)
            return created.error().code == ErrorCode::Conflict ? session.usage(created.error().message)
                                                               : session.fail(created.error());
    }
    std::fprintf(stderr, "Run %s\n", settings.id.c_str());
    return goOn(session, runs / settings.id, {pool, 0, {}});
}

void addRunCommands(CLI::App &app, Session &session)
{
    CLI::App *group = Session::addGroup(
        app, "run",
        "Runs: an author and the gate, under a policy and a budget, written down to be gone on with");

    const auto startOptions = std::make_shared<StartOptions>();
    CLI::App *verb = session.addVerb(*group, "start", "Start a run and see it through (Ctrl+C stops it)",
                                     [&session, startOptions] { return start(session, *startOptions); });
    addStartOptions(*verb, *startOptions);

    struct Named {
        std::string run;
        Advance advance;
        bool check = true;
    };
    const auto named = std::make_shared<Named>();
    const auto withRun = [&](const char *name, const char *text, const std::function<int()> &act) {
        CLI::App *added = session.addVerb(*group, name, text, act);
        added->add_option("run", named->run, "Id of a run of the workspace, or its folder")->required();
        return added;
    };
    const auto advance = [&session, named] {
        const auto directory = findRun(session, named->run);
        return directory ? goOn(session, *directory, named->advance) : directory.error();
    };
    const auto withLauncher = [named](CLI::App &added) { addPoolOptions(added, named->advance.pool); };
    withLauncher(
        *withRun("resume", "Go on with a run that was stopped or killed; nothing is paid twice", advance));
    verb = withRun("step", "Go on with a run for one step, then stop it", [advance, named] {
        named->advance.mostNewSteps = std::max(1, named->advance.mostNewSteps);
        return advance();
    });
    verb->add_option("--steps", named->advance.mostNewSteps, "So many steps (default: 1)")
        ->check(CLI::Range(1, 100000));
    verb->add_option("--reply", named->advance.replyFile,
                     "Take over: a file with the reply to the next question, or a candidate file");
    withLauncher(*verb);
    verb = withRun("replay", "Run a recorded run again from its replies and trials, and compare the steps",
                   [&session, named] { return replay(session, named->run); });
    verb->add_flag("--check", named->check, "Compare (the default; nothing else is done)");

    addRunViews(*group, session);
}

} // namespace klineage::cli
