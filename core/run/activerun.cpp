// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/activerun.h"

#include "core/base/suggest.h"
#include "core/llm/cutoff.h"
#include "core/llm/modelsettings.h"
#include "core/talk/prompt.h"

#include <algorithm>
#include <charconv>

namespace klineage::run {

namespace {

constexpr std::size_t maxRepeatedBytes = std::size_t{256} << 10;
constexpr std::size_t shownBytes = 2000;

/// The gate's own settings among a run's options, with their ranges.
struct GateOption {
    const char *name;
    int absent;
    int least;
    int most;
};
constexpr GateOption seedsOption{"seeds", 3, 1, gate::mostSeeds};
constexpr GateOption roundsOption{"rounds", 30, 3, 10000};
constexpr GateOption profileOption{"profile_seconds", 10, 1, 3600};
constexpr GateOption deadlineOption{"timeout_seconds", 120, 1, 86400};
constexpr GateOption tokensOption{"max_output_tokens", 16384, 256, llm::maxOutputTokensLimit};
constexpr const char *mostTokensName = "most_output_tokens"; // absent: twice the other

} // namespace

void Conversation::user(std::string text, bool cacheUpToHere)
{
    messages.push_back({llm::Role::User, std::move(text), cacheUpToHere});
}

void Conversation::assistant(std::string text)
{
    if (text.size() > maxRepeatedBytes)
        text = text.substr(0, shownBytes) + "\n[…]";
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
        text = "(an empty reply)";
    messages.push_back({llm::Role::Assistant, std::move(text), false});
}

ActiveRun::ActiveRun(Context &context)
    : m_context(context)
{}

kernel::Surface ActiveRun::surface() const
{
    return kernel::surfaceFromString(settings().surface).value_or(kernel::Surface());
}

Result<llm::Reply> ActiveRun::ask(Conversation &conversation, const std::string &what)
{
    llm::Request request;
    request.purpose = conversation.purpose;
    request.system = conversation.system;
    request.messages = conversation.messages;
    const Result<llm::Exchange> exchange = send(request, what);
    if (!exchange)
        return tl::unexpected(exchange.error());
    conversation.maxOutputTokens = request.maxOutputTokens;
    m_exchanges.push_back(exchange->number);
    m_dollars += exchange->dollars;
    conversation.assistant(policy::withoutThoughts(exchange->reply.text));
    return exchange->reply;
}

Result<std::optional<std::string>> ActiveRun::refuse(Conversation &conversation, const std::string &problem,
                                                     bool again) const
{
    if (!again)
        return std::optional<std::string>();
    Result<std::string> text = prompt("deoptimize-refused", {{"problem", problem}});
    if (!text)
        return tl::unexpected(text.error());
    conversation.user(*text);
    return std::optional<std::string>(std::move(*text));
}

Result<gate::Trial> ActiveRun::gate(const std::string &candidate, const std::string &parent,
                                    const std::string &what)
{
    gate::GateRequest request;
    request.place.platform = settings().platform;
    request.place.device = m_device;
    request.workloadDirectory = m_context.workspace / "workloads" / settings().workload;
    request.candidateText = candidate;
    request.candidateName = candidateName("candidate", surface());
    request.parentText = parent;
    const auto read = [&](const GateOption &o) { return option(o.name, o.absent, o.least, o.most); };
    const Result<int> seeds = read(seedsOption);
    const Result<int> rounds = read(roundsOption);
    const Result<int> profile = read(profileOption);
    const Result<int> deadline = read(deadlineOption);
    for (const Result<int> *value : {&seeds, &rounds, &profile, &deadline}) {
        if (!*value)
            return tl::unexpected(value->error());
    }
    request.seeds = *seeds;
    request.minRounds = *rounds;
    request.profileSeconds = *profile;
    request.deadlineSeconds = *deadline;
    // Transitions and admissions are kept for what they brought; of a materialization's steps only which way they went matters.
    request.quick = settings().kind == Kind::Materialize;
    request.sanitize = settings().kind == Kind::Admit && surface().device().sanitizer;
    if (m_context.watcher.begins)
        m_context.watcher.begins(what);
    const GateFunction run = [this](const gate::GateRequest &asked, std::stop_token stop,
                                    const gate::ProgressCallback &progress) -> Result<gate::Trial> {
        Result<gate::Trial> trial = m_context.gate(asked, stop, progress);
        if (trial && trial->verdict.status == gate::VerdictStatus::Unavailable)
            return fail(ErrorCode::Unavailable, "The gate cannot run: " + trial->verdict.message,
                        trial->verdict.hint);
        return trial;
    };
    Result<gate::Trial> trial =
        m_context.journal.gate(request, run, m_context.stop, m_context.watcher.gateProgress);
    if (trial && m_device.empty())
        m_device = trial->environment.device;
    return trial;
}

Status ActiveRun::step(StepRecord step, const gate::Trial *trial)
{
    m_totalDollars += m_dollars;
    step.exchanges = std::exchange(m_exchanges, {});
    step.dollars = std::exchange(m_dollars, 0);
    step.totalDollars = m_totalDollars;
    if (trial) {
        name(*trial, step);
        const gate::Comparison *reference = trial->referenceComparison();
        if (trial->verdict.status == gate::VerdictStatus::Correct && reference)
            step.speedup = reference->speedup.value;
    }
    m_best = std::max(m_best, step.speedup);
    step.best = m_best;
    return write(std::move(step));
}

void ActiveRun::name(const gate::Trial &trial, StepRecord &step)
{
    step.trial = trial.id;
    step.candidate = trial.candidate;
    step.parent = trial.parent;
}

Result<int> ActiveRun::outputTokens() const
{
    const Result<int> usual =
        option(tokensOption.name, tokensOption.absent, tokensOption.least, tokensOption.most);
    if (!usual)
        return usual;
    const int twice = std::min(2 * *usual, tokensOption.most);
    const Result<int> most = option(mostTokensName, twice, *usual, tokensOption.most);
    return m_wasCutOff || !most ? most : usual;
}

Result<llm::Exchange> ActiveRun::send(llm::Request &request, const std::string &what)
{
    const Result<int> tokens = outputTokens();
    if (!tokens)
        return tl::unexpected(tokens.error());
    request.maxOutputTokens = *tokens;
    request.model = settings().model;
    if (Status applied = llm::applyAuthorKeys(settings().author, request); !applied)
        return tl::unexpected(applied.error());
    if (m_context.watcher.begins)
        m_context.watcher.begins(what);
    Result<llm::Exchange> exchange =
        m_context.author.ask(request, m_context.stop, m_context.watcher.replyText);
    m_wasCutOff = m_wasCutOff || (exchange && exchange->reply.stop == llm::StopReason::MaxTokens);
    if (exchange && m_context.watcher.spent)
        m_context.watcher.spent(m_context.author.ledger());
    return exchange;
}

Status ActiveRun::write(StepRecord step)
{
    const Result<StepRecord> written = m_context.journal.step(std::move(step));
    if (!written)
        return tl::unexpected(written.error());
    if (m_context.watcher.stepped)
        m_context.watcher.stepped(*written);
    return {};
}

Result<int> ActiveRun::option(const char *name, int absent, int least, int most) const
{
    const auto found = settings().options.find(name);
    if (found == settings().options.end())
        return absent;
    const std::string &text = found->second;
    int value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size() || value < least || value > most)
        return fail(ErrorCode::InvalidInput, "The run's option '" + std::string(name) + "' is '" + text
                                                 + "'; expected a whole number from " + std::to_string(least)
                                                 + " to " + std::to_string(most) + '.');
    return value;
}

Status ActiveRun::checkOptions(std::vector<std::string> known) const
{
    for (const GateOption &gateOption :
         {seedsOption, roundsOption, profileOption, deadlineOption, tokensOption})
        known.emplace_back(gateOption.name);
    known.emplace_back(mostTokensName);
    for (const auto &[name, value] : settings().options) {
        if (std::find(known.begin(), known.end(), name) == known.end())
            return fail(ErrorCode::InvalidInput, "The run has the unknown option '" + name + "'"
                                                     + didYouMean(name, known) + "; expected "
                                                     + quotedList(known) + '.');
    }
    for (const GateOption &gateOption : {seedsOption, roundsOption, profileOption, deadlineOption}) {
        if (const auto value = option(gateOption.name, gateOption.absent, gateOption.least, gateOption.most);
            !value)
            return tl::unexpected(value.error());
    }
    if (const Result<int> tokens = outputTokens(); !tokens)
        return tl::unexpected(tokens.error());
    return {};
}

std::string replyProblem(const llm::Reply &reply, int maxOutputTokens)
{
    switch (reply.stop) {
    case llm::StopReason::MaxTokens:
        if (llm::filledTheContext(reply, maxOutputTokens))
            return "The reply was cut off after " + std::to_string(reply.usage.output)
                   + " tokens, before the limit of " + std::to_string(maxOutputTokens)
                   + ": with the question it fills what the server takes. It has to be whole, so be shorter.";
        return "The reply was cut off at " + std::to_string(maxOutputTokens)
               + " tokens; it has to be whole, so be shorter.";
    case llm::StopReason::Refusal:
        return "The author refused to answer.";
    case llm::StopReason::End:
    case llm::StopReason::Other:
        break;
    }
    return {};
}

Result<std::string> blockIn(const std::string &reply, const policy::Accepts &canBeRead)
{
    Result<policy::Reading> reading = policy::readReply(reply, canBeRead);
    if (!reading)
        return tl::unexpected(reading.error());
    if (reading->kind == policy::Reading::Kind::Done)
        return fail(ErrorCode::InvalidInput, "The reply has no fenced block.");
    return std::move(reading->text);
}

Result<std::string> candidateIn(const std::string &reply, kernel::Surface surface)
{
    Result<policy::Reading> reading = policy::readCandidateReply(reply);
    if (!reading)
        return tl::unexpected(reading.error());
    if (reading->kind == policy::Reading::Kind::Done)
        return fail(ErrorCode::InvalidInput, "The reply has no candidate file.");
    std::string text = std::move(reading->text);
    const Result<kernel::Candidate> candidate =
        kernel::parseCandidate(text, candidateName("candidate", surface));
    if (!candidate)
        return fail(ErrorCode::InvalidInput, "The block is no candidate file: " + candidate.error().message);
    if (candidate->surface != surface)
        return fail(ErrorCode::InvalidInput, std::string("The candidate is written for the surface '")
                                                 + kernel::toString(candidate->surface) + "'; expected '"
                                                 + kernel::toString(surface) + "'.");
    return text;
}

Result<Ending> orderly(Result<Ending> ending)
{
    if (ending)
        return ending;
    const Error &error = ending.error();
    if (error.code == ErrorCode::Cancelled)
        return Ending{"stopped", error.message};
    if (error.code == ErrorCode::Budget)
        return Ending{"budget", error.message};
    return ending;
}

std::string candidateName(const std::string &stem, kernel::Surface surface)
{
    return stem + surface.language().extension;
}

} // namespace klineage::run
