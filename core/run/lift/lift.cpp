// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/suggest.h"
#include "core/run/activerun.h"
#include "core/run/lift/storecard.h"
#include "core/skills/vocabulary.h"
#include "core/talk/figures.h"
#include "core/talk/prompt.h"

#include <algorithm>

// The lift: transitions with one category and similar locus and effect are shown to the author together, with what was tried nearby and
// rejected; it writes one card for each group. What it says is checked before anything is stored: every claim cites evidence that was
// given, figures are those of the cited trials, and the lint finds no error. One repair is asked for. A card that says what another
// says already becomes evidence of that one. All cards are hypotheses: a roundtrip admits them, and a person judges them.

namespace klineage::run {

namespace {

constexpr std::size_t mostShown = 40;
constexpr std::size_t mostKernelBytes = std::size_t{32} << 10; ///< of a kernel that is shown whole

class Lifter
{
public:
    explicit Lifter(Context &context)
        : m_run(context)
        , m_context(context)
        , m_store(context.workspace / "skills")
    {}

    Result<Ending> run() { return orderly(groups()); }

private:
    Result<Ending> groups();
    [[nodiscard]] Status prepare();
    [[nodiscard]] Result<std::string> gather() const;
    [[nodiscard]] Status lift(const LiftGroup &group);
    [[nodiscard]] Result<std::string> request(const LiftGroup &group) const;
    [[nodiscard]] std::string libraryText(const LiftGroup &group) const;
    [[nodiscard]] Status shelve(const LiftGroup &group, LiftedCard lifted);
    [[nodiscard]] Status step(const LiftGroup &group, const std::string &title, const char *outcome,
                              const std::string &reason, const std::string &card);

    ActiveRun m_run;
    Context &m_context;
    skills::CardStore m_store;
    LiftInput m_input;
    std::vector<KnownCard> m_known; ///< the library as it was, and what this run added
    std::string m_system;
    int m_format = 1; ///< of the cards; runs of earlier versions go on as they began
    int m_stored = 0;
    int m_merged = 0;
};

Status Lifter::prepare()
{
    if (Status known = m_run.checkOptions({"again", "card_format"}); !known)
        return known;
    const Result<int> format = m_run.option("card_format", 1, 1, 2);
    if (!format)
        return tl::unexpected(format.error());
    m_format = *format;
    const Result<std::string> kept = m_context.journal.keep("groups.json", [this] { return gather(); });
    if (!kept)
        return tl::unexpected(kept.error());
    Result<LiftInput> input = parseLiftInput(*kept);
    if (!input)
        return tl::unexpected(input.error());
    m_input = std::move(*input);
    m_known = m_input.library;
    Result<std::string> system = prompt(m_format >= 2 ? "lift-system-2" : "lift-system");
    if (!system)
        return tl::unexpected(system.error());
    m_system = std::move(*system);
    return {};
}

Result<std::string> Lifter::gather() const
{
    const Result<int> again = m_run.option("again", 0, 0, 1);
    if (!again)
        return tl::unexpected(again.error());
    const Result<Workspace> workspace = openWorkspace(m_context.workspace);
    if (!workspace)
        return tl::unexpected(workspace.error());
    const std::vector<std::string> keys = liftedLineages(m_run.settings().subject);
    for (const std::string &key : keys) {
        if (!workspace->findLineage(key))
            return fail(ErrorCode::NotFound, "There is no lineage '" + key + "' in the workspace.");
    }
    return writeLiftInput(gatherGroups(*workspace, keys, *again == 1));
}

Result<Ending> Lifter::groups()
{
    if (Status ready = prepare(); !ready)
        return tl::unexpected(ready.error());
    const int maxSteps = m_run.settings().maxSteps;
    int done = 0;
    for (const LiftGroup &group : m_input.groups) {
        if (maxSteps > 0 && done >= maxSteps)
            return Ending{"step_limit", std::to_string(done) + " of " + std::to_string(m_input.groups.size())
                                            + " groups were lifted, the limit of the run."};
        if (Status lifted = lift(group); !lifted)
            return tl::unexpected(lifted.error());
        ++done;
    }
    return Ending{"complete", std::to_string(m_input.groups.size()) + " groups of transitions: "
                                  + std::to_string(m_stored) + " cards stored as hypotheses, "
                                  + std::to_string(m_merged) + " merged into others."};
}

Result<std::string> Lifter::request(const LiftGroup &group) const
{
    std::string citations;
    for (const auto &[citation, figures] : group.figures)
        citations += "- `" + citation + "`\n";
    std::map<std::string, std::string> values{
        {"category", group.category},       {"locus", group.locus},       {"signature", group.signature},
        {"transitions", group.transitions}, {"attempts", group.attempts}, {"citations", citations},
        {"library", libraryText(group)},    {"language", group.language}};
    if (m_format < 2)
        return prompt("lift-request", values);
    using Kind = skills::Vocabulary::Kind;
    const skills::Vocabulary &words = skills::Vocabulary::instance();
    values["features"] = quotedList(words.names(Kind::Capability));
    values["families"] = quotedList(words.names(Kind::Family));
    values["stronger"] = group.stronger.size() <= mostKernelBytes ? fenced(group.stronger, "c")
                                                                  : "It is too long to be shown.\n";
    return prompt("lift-request-2", values);
}

/// The cards that the group's may be another one of: those of its language whose words are nearest, most alike first.
std::string Lifter::libraryText(const LiftGroup &group) const
{
    const std::set<std::string> wanted = wordsOf(group.category + ' ' + group.locus);
    std::vector<std::pair<double, const KnownCard *>> near;
    for (const KnownCard &card : m_known) {
        if (card.language == group.language)
            near.emplace_back(
                -similarity(wordsOf(card.category + ' ' + card.locus + ' ' + card.intent), wanted), &card);
    }
    std::stable_sort(near.begin(), near.end(),
                     [](const auto &a, const auto &b) { return a.first < b.first; });
    if (near.size() > mostShown)
        near.resize(mostShown);
    std::string text;
    for (const auto &[distance, card] : near)
        text +=
            "- `" + card->name + "` (" + card->category + " at " + card->locus + "): " + card->intent + '\n';
    return text.empty() ? "It is empty.\n" : text;
}

Status Lifter::lift(const LiftGroup &group)
{
    Result<std::string> text = request(group);
    if (!text)
        return tl::unexpected(text.error());
    Conversation conversation;
    conversation.purpose = "lift";
    conversation.system = m_system;
    conversation.user(std::move(*text));
    const ActiveRun::Reader<LiftedCard> read = [&](const std::string &reply) -> Result<LiftedCard> {
        const Result<std::string> block = blockIn(reply, [&](const std::string &found) {
            return parseLiftedCard(found, group, m_known, m_format).has_value();
        });
        return block ? parseLiftedCard(*block, group, m_known, m_format) : tl::unexpected(block.error());
    };
    std::string findings;
    for (int attempt = 0; attempt < 2; ++attempt) {
        const auto answer = m_run.askFor(conversation, "asking for a card of " + group.category, read);
        if (!answer)
            return tl::unexpected(answer.error());
        if (!answer->value)
            return step(group, "no card", "failed", answer->problem, {});
        if (!answer->value->declined.empty())
            return step(group, "no card", "declined", answer->value->declined, {});
        findings.clear();
        for (const std::string &finding : findingsOf(*answer->value, group))
            findings += "- " + finding + '\n';
        if (findings.empty())
            return shelve(group, *answer->value);
        Result<std::string> repair = prompt("lift-repair", {{"findings", findings}});
        if (!repair)
            return tl::unexpected(repair.error());
        conversation.user(std::move(*repair));
    }
    return step(group, "no card", "failed",
                "The card was mended once and still cannot be stored: " + findings, {});
}

Status Lifter::shelve(const LiftGroup &group, LiftedCard lifted)
{
    const std::optional<std::string> duplicate =
        lifted.sameAs.empty() ? duplicateOf(lifted.card, m_known) : std::optional(lifted.sameAs);
    if (duplicate) {
        if (Status done = mergeCard(m_store, *duplicate, lifted.card, m_run.settings().id); !done)
            return done;
        ++m_merged;
    } else {
        lifted.card.name = freeName(lifted.card.name, m_known);
        if (Status done = storeCard(m_store, lifted); !done)
            return done;
        ++m_stored;
        m_known.push_back({lifted.card.name, group.language, lifted.card.category, lifted.card.locus,
                           lifted.card.intent.text});
    }
    const std::string name = duplicate.value_or(lifted.card.name);
    if (Status linked = linkTransitions(m_context.workspace, name, group.evidence); !linked)
        return linked;
    return step(group, lifted.card.intent.text, duplicate ? "merged" : "stored",
                duplicate ? "'" + name + "' says the same already; it has the new evidence now."
                          : "'" + name + "' is a hypothesis now.",
                name);
}

Status Lifter::step(const LiftGroup &group, const std::string &title, const char *outcome,
                    const std::string &reason, const std::string &card)
{
    StepRecord record;
    record.action = "lift";
    record.title = group.category + " at " + group.locus + ": " + title;
    record.outcome = outcome;
    record.reason = sentence(reason);
    if (!card.empty())
        record.cards = {card};
    return m_run.step(std::move(record));
}

} // namespace

Result<Ending> lift(Context &context)
{
    return Lifter(context).run();
}

} // namespace klineage::run
