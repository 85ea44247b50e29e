// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/identifier.h"
#include "core/run/deoptimize/proposal.h"
#include "core/run/deoptimize/rederive.h"
#include "core/run/deoptimize/walk.h"
#include "core/talk/figures.h"
#include "core/talk/prompt.h"
#include "core/talk/reply.h"
#include "core/talk/trialtext.h"

// Guided deoptimization walks from K* backward. One round:
//
//   propose    the author names an optimization of K_i to remove: category and locus, or says that nothing is left
//   rewrite    the author returns the simpler K_{i-1}; the gate says whether it is right, and not faster than K_i
//   rederive   in a conversation that never held K_i, the author applies category and locus to K_{i-1}; what comes out must be right and
//              as fast as K_i, neither slower nor faster, both measured in the same rounds
//   transition K_i is gated against K_{i-1}: the trial that stands for K_i in the lineage
//
// Only then is the step kept, stored forward as τ_i with what was derived again beside it. Everything else is a rejected attempt with
// its reason: evidence for the risks of cards.

namespace klineage::run {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t historyLines = 40;

class Deoptimizer
{
public:
    explicit Deoptimizer(Context &context)
        : m_run(context)
        , m_context(context)
    {}

    Result<Ending> run()
    {
        Result<Ending> ending = walk();
        if (m_walk.states.empty())
            return orderly(std::move(ending));
        if (!ending) {
            m_walk.termination = "unknown";
            m_walk.reason = sentence("The walk was broken off: " + ending.error().message);
        }
        if (Status written = writeWalk(m_directory, m_head, m_walk); !written)
            return tl::unexpected(written.error());
        return orderly(std::move(ending));
    }

private:
    Result<Ending> walk();
    [[nodiscard]] Status prepare();
    [[nodiscard]] fs::path folderFor(const std::string &platform) const;
    [[nodiscard]] Status load();
    [[nodiscard]] Result<bool> recordLoad(const std::string &title, const gate::Trial &trial);
    [[nodiscard]] Result<std::optional<Ending>> round();
    [[nodiscard]] Status rewrite(const Proposal &proposal, Conversation conversation);
    [[nodiscard]] Status judge(const Proposal &proposal, const std::string &simpler);
    [[nodiscard]] Status deriveAgain(const Proposal &proposal, const std::string &simpler,
                                     const gate::Trial &backward);
    [[nodiscard]] Status keep(const Proposal &proposal, const std::string &simpler,
                              const gate::Trial &backward, const Rederived &rederived);

    [[nodiscard]] Result<gate::Trial> gate(const std::string &candidate, const std::string &parent,
                                           const std::string &what);
    void remember(const gate::Trial &trial, const std::string &text);
    [[nodiscard]] Status reject(const Proposal &proposal, const std::string &reason,
                                const std::string &candidate, const gate::Trial *trial);
    [[nodiscard]] Status step(const char *action, const Proposal &proposal, const char *outcome,
                              const std::string &reason, const gate::Trial *trial);
    [[nodiscard]] Result<Ending> end(const char *code, const std::string &reason);
    [[nodiscard]] std::string accepted() const;
    [[nodiscard]] std::string rejected() const;

    ActiveRun m_run;
    Context &m_context;
    Subject m_subject;
    std::string m_system;
    int m_rejectionLimit = 5;
    int m_repairs = 2;
    double m_within = 0.03;
    bool m_both =
        false; ///< a re-derivation may not be faster either; runs before there was this bound do not say so
    int m_rejections = 0; ///< in a row
    WalkHead m_head;
    fs::path m_directory;
    Walk m_walk;
};

Status Deoptimizer::prepare()
{
    const Settings &settings = m_run.settings();
    if (Status known = m_run.checkOptions({"name", "rejections", "repairs", "within_percent", "bounds"});
        !known)
        return known;
    const Result<int> rejections = m_run.option("rejections", 5, 1, 1000);
    const Result<int> repairs = m_run.option("repairs", 2, 0, 1000);
    const Result<int> within = m_run.option("within_percent", 3, 0, 100);
    for (const Result<int> *value : {&rejections, &repairs, &within}) {
        if (!*value)
            return tl::unexpected(value->error());
    }
    m_rejectionLimit = *rejections;
    m_repairs = *repairs;
    m_within = *within / 100.0;
    const auto bounds = settings.options.find("bounds");
    m_both = bounds != settings.options.end() && bounds->second == "both";
    if (bounds != settings.options.end() && !m_both && bounds->second != "above")
        return fail(ErrorCode::InvalidInput,
                    "The run's option 'bounds' is '" + bounds->second + "'; expected 'both' or 'above'.");
    const auto name = settings.options.find("name");
    m_head.name = name == settings.options.end() ? std::string() : name->second;
    if (!m_head.name.empty() && !isSlug(m_head.name))
        return fail(ErrorCode::InvalidInput,
                    "'" + m_head.name
                        + "' is no name for a lineage; expected 1 to 64 of a-z, 0-9, "
                          "'_' and '-', not '-' first.");
    Result<Subject> subject = keepSubject(m_run, settings.subject);
    if (!subject)
        return tl::unexpected(subject.error());
    m_subject = std::move(*subject);
    return settings.platform.empty() ? Status() : checkWalkFolder(folderFor(settings.platform), settings.id);
}

fs::path Deoptimizer::folderFor(const std::string &platform) const
{
    return m_context.workspace / "workloads" / m_run.settings().workload / "lineages"
           / (m_head.name.empty() ? platform : platform + '-' + m_head.name);
}

/// The step of a state that is gated by itself; whether it is right.
Result<bool> Deoptimizer::recordLoad(const std::string &title, const gate::Trial &trial)
{
    StepRecord record;
    record.action = "load";
    record.title = title;
    const bool correct = trial.verdict.status == gate::VerdictStatus::Correct;
    record.outcome = correct ? "valid" : "failed";
    record.reason = correct ? sentence(figuresText(trial)) : verdictLine(trial);
    if (Status written = m_run.step(std::move(record), &trial); !written)
        return tl::unexpected(written.error());
    return correct;
}

/// K* itself: it must be right, and says on which platform the lineage is.
Status Deoptimizer::load()
{
    const Result<gate::Trial> trial = gate(m_subject.text, {}, "gating " + m_subject.label);
    if (!trial)
        return tl::unexpected(trial.error());
    const Result<bool> correct = recordLoad(m_subject.label, *trial);
    if (!correct)
        return tl::unexpected(correct.error());
    if (!*correct)
        return fail(ErrorCode::InvalidInput,
                    "'" + m_subject.label
                        + "' cannot be taken apart, because it is not correct: " + verdictLine(*trial));
    const Settings &settings = m_run.settings();
    const std::string &platform = trial->environment.platform;
    if (!settings.platform.empty() && settings.platform != platform)
        return fail(ErrorCode::InvalidInput, "The gate ran on the platform '" + platform
                                                 + "', but the run is of '" + settings.platform + "'.");
    m_head.workload = settings.workload;
    m_head.platform = platform;
    m_head.surface = m_run.surface();
    m_head.title = settings.workload + " on " + platform + ", taken apart from " + m_subject.label;
    m_head.origin = "From " + m_subject.label + " by guided deoptimization, author "
                    + (settings.model.empty() ? settings.provider : settings.model) + '.'
                    + (m_subject.origin.empty() ? std::string() : ' ' + m_subject.origin);
    m_head.run = settings.id;
    m_head.runDirectory = m_context.journal.directory();
    m_directory = folderFor(platform);
    if (Status free = checkWalkFolder(m_directory, settings.id); !free)
        return free;
    std::error_code problem;
    fs::create_directories(m_directory.parent_path(), problem);
    m_walk.states.push_back(
        {m_subject.text, m_subject.title.empty() ? "expert kernel" : m_subject.title, *trial});

    const Result<std::string> format =
        prompt("deoptimize-candidate", {{"surface", kernel::toString(m_head.surface)}});
    if (!format)
        return tl::unexpected(format.error());
    Result<std::string> system =
        prompt("deoptimize-system", {{"workload", fenced(m_subject.workload, "toml")},
                                     {"platform", platform},
                                     {"candidate_format", *format},
                                     {"categories", categoryList()}});
    if (!system)
        return tl::unexpected(system.error());
    m_system = std::move(*system);
    return {};
}

Result<Ending> Deoptimizer::walk()
{
    if (Status ready = prepare(); !ready)
        return tl::unexpected(ready.error());
    if (Status loaded = load(); !loaded)
        return tl::unexpected(loaded.error());
    const int maxSteps = m_run.settings().maxSteps;
    while (true) {
        if (maxSteps > 0 && m_walk.steps.size() >= static_cast<std::size_t>(maxSteps))
            return end("step_limit",
                       std::to_string(maxSteps) + " steps were accepted, the limit of the run.");
        if (m_rejections >= m_rejectionLimit)
            return end("rejection_limit", std::to_string(m_rejections)
                                              + " simplifications in a row were not accepted. The last: "
                                              + m_walk.refusals.back().reason);
        Result<std::optional<Ending>> ended = round();
        if (!ended)
            return tl::unexpected(ended.error());
        if (*ended)
            return std::move(**ended);
    }
}

Result<std::optional<Ending>> Deoptimizer::round()
{
    const Walk::State &current = m_walk.current();
    Result<std::string> text = prompt("deoptimize-propose", {{"state", current.title},
                                                             {"candidate", fenced(current.text, "c")},
                                                             {"trial", policy::trialText(current.trial)},
                                                             {"accepted", accepted()},
                                                             {"rejected", rejected()}});
    if (!text)
        return tl::unexpected(text.error());
    Conversation conversation;
    conversation.purpose = "propose";
    conversation.system = m_system;
    conversation.user(std::move(*text), true);
    const ActiveRun::Reader<Proposal> read = [](const std::string &reply) -> Result<Proposal> {
        const Result<std::string> block =
            blockIn(reply, [](const std::string &found) { return parseProposal(found).has_value(); });
        return block ? parseProposal(*block) : tl::unexpected(block.error());
    };
    const auto answer = m_run.askFor(conversation, "asking what to remove next", read);
    if (!answer)
        return tl::unexpected(answer.error());
    Proposal proposal = answer->value.value_or(Proposal());
    if (!answer->value) {
        proposal.title = "no proposal";
        ++m_rejections;
        m_walk.refusals.push_back({m_walk.states.size() - 1, {}, {}, sentence(answer->problem)});
        if (Status written = step("propose", proposal, "failed", answer->problem, nullptr); !written)
            return tl::unexpected(written.error());
        return std::optional<Ending>();
    }
    if (proposal.complete) {
        proposal.title = "nothing left to remove";
        if (Status written = step("propose", proposal, "complete", proposal.reason, nullptr); !written)
            return tl::unexpected(written.error());
        Result<Ending> ended = end("complete", proposal.reason);
        return ended ? Result<std::optional<Ending>>(std::move(*ended)) : tl::unexpected(ended.error());
    }
    if (Status done = rewrite(proposal, std::move(conversation)); !done)
        return tl::unexpected(done.error());
    return std::optional<Ending>();
}

Status Deoptimizer::rewrite(const Proposal &proposal, Conversation conversation)
{
    Result<std::string> text =
        prompt("deoptimize-rewrite", {{"category", proposal.category}, {"locus", proposal.locus}});
    if (!text)
        return tl::unexpected(text.error());
    conversation.purpose = "rewrite";
    conversation.user(std::move(*text));
    const ActiveRun::Reader<std::string> read = [this](const std::string &reply) {
        return candidateIn(reply, m_run.surface());
    };
    const auto answer = m_run.askFor(conversation, "asking for the simpler kernel", read);
    if (!answer)
        return tl::unexpected(answer.error());
    if (!answer->value)
        return reject(proposal, answer->problem, {}, nullptr);
    if (policy::normalizedCode(*answer->value) == policy::normalizedCode(m_walk.current().text))
        return reject(proposal, "The code is the one that was given: nothing was removed.", {}, nullptr);
    return judge(proposal, *answer->value);
}

Status Deoptimizer::judge(const Proposal &proposal, const std::string &simpler)
{
    const Result<gate::Trial> backward = gate(simpler, m_walk.current().text, "gating: " + proposal.title);
    if (!backward)
        return tl::unexpected(backward.error());
    if (backward->verdict.status != gate::VerdictStatus::Correct)
        return reject(proposal, verdictLine(*backward), simpler, &*backward);
    const gate::Comparison *comparison = backward->comparison("parent");
    if (comparison && comparison->change == gate::Change::Gain)
        return reject(proposal,
                      "It is faster than the kernel that it was made from ("
                          + factorText(comparison->speedup.value) + "), so it removed no optimization.",
                      simpler, &*backward);
    if (Status written = step("rewrite", proposal, "valid", figuresText(*backward), &*backward); !written)
        return written;
    return deriveAgain(proposal, simpler, *backward);
}

Status Deoptimizer::deriveAgain(const Proposal &proposal, const std::string &simpler,
                                const gate::Trial &backward)
{
    Rederivation wanted;
    wanted.simpler = simpler;
    wanted.stronger = m_walk.current().text;
    wanted.category = proposal.category;
    wanted.locus = proposal.locus;
    wanted.workload = m_subject.workload;
    wanted.platform = m_head.platform;
    wanted.repairs = m_repairs;
    wanted.within = m_within;
    wanted.both = m_both;
    const Result<Rederived> rederived = rederive(m_run, wanted);
    if (!rederived)
        return tl::unexpected(rederived.error());
    for (const auto &[trial, text] : rederived->trials)
        remember(trial, text);
    if (!rederived->accepted)
        return reject(proposal,
                      "It could not be derived forward again from its category and locus. "
                          + rederived->reason,
                      simpler, &backward);
    return keep(proposal, simpler, backward, *rederived);
}

Status Deoptimizer::keep(const Proposal &proposal, const std::string &simpler, const gate::Trial &backward,
                         const Rederived &rederived)
{
    const Result<gate::Trial> forward =
        gate(m_walk.current().text, simpler, "gating the transition: " + proposal.summary);
    if (!forward)
        return tl::unexpected(forward.error());
    if (forward->verdict.status != gate::VerdictStatus::Correct)
        return reject(proposal,
                      "The stronger kernel did not pass again when it was compared with the simpler one: "
                          + verdictLine(*forward),
                      simpler, &backward);
    if (Status written = step("transition", proposal, "accepted", figuresText(*forward), &*forward); !written)
        return written;
    m_walk.states.back().trial = *forward;
    m_walk.states.push_back({simpler, proposal.title, backward});
    m_walk.steps.push_back({proposal.category, proposal.locus, proposal.summary, rederived.text,
                            rederived.trial, rederived.match});
    m_rejections = 0;
    m_walk.reason = "The walk goes on.";
    return m_context.journal.isReplaying() ? Status() : writeWalk(m_directory, m_head, m_walk);
}

Result<gate::Trial> Deoptimizer::gate(const std::string &candidate, const std::string &parent,
                                      const std::string &what)
{
    Result<gate::Trial> trial = m_run.gate(candidate, parent, what);
    if (trial)
        remember(*trial, candidate);
    return trial;
}

void Deoptimizer::remember(const gate::Trial &trial, const std::string &text)
{
    m_walk.trials.push_back(trial);
    m_walk.texts.emplace(trial.candidate, text);
}

/// candidate and trial: evidence, when it came to a trial.
Status Deoptimizer::reject(const Proposal &proposal, const std::string &reason, const std::string &candidate,
                           const gate::Trial *trial)
{
    const std::size_t parent = m_walk.states.size() - 1;
    const std::string why = sentence(reason);
    ++m_rejections;
    m_walk.refusals.push_back({parent, proposal.category, proposal.locus, why});
    if (trial)
        m_walk.attempts.push_back(
            {parent, candidate, proposal.title, proposal.category, proposal.locus, why, *trial});
    return step("rewrite", proposal, trial ? "rejected" : "failed", why, trial);
}

Status Deoptimizer::step(const char *action, const Proposal &proposal, const char *outcome,
                         const std::string &reason, const gate::Trial *trial)
{
    StepRecord record;
    record.action = action;
    record.title = proposal.category.empty()
                       ? proposal.title
                       : proposal.category + " at " + proposal.locus + ": " + proposal.title;
    record.outcome = outcome;
    record.reason = sentence(reason);
    return m_run.step(std::move(record), trial);
}

/// The simplest state stands for itself: its trial so far compared it with a stronger one.
Result<Ending> Deoptimizer::end(const char *code, const std::string &reason)
{
    if (m_walk.states.size() > 1) {
        Walk::State &last = m_walk.states.back();
        const Result<gate::Trial> alone = gate(last.text, {}, "gating the last state: " + last.title);
        if (!alone)
            return tl::unexpected(alone.error());
        const Result<bool> correct = recordLoad(last.title, *alone);
        if (!correct)
            return tl::unexpected(correct.error());
        if (*correct)
            last.trial = *alone;
    }
    m_walk.termination = code;
    m_walk.reason = sentence(reason);
    return Ending{code, m_walk.reason};
}

std::string Deoptimizer::accepted() const
{
    std::string text;
    for (std::size_t i = m_walk.steps.size(); i-- > 0;) {
        const Walk::Step &removed = m_walk.steps[i];
        const gate::Comparison *forward = m_walk.states[i].trial.comparison("parent");
        text += "- `" + removed.category + "` at `" + removed.locus + "`: " + removed.summary;
        if (forward)
            text += " It brought " + factorText(forward->speedup.value) + '.';
        text += '\n';
    }
    return text.empty() ? "- nothing yet\n" : text;
}

std::string Deoptimizer::rejected() const
{
    std::string text;
    const auto &refusals = m_walk.refusals;
    for (std::size_t i = refusals.size(); i-- > 0 && refusals.size() - i <= historyLines;) {
        const Walk::Refusal &refusal = refusals[i];
        const bool here = refusal.parent == m_walk.states.size() - 1;
        text += refusal.category.empty() ? std::string("- no proposal")
                                         : "- `" + refusal.category + "` at `" + refusal.locus + '`';
        text += std::string(here ? " in this kernel: " : " in an earlier kernel: ") + refusal.reason + '\n';
    }
    return text.empty() ? "- nothing\n" : text;
}

} // namespace

Result<Ending> deoptimize(Context &context)
{
    return Deoptimizer(context).run();
}

} // namespace klineage::run
