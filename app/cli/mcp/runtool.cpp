// SPDX-License-Identifier: GPL-3.0-or-later
//
// Submissions of an agent, each a step of a run: gated through its journal, within its steps and dollars. The agent's own spending cannot
// be measured here, so it is what the agent declares. A run that goes on is first led through what is recorded, as a run is.
#include "app/cli/mcp/tools.h"

#include "core/base/numbertext.h"
#include "core/files/atomicfile.h"
#include "core/kernel/candidate.h"
#include "core/kernel/candidatetext.h"
#include "core/run/journal.h"
#include "core/skills/retrieval/similarity.h"
#include "core/talk/trialtext.h"

#include <algorithm>

namespace klineage::cli {

using mcp::Call;
using mcp::ToolResult;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char *agentPolicy = "agent";
constexpr const char *agentProvider = "mcp";

double speedupOf(const gate::Trial &trial)
{
    const gate::Comparison *reference = trial.referenceComparison();
    return trial.verdict.status == gate::VerdictStatus::Correct && reference ? reference->speedup.value : 0;
}

/// A run that an agent submits to. All calls on the server's own thread, but for the constructor's.
class AgentRun
{
public:
    AgentRun(std::shared_ptr<GateDesk> desk, run::Journal journal)
        : m_desk(std::move(desk))
        , m_journal(std::move(journal))
    {}

    /// Leads the journal to the end of its record.
    Status catchUp()
    {
        const Result<run::RunRecord> record = run::readRun(m_journal.directory());
        if (!record)
            return tl::unexpected(record.error());
        m_ending = record->ending;
        for (const gate::Trial &trial : record->trials) {
            if (m_device.empty())
                m_device = trial.environment.device;
            const auto step = std::find_if(record->steps.begin(), record->steps.end(),
                                           [&](const run::StepRecord &one) { return one.trial == trial.id; });
            if (Status done = repeat(trial, step == record->steps.end() ? nullptr : &*step); !done)
                return done;
        }
        return {};
    }

    ToolResult submit(const json &arguments, const Call &call)
    {
        const double dollars = arguments.value("dollars", 0.0);
        if (const std::string why = refusal(dollars); !why.empty())
            return mcp::toolError(why);
        const Result<Workspace> workspace = openWorkspace(m_desk->workspace());
        if (!workspace)
            return toolErrorOf(workspace.error());
        Result<gate::GateRequest> request = gateRequestOf(*workspace, settings().workload, arguments);
        if (!request)
            return toolErrorOf(request.error());
        request->place = {settings().platform, m_device, {}, {}};
        if (const Status parent = setParent(*request, arguments.value("parent_step", 0)); !parent)
            return toolErrorOf(parent.error());
        const auto gateIt = [&](const gate::GateRequest &one, std::stop_token,
                                const gate::ProgressCallback &) { return m_desk->run(one, call); };
        const Result<gate::Trial> trial = m_journal.gate(*request, gateIt, call.stop);
        if (!trial)
            return toolErrorOf(trial.error());
        if (m_device.empty())
            m_device = trial->environment.device;
        run::StepRecord step = stepOf(*trial, dollars);
        step.title = arguments.value("title", std::string(gate::toString(trial->verdict.status)));
        step.cards = arguments.value("cards", std::vector<std::string>());
        const Result<run::StepRecord> written = m_journal.step(std::move(step));
        if (!written)
            return toolErrorOf(written.error());
        endAtLimit();
        json data = status();
        data["step"] = written->number;
        data["trial"] = trialForAgents(*trial);
        return {policy::trialText(*trial) + '\n' + statusText(), std::move(data), false};
    }

    [[nodiscard]] json status() const
    {
        json steps = json::array();
        for (const run::StepRecord &step : m_journal.steps())
            steps.push_back({{"number", step.number},
                             {"title", step.title},
                             {"outcome", step.outcome},
                             {"reason", step.reason},
                             {"speedup", step.speedup},
                             {"best", step.best},
                             {"dollars", step.dollars}});
        return {{"run", settings().id},
                {"workload", settings().workload},
                {"platform", settings().platform},
                {"max_steps", settings().maxSteps},
                {"cap_dollars", settings().capDollars},
                {"dollars", spent()},
                {"best", best()},
                {"ending", m_ending.text()},
                {"steps", steps}};
    }

    [[nodiscard]] std::string statusText() const
    {
        std::string text = "Run " + settings().id + ": " + std::to_string(m_journal.steps().size())
                           + (settings().maxSteps > 0 ? " of " + std::to_string(settings().maxSteps) : "")
                           + " steps, $" + fixedText(spent(), 2) + " of $"
                           + fixedText(settings().capDollars, 2) + ", best " + fixedText(best(), 3)
                           + "× of the reference.";
        return m_ending.code.empty() ? text : text + " It has ended: " + m_ending.text();
    }

private:
    [[nodiscard]] const run::Settings &settings() const { return m_journal.settings(); }
    [[nodiscard]] double spent() const
    {
        return m_journal.steps().empty() ? 0 : m_journal.steps().back().totalDollars;
    }
    [[nodiscard]] double best() const
    {
        return m_journal.steps().empty() ? 0 : m_journal.steps().back().best;
    }

    /// Why nothing more can be submitted; empty: it can.
    [[nodiscard]] std::string refusal(double dollars) const
    {
        if (!m_ending.code.empty())
            return "The run " + settings().id + " has ended: " + m_ending.text();
        if (spent() + dollars > settings().capDollars)
            return "The budget of the run " + settings().id + " does not cover this: $"
                   + fixedText(spent(), 2) + " of $" + fixedText(settings().capDollars, 2)
                   + " are spent, and $" + fixedText(dollars, 2) + " more are declared.";
        return {};
    }

    Status setParent(gate::GateRequest &request, int number) const
    {
        if (number == 0)
            return {};
        if (static_cast<std::size_t>(number) > m_journal.steps().size())
            return fail(ErrorCode::NotFound, "There is no step " + std::to_string(number)
                                                 + " yet: the run has "
                                                 + std::to_string(m_journal.steps().size()) + '.');
        const std::string &sha = m_journal.steps()[static_cast<std::size_t>(number) - 1].candidate;
        Result<std::string> text = candidateText(sha);
        if (!text)
            return tl::unexpected(text.error());
        request.parentText = std::move(*text);
        return {};
    }

    [[nodiscard]] Result<std::string> candidateText(const std::string &sha) const
    {
        if (sha.empty())
            return std::string();
        const auto surface = kernel::surfaceFromString(settings().surface);
        return kernel::readCandidateText(m_journal.directory()
                                         / run::candidateFileName(sha, surface.value_or(kernel::Surface())));
    }

    [[nodiscard]] run::StepRecord stepOf(const gate::Trial &trial, double dollars) const
    {
        run::StepRecord step;
        step.action = "submit";
        step.outcome = trial.verdict.status == gate::VerdictStatus::Correct ? "valid" : "failed";
        step.reason = trial.verdict.message;
        step.candidate = trial.candidate;
        step.parent = trial.parent;
        step.trial = trial.id;
        step.dollars = dollars;
        step.totalDollars = spent() + dollars;
        step.speedup = speedupOf(trial);
        step.best = std::max(best(), step.speedup);
        return step;
    }

    /// A trial of the record once more, and its step; a kill may have left the last trial without one.
    Status repeat(const gate::Trial &trial, const run::StepRecord *step)
    {
        gate::GateRequest request;
        request.workloadDirectory = m_desk->workspace() / "workloads" / trial.workload;
        request.tunables = trial.tunables;
        Result<std::string> text = candidateText(trial.candidate);
        Result<std::string> parent = candidateText(trial.parent);
        for (const Result<std::string> *one : {&text, &parent}) {
            if (!*one)
                return tl::unexpected(one->error());
        }
        request.candidateText = std::move(*text);
        request.parentText = std::move(*parent);
        const auto never = [](const gate::GateRequest &, std::stop_token,
                              const gate::ProgressCallback &) -> Result<gate::Trial> {
            return fail(ErrorCode::Internal, "A recorded trial was to be gated again.");
        };
        if (const Result<gate::Trial> again = m_journal.gate(request, never, {}); !again)
            return tl::unexpected(again.error());
        run::StepRecord record = step ? *step : stepOf(trial, 0);
        if (!step)
            record.title = "submitted, and interrupted before it was written down";
        if (const Result<run::StepRecord> written = m_journal.step(std::move(record)); !written)
            return tl::unexpected(written.error());
        return {};
    }

    void endAtLimit()
    {
        if (settings().maxSteps <= 0
            || m_journal.steps().size() < static_cast<std::size_t>(settings().maxSteps))
            return;
        m_ending = {"step_limit", "The run takes " + std::to_string(settings().maxSteps) + " steps."};
        static_cast<void>(m_journal.finish(m_ending));
    }

    std::shared_ptr<GateDesk> m_desk;
    run::Journal m_journal;
    run::Ending m_ending; ///< of a run that takes no more
    std::string m_device; ///< of its first trial
};

Result<run::Journal> openOrCreate(const fs::path &workspace, const RunChoice &choice)
{
    const fs::path given(choice.run);
    const fs::path directory =
        given.has_parent_path() ? given.lexically_normal() : workspace / "runs" / choice.run;
    std::error_code ignored;
    if (fs::exists(directory / "run.toml", ignored)) {
        Result<run::Journal> journal = run::Journal::open(directory);
        if (journal && journal->settings().provider != agentProvider)
            return fail(ErrorCode::Conflict,
                        "The run '" + journal->settings().id + "' is written by '"
                            + journal->settings().provider
                            + "': an agent can only submit to a run that was made for agents.");
        return journal;
    }
    if (choice.workload.empty() || choice.platform.empty())
        return fail(ErrorCode::NotFound, "There is no run in '" + directory.string()
                                             + "'; to create it, give --workload and --platform.");
    run::Settings settings;
    settings.id = directory.filename().string();
    settings.workload = choice.workload;
    settings.platform = choice.platform;
    settings.surface = std::string(skills::languageOfPlatform(choice.platform));
    settings.policy = agentPolicy;
    settings.provider = agentProvider;
    settings.capDollars = choice.capDollars;
    settings.maxSteps = choice.maxSteps;
    if (settings.surface.empty())
        return fail(ErrorCode::InvalidInput,
                    "'" + choice.platform + "' is no platform; expected one as pocl or sm90.");
    const fs::path runs = directory.parent_path();
    fs::create_directories(runs, ignored);
    return run::Journal::create(runs, settings);
}

/// Of both tools; a submission adds its step and its trial.
json runOutputSchema()
{
    const json text{{"type", "string"}};
    const json number{{"type", "number"}};
    return outputOf({{"run", text},
                     {"workload", text},
                     {"platform", text},
                     {"dollars", number},
                     {"cap_dollars", number},
                     {"best", number},
                     {"ending", text},
                     {"steps", {{"type", "array"}, {"items", outputOf({{"outcome", text}})}}}});
}

mcp::Tool submitTool(const std::shared_ptr<AgentRun> &run)
{
    json properties = gateOptionsSchema();
    properties["title"] = {
        {"type", "string"}, {"maxLength", 200}, {"description", "What was changed, in one line"}};
    properties["parent_step"] = {
        {"type", "integer"},
        {"minimum", 1},
        {"maximum", 100000},
        {"description", "Step of this run that the candidate was made from and is compared with"}};
    properties["cards"] = {{"type", "array"},
                           {"maxItems", 64},
                           {"items", {{"type", "string"}, {"maxLength", 64}}},
                           {"description", "Names of the cards that were applied"}};
    properties["dollars"] = {{"type", "number"},
                             {"minimum", 0},
                             {"maximum", 1e6},
                             {"description", "What making this candidate has cost, as far as you know"}};
    return {
        "submit_to_run",
        "Submit a candidate to the run",
        "Gates a candidate as the next step of the run that this server was started with: recorded, within its steps and its "
        "dollars. Returns the verdict and what is left.",
        {{"type", "object"},
         {"properties", properties},
         {"required", {"candidate"}},
         {"additionalProperties", false}},
        false,
        true,
        [run](const json &arguments, const Call &call) { return run->submit(arguments, call); },
        runOutputSchema()};
}

} // namespace

Result<std::vector<mcp::Tool>> runTools(const std::shared_ptr<GateDesk> &desk, const RunChoice &choice)
{
    Result<run::Journal> journal = openOrCreate(desk->workspace(), choice);
    if (!journal)
        return tl::unexpected(journal.error());
    const auto run = std::make_shared<AgentRun>(desk, std::move(*journal));
    if (const Status done = run->catchUp(); !done)
        return tl::unexpected(done.error());
    mcp::Tool status{
        "run_status",
        "Status of the run",
        "The run that candidates are submitted to: its steps, the best so far, steps and dollars left.",
        {{"type", "object"}, {"properties", json::object()}, {"additionalProperties", false}},
        true,
        true, // on the thread of the submissions, after those that wait
        [run](const json &, const Call &) {
            return ToolResult{run->statusText(), run->status(), false};
        },
        runOutputSchema()};
    return std::vector<mcp::Tool>{submitTool(run), std::move(status)};
}

} // namespace klineage::cli
