// SPDX-License-Identifier: GPL-3.0-or-later
// What a run will probably cost, and what else to know before it starts.
#include "core/base/numbertext.h"
#include "core/kernel/candidatetext.h"
#include "core/llm/makeprovider.h"
#include "core/policy/lineagepolicy.h"
#include "core/policy/policy.h"
#include "core/run/admit/heldout.h"
#include "core/run/drive/start.h"
#include "core/run/lift/group.h"
#include "core/run/materialize/cards.h"
#include "core/talk/cardtext.h"
#include "core/talk/trialtext.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace klineage::run {

namespace {

namespace fs = std::filesystem;

using MaybeEstimate = Result<std::optional<Estimate>>;

constexpr std::size_t rulesBytes = 6000;    ///< of the system prompt beside root and cards
constexpr std::size_t turnBytes = 12'000;   ///< a verdict and a candidate, a question later
constexpr std::int64_t likelyOutput = 4000; ///< tokens: a candidate and a few sentences
constexpr double bytesPerToken = 3.5;
constexpr std::size_t mostCountedCards =
    2000;                          ///< of a larger library the count would take too long to type beside
constexpr int questionsOfStep = 3; ///< of a deoptimization: propose, rewrite, derive again

std::string optionOf(const Settings &settings, const char *name)
{
    const auto it = settings.options.find(name);
    return it == settings.options.end() ? std::string() : it->second;
}

std::size_t sizeOf(const fs::path &file)
{
    std::error_code problem;
    const std::uintmax_t size = fs::file_size(file, problem);
    return problem ? 0 : static_cast<std::size_t>(size);
}

fs::path fileOf(const Workspace &workspace, const std::string &name)
{
    if (const FoundState found = findState(workspace, name); found.state)
        return found.lineage->directory / found.state->file;
    return fs::path(name).is_absolute() ? fs::path(name) : workspace.root / name;
}

/// Of the kernel and of what its workload says.
std::size_t kernelBytes(const Workspace &workspace, const Settings &settings, const std::string &name)
{
    const workload::Workload *workload = workspace.findWorkload(settings.workload);
    return sizeOf(fileOf(workspace, name)) + (workload ? sizeOf(workload->directory / "workload.toml") : 0);
}

/// At most what the library has of cards of the language that may be shown: which of them fit is only known when the run begins. Where
/// a question has a limit, what it leaves beside the rules and the kernel.
std::size_t cardBytes(const Workspace &workspace, const Settings &settings, std::size_t besideBytes)
{
    std::size_t bytes = 0;
    if (!policy::usesCards(settings.policy, settings.options))
        return bytes;
    const bool index = policy::showsIndex(settings.options);
    const bool hypotheses = optionOf(settings, "hypotheses") == "yes";
    std::size_t largest = 0; // the text of the one that is applied comes to the index
    for (const skills::CardRecord &record : workspace.cards) {
        const std::vector<std::string> &languages = record.card.scope.languages;
        const skills::Life life = record.life();
        const bool isShown =
            life == skills::Life::Admitted || (life == skills::Life::Hypothesis && hypotheses);
        if (!isShown || std::find(languages.begin(), languages.end(), settings.surface) == languages.end())
            continue;
        const std::size_t text = policy::cardText(record).size();
        bytes += index ? policy::indexLine(record).size() : text;
        largest = std::max(largest, text);
    }
    if (index)
        bytes += largest;
    const Result<policy::Limits> limits = policy::readLimits(settings.options);
    const std::size_t most = limits ? limits->promptBytes : 0;
    return most > 0 ? std::min(bytes, most - std::min(most, besideBytes)) : bytes;
}

MaybeEstimate estimateDeoptimize(const Workspace &workspace, const Settings &settings,
                                 const llm::PriceTable &prices)
{
    Settings asked = settings;
    asked.maxSteps *= questionsOfStep;
    MaybeEstimate estimate =
        estimateCost(asked, true, prices, kernelBytes(workspace, settings, settings.subject), 0);
    if (estimate && *estimate)
        (*estimate)->text += " A step that is kept takes three questions or more.";
    return estimate;
}

MaybeEstimate estimateAdmit(const Workspace &workspace, const Settings &settings,
                            const llm::PriceTable &prices)
{
    std::size_t bytes = kernelBytes(workspace, settings, optionOf(settings, "target"));
    if (const skills::CardRecord *card = workspace.findCard(settings.subject))
        bytes += policy::cardText(*card).size();
    Settings asked = settings;
    const std::string attempts = optionOf(settings, attemptsOption.name);
    asked.maxSteps = attempts.empty() ? attemptsOption.absent : std::atoi(attempts.c_str());
    return estimateCost(asked, true, prices, bytes, 0);
}

LiftInput groupsOf(const Workspace &workspace, const Settings &settings)
{
    return gatherGroups(workspace, liftedLineages(settings.subject), optionOf(settings, "again") == "1");
}

std::string groupsNote(const Workspace &workspace, const Settings &settings)
{
    const std::size_t groups = groupsOf(workspace, settings).groups.size();
    if (groups == 0)
        return "Nothing is left to lift: there is no transition that no card rests on yet.";
    return groups == 1 ? "One group of transitions will be lifted."
                       : std::to_string(groups) + " groups of transitions can be lifted, a card each.";
}

/// Each group of transitions is a conversation of its own.
MaybeEstimate estimateLift(const Workspace &workspace, const Settings &settings,
                           const llm::PriceTable &prices)
{
    const LiftInput input = groupsOf(workspace, settings);
    std::size_t bytes = 0;
    for (const LiftGroup &group : input.groups)
        bytes += group.transitions.size() + group.attempts.size();
    const std::size_t count = std::max<std::size_t>(1, input.groups.size());
    Settings one = settings;
    one.maxSteps = 1;
    MaybeEstimate estimate = estimateCost(one, true, prices, bytes / count, 0);
    if (!estimate || !*estimate)
        return estimate;
    Estimate &of = **estimate;
    int groups = static_cast<int>(input.groups.size());
    if (settings.maxSteps > 0)
        groups = std::min(groups, settings.maxSteps);
    of.laterDollars = of.firstDollars;
    of.questions = of.firstDollars > 0
                       ? static_cast<int>(std::min<double>(groups, settings.capDollars / of.firstDollars))
                       : groups;
    of.dollars = of.questions * of.firstDollars;
    if (groups == 0) {
        of.text = "Nothing will be asked.";
        return estimate;
    }
    of.text = fmt::format(
        "A card will cost about ${}: about {} questions and ${} within the cap of ${}, by the prices of {}.",
        fixedText(of.firstDollars, 4), of.questions, fixedText(of.dollars, 2),
        fixedText(settings.capDollars, 2), prices.date);
    return estimate;
}

std::string heldOutNote(const Workspace &workspace, const Settings &settings)
{
    const skills::CardRecord *card = workspace.findCard(settings.subject);
    const std::string name = optionOf(settings, "target");
    Result<std::string> text = kernel::readCandidateText(fileOf(workspace, name));
    if (!card || !text)
        return {};
    Subject target;
    target.label = name;
    target.text = std::move(*text);
    if (const FoundState found = findState(workspace, name); found.lineage)
        target.lineage = found.lineage->key();
    const HeldOut held = isHeldOut(workspace, card->card, target, settings.workload, settings.platform);
    return held.value ? "The target is held out: a gain on it admits the card."
                      : "The target cannot admit the card. " + held.reason;
}

/// How many cards the author is shown, and how many are not because nobody proved them yet. Empty where the policy shows none.
std::string cardsNote(const Workspace &workspace, const Settings &settings)
{
    const bool isCounted =
        policy::usesCards(settings.policy, settings.options) && workspace.cards.size() <= mostCountedCards;
    Subject root;
    root.label = settings.subject;
    if (const FoundState found = findState(workspace, settings.subject); found.state) {
        root.lineage = found.lineage->key();
        root.label = root.lineage + '/' + found.state->id;
    }
    Result<std::string> text = kernel::readCandidateText(fileOf(workspace, settings.subject));
    if (!isCounted || !text)
        return {};
    root.text = std::move(*text);
    const std::string asked = optionOf(settings, "most_cards");
    const int most = asked.empty() ? mostCardsAbsent : static_cast<int>(numberIn(asked));
    const auto chosen = [&](const char *hypotheses) {
        Settings with = settings;
        with.options["hypotheses"] = hypotheses;
        return chooseCards(workspace, with, root, most).taken;
    };
    const auto cards = [](std::size_t count) {
        return std::to_string(count) + (count == 1 ? " card" : " cards");
    };
    const std::vector<TakenCard> all = chosen("yes");
    const auto unproven =
        static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&workspace](const TakenCard &taken) {
            const skills::CardRecord *record = workspace.findCard(taken.card.name);
            return record && record->life() == skills::Life::Hypothesis;
        }));
    if (all.empty())
        return "No card of the library fits this kernel: the author is shown none.";
    if (unproven == 0)
        return "The author is shown " + cards(all.size()) + '.';
    if (optionOf(settings, "hypotheses") == "yes")
        return fmt::format(
            "The author is shown {}, {} of them without proof: hypotheses that no held-out roundtrip has admitted.",
            cards(all.size()), unproven);
    const std::size_t shown = chosen("no").size();
    return "The author is shown " + (shown == 0 ? "no cards" : cards(shown)) + ": " + cards(unproven)
           + (shown == 0 ? "" : " more") + " would fit, but no held-out roundtrip has admitted "
           + (unproven == 1 ? "it: it is a hypothesis." : "them: they are hypotheses.");
}

} // namespace

MaybeEstimate estimateCost(const Settings &settings, bool isPaid, const llm::PriceTable &prices,
                           std::size_t rootBytes, std::size_t cardBytes)
{
    if (!isPaid)
        return std::optional<Estimate>();
    const llm::Price *price = prices.find(settings.model);
    if (!price)
        return tl::unexpected(llm::unknownPrice(prices, settings.model));
    const auto tokens = [](std::size_t bytes) {
        return static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) / bytesPerToken));
    };
    const std::int64_t prefix = tokens(rulesBytes + rootBytes + cardBytes);
    llm::Usage first;
    first.cacheWrite = prefix;
    first.input = 500;
    first.output = cardBytes > 0 ? 500 : likelyOutput; // the answer to the load is a short plan
    llm::Usage later;
    later.cacheRead = prefix + tokens(4 * turnBytes); // the chat in the middle of its life
    later.cacheWrite = tokens(turnBytes);
    later.output = likelyOutput;
    Estimate estimate;
    estimate.firstDollars = llm::dollars(*price, first);
    estimate.laterDollars = llm::dollars(*price, later);
    const double left = std::max(0.0, settings.capDollars - estimate.firstDollars);
    const double affordable = estimate.laterDollars > 0 ? left / estimate.laterDollars : 1e6;
    estimate.questions =
        static_cast<int>(std::min(affordable, 1e6)) + (settings.capDollars >= estimate.firstDollars);
    if (settings.maxSteps > 0)
        estimate.questions = std::min(estimate.questions, settings.maxSteps);
    if (estimate.questions > 0)
        estimate.dollars = estimate.firstDollars + (estimate.questions - 1) * estimate.laterDollars;
    estimate.text = fmt::format(
        "The first question will cost about ${}, each after it about ${}: about {} questions and ${} within the cap of ${}, by the prices of {}.",
        fixedText(estimate.firstDollars, 4), fixedText(estimate.laterDollars, 4), estimate.questions,
        fixedText(estimate.dollars, 2), fixedText(settings.capDollars, 2), prices.date);
    return std::optional(std::move(estimate));
}

bool isPaid(const Settings &settings)
{
    const auto paid = settings.author.find("paid");
    if (paid != settings.author.end())
        return paid->second == "yes";
    const auto baseUrl = settings.author.find("base_url");
    return llm::isPaidUnlessSaid(settings.provider,
                                 baseUrl == settings.author.end() ? std::string() : baseUrl->second);
}

MaybeEstimate startEstimate(const Workspace &workspace, const Settings &settings)
{
    if (!isPaid(settings))
        return std::optional<Estimate>();
    const Result<llm::PriceTable> prices = llm::loadPrices(workspace.root);
    if (!prices)
        return tl::unexpected(prices.error());
    switch (settings.kind) {
    case Kind::Deoptimize:
        return estimateDeoptimize(workspace, settings, *prices);
    case Kind::Lift:
        return estimateLift(workspace, settings, *prices);
    case Kind::Admit:
        return estimateAdmit(workspace, settings, *prices);
    case Kind::Materialize:
        break;
    }
    const std::size_t kernel = kernelBytes(workspace, settings, settings.subject);
    return estimateCost(settings, true, *prices, kernel, cardBytes(workspace, settings, rulesBytes + kernel));
}

std::vector<std::string> startNotes(const Workspace &workspace, const Settings &settings)
{
    std::vector<std::string> notes;
    const bool mayRemember = settings.provider == "manual" || settings.provider == "exec";
    if (settings.kind == Kind::Deoptimize) {
        const std::string name = optionOf(settings, "name");
        notes.push_back("The walk becomes the lineage " + settings.workload + '/' + settings.platform
                        + (name.empty() ? "" : '-' + name) + '.');
        if (mayRemember)
            notes.push_back("Each \"rederive\" question wants an author without memory of the others.");
    } else if (settings.kind == Kind::Lift) {
        notes.push_back(groupsNote(workspace, settings));
    } else if (settings.kind == Kind::Admit) {
        if (std::string note = heldOutNote(workspace, settings); !note.empty())
            notes.push_back(std::move(note));
        if (mayRemember)
            notes.push_back("The run wants an author that has not seen the card's own kernels.");
    } else if (std::string note = cardsNote(workspace, settings); !note.empty()) {
        notes.push_back(std::move(note));
    }
    return notes;
}

} // namespace klineage::run
