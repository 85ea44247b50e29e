// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/tomlreader.h"
#include "core/files/tomlwriter.h"
#include "core/lineage/record.h"
#include "core/run/admit/effect.h"
#include "core/run/admit/heldout.h"
#include "core/run/lift/quantities.h"
#include "core/skills/admission.h"
#include "core/skills/store.h"
#include "core/talk/cardtext.h"
#include "core/talk/figures.h"
#include "core/talk/prompt.h"
#include "core/talk/reply.h"
#include "core/talk/trialtext.h"

#include <algorithm>
#include <charconv>

// Roundtrip admission: an author that is given the card and a state that had no part in it, and nothing else, applies the one to the
// other. A correct candidate shows the effect when it gains against the state about as much as the card claims: much less is not what was
// promised, much more is not the card's doing. The line in the card's verification log says so, or not. It is the evidence that
// admits a card. What a person thinks of it is recorded elsewhere, and the card itself is not changed.

namespace klineage::run {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t mostReasonBytes = 500;

/// What was known of the card when the run began; kept, because the run itself adds to the card's log.
struct Admission {
    int revision = 0;
    bool heldOut = false;
    std::string heldOutReason;
    std::vector<double> claimed; ///< gains that its effects have, as factors, ascending
    // Since format 2 of the file; runs that kept the first one log a single line at their end, as they did.
    int format = 2;
    std::string cardHash;             ///< contentHash() of the card
    std::vector<std::string> targets; ///< that count for this very text already
    int cardFormat = 1;
};

std::string writeAdmission(const Admission &admission)
{
    files::TomlWriter out;
    out.integer("format", admission.format);
    out.integer("card_format", admission.cardFormat);
    out.string("card_hash", admission.cardHash);
    out.strings("targets", admission.targets);
    out.integer("revision", admission.revision);
    out.boolean("held_out", admission.heldOut);
    out.string("held_out_reason", admission.heldOutReason);
    std::vector<std::string> factors;
    for (const double factor : admission.claimed)
        factors.push_back(files::tomlNumber(factor));
    out.strings("claimed", factors);
    return out.text();
}

Result<Admission> parseAdmission(const std::string &text)
{
    const Result<files::TomlDocument> document = files::TomlDocument::parse(text, "admission.toml");
    if (!document)
        return tl::unexpected(document.error());
    const files::TomlTable root = document->root();
    Admission admission;
    admission.format = static_cast<int>(root.integer("format", 1));
    admission.cardFormat = static_cast<int>(root.integer("card_format", 1));
    admission.cardHash = root.string("card_hash", "");
    admission.targets = root.strings("targets");
    admission.revision = static_cast<int>(root.integer("revision"));
    admission.heldOut = root.boolean("held_out");
    admission.heldOutReason = root.string("held_out_reason");
    for (const std::string &factor : root.strings("claimed")) {
        double value = 0;
        std::from_chars(factor.data(), factor.data() + factor.size(), value);
        admission.claimed.push_back(value);
    }
    if (Status read = document->finish(); !read)
        return tl::unexpected(read.error());
    return admission;
}

/// Of a card of format 2 its measured effects; numbers in its texts may be shapes, counts and shares. A card of format 1 has only texts.
std::vector<double> claimedFactors(const skills::Card &card)
{
    if (card.format >= 2)
        return typedFactors(card);
    std::vector<double> factors;
    for (const skills::Claim &effect : card.effects) {
        for (const Quantity &quantity : quantitiesIn(effect.text)) {
            if (quantity.kind == Quantity::Kind::Factor && quantity.value > 1)
                factors.push_back(quantity.value);
        }
    }
    std::sort(factors.begin(), factors.end());
    return factors;
}

class Admitter
{
public:
    explicit Admitter(Context &context)
        : m_run(context)
        , m_context(context)
        , m_store(context.workspace / "skills")
    {}

    Result<Ending> run() { return orderly(attempts()); }

private:
    Result<Ending> attempts()
    {
        if (Status ready = prepare(); !ready)
            return tl::unexpected(ready.error());
        for (int attempt = 1; !m_observed && attempt <= m_attempts; ++attempt) {
            if (attempt > 1) {
                Result<std::string> repair = prompt("admit-repair", {{"problem", m_feedback}});
                if (!repair)
                    return tl::unexpected(repair.error());
                m_conversation.user(std::move(*repair));
            }
            if (Status tried = tryOnce(); !tried)
                return tl::unexpected(tried.error());
        }
        if (m_admission.format < 2) {
            if (Status logged = log(); !logged)
                return tl::unexpected(logged.error());
        }
        return conclusion();
    }

    [[nodiscard]] Status prepare();
    [[nodiscard]] Result<std::string> lookUp() const;
    [[nodiscard]] Status tryOnce();
    [[nodiscard]] Status judge(const std::string &candidate);
    [[nodiscard]] Status recordInLineage(const gate::Trial &trial, const std::string &candidate) const;
    [[nodiscard]] Status log() const;
    [[nodiscard]] Ending conclusion() const;
    [[nodiscard]] std::string targetName() const;
    [[nodiscard]] std::string claims() const;
    [[nodiscard]] Status step(const char *outcome, const std::string &reason, const gate::Trial *trial);

    ActiveRun m_run;
    Context &m_context;
    skills::CardStore m_store;
    Subject m_target;
    Admission m_admission;
    int m_attempts = 3;
    Conversation m_conversation;
    std::string m_feedback;
    std::string m_lastReason;
    std::string m_lastShortfall;
    std::optional<gate::Trial> m_trial; ///< the one that counts: the last
    bool m_observed = false;
};

Status Admitter::prepare()
{
    const Settings &settings = m_run.settings();
    if (Status known = m_run.checkOptions({"target", "attempts"}); !known)
        return known;
    const Result<int> attempts = m_run.option("attempts", 3, 1, 1000);
    if (!attempts)
        return tl::unexpected(attempts.error());
    m_attempts = *attempts;
    const auto target = settings.options.find("target");
    if (target == settings.options.end())
        return fail(ErrorCode::InvalidInput,
                    "The run has no option 'target': the state to apply the card to.");
    Result<Subject> subject = keepSubject(m_run, target->second);
    if (!subject)
        return tl::unexpected(subject.error());
    m_target = std::move(*subject);
    const Result<std::string> kept = m_context.journal.keep("admission.toml", [this] { return lookUp(); });
    if (!kept)
        return tl::unexpected(kept.error());
    Result<Admission> admission = parseAdmission(*kept);
    if (!admission)
        return tl::unexpected(admission.error());
    m_admission = std::move(*admission);
    const Result<std::string> card = m_context.journal.keep("card.md", [&]() -> Result<std::string> {
        const Result<skills::CardRecord> record = m_store.read(settings.subject);
        return record ? Result<std::string>(policy::cardText(*record)) : tl::unexpected(record.error());
    });
    if (!card)
        return tl::unexpected(card.error());

    const Result<std::string> format =
        prompt("deoptimize-candidate", {{"surface", kernel::toString(m_run.surface())}});
    if (!format)
        return tl::unexpected(format.error());
    Result<std::string> system = prompt("admit-system", {{"workload", fenced(m_target.workload, "toml")},
                                                         {"platform", settings.platform},
                                                         {"candidate_format", *format}});
    if (!system)
        return tl::unexpected(system.error());
    Result<std::string> request =
        prompt("admit-request", {{"card", *card}, {"candidate", fenced(m_target.text, "c")}});
    if (!request)
        return tl::unexpected(request.error());
    m_conversation.purpose = "admit";
    m_conversation.system = std::move(*system);
    m_conversation.user(std::move(*request), true);
    return {};
}

Result<std::string> Admitter::lookUp() const
{
    const Settings &settings = m_run.settings();
    const Result<Workspace> workspace = openWorkspace(m_context.workspace);
    if (!workspace)
        return tl::unexpected(workspace.error());
    const Result<skills::CardRecord> record = m_store.read(settings.subject);
    if (!record)
        return tl::unexpected(record.error());
    if (record->card.retired)
        return fail(ErrorCode::InvalidInput, "The card '" + settings.subject + "' is retired.");
    if (settings.platform.empty())
        return fail(ErrorCode::InvalidInput, "The run names no platform; an admission is on one.");
    const HeldOut heldOut =
        isHeldOut(*workspace, record->card, m_target, settings.workload, settings.platform);
    return writeAdmission({record->card.revision, heldOut.value, heldOut.reason, claimedFactors(record->card),
                           2, skills::contentHash(*record), skills::admissionOf(*record).targets,
                           record->card.format});
}

Status Admitter::tryOnce()
{
    const ActiveRun::Reader<std::string> read = [this](const std::string &text) {
        return candidateIn(text, m_run.surface());
    };
    const auto answer = m_run.askFor(m_conversation, "asking to apply " + m_run.settings().subject, read);
    if (!answer)
        return tl::unexpected(answer.error());
    if (!answer->value) {
        m_feedback = answer->problem;
        return step("failed", answer->problem, nullptr);
    }
    if (policy::normalizedCode(*answer->value) == policy::normalizedCode(m_target.text)) {
        m_feedback = "Your code is the one that you were given: nothing was applied.";
        return step("failed", "The code is the one that was given: nothing was applied.", nullptr);
    }
    return judge(*answer->value);
}

Status Admitter::judge(const std::string &candidate)
{
    const Result<gate::Trial> trial =
        m_run.gate(candidate, m_target.text, "gating " + m_run.settings().subject + " on " + m_target.label);
    if (!trial)
        return tl::unexpected(trial.error());
    if (trial->environment.platform != m_run.settings().platform)
        return fail(ErrorCode::InvalidInput, "The gate ran on the platform '" + trial->environment.platform
                                                 + "', but the run is of '" + m_run.settings().platform
                                                 + "'.");
    m_trial = *trial;
    if (Status recorded = recordInLineage(*trial, candidate); !recorded)
        return recorded;
    const bool correct = trial->verdict.status == gate::VerdictStatus::Correct;
    const gate::Comparison *comparison = trial->comparison("parent");
    m_lastShortfall = !correct          ? sentence(trial->verdict.message)
                      : trial->admits() ? effectShortfall(m_admission.claimed, comparison)
                                        : std::string("its trust is '") + gate::toString(trial->trust)
                                              + "', which admits nothing";
    m_observed = m_lastShortfall.empty();
    // Whatever becomes of the run: a stopped one has tried, too.
    if (m_admission.format >= 2) {
        if (Status logged = log(); !logged)
            return logged;
    }
    if (trial->verdict.status != gate::VerdictStatus::Correct) {
        m_feedback = policy::trialText(*trial);
        return step("rejected", verdictLine(*trial), &*trial);
    }
    const std::string figures = figuresText(*trial) + claims();
    if (m_observed)
        return step("accepted", figures, &*trial);
    m_feedback = "It is right, but " + m_lastShortfall + ".\n" + policy::trialText(*trial);
    return step("rejected", "It is right, but " + m_lastShortfall + ": " + figures, &*trial);
}

/// The trial becomes a branch of the target's lineage, where the verification's citation is looked up.
Status Admitter::recordInLineage(const gate::Trial &trial, const std::string &candidate) const
{
    if (m_target.lineage.empty())
        return {};
    const std::size_t slash = m_target.lineage.find('/');
    const Result<lineage::Lineage> lineage =
        lineage::readLineage(m_context.workspace / "workloads" / m_target.lineage.substr(0, slash)
                             / "lineages" / m_target.lineage.substr(slash + 1));
    if (!lineage)
        return tl::unexpected(lineage.error());
    const Result<lineage::RecordOutcome> recorded = lineage::recordTrial(*lineage, trial, candidate);
    return recorded ? Status() : Status(tl::unexpected(recorded.error()));
}

/// A line for the last trial; none when nothing was gated. A run that is gone on with finds its lines there.
Status Admitter::log() const
{
    if (!m_trial)
        return {};
    const std::string &name = m_run.settings().subject;
    const Result<skills::CardRecord> record = m_store.read(name);
    if (!record)
        return tl::unexpected(record.error());
    const bool isThere =
        std::any_of(record->verifications.begin(), record->verifications.end(),
                    [&](const skills::Verification &line) { return line.trial == m_trial->id; });
    if (isThere)
        return {};
    skills::Verification line;
    line.time = m_trial->time;
    line.target = targetName();
    line.trial = m_trial->id;
    line.cardRevision = m_admission.revision;
    line.status = gate::toString(m_trial->verdict.status);
    line.expectedEffectObserved = m_observed;
    line.heldOut = m_admission.heldOut;
    if (m_admission.format >= 2) {
        line.cardHash = m_admission.cardHash;
        line.run = m_run.settings().id;
        line.reason = m_lastShortfall.substr(0, mostReasonBytes);
        if (const gate::Comparison *comparison = m_trial->comparison("parent")) {
            line.factor = comparison->speedup.value;
            line.low = comparison->speedup.low;
            line.high = comparison->speedup.high;
        }
    }
    return m_store.appendVerification(name, line);
}

Ending Admitter::conclusion() const
{
    const std::string name = "The card '" + m_run.settings().subject + "'";
    if (!m_observed)
        return {"rejection_limit", name + " did not show its effect on " + m_target.label + " in "
                                       + std::to_string(m_attempts) + " attempts. The last: " + m_lastReason};
    const std::string figures = sentence(figuresText(*m_trial) + claims());
    if (!m_admission.heldOut)
        return {"complete", name + " showed its effect on " + m_target.label
                                + ", which had a part in it, so that this admits nothing. "
                                + m_admission.heldOutReason + ' ' + figures};
    if (m_admission.cardFormat < 2)
        return {"complete", name + " is admitted by " + m_target.label + ": " + figures};
    std::string others;
    for (const std::string &target : m_admission.targets) {
        if (skills::lineageOfTarget(target) != skills::lineageOfTarget(targetName()))
            others += " and " + target;
    }
    if (others.empty())
        return {"complete", name + " showed its effect on " + m_target.label
                                + ", the first of the two held-out targets that it takes: " + figures};
    return {"complete", name + " is admitted by " + m_target.label + others + ": " + figures};
}

/// "layernorm/pocl/K02"; a file, a branch say, is named in a state's place: the log says on which workload and platform a card was verified.
std::string Admitter::targetName() const
{
    const Settings &settings = m_run.settings();
    if (!m_target.lineage.empty() && m_target.label.starts_with(m_target.lineage + '/'))
        return m_target.label;
    const std::string folder =
        m_target.lineage.empty() ? settings.workload + '/' + settings.platform : m_target.lineage;
    return folder + '/' + fs::path(m_target.label).stem().string();
}

std::string Admitter::claims() const
{
    if (m_admission.claimed.empty())
        return "; the card claims no factor";
    const double least = m_admission.claimed.front();
    const double most = m_admission.claimed.back();
    return "; the card claims "
           + (least == most ? factorText(most) : factorText(least) + " to " + factorText(most));
}

Status Admitter::step(const char *outcome, const std::string &reason, const gate::Trial *trial)
{
    m_lastReason = sentence(reason);
    StepRecord record;
    record.action = "roundtrip";
    record.title = m_run.settings().subject + " on " + m_target.label;
    record.outcome = outcome;
    record.reason = m_lastReason;
    record.cards = {m_run.settings().subject};
    return m_run.step(std::move(record), trial);
}

} // namespace

Result<Ending> admit(Context &context)
{
    return Admitter(context).run();
}

} // namespace klineage::run
